//! DA-JOIN: the fact table with two dimensions.

use super::da;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::program::{Generator, Step};
use crate::workload::{Volume, Workload};

/// DA-JOIN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-JOIN",
    summary: "star join: fact table, customers and products, filters on both, group by",
    description: "Each transaction is one query that joins the fact table with 10,000 customers and 1,000 products, filters for one of five customer segments and half of the product categories (a further condition passes every day and only makes each query different), groups by category and region, sums amount × price, and returns the 20 largest sums. The dimensions fit every cache; the work is the scan and two lookups per row.",
    tables: da::STAR,
    volume: Some(|params| Volume { tables: &["fact", "customer", "product"], ..da::volume(params, 1) }),
    program: |_| {
        let segment = Step::bind("segment", Generator::Uniform { from: 0, range: 5, salt: 0 });
        let below = Step::bind("below", Generator::Uniform { from: 24, range: 3, salt: 1 });
        let sql = "SELECT p.category, c.region, COUNT(*) AS n, SUM(f.amount * p.price) AS revenue FROM {fact} f \
                   JOIN {customer} c ON c.id = f.customer JOIN {product} p ON p.id = f.product \
                   WHERE c.segment = :segment AND p.category < :below AND f.day >= :from GROUP BY p.category, c.region \
                   ORDER BY revenue DESC, p.category, c.region {first 20}";
        da::program(&[segment, below, da::EVERY_DAY], &[(sql, 20)])
    },
    instruments: &[Instrument::Limit(&[Limit::Loop(Loop::Join)])],
    ..da::BASE
};
