//! DBWR-THR: the rate at which changed blocks reach storage.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

/// DBWR-THR.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBWR-THR",
    group: "database-writer",
    summary: "updates spread over all blocks of a table much larger than the cache: blocks written per second",
    description: "Each transaction changes one random row of a large table, so that nearly every change makes another block dirty. The cache holds a small part of them, so blocks must reach the data files as fast as they are changed. The figures are blocks and MiB per second that the database wrote to its data files. The commit does not wait: the log is not what is measured, though every change goes there as well, with the whole block where the database logs whole blocks after a checkpoint.",
    spoiled_by: "A cache that takes the changes in: the database's own (a private server's is made small for these tests; on another server give a --size of at least ten times its cache, and a long warm-up) or the operating system's (loadline has it write and drop the data files over and over where it runs on the same machine and may read them). The check data-written holds the blocks written against the rows changed, and the device's writes against both. What else writes to that device makes the comparison too good and the figures too low.",
    kpis: &[
        Kpi { column: column::PHYSICAL_WRITTEN_BLOCKS_PER_S, title: "blocks written" },
        Kpi { column: column::PHYSICAL_WRITTEN_MIB_PER_S, title: "data written" },
        Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "updates" },
    ],
    tables: &[sto::BLOCKS],
    needs: &[Capability::Rows, Capability::CommitNowait],
    instruments: &[Instrument::Device],
    program: |params| Program {
        statements: vec![sto::update()],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            sto::key(sto::rows(params), 0),
            sto::payload(),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Nowait,
    },
    ..Workload::BASE
};
