//! SRV-QUERY1: one row by primary key.

use loadline_model::column;

use super::srv;
use crate::program::{Commit, Generator, Program, Step};
use crate::workload::{Kpi, Workload};

/// SRV-QUERY1.
pub(super) static WORKLOAD: Workload = Workload {
    code: "SRV-QUERY1",
    summary: "one row by primary key, from the cache",
    description: "Each transaction is one query that fetches one random row by its primary key; the table is in the database's cache. The figures are how many such queries the CPUs execute per second and how long one takes: the cost of executing a prepared query, few locks, an index search and sending one row.",
    kpis: &[
        Kpi { column: column::QUERIES_PER_S, title: "queries" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of a query" },
    ],
    program: |_| Program {
        statements: vec![srv::one_row()],
        body: vec![Step::bind("seq", Generator::Sequence), srv::key(1, 0), Step::Execute { statement: 0 }],
        commit: Commit::Wait,
    },
    ..srv::BASE
};
