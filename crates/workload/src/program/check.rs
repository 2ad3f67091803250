//! Checks that the turn of a program reaches all its places. The rest is checked where a program is read from its file.

use std::collections::BTreeSet;

use thiserror::Error;

use super::{Generator, Program, Step, each};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    #[error("the variable '{0}' is used but never bound")]
    Unbound(String),
    #[error("there is no statement number {0}")]
    NoStatement(usize),
    /// A cycle whose places do not occur equally often.
    #[error(
        "the turn '{var}' of {of} skips places: each transaction must advance the sequence by 1, or by 1 plus a multiple \
         of {of}; a random choice has no such limit"
    )]
    Turn { var: String, of: u64 },
}

impl Program {
    /// Checks that all places of a turn occur equally often.
    pub fn check(&self) -> Result<(), ProgramError> {
        let mut result = Ok(());
        each(&self.body, &mut |step| {
            if let Step::Bind { var, generator: Generator::Turn { of } } = step
                && advances(&self.body, (*of).max(1)) != BTreeSet::from([1 % (*of).max(1)])
            {
                result = Err(ProgramError::Turn { var: var.clone(), of: *of });
            }
        });
        result
    }
}

/// By how much `steps` can advance the sequence, modulo `of`. The number of results is limited: with more than one, places
/// do not occur equally often anyway.
fn advances(steps: &[Step], of: u64) -> BTreeSet<u64> {
    const MANY: usize = 64;
    let sums = |a: &BTreeSet<u64>, b: &BTreeSet<u64>| -> BTreeSet<u64> {
        a.iter().flat_map(|x| b.iter().map(move |y| (x + y) % of)).take(MANY * MANY).collect()
    };
    let mut out = BTreeSet::from([0]);
    for step in steps {
        let by = match step {
            Step::Bind { generator: Generator::Sequence, .. } => BTreeSet::from([1 % of]),
            Step::Repeat { times, body } => {
                // `times` times, by repeated doubling.
                let (mut times, mut power, mut all) = (*times, advances(body, of), BTreeSet::from([0]));
                while times > 0 {
                    if times % 2 == 1 {
                        all = sums(&all, &power);
                    }
                    power = sums(&power, &power);
                    times /= 2;
                }
                all
            }
            Step::Choose { arms, .. } => arms.iter().flat_map(|arm| advances(&arm.body, of)).take(MANY).collect(),
            _ => continue,
        };
        out = sums(&out, &by);
    }
    out
}
