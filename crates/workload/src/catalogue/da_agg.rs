//! DA-AGG: groups the fact table by few, many and very many values.

use loadline_model::column;

use super::da;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::workload::{Sweep, Workload};

/// DA-AGG.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DA-AGG",
    summary: "group by over 10, 10⁴ and 10⁶ groups",
    description: "Each transaction is one query that groups all rows of the fact table by a column of 10, 10,000 or 1,000,000 values, counts and sums each group, and returns the ten largest sums, which need all groups. A sweep over the number of groups with one job. With few groups the time is that of a scan. With many it is that of a hash table or sort that outgrows the CPU's cache, and then the memory that a query may use. A smaller data set has fewer groups: of the million, 128 MiB have 408,000 and 2 GiB all but a few hundred. The column shows the number.",
    params: &[da::GROUPS_PARAM],
    choices: &[("groups", da::GROUPS)],
    sweep: Sweep::Parameter { name: "groups", values: da::GROUPS, column: column::GROUPS, then_jobs: false },
    volume: Some(da::aggregation_volume),
    program: da::aggregation,
    instruments: &[Instrument::Limit(&[Limit::Loop(Loop::Group)])],
    ..da::BASE
};
