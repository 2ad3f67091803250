//! PLS-FIBO: calls a recursive routine.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] =
    &[Param { name: "rounds", default: 5, min: 1, max: 1_000, meaning: "computations of fib(10) per transaction" }];

/// PLS-FIBO.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-FIBO",
    summary: "calls a recursive routine",
    description: "Each transaction computes the tenth Fibonacci number several times by its recursive definition, fib(n) = fib(n − 1) + fib(n − 2), and compares the sum of the results with the expected one: the cost of calls. One operation is one call of the routine, with one integer in and one out; fib(10) takes 177. The routine is a function; if functions cannot be recursive, it is a procedure with an OUT parameter. The numbers of calls, additions and comparisons are the same everywhere. (A loop would only repeat PLS-ADD.)",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Fibonacci, "rounds")])),
    program: |params| pls::program(params, &[(Kernel::Fibonacci, "rounds")]),
    ..pls::BASE
};
