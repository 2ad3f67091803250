//! LGWR-MIXED: mostly small transactions, some medium, few large ones.

use super::lgwr;
use crate::params::Param;
use crate::program::{Arm, Commit, Generator, Program, Step};
use crate::workload::Workload;

/// Rows of the medium and of the large transactions.
const MEDIUM: u64 = 25;
const LARGE: u64 = 125;
/// A cycle of 20: 16 small (80 %), 3 medium (15 %), 1 large (5 %).
const TURN: u64 = 20;
const SHARES: [u64; 3] = [16, 3, 1];
/// Weighted mean over the three kinds.
const fn mean(small: f64, medium: f64, large: f64) -> f64 {
    (small * SHARES[0] as f64 + medium * SHARES[1] as f64 + large * SHARES[2] as f64) / TURN as f64
}

const PARAMS: &[Param] = &[
    Param { name: "rows", default: 1, min: 1, max: 20, meaning: "rows changed by a small transaction" },
    lgwr::PAYLOAD,
    Param {
        // Three large ranges, and some rows between jobs. Three and 20 have no common factor, so the large transactions,
        // of which each cycle of 20 has one, change all three in turn.
        name: "own-rows",
        default: 392,
        min: 256,
        max: 65536,
        meaning: "rows that each job owns and changes in turn",
    },
];

/// LGWR-MIXED.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-MIXED",
    summary: "80 % small, 15 % medium and 5 % large transactions (LGWR-LAT1, -LAT25, -LAT125), durable commit",
    description: "Of 20 transactions, 16 change one of the job's own rows, 3 change 25 and one changes 125, always by one statement (the two halves of each row's payload change places); each waits until its changes are durable. Small commits wait behind large ones, as in systems that process orders while a batch runs. All jobs use the same cycle of 20 but start at different places in it, so the shares are exact in any window. All rows have one size, calibrated to the mean redo of the mix; each kind of transaction then meets the definition of its own workload.",
    params: PARAMS,
    redo: lgwr::redo_kib(mean(1.0, 22.5, 112.5), mean(1.5, 25.0, 125.0), mean(2.0, 27.5, 137.5)),
    program: |params| {
        let small = params.get("rows").max(1) as u64;
        let mut statements = Vec::new();
        let arm = |(rows, share)| {
            let (statement, body) = lgwr::change(params, rows, statements.len());
            statements.push(statement);
            Arm { share, body }
        };
        let arms = [small, MEDIUM, LARGE].into_iter().zip(SHARES).map(arm).collect();
        Program {
            statements,
            body: vec![
                Step::bind("seq", Generator::Sequence),
                Step::bind("turn", Generator::Turn { of: TURN }),
                Step::Choose { var: "turn", arms },
            ],
            commit: Commit::Wait,
        }
    },
    ..lgwr::BASE
};
