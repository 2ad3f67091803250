//! LGWR-MIXED: mostly small transactions, some medium, few large ones.

use super::lgwr;
use crate::instrument::Instrument;
use crate::program::{Arm, Commit, Effect, Generator, Program, Statement, Step};
use crate::workload::{Param, Params, RedoSize, Workload};

/// Rows of the medium and of the large transactions.
const MEDIUM: u64 = 25;
const LARGE: u64 = 125;
/// A turn of twenty: 16 small (80 %), 3 medium (15 %), 1 large (5 %).
const TURN: u64 = 20;
const SHARES: [u64; 3] = [16, 3, 1];
/// Mean of something that a transaction has, from that of the three.
const fn mean(small: f64, medium: f64, large: f64) -> f64 {
    (small * SHARES[0] as f64 + medium * SHARES[1] as f64 + large * SHARES[2] as f64) / TURN as f64
}

const PARAMS: &[Param] = &[
    Param { name: "rows", default: 1, min: 1, max: 20, meaning: "rows changed by a small transaction" },
    lgwr::PAYLOAD,
    Param {
        // Twice the rows of a large transaction at least: none meets a row twice.
        name: "own-rows",
        default: 256,
        min: 256,
        max: 65536,
        meaning: "rows that each job owns and changes in turn",
    },
];

/// `rows` changes; the first is of the row that the transaction's own number says. The sequence is counted on
/// to the end of a turn, so that the next transaction is the next of the turn.
fn changes(params: &Params, rows: u64) -> Vec<Step> {
    let own = params.get("own-rows").max(1) as u64;
    let change = [
        Step::bind("id", Generator::OwnRow { rows: own }),
        Step::bind("payload", Generator::Payload { bytes: params.get("payload").max(0) as u32 }),
        Step::Execute { statement: 0 },
    ];
    let more = rows - 1;
    if more == 0 {
        return change.to_vec();
    }
    let next = || Step::bind("seq", Generator::Sequence);
    let mut body = change.to_vec();
    let others = std::iter::once(next()).chain(change).collect();
    body.push(Step::Repeat { times: more as u32, body: others });
    let rest = more.next_multiple_of(TURN) - more;
    if rest > 0 {
        body.push(Step::Repeat { times: rest as u32, body: vec![next()] });
    }
    body
}

/// LGWR-MIXED.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-MIXED",
    group: "log-writer",
    summary: "80 % small, 15 % medium and 5 % large transactions (LGWR-LAT1, -LAT25, -LAT125), durable commit",
    description: "Of twenty transactions 16 change one of the job's own rows, 3 change 25 of them and one changes 125, and each waits until its changes are durable: small commits have to wait behind large ones, as they do in systems that process orders while a batch runs. The turn is the same for all jobs, but each begins at another place of it, so that shares are exact in any window. All rows are of one size, which is calibrated so that the mean redo of a transaction is that of the mix; each kind of transaction is then within the definition of the workload it is taken from. At the client even the small transactions send their commit as a statement of its own (two round trips, where LGWR-LAT1 is one), because they begin like the others.",
    spoiled_by: "A commit that does not wait for the device (synchronous commit or fsync off), a write cache that forgets, a log on tmpfs; at the client also its own CPU.",
    kpis: lgwr::LATENCY_KPIS,
    tables: lgwr::TABLES,
    params: PARAMS,
    needs: lgwr::NEEDS_WAIT,
    redo: Some(RedoSize {
        min: mean(1.0, 22.5, 112.5) * 1024.0,
        nominal: mean(1.5, 25.0, 125.0) * 1024.0,
        max: mean(2.0, 27.5, 137.5) * 1024.0,
        payload: "payload",
        rows: "rows",
    }),
    evidence: Some(lgwr::EVIDENCE),
    program: |params| {
        let update = "UPDATE {redo} SET n = n + 1, payload = :payload WHERE id = :id";
        let small = params.get("rows").max(1) as u64;
        let arms = [small, MEDIUM, LARGE].into_iter().zip(SHARES);
        let arms = arms.map(|(rows, share)| Arm { share, body: changes(params, rows) }).collect();
        Program {
            statements: vec![Statement::fixed(update, Effect::Change(1))],
            body: vec![
                Step::bind("seq", Generator::Sequence),
                Step::bind("turn", Generator::Turn { of: TURN }),
                Step::Choose { var: "turn", arms },
            ],
            commit: Commit::Wait,
        }
    },
    instruments: &[Instrument::Limit],
    ..Workload::BASE
};
