//! TP-LOOKUP: one account by its key.

use super::tp;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::workload::Workload;

/// TP-LOOKUP.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-LOOKUP",
    summary: "reads one account by its key",
    description: "Each transaction is one query that reads one random account by its primary key, like the start of a customer page. Nothing is changed. Every query is checked to return one row.",
    named_for: tp::READS,
    spoiled_by: tp::SPOILED_BY_READ,
    tables: &[tp::ACCOUNT],
    params: &[tp::ACCOUNTS],
    needs: tp::NEEDS_READ,
    program: |params| tp::program(params, tp::lookup),
    instruments: &[Instrument::Limit(&[Limit::Statements])],
    ..tp::BASE
};
