//! PLS-BUILTIN: calls built-in functions.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] =
    &[Param { name: "rounds", default: 2_000, min: 1, max: 100_000, meaning: "rounds of seven calls per transaction" }];

/// PLS-BUILTIN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-BUILTIN",
    summary: "calls built-in functions",
    description: "Each transaction does a number of rounds of x = MOD(x · 31 + i, 100003), y = LEAST(GREATEST(x, 20000), 80000), and adds FLOOR(SQRT(ABS(x − y))) + SIGN(x − y) to a sum, which is compared with the expected one. One operation is one call of a built-in function (MOD, GREATEST, LEAST, ABS, SIGN, SQRT, FLOOR): seven per round. The square root uses the language's usual type for it.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Builtin, "rounds")])),
    program: |params| pls::program(params, &[(Kernel::Builtin, "rounds")]),
    ..pls::BASE
};
