//! TP-REPORT: 500 entries of a ledger.

use loadline_model::column;

use super::tp;
use crate::workload::{Kpi, Workload};

const KPIS: &[Kpi] =
    &[tp::KPIS[0], Kpi { column: column::ROWS_PER_S, title: "rows fetched" }, tp::KPIS[1], tp::KPIS[2]];

/// TP-REPORT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-REPORT",
    summary: "reads 500 consecutive entries of a ledger",
    description: "Each transaction is one query that reads 500 ledger entries in key order, starting at a random one, and fetches them all, like a statement of account. Nothing is changed. Every query is checked to return 500 rows.",
    kpis: KPIS,
    tables: &[tp::ENTRY],
    params: &[tp::ENTRIES],
    program: |params| tp::program(params, tp::report),
    ..tp::READING
};
