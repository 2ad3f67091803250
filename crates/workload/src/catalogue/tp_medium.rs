//! TP-MEDIUM: an order of one line, durable.

use super::tp;
use crate::workload::Workload;

/// TP-MEDIUM.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-MEDIUM",
    summary: "an order of one line: 5 statements that read, change and insert, durable commit",
    description: "Each transaction reads an account, takes the price from it, reduces the stock, and inserts an order and its line: 5 statements, of which one reads, two change one row each and two insert one row each. Accounts and items are drawn at random. All transactions lock rows in the same order, so they can wait for each other but never deadlock. After each test the money and the stock are checked.",
    program: |params| tp::program(params, tp::medium),
    ..tp::ORDERING
};
