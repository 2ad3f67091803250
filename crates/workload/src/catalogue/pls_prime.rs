//! PLS-PRIME: counts primes by trial division.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] =
    &[Param { name: "limit", default: 700, min: 10, max: 100_000, meaning: "largest number tried per transaction" }];

/// PLS-PRIME.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-PRIME",
    summary: "counts primes by trial division",
    description: "Each transaction counts the primes up to a limit: each number is divided by 2, 3, 4, … until one divides it or the divisor's square exceeds it. The count is compared with the expected one. Nested loops, conditions, integer division. One operation is one trial division: MOD of two integers and the comparison of the remainder with 0.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Prime, "limit")])),
    program: |params| pls::program(params, &[(Kernel::Prime, "limit")]),
    ..pls::BASE
};
