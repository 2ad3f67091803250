//! PLS-ADD: adds integers in a loop.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] =
    &[Param { name: "additions", default: 5_000, min: 1, max: 65_000, meaning: "additions per transaction" }];

/// PLS-ADD.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-ADD",
    summary: "adds integers in a loop",
    description: "Each transaction adds 1, 2, 3, … up to a limit to a sum, in a loop of the database's own language, and compares the sum with the right one: the cost of a turn of a loop, one addition and one assignment. One operation is one addition of an integer to a sum, and the turn of the loop around it.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Add, "additions")])),
    program: |params| pls::program(params, &[(Kernel::Add, "additions")]),
    ..pls::BASE
};
