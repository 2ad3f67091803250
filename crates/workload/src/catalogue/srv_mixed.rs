//! SRV-MIXED: queries of single rows and ranges, and some scans.

use loadline_model::column;

use super::srv;
use crate::params::Param;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

const PARAMS: &[Param] = &[
    Param { name: "single", default: 60, min: 1, max: 10_000, meaning: "queries of one row per transaction" },
    Param { name: "ranges", default: 39, min: 1, max: 10_000, meaning: "queries of 25 rows per transaction" },
];

/// SRV-MIXED.
pub(super) static WORKLOAD: Workload = Workload {
    code: "SRV-MIXED",
    summary: "60 queries of one row, 39 of 25 rows and one scan in a transaction, from the cache",
    description: "Each transaction executes 60 queries of one row by primary key, 39 of 25 rows by a range of it, and one full scan with a filter: short and long work side by side, as on real servers. The figure is queries per second of this mix.",
    kpis: &[
        Kpi { column: column::QUERIES_PER_S, title: "queries" },
        Kpi { column: column::ROWS_PER_S, title: "rows fetched" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a mix of 100 queries" },
    ],
    params: PARAMS,
    program: |params| {
        let times = |name: &str| params.get(name).max(1) as u32;
        let seq = || Step::bind("seq", Generator::Sequence);
        Program {
            statements: vec![srv::one_row(), srv::range(), srv::scan()],
            body: vec![
                Step::Repeat {
                    times: times("single"),
                    body: vec![seq(), srv::key(1, 0), Step::Execute { statement: 0 }],
                },
                Step::Repeat {
                    times: times("ranges"),
                    body: vec![
                        seq(),
                        srv::key(25, 1),
                        Step::bind("last", Generator::Plus { var: "id", by: 24 }),
                        Step::Execute { statement: 1 },
                    ],
                },
                Step::bind("below", Generator::Uniform { from: 90, range: 21, salt: 2 }),
                Step::Execute { statement: 2 },
            ],
            commit: Commit::Wait,
        }
    },
    ..srv::BASE
};
