//! DA-SCAN: reads the fact table from end to end, filters and counts.

use super::da;
use crate::program::{Generator, Step};
use crate::workload::Workload;

/// DA-SCAN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-SCAN",
    summary: "scan of the fact table with a filter: count and sum",
    description: "Each transaction is one query that reads the fact table from end to end and counts the rows that a filter on two columns lets pass (about one in four; a third condition passes all and is there so that no two queries are the same) and sums one of their columns. No index helps, and no query is run in parallel: more jobs are more queries. The figures are rows and MiB (of the table as it is stored) per second.",
    program: |_| {
        let below = Step::bind("below", Generator::Uniform { from: 1_775, range: 101, salt: 0 });
        let sql = "SELECT COUNT(*) AS n, SUM(amount) AS total FROM {fact} WHERE day < :below AND day >= :from AND amount >= 50000";
        da::program(&[below, da::EVERY_DAY], &[(sql, 1)])
    },
    ..da::BASE
};
