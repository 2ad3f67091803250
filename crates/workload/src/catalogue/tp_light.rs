//! TP-LIGHT: one change of one account, durable.

use super::tp;
use crate::workload::{Evidence, Workload};

/// TP-LIGHT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-LIGHT",
    summary: "moves money between the balance and the savings of an account: one statement, durable commit",
    description: "Each transaction is one UPDATE of a random account: an amount moves from its balance to its savings. The commit waits until that is durable. Unlike in LGWR-LAT1, all jobs share the rows: transactions can meet at a row and wait for each other, more rarely with more accounts.",
    tables: &[tp::ACCOUNT],
    params: &[tp::ACCOUNTS],
    evidence: Some(Evidence { query: "SELECT SUM(changes) FROM {account}", counts: "changed rows" }),
    consistency: &[tp::NONE_LOST, tp::MONEY],
    program: |params| tp::program(params, tp::light),
    ..tp::BASE
};
