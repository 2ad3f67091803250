//! TP-LIGHT: one change of one account, durable.

use super::tp;
use crate::workload::{Evidence, Workload};

/// TP-LIGHT.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-LIGHT",
    group: "transaction-processing",
    summary: "moves money between the balance and the savings of an account: one statement, durable commit",
    description: "Each transaction is one UPDATE of a random account: an amount moves from its balance to its savings. The commit waits until that is durable. Unlike in LGWR-LAT1, all jobs share the rows: transactions can meet at a row and wait for each other, more rarely with more accounts.",
    spoiled_by: tp::SPOILED_BY,
    kpis: tp::KPIS,
    tables: &[tp::ACCOUNT],
    params: &[tp::ACCOUNTS],
    needs: tp::NEEDS_CHANGE,
    evidence: Some(Evidence { query: "SELECT SUM(changes) FROM {account}", counts: "changed rows" }),
    consistency: &[tp::NONE_LOST, tp::MONEY],
    program: |params| {
        let mut s = tp::Statements::new();
        let mut body = vec![tp::sequence()];
        body.extend(tp::light(&mut s, params));
        s.program(body)
    },
    ..Workload::BASE
};
