//! TP-REPORT: 500 entries of a ledger.

use loadline_model::column;

use super::tp;
use crate::workload::{Kpi, Workload};

const KPIS: &[Kpi] =
    &[tp::KPIS[0], Kpi { column: column::ROWS_PER_S, title: "rows fetched" }, tp::KPIS[1], tp::KPIS[2]];

/// TP-REPORT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-REPORT",
    group: "transaction-processing",
    summary: "reads 500 entries of a ledger that follow each other",
    description: "Each transaction is one query that reads 500 entries of a ledger, from a random one on, in the order of their keys, and fetches them all: a statement of account. Nothing is changed. That each query returned 500 rows is checked with every one.",
    spoiled_by: tp::SPOILED_BY_READ,
    kpis: KPIS,
    tables: &[tp::ENTRY],
    params: &[tp::ENTRIES],
    needs: tp::NEEDS_READ,
    program: |params| {
        let mut s = tp::Statements::new();
        let mut body = vec![tp::sequence()];
        body.extend(tp::report(&mut s, params));
        s.program(body)
    },
    ..Workload::BASE
};
