//! STO-READ: random single-block reads, one after the other.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

/// STO-READ.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-READ",
    group: "storage",
    summary: "random single-block reads from the device, each waited for",
    description: "Each transaction is one query that fetches one random row of a large table by its primary key. The database's cache is too small for the table and large enough for what leads to a row in it, so a transaction is one read of a block, and a job waits for each. The figures are such reads per second, and how long they take: the mean as the database itself times its reads, where it does, and median, p99 and the share of up to 512 µs from the times of the transactions, which hold the work around the read as well (the histogram is that of the transactions). They are given only where a transaction was 0.9 to 1.25 reads. Over the network the time at the client holds a round trip: prefer the database driver.",
    spoiled_by: sto::SPOILED_BY,
    kpis: &[
        Kpi { column: column::BLOCK_READS_PER_S, title: "reads" },
        Kpi { column: column::READ_TIME_US_MEAN, title: "time of a read" },
        Kpi { column: column::READS_WITHIN_512US_PCT, title: "reads of up to 512 µs" },
    ],
    tables: sto::READ_TABLES,
    needs: &[Capability::Rows, Capability::ReadRows],
    instruments: &[Instrument::Device],
    program: |params| Program {
        statements: vec![sto::one_row()],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            sto::key(sto::rows(params), 0),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Wait,
    },
    ..Workload::BASE
};
