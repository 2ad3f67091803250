//! STO-READ: random single-block reads, one after the other.

use loadline_model::column;

use super::sto;
use crate::data::FACT;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

/// STO-READ.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-READ",
    summary: "random single-block reads from the device, one at a time",
    description: "Each transaction is one query that fetches one random row of a large table by its primary key. The database's cache is too small for the table but holds the index above it, so a transaction is one block read, and a job waits for each. The figures are these reads per second and their time: the mean as timed by the database, if it times reads; the median, p99 and the share of up to 512 µs from the transaction times, which include the work around the read (the histogram is that of the transactions). They are given only if a transaction was 0.9 to 1.25 reads. Over a network, times at the client include a round trip: prefer the database driver.",
    kpis: &[
        Kpi { column: column::BLOCK_READS_PER_S, title: "reads" },
        Kpi { column: column::READ_TIME_US_MEAN, title: "time of a read" },
        Kpi { column: column::READS_WITHIN_512US_PCT, title: "reads of up to 512 µs" },
    ],
    tables: &[FACT],
    instruments: &[Instrument::Device, Instrument::Limit(&[Limit::BlockReads])],
    program: |params| Program {
        statements: vec![sto::one_row()],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            sto::key(sto::rows(params), 0),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Wait,
    },
    ..sto::BASE
};
