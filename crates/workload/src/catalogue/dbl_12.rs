//! DBL-12: several rows in one statement.

use loadline_model::column;

use super::dbl;
use crate::params::Param;
use crate::workload::{Kpi, Sweep, Workload};

const PARAMS: &[Param] = &[Param {
    name: "rows",
    default: 20,
    min: 1,
    max: dbl::MAX_ROWS as i64,
    meaning: "rows of a transaction's INSERT",
}];

/// DBL-12.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-12",
    summary: "multi-row inserts: one INSERT of 1 to 100 rows per transaction",
    description: "As DBL-11, but all rows of a transaction are in one INSERT statement: one parse, one round trip, one transaction. First one job with 1, 2, 5, 10, 20, 50 and 100 rows per statement, then 20 rows over rising numbers of jobs. Compared with DBL-11 at the same number of rows per transaction, it shows the cost of a statement in addition to its row. Databases without several rows in VALUES get INSERT ALL.",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows inserted" },
        Kpi { column: column::TX_PER_S, title: "transactions" },
        Kpi { column: column::SQL_SERVICE_TIME_S, title: "time in the statement of a transaction" },
    ],
    params: PARAMS,
    sweep: Sweep::Parameter {
        name: "rows",
        values: &[1, 2, 5, 10, 20, 50, 100],
        column: column::ROWS_PER_TX,
        then_jobs: true,
    },
    program: |params| dbl::one_statement(params.get("rows")),
    ..dbl::BASE
};
