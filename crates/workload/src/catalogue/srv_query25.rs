//! SRV-QUERY25: 25 rows by index range.

use loadline_model::column;

use super::srv;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

/// SRV-QUERY25.
pub(super) static WORKLOAD: Workload = Workload {
    code: "SRV-QUERY25",
    summary: "25 rows by a range of the primary key, from the cache",
    description: "Each transaction is one query that fetches 25 consecutive rows by primary key, starting at a random one; the table is in the database's cache. The figures are queries and rows per second.",
    kpis: &[
        Kpi { column: column::QUERIES_PER_S, title: "queries" },
        Kpi { column: column::ROWS_PER_S, title: "rows" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a query" },
    ],
    program: |_| Program {
        statements: vec![srv::range()],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            srv::key(25, 0),
            Step::bind("last", Generator::Plus { var: "id", by: 24 }),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Wait,
    },
    ..srv::BASE
};
