//! PLS-FIBO: calls a routine that calls itself.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] = &[Param {
    name: "rounds",
    default: 5,
    min: 1,
    max: 1_000,
    meaning: "times that fib(10) is computed per transaction",
}];

/// PLS-FIBO.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-FIBO",
    summary: "calls a routine that calls itself",
    description: "Each transaction computes the tenth Fibonacci number several times over by the definition, fib(n) = fib(n − 1) + fib(n − 2), with a routine that calls itself, and compares the sum of the results with the right one: the cost of calls. One operation is one call of the routine, with one integer in and one integer out; fib(10) takes 177. The routine is a function; where functions may not call themselves it is a procedure with an OUT parameter. Calls, additions and comparisons are the same in number everywhere. A loop, which all languages have, would have been PLS-ADD once more.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Fibonacci, "rounds")])),
    program: |params| pls::program(params, &[(Kernel::Fibonacci, "rounds")]),
    ..pls::BASE
};
