//! TP-HEAVY: an order of seven lines, durable.

use super::tp;
use crate::workload::Workload;

/// TP-HEAVY.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-HEAVY",
    summary: "an order of seven lines: 25 statements that read, change and insert, durable commit",
    description: "Each transaction reads an account, takes the price from it and inserts an order. For each of seven items it reads the stock, reduces it and inserts an order line. At the end it reads the lines: 25 statements, of which 9 read, 8 change one row each and 8 insert one row each. The items are drawn in rising order, each from its own seventh of all items, and all transactions lock rows in the same order: they can wait for each other but never deadlock. After each test the money and the stock are checked.",
    program: |params| tp::program(params, tp::heavy),
    ..tp::ORDERING
};
