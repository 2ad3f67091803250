//! TP-MIXED: all transactions of the group, mixed.

use super::tp;
use crate::params::{Param, Params};
use crate::program::{Arm, Generator, Step};
use crate::workload::Workload;

const fn share(name: &'static str, default: i64, meaning: &'static str) -> Param {
    Param { name, default, min: 0, max: 100, meaning }
}

const PARAMS: &[Param] = &[
    tp::ACCOUNTS,
    tp::ITEMS,
    tp::ENTRIES,
    share("lookup", 45, "share of transactions as in TP-LOOKUP"),
    share("report", 5, "share of transactions as in TP-REPORT"),
    share("light", 30, "share of transactions as in TP-LIGHT"),
    share("medium", 15, "share of transactions as in TP-MEDIUM"),
    // At least 1, so that there is always something to choose.
    Param { min: 1, ..share("heavy", 5, "share of transactions as in TP-HEAVY") },
];

/// The arms with their shares, without those whose share is 0.
fn arms(s: &mut tp::Statements, params: &Params) -> Vec<Arm> {
    let all: [(&str, tp::Steps); 5] = [
        ("lookup", tp::lookup),
        ("report", tp::report),
        ("light", tp::light),
        ("medium", tp::medium),
        ("heavy", tp::heavy),
    ];
    let shares = all.into_iter().map(|(name, make)| (params.get(name).max(0) as u64, make));
    shares.filter(|(share, _)| *share > 0).map(|(share, make)| Arm { share, body: make(s, params) }).collect()
}

/// TP-MIXED.
pub(super) static WORKLOAD: Workload = Workload {
    code: "TP-MIXED",
    summary: "all transactions of the group, mixed: 50 % read only, 30 % light, 15 % medium, 5 % heavy",
    description: "Each transaction is one of the group's other five, drawn at random by their shares: by default 45 % TP-LOOKUP, 5 % TP-REPORT, 30 % TP-LIGHT, 15 % TP-MEDIUM and 5 % TP-HEAVY. The choice is a function of the job and its sequence, so the number of changed rows is known afterwards. Transaction times are those of the mix: the median is that of a short one, the 99th percentile that of a heavy one. With the client driver even a transaction of one statement needs two round trips, because it starts like the others.",
    tables: tp::MIXED_TABLES,
    params: PARAMS,
    program: |params| {
        let mut s = tp::Statements::new();
        let arms = arms(&mut s, params);
        let range = arms.iter().map(|a| a.share).sum();
        let choice = Step::bind("choice", Generator::Uniform { from: 0, range, salt: 9 });
        s.program(vec![tp::sequence(), choice, Step::Choose { var: "choice", arms }])
    },
    ..tp::ORDERING
};
