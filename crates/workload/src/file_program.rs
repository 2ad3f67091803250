//! The transaction program of a workload file. Its numbers may be parameters; [`FileProgram::make`] fills them in.

use crate::params::Params;
use crate::program::{Arm, Commit, Effect, Generator, Program, Statement, Step};
use crate::template::Template;

/// A number, or a parameter that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// A number.
    Fixed(i64),
    /// Value of a parameter.
    Param(&'static str),
}

impl Amount {
    /// The value.
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
pub struct FileProgram {
    /// With their places in the file.
    pub(crate) statements: Vec<(Template, FileEffect, String)>,
    pub(crate) body: Vec<FileStep>,
    pub(crate) commit: Commit,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum FileEffect {
    Change(Amount),
    ChangeBetween(Amount, Amount),
    Read(Amount),
    ReadAny,
}

#[derive(Debug)]
pub(crate) enum FileStep {
    Bind { var: &'static str, to: FileGenerator },
    Execute { statement: usize },
    Repeat { times: Amount, body: Vec<FileStep> },
    Bulk { table: usize, rows: Amount },
    Choose { var: &'static str, by: ChooseBy, arms: Vec<(Amount, Vec<FileStep>)> },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum FileGenerator {
    Sequence,
    NewKey,
    OwnRow(Amount),
    Payload(Amount),
    /// Lowest, highest, salt.
    Uniform(Amount, Amount, u32),
    /// Key of a random row: number of rows, salt.
    Row(Amount, u32),
    Constant(Amount),
    Plus(&'static str, Amount),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ChooseBy {
    Turn,
    Random(u32),
}

impl FileProgram {
    /// The program for `params`.
    #[must_use]
    pub fn make(&self, params: &Params) -> Program {
        let effect = |effect: FileEffect| match effect {
            FileEffect::Change(rows) => Effect::Change(unsigned(rows, params)),
            FileEffect::ChangeBetween(low, high) => {
                Effect::ChangeBetween(unsigned(low, params), unsigned(high, params))
            }
            FileEffect::Read(rows) => Effect::Read(unsigned(rows, params)),
            FileEffect::ReadAny => Effect::ReadAny,
        };
        let statement = |(template, of, place): &(Template, FileEffect, String)| Statement {
            template: template.clone(),
            effect: effect(*of),
            place: place.clone(),
        };
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

fn steps(given: &[FileStep], params: &Params) -> Vec<Step> {
    let mut out = Vec::new();
    for step in given {
        match step {
            FileStep::Bind { var, to } => out.push(Step::bind(var, generator(*to, params))),
            FileStep::Execute { statement } => out.push(Step::Execute { statement: *statement }),
            FileStep::Repeat { times, body } => {
                out.push(Step::Repeat { times: unsigned(*times, params) as u32, body: steps(body, params) });
            }
            FileStep::Bulk { table, rows } => {
                out.push(Step::Bulk { table: *table, rows: unsigned(*rows, params) as u32 });
            }
            FileStep::Choose { var, by, arms } => {
                let arm = |(share, body): &(Amount, Vec<FileStep>)| Arm {
                    share: unsigned(*share, params),
                    body: steps(body, params),
                };
                let arms: Vec<Arm> = arms.iter().map(arm).filter(|arm| arm.share > 0).collect();
                let all: u64 = arms.iter().map(|a| a.share).sum();
                // All shares are 0: nothing to choose.
                if all == 0 {
                    continue;
                }
                out.push(Step::bind(
                    var,
                    match by {
                        ChooseBy::Turn => Generator::Turn { of: all },
                        ChooseBy::Random(salt) => Generator::Uniform { from: 0, range: all, salt: *salt },
                    },
                ));
                out.push(Step::Choose { var, arms });
            }
        }
    }
    out
}

fn generator(to: FileGenerator, params: &Params) -> Generator {
    match to {
        FileGenerator::Sequence => Generator::Sequence,
        FileGenerator::NewKey => Generator::NewKey,
        FileGenerator::OwnRow(rows) => Generator::OwnRow { rows: unsigned(rows, params).max(1) },
        FileGenerator::Payload(bytes) => Generator::Payload { bytes: unsigned(bytes, params) as u32 },
        FileGenerator::Uniform(low, high, salt) => {
            let (low, high) = (low.of(params), high.of(params));
            Generator::Uniform { from: low, range: high.saturating_sub(low).max(0) as u64 + 1, salt }
        }
        FileGenerator::Row(rows, salt) => Generator::Uniform { from: 0, range: unsigned(rows, params).max(1), salt },
        FileGenerator::Constant(value) => Generator::Constant(value.of(params)),
        FileGenerator::Plus(var, by) => Generator::Plus { var, by: by.of(params) },
    }
}
