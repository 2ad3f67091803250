//! PLS-STRING: cuts, joins and searches strings.

use super::pls;
use crate::params::Param;
use crate::program::Kernel;
use crate::workload::Workload;

const PARAMS: &[Param] = &[Param {
    name: "rounds",
    default: 1_000,
    min: 1,
    max: 100_000,
    meaning: "rounds of four operations per transaction",
}];

/// PLS-STRING.
pub(super) static WORKLOAD: Workload = Workload {
    code: "PLS-STRING",
    summary: "cuts, joins and searches strings",
    description: "Each transaction does a number of rounds of four operations on strings of single-byte characters: SUBSTR takes 5 characters of an alphabet, SUBSTR removes the first 5 of a string of 100, a concatenation appends the piece, INSTR finds its first occurrence. The sum of the positions is compared with the expected one. One operation is one of these four.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Text, "rounds")])),
    program: |params| pls::program(params, &[(Kernel::Text, "rounds")]),
    ..pls::BASE
};
