//! DA-SCAN: reads the whole fact table, filters and counts.

use super::da;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::program::{Generator, Step};
use crate::workload::Workload;

/// DA-SCAN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-SCAN",
    summary: "scan of the fact table with a filter: count and sum",
    description: "Each transaction is one query that reads the whole fact table, counts the rows that pass a filter on two columns (about one in four; a third condition passes all rows and only makes each query different) and sums one column of them. No index helps, and queries do not run in parallel: more jobs are more queries. The figures are rows and MiB (of the table as stored) per second.",
    program: |_| {
        let below = Step::bind("below", Generator::Uniform { from: 1_775, range: 101, salt: 0 });
        let sql = "SELECT COUNT(*) AS n, SUM(amount) AS total FROM {fact} WHERE day < :below AND day >= :from AND amount >= 50000";
        da::program(&[below, da::EVERY_DAY], &[(sql, 1)])
    },
    instruments: &[Instrument::Limit(&[Limit::Loop(Loop::Scan)])],
    ..da::BASE
};
