//! Checks a program.

use std::collections::BTreeSet;

use thiserror::Error;

use super::{Generator, Program, Step, VarType, each};
use crate::template::TemplateError;

/// What is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A statement cannot be parsed.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A statement uses a variable that nothing binds.
    #[error("the variable '{0}' is used but never bound")]
    Unbound(String),
    /// A statement number that does not exist.
    #[error("there is no statement number {0}")]
    NoStatement(usize),
    /// Rows are added in bulk before the sequence is bound: they would have the same keys each time.
    #[error("rows are added in bulk before the sequence is bound: they would have the same keys each time")]
    NoSequence,
    /// A variable with two types.
    #[error("the variable '{0}' is bound to numbers and to bytes")]
    TwoTypes(String),
    /// A cycle whose places do not occur equally often.
    #[error(
        "the turn '{var}' of {of} skips places: each transaction must advance the sequence by 1, or by 1 plus a multiple \
         of {of}; a random choice has no such limit"
    )]
    Turn {
        /// The variable.
        var: String,
        /// Its places.
        of: u64,
    },
    /// Two cycles over the same sequence.
    #[error(
        "the turns '{first}' and '{second}' use the same sequence: some combinations of their arms would never occur, and \
         the shares would be wrong; use a random choice for one of them"
    )]
    TwoTurns {
        /// The first of them.
        first: String,
        /// The second.
        second: String,
    },
    /// The shares do not match the values of the variable.
    #[error("the shares of the choice by '{var}' add up to {shares}, but {needs}")]
    Shares {
        /// The variable.
        var: String,
        /// Sum of the shares.
        shares: u64,
        /// What they must match, in words.
        needs: String,
    },
}

impl Program {
    /// Checks that every statement exists, every variable is bound and has one type, and every choice covers its values.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self) -> Result<(), ProgramError> {
        fn walk(
            program: &Program,
            steps: &[Step],
            bound: &mut Vec<(&'static str, Generator)>,
        ) -> Result<(), ProgramError> {
            let of = |bound: &[(&'static str, Generator)], name: &str| {
                bound.iter().rev().find(|(v, _)| *v == name).map(|(_, g)| *g)
            };
            for step in steps {
                match step {
                    Step::Bind { var, generator } => {
                        if let Generator::Plus { var: other, .. } = generator {
                            let other_type = of(bound, other).map(Generator::var_type);
                            match other_type {
                                None => return Err(ProgramError::Unbound((*other).to_owned())),
                                Some(VarType::Bytes) => return Err(ProgramError::TwoTypes((*other).to_owned())),
                                Some(VarType::Int) => {}
                            }
                        }
                        bound.push((var, *generator));
                    }
                    Step::Repeat { body, .. } => walk(program, body, bound)?,
                    Step::Bulk { .. } if !bound.iter().any(|(_, g)| *g == Generator::Sequence) => {
                        return Err(ProgramError::NoSequence);
                    }
                    Step::Bulk { .. } | Step::Compute { .. } => {}
                    Step::Choose { var, arms } => {
                        let chosen = of(bound, var).ok_or_else(|| ProgramError::Unbound((*var).to_owned()))?;
                        let shares: u64 = arms.iter().map(|a| a.share).sum();
                        let needs = match chosen.choices() {
                            Some(n) if n == shares => None,
                            Some(n) => Some(format!("it has {n} values")),
                            None => Some("it is neither a turn nor a random number from 0".to_owned()),
                        };
                        if let Some(needs) = needs {
                            return Err(ProgramError::Shares { var: (*var).to_owned(), shares, needs });
                        }
                        // A variable bound in one arm is not bound after the choice.
                        for arm in arms {
                            walk(program, &arm.body, &mut bound.clone())?;
                        }
                    }
                    Step::Execute { statement } => {
                        let s = program.statements.get(*statement).ok_or(ProgramError::NoStatement(*statement))?;
                        if let Some(v) = s.template.vars().find(|v| of(bound, v).is_none()) {
                            return Err(ProgramError::Unbound(v.to_owned()));
                        }
                    }
                }
            }
            Ok(())
        }
        walk(self, &self.body, &mut Vec::new())?;
        let vars = self.vars();
        let mut mixed = None;
        each(&self.body, &mut |step| {
            if let Step::Bind { var, generator } = step
                && vars.iter().any(|(v, g)| v == var && g.var_type() != generator.var_type())
            {
                mixed = Some((*var).to_owned());
            }
        });
        if let Some(var) = mixed {
            return Err(ProgramError::TwoTypes(var));
        }
        let mut turns: Vec<&'static str> = Vec::new();
        each(&self.body, &mut |step| {
            if let Step::Bind { var, generator: Generator::Turn { .. } } = step {
                turns.push(var);
            }
        });
        if let [first, second, ..] = turns.as_slice() {
            return Err(ProgramError::TwoTurns { first: (*first).to_owned(), second: (*second).to_owned() });
        }
        for (var, generator) in vars {
            if let Generator::Turn { of } = generator
                && advances(&self.body, of.max(1)) != BTreeSet::from([1 % of.max(1)])
            {
                return Err(ProgramError::Turn { var: var.to_owned(), of });
            }
        }
        Ok(())
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
