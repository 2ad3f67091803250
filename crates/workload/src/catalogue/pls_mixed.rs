//! PLS-MIXED: additions, calls, trial divisions, string operations and built-in functions in turn.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] = &[
    Param { name: "additions", default: 1_000, min: 1, max: 65_000, meaning: "additions per transaction (PLS-ADD)" },
    Param {
        name: "calls",
        default: 1,
        min: 1,
        max: 1_000,
        meaning: "computations of fib(10) per transaction (PLS-FIBO)",
    },
    Param {
        name: "limit",
        default: 300,
        min: 10,
        max: 100_000,
        meaning: "largest number tried per transaction (PLS-PRIME)",
    },
    Param {
        name: "texts",
        default: 200,
        min: 1,
        max: 100_000,
        meaning: "rounds of four string operations per transaction (PLS-STRING)",
    },
    Param {
        name: "built-ins",
        default: 300,
        min: 1,
        max: 100_000,
        meaning: "rounds of seven calls of built-in functions per transaction (PLS-BUILTIN)",
    },
];

const PARTS: &[(Kernel, &str)] = &[
    (Kernel::Add, "additions"),
    (Kernel::Fibonacci, "calls"),
    (Kernel::Prime, "limit"),
    (Kernel::Text, "texts"),
    (Kernel::Builtin, "built-ins"),
];

/// PLS-MIXED.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-MIXED",
    summary: "additions, calls, trial divisions, string operations and built-in functions in turn",
    description: "Each transaction does the work of PLS-ADD, PLS-FIBO, PLS-PRIME, PLS-STRING and PLS-BUILTIN in turn, less of each. Operations are those of the five; the figure is their sum, so it compares platforms with each other, not with the five workloads.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, PARTS)),
    program: |params| pls::program(params, PARTS),
    ..pls::BASE
};
