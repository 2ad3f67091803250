//! DBL-12: several rows in one statement.

use loadline_model::{Capability, column};

use super::dbl;
use crate::workload::{Kpi, Param, Sweep, Workload};

const PARAMS: &[Param] = &[Param {
    name: "rows",
    default: 20,
    min: 1,
    max: dbl::MOST_ROWS as i64,
    meaning: "rows of the one INSERT of a transaction",
}];

/// DBL-12.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-12",
    group: "data-load",
    summary: "multi-row inserts: one INSERT of 1 to 100 rows per transaction",
    description: "As DBL-11, but all rows of a transaction come in one INSERT statement: one parse, one round trip, one transaction. First one job with 1, 2, 5, 10, 20, 50 and 100 rows per statement, then 20 rows over rising numbers of jobs. Held against DBL-11 with as many rows per transaction it says what a statement costs beside the row. A database that takes several rows in VALUES gets them so; one that does not gets INSERT ALL.",
    spoiled_by: dbl::SPOILED_BY,
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows inserted" },
        Kpi { column: column::TX_PER_S, title: "transactions" },
        Kpi { column: column::SQL_SERVICE_TIME_S, title: "time in the statement of a transaction" },
    ],
    tables: dbl::ENTRIES,
    params: PARAMS,
    needs: &[Capability::Rows, Capability::Redo, Capability::CommitWait],
    sweep: Sweep::Parameter {
        name: "rows",
        values: &[1, 2, 5, 10, 20, 50, 100],
        column: column::ROWS_PER_TX,
        then_jobs: true,
    },
    evidence: Some(dbl::ENTRIES_EVIDENCE),
    program: |params| dbl::one_statement(params.get("rows")),
    ..Workload::BASE
};
