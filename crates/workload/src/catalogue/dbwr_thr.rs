//! DBWR-THR: the rate at which changed blocks reach storage.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::named_for::{Component, NamedFor};
use crate::program::Commit;
use crate::workload::{Kpi, Workload};

/// DBWR-THR.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBWR-THR",
    group: "database-writer",
    summary: "updates spread over all blocks of a table much larger than the cache: blocks written per second",
    description: "Each transaction changes one random row of a large table, so nearly every change makes another block dirty. The cache holds a small part of the blocks, so they must be written to the data files as fast as they are changed. The figures are blocks and MiB per second that the database wrote to its data files. The commit does not wait: the log is not measured, although every change is logged as well, with the whole block if the database logs whole blocks after a checkpoint.",
    named_for: NamedFor {
        components: &[Component::DeviceWrites],
        doing: "the database writer, which writes changed blocks to the data files",
        instead: &[],
    },
    spoiled_by: "A cache that absorbs the changes: the database's own (a private server's is made small for these tests; on another server use a --size of at least ten times its cache, and a long warm-up) or the operating system's (loadline makes it write and drop the data files continuously, if it runs on the same machine and may read them). The check data-written compares the blocks written with the rows changed, and the device's writes with both. Other writes to that device make the comparison too good and the figures too low.",
    kpis: &[
        Kpi { column: column::PHYSICAL_WRITTEN_BLOCKS_PER_S, title: "blocks written" },
        Kpi { column: column::PHYSICAL_WRITTEN_MIB_PER_S, title: "data written" },
        Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "updates" },
    ],
    tables: &[sto::BLOCKS],
    needs: &[Capability::Rows, Capability::CommitNowait],
    instruments: &[Instrument::Device],
    program: |params| sto::update_one(params, Commit::Nowait),
    ..Workload::BASE
};
