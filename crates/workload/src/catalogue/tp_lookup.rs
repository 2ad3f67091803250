//! TP-LOOKUP: one account by its key.

use super::tp;
use crate::workload::Workload;

/// TP-LOOKUP.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-LOOKUP",
    summary: "reads one account by its key",
    description: "Each transaction is one query that reads one random account by its primary key, like the start of a customer page. Nothing is changed. Every query is checked to return one row.",
    tables: &[tp::ACCOUNT],
    params: &[tp::ACCOUNTS],
    program: |params| tp::program(params, tp::lookup),
    ..tp::READING
};
