//! SRV-SCAN: full scan of a cached table with a filter.

use loadline_model::column;

use super::srv;
use crate::data::LOOKUPS;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Volume, Workload};

/// SRV-SCAN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "SRV-SCAN",
    summary: "full scan of a cached table with a filter",
    description: "Each transaction is one query that reads a table of 100,000 rows completely from the database's cache and sums one column of the rows that pass a filter (one in ten). No index helps, and queries do not run in parallel: more jobs are more queries. The figures are MiB (of the table as stored) and rows per second.",
    kpis: &[
        Kpi { column: column::DATA_MIB_PER_S, title: "data scanned" },
        Kpi { column: column::ROWS_PER_S, title: "rows scanned" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a scan" },
    ],
    instruments: &[Instrument::CacheHit, Instrument::Limit(&[Limit::Memory, Limit::Loop(Loop::Lookup)])],
    volume: Some(|_| Volume { rows: LOOKUPS as f64, tables: &["lookup"], share: 1.0, ..Volume::default() }),
    program: |_| Program {
        statements: vec![srv::scan()],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            // A different filter each time: no result can be cached.
            Step::bind("below", Generator::Uniform { from: 90, range: 21, salt: 0 }),
            Step::Execute { statement: 0 },
        ],
        commit: Commit::Wait,
    },
    ..srv::BASE
};
