//! PLS-STRING: cuts, joins and searches texts.

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
    summary: "cuts, joins and searches texts",
    description: "Each transaction does so many rounds of four operations on texts of single-byte characters: SUBSTR cuts 5 characters off an alphabet, SUBSTR drops 5 off the front of a text of 100, a concatenation puts the piece at its end, INSTR looks where it occurs first. The sum of these places is compared with the right one. One operation is one of these four.",
    params: PARAMS,
    volume: Some(|params| pls::volume(params, &[(Kernel::Text, "rounds")])),
    program: |params| pls::program(params, &[(Kernel::Text, "rounds")]),
    ..pls::BASE
};
