//! DA-AGG: groups the fact table by few, many and very many values.

use super::da;
use crate::params::Param;
use crate::workload::{Sweep, Workload};

const PARAMS: &[Param] = &[Param {
    name: "groups",
    default: 10_000,
    min: 10,
    max: 1_000_000,
    meaning: "values of the column that is grouped by",
}];

/// DA-AGG.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-AGG",
    summary: "group by over 10, 10⁴ and 10⁶ groups",
    description: "Each transaction is one query that groups all rows of the fact table by a column of 10, 10,000 or 1,000,000 values, counts and sums each group, and returns the ten with the largest sums, for which all must be made. It is a sweep over the number of groups with one job: with few the time is that of a scan, with many that of a hash table or a sort which outgrows the CPU's cache, and then the memory that a query may use. A data set with fewer rows than that has fewer groups: of the million, 128 MiB have 408,000 and 2 GiB all but a few hundred. The column says how many there are.",
    params: PARAMS,
    choices: &[("groups", da::GROUPS)],
    sweep: Sweep::Parameter { name: "groups", values: da::GROUPS, column: "groups", then_jobs: false },
    volume: Some(da::aggregation_volume),
    program: da::aggregation,
    ..da::BASE
};
