//! DA-SORT: sorts the fact table, and finds the largest rows.

use loadline_model::column;

use super::da;
use crate::data::fact_rows;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::workload::{Kpi, Workload};

/// Rows that each of the two queries returns.
const ROWS: u64 = 100;

/// DA-SORT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-SORT",
    summary: "sort of the fact table, and its 100 largest rows",
    description: "Each transaction is two queries on all rows of the fact table. The first returns the 100 rows in the middle of the table sorted by amount: half of the table must be sorted to find them, and a database that keeps only the needed rows keeps half of them. The second returns the 100 rows with the largest amounts, for which a heap of 100 is enough. Sorted rows are three numbers wide; a sort that exceeds the query's memory goes to temporary files.",
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows of the fact table" },
        Kpi { column: column::DATA_MIB_PER_S, title: "data" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time of both queries, begin and commit included" },
    ],
    volume: Some(|params| da::volume(params, 2)),
    program: |params| {
        let middle = fact_rows(params).saturating_sub(ROWS) / 2;
        let sort = format!(
            "SELECT id, amount, day FROM {{fact}} WHERE day >= :from ORDER BY amount, id {{first {ROWS} after {middle}}}"
        );
        let top = format!(
            "SELECT id, amount, day FROM {{fact}} WHERE day >= :from ORDER BY amount DESC, id {{first {ROWS}}}"
        );
        da::program(&[da::EVERY_DAY], &[(&sort, ROWS), (&top, ROWS)])
    },
    instruments: &[Instrument::Limit(&[Limit::Loop(Loop::Sort)])],
    ..da::BASE
};
