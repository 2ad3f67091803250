//! DA-WINDOW: window functions over each customer's rows.

use super::da;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::workload::Workload;

/// DA-WINDOW.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-WINDOW",
    summary: "window functions: rank and running sum of each customer's rows",
    description: "Each transaction is one query that, for each of 10,000 customers, ranks the customer's rows of the fact table by amount and computes running sums by day (two window functions in different orders, so two sorts), and returns the sum of the ranks and the largest running sum, which need every row.",
    program: |_| {
        let sql = "SELECT COUNT(*) AS n, SUM(place) AS places, MAX(running) AS most FROM \
                   (SELECT RANK() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place, \
                   SUM(amount) OVER (PARTITION BY customer ORDER BY day, id) AS running \
                   FROM {fact} WHERE day >= :from) ranked";
        da::program(&[da::EVERY_DAY], &[(sql, 1)])
    },
    instruments: &[Instrument::Limit(&[Limit::Loop(Loop::Window)])],
    ..da::BASE
};
