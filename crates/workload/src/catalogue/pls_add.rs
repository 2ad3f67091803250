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
    description: "Each transaction adds 1, 2, 3, … up to a limit in a loop of the database's own language, and compares the sum with the expected one: the cost of a loop iteration, an addition and an assignment. One operation is one addition of an integer to a sum, with its loop iteration.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Add, "additions")])),
    program: |params| pls::program(params, &[(Kernel::Add, "additions")]),
    ..pls::BASE
};
