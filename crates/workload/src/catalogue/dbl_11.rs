//! DBL-11: conventional inserts, one statement per row.

use loadline_model::column;

use super::dbl;
use crate::params::Param;
use crate::program::{Commit, Program, Step};
use crate::workload::{Kpi, Sweep, Workload};

const PARAMS: &[Param] =
    &[Param { name: "rows", default: 2, min: 1, max: 100_000, meaning: "rows, and INSERTs, per transaction" }];

/// DBL-11.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-11",
    summary: "conventional inserts: one INSERT per row, 1 to 100 rows per transaction",
    description: "Each transaction inserts rows into an empty table with a primary key, one INSERT statement per row as applications do, and commits durably. First one job with 1, 2, 4, 5, 10, 20, 50 and 100 rows per transaction: more and more rows share the cost of a commit. Then 2 rows per transaction over rising numbers of jobs. Keys are new and ascending within a job; a row has 24 bytes of numbers and 120 bytes of payload. The SQL service time is the mean time in the statements of a transaction, without its commit. Every point uses separate transactions and commits, also that of one row.",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows inserted" },
        Kpi { column: column::TX_PER_S, title: "transactions" },
        Kpi { column: column::SQL_SERVICE_TIME_S, title: "time in the statements of a transaction" },
    ],
    params: PARAMS,
    sweep: Sweep::Parameter {
        name: "rows",
        values: &[1, 2, 4, 5, 10, 20, 50, 100],
        column: column::ROWS_PER_TX,
        then_jobs: true,
    },
    program: |params| {
        let mut body = dbl::ONE.bind().to_vec();
        body.push(Step::Execute { statement: 0 });
        Program {
            statements: vec![dbl::insert(&[dbl::ONE])],
            body: vec![Step::Repeat { times: params.get("rows").max(1) as u32, body }],
            commit: Commit::Wait,
        }
    },
    ..dbl::BASE
};
