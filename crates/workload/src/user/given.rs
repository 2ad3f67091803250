//! The transaction program of a workload file: as written, and made for given parameters.

use crate::program::{Arm, Commit, Effect, Generator, Program, Statement, Step};
use crate::template::Template;
use crate::workload::Params;

/// A number, or the parameter that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    /// A number.
    Fixed(i64),
    /// Value of a parameter.
    Param(&'static str),
}

impl Amount {
    /// Its value.
    #[must_use]
    fn of(self, params: &Params) -> i64 {
        match self {
            Amount::Fixed(value) => value,
            Amount::Param(name) => params.get(name),
        }
    }
}

/// A program whose numbers may be parameters.
#[derive(Debug)]
pub struct Given {
    pub(super) statements: Vec<(Template, GivenEffect)>,
    pub(super) body: Vec<GivenStep>,
    pub(super) commit: Commit,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum GivenEffect {
    Change(Amount),
    Read(Amount),
    ReadAny,
}

#[derive(Debug)]
pub(super) enum GivenStep {
    Bind { var: &'static str, to: To },
    Execute { statement: usize },
    Repeat { times: Amount, body: Vec<GivenStep> },
    Bulk { table: usize, rows: Amount },
    Choose { var: &'static str, by: By, arms: Vec<(Amount, Vec<GivenStep>)> },
}

#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    Sequence,
    NewKey,
    OwnRow(Amount),
    Payload(Amount),
    /// From the lowest to the highest.
    Uniform(Amount, Amount, u32),
    /// Key of any of so many rows.
    Row(Amount, u32),
    Constant(Amount),
    Plus(&'static str, Amount),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    Turn,
    Random(u32),
}

impl Given {
    /// The program for `params`.
    #[must_use]
    pub fn make(&self, params: &Params) -> Program {
        let effect = |effect: GivenEffect| match effect {
            GivenEffect::Change(rows) => Effect::Change(unsigned(rows, params)),
            GivenEffect::Read(rows) => Effect::Read(unsigned(rows, params)),
            GivenEffect::ReadAny => Effect::ReadAny,
        };
        let statement =
            |(template, of): &(Template, GivenEffect)| Statement { template: template.clone(), effect: effect(*of) };
        Program {
            statements: self.statements.iter().map(statement).collect(),
            body: steps(&self.body, params),
            commit: self.commit,
        }
    }
}

fn unsigned(amount: Amount, params: &Params) -> u64 {
    amount.of(params).max(0) as u64
}

fn steps(given: &[GivenStep], params: &Params) -> Vec<Step> {
    let mut out = Vec::new();
    for step in given {
        match step {
            GivenStep::Bind { var, to } => out.push(Step::bind(var, generator(*to, params))),
            GivenStep::Execute { statement } => out.push(Step::Execute { statement: *statement }),
            GivenStep::Repeat { times, body } => {
                out.push(Step::Repeat { times: unsigned(*times, params) as u32, body: steps(body, params) });
            }
            GivenStep::Bulk { table, rows } => {
                out.push(Step::Bulk { table: *table, rows: unsigned(*rows, params) as u32 });
            }
            GivenStep::Choose { var, by, arms } => {
                let arm = |(share, body): &(Amount, Vec<GivenStep>)| Arm {
                    share: unsigned(*share, params),
                    body: steps(body, params),
                };
                let arms: Vec<Arm> = arms.iter().map(arm).filter(|arm| arm.share > 0).collect();
                let all: u64 = arms.iter().map(|a| a.share).sum();
                // Shares that are all 0 leave nothing to choose.
                if all == 0 {
                    continue;
                }
                out.push(Step::bind(
                    var,
                    match by {
                        By::Turn => Generator::Turn { of: all },
                        By::Random(salt) => Generator::Uniform { from: 0, range: all, salt: *salt },
                    },
                ));
                out.push(Step::Choose { var, arms });
            }
        }
    }
    out
}

fn generator(to: To, params: &Params) -> Generator {
    match to {
        To::Sequence => Generator::Sequence,
        To::NewKey => Generator::NewKey,
        To::OwnRow(rows) => Generator::OwnRow { rows: unsigned(rows, params).max(1) },
        To::Payload(bytes) => Generator::Payload { bytes: unsigned(bytes, params) as u32 },
        To::Uniform(low, high, salt) => {
            let (low, high) = (low.of(params), high.of(params));
            Generator::Uniform { from: low, range: high.saturating_sub(low).max(0) as u64 + 1, salt }
        }
        To::Row(rows, salt) => Generator::Uniform { from: 0, range: unsigned(rows, params).max(1), salt },
        To::Constant(value) => Generator::Constant(value.of(params)),
        To::Plus(var, by) => Generator::Plus { var, by: by.of(params) },
    }
}
