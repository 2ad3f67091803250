//! TP-REPORT: 500 entries of a ledger.

use loadline_model::column;

use super::tp;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::workload::{Kpi, Workload};

const KPIS: &[Kpi] =
    &[tp::KPIS[0], Kpi { column: column::ROWS_PER_S, title: "rows fetched" }, tp::KPIS[1], tp::KPIS[2]];

/// TP-REPORT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-REPORT",
    summary: "reads 500 consecutive entries of a ledger",
    description: "Each transaction is one query that reads 500 ledger entries in key order, starting at a random one, and fetches them all, like a statement of account. Nothing is changed. Every query is checked to return 500 rows.",
    named_for: tp::READS,
    spoiled_by: tp::SPOILED_BY_READ,
    kpis: KPIS,
    tables: &[tp::ENTRY],
    params: &[tp::ENTRIES],
    needs: tp::NEEDS_READ,
    program: |params| tp::program(params, tp::report),
    instruments: &[Instrument::Limit(&[Limit::Statements])],
    ..tp::BASE
};
