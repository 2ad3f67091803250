//! TP-HEAVY: an order of seven lines, durable.

use super::tp;
use crate::workload::Workload;

/// TP-HEAVY.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-HEAVY",
    group: "transaction-processing",
    summary: "an order of seven lines: 25 statements that read, change and insert, durable commit",
    description: "Each transaction reads an account, takes the price from it and inserts an order. For each of seven items it reads the stock, reduces it and inserts an order line. At the end it reads the lines: 25 statements, of which 9 read, 8 change one row each and 8 insert one row each. The items are drawn in rising order, each from its own seventh of all items, and all transactions lock rows in the same order: they can wait for each other but never deadlock. After each test the money and the stock are checked.",
    spoiled_by: tp::SPOILED_BY,
    kpis: tp::KPIS,
    tables: tp::ORDER_TABLES,
    params: &[tp::ACCOUNTS, tp::ITEMS],
    needs: tp::NEEDS_BOTH,
    evidence: Some(tp::ORDER_EVIDENCE),
    consistency: &[tp::NONE_LOST, tp::MONEY],
    unchanged: tp::ORDERS_ADD_UP,
    program: |params| {
        let mut s = tp::Statements::new();
        let mut body = vec![tp::sequence()];
        body.extend(tp::heavy(&mut s, params));
        s.program(body)
    },
    ..Workload::BASE
};
