//! Transaction programs: small values that every target renders, in the database or at the client.

use serde::{Deserialize, Serialize};

use crate::skew::Skew;
use crate::template::{Template, TemplateError};

mod check;
mod steps;

pub use check::ProgramError;
use steps::{Walk, largest, plain_statements, weighted};
pub(crate) use steps::{each, each_mut};

/// Whether a commit waits until it is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    #[default]
    Wait,
    Nowait,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    pub statements: Vec<Statement>,
    /// Steps in order; the commit follows.
    pub body: Vec<Step>,
    pub commit: Commit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub template: Template,
    /// Required effect of an execution; a different number of rows is an error of the transaction.
    pub effect: Effect,
    /// Where it is written in a user's file: `'take' (mine.toml:114)`; empty for those of the catalogue.
    pub place: String,
}

impl Statement {
    pub fn new(sql: &str, effect: Effect) -> Result<Statement, TemplateError> {
        Ok(Statement { template: Template::parse(sql)?, effect, place: String::new() })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Change(u64),
    /// Changes at least and at most so many rows: a queue may be empty.
    ChangeBetween(u64, u64),
    /// Returns exactly this number of rows, all of which are fetched.
    Read(u64),
    /// Returns any number of rows, all of which are fetched.
    ReadAny,
    /// Neither, for example CREATE INDEX.
    Command,
}

impl Effect {
    /// Rows that it must touch; `None` if not exactly defined.
    pub fn rows(self) -> Option<u64> {
        self.allowed().filter(|[low, high]| low == high).map(|[rows, _]| rows)
    }

    /// The fewest and most rows that it may touch; `None` if any number is right.
    pub fn allowed(self) -> Option<[u64; 2]> {
        match self {
            Effect::Change(rows) | Effect::Read(rows) => Some([rows, rows]),
            Effect::ChangeBetween(low, high) => Some([low, high]),
            Effect::ReadAny | Effect::Command => None,
        }
    }

    /// The most rows that it may touch; 0 if any number is right.
    pub fn most_rows(self) -> u64 {
        self.allowed().map_or(0, |[_, most]| most)
    }

    pub fn reads(self) -> bool {
        matches!(self, Effect::Read(_) | Effect::ReadAny)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Gives a variable its next value.
    Bind {
        var: String,
        generator: Generator,
    },
    /// Executes statement number `statement`.
    Execute {
        statement: usize,
    },
    Repeat {
        times: u32,
        body: Vec<Step>,
    },
    /// Adds new rows to a table by the target's fastest way for many rows (for example `COPY`). Their keys are
    /// consecutive, from `sequence · rows` of the job's own keys.
    Bulk {
        table: usize,
        rows: u32,
    },
    /// Computes in the database's own language.
    Compute {
        kernel: Kernel,
        times: u32,
    },
    /// Does one of its arms, chosen by the value of a variable. The sum of the shares is the number of values.
    Choose {
        /// Name of the variable, bound by [`Generator::Turn`] or [`Generator::Uniform`] from 0.
        var: String,
        /// The arms; each owns the next `share` values.
        arms: Vec<Arm>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Arm {
    /// Name of the kind of transaction that it makes; not what it does.
    #[serde(skip)]
    pub name: String,
    /// Number of values that choose it.
    pub share: u64,
    pub body: Vec<Step>,
}

/// A computation that each database does in its own language, defined in [`crate::kernel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Adds integers in a loop.
    Add,
    /// Computes Fibonacci numbers with a recursive routine.
    Fibonacci,
    /// Finds primes by trial division.
    Prime,
    /// Cuts, joins and searches strings.
    Text,
    /// Calls built-in functions.
    Builtin,
}

/// Source of a variable's values. All are functions of the job's number and of its sequence. There is no other state, so
/// a program can stop anywhere and continue later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    /// The job's sequence: 0, 1, 2, …
    Sequence,
    /// Key of the job's own row number `(draw + sequence) mod rows`, in turn as [`Generator::Turn`].
    OwnRow {
        /// Rows that each job owns.
        rows: u64,
    },
    /// First key of the job's own range number `(draw + sequence) mod ranges`, in turn as [`Generator::Turn`]. A range is
    /// `rows` consecutive keys; the first one starts at the job's first row.
    OwnRange {
        rows: u64,
        ranges: u64,
    },
    /// Payload of `bytes` bytes from the job's pool, at [`crate::Pool::offset`] of the sequence.
    Payload {
        bytes: u32,
    },
    /// A uniform random number from `from` to below `from + range`: see [`crate::draw`]. Different `salt`s give
    /// independent numbers.
    Uniform {
        from: i64,
        range: u64,
        /// Distinguishes several numbers for one sequence.
        salt: u32,
    },
    /// A key from `from` on, not all alike.
    Skewed {
        from: i64,
        skew: Box<Skew>,
        salt: u32,
    },
    /// The place in a cycle of `of` places. A job starts at any place and advances by one with each number of its
    /// sequence, so all places occur equally often.
    Turn {
        of: u64,
    },
    /// A unique key: `job · 2⁴⁰ + sequence`.
    NewKey,
    Constant(i64),
    /// Another variable plus `by`.
    Plus {
        var: String,
        by: i64,
    },
}

impl Step {
    pub fn bind(var: &str, generator: Generator) -> Step {
        Step::Bind { var: var.to_owned(), generator }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarType {
    Int,
    Bytes,
}

impl Generator {
    pub fn var_type(&self) -> VarType {
        if matches!(self, Generator::Payload { .. }) { VarType::Bytes } else { VarType::Int }
    }
}

impl Program {
    /// All steps, nested ones included, in order.
    pub fn steps(&self) -> Vec<&Step> {
        let mut all = Vec::new();
        each(&self.body, &mut |step| all.push(step));
        all
    }

    /// Variables in the order in which they are first bound, with their generators.
    pub fn vars(&self) -> Vec<(&str, &Generator)> {
        let mut out: Vec<(&str, &Generator)> = Vec::new();
        each(&self.body, &mut |step| match step {
            Step::Bind { var, generator } if !out.iter().any(|(v, _)| v == var) => out.push((var, generator)),
            _ => {}
        });
        out
    }

    /// The variable and the number whose sum `var` always is; `None` if it is bound otherwise, or one of them twice.
    pub fn sum(&self, var: &str) -> Option<(&str, i64)> {
        let once = |var: &str| {
            let mut bound = Vec::new();
            each(&self.body, &mut |step| match step {
                Step::Bind { var: v, generator } if v == var => bound.push(generator),
                _ => {}
            });
            <[&Generator; 1]>::try_from(bound).ok()
        };
        match once(var)? {
            [Generator::Plus { var: of, by }] => once(of).map(|_| (of.as_str(), *by)),
            _ => None,
        }
    }

    /// Whether a transaction takes one number of the sequence, before all else.
    pub fn numbers_transactions(&self) -> bool {
        let is_sequence = |step: &Step| matches!(step, Step::Bind { generator: Generator::Sequence, .. });
        let taken = self.steps().into_iter().filter(|step| is_sequence(step)).count();
        taken == 1 && self.body.first().is_some_and(is_sequence)
    }

    /// Statements of a transaction without its commit; a bulk of rows counts as one. If transactions differ, those of
    /// the longest.
    pub fn statements_per_tx(&self) -> u64 {
        self.most(&Program::statements_of)
    }

    pub fn mean_statements_per_tx(&self) -> f64 {
        self.mean(&Program::statements_of)
    }

    fn statements_of(&self, step: &Step) -> u64 {
        u64::from(matches!(step, Step::Execute { .. } | Step::Bulk { .. }))
    }

    /// Rows that a transaction touches, as far as known beforehand. If transactions differ, those of the largest.
    pub fn rows_per_tx(&self) -> u64 {
        self.most(&Program::rows_of)
    }

    pub fn mean_rows_per_tx(&self) -> f64 {
        self.mean(&Program::rows_of)
    }

    /// Whether [`Program::rows_per_tx`] and its mean cover all rows. They exclude statements that read any number of rows.
    pub fn rows_are_known(&self) -> bool {
        let any = |_: &Program, step: &Step| match step {
            Step::Execute { statement } => {
                u64::from(matches!(self.effect(*statement), Some(Effect::ReadAny | Effect::ChangeBetween(..))))
            }
            _ => 0,
        };
        self.most(&any) == 0
    }

    fn rows_of(&self, step: &Step) -> u64 {
        match step {
            Step::Execute { statement } => self.effect(*statement).and_then(Effect::rows).unwrap_or(0),
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        }
    }

    /// Rows that a transaction changes. If transactions differ, those of the largest.
    pub fn rows_changed_per_tx(&self) -> u64 {
        self.most(&Program::changes_of)
    }

    pub fn mean_rows_changed_per_tx(&self) -> f64 {
        self.mean(&Program::changes_of)
    }

    fn changes_of(&self, step: &Step) -> u64 {
        match step {
            Step::Execute { statement } => match self.effect(*statement) {
                Some(Effect::Change(rows) | Effect::ChangeBetween(_, rows)) => rows,
                _ => 0,
            },
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        }
    }

    /// 1 if a step changes anything, otherwise 0.
    fn writes_of(&self, step: &Step) -> u64 {
        let command = match step {
            Step::Execute { statement } => self.effect(*statement) == Some(Effect::Command),
            _ => false,
        };
        u64::from(command || self.changes_of(step) > 0)
    }

    /// Whether it changes anything. If not, its commit has nothing to make durable.
    pub fn writes(&self) -> bool {
        self.most(&Program::writes_of) > 0
    }

    /// Share of the transactions that change something, 0…1.
    pub fn writing_share(&self) -> f64 {
        let none = Walk {
            step: &|step| f64::from(u8::from(self.writes_of(step) == 0)),
            repeat: |times, none: f64| none.powf(f64::from(times)),
            choose: weighted,
            all: |a, b| a * b,
            nothing: 1.0,
        };
        1.0 - none.over(&self.body)
    }

    pub fn reads(&self) -> bool {
        self.statements.iter().any(|s| s.effect.reads())
    }

    pub fn reads_and_writes(&self) -> bool {
        self.writes() && self.reads()
    }

    /// Whether every transaction is one statement and its commit: applications use autocommit then, one round trip.
    pub fn is_single_statement(&self) -> bool {
        plain_statements(&self.body) == Some(1)
    }

    pub fn bulks(&self) -> bool {
        !self.bulk_tables().is_empty()
    }

    /// Indexes of the tables that get rows in bulk, one for each such step.
    pub fn bulk_tables(&self) -> Vec<usize> {
        let table = |step: &Step| if let Step::Bulk { table, .. } = step { Some(*table) } else { None };
        self.steps().into_iter().filter_map(table).collect()
    }

    /// The choice of a transaction's kind: the first one that is in no other step.
    pub(crate) fn choice_of_kind(&self) -> Option<&Step> {
        self.body.iter().find(|step| matches!(step, Step::Choose { .. }))
    }

    /// Names and shares of the kinds of transactions; none if all are of one.
    pub fn kinds(&self) -> Vec<(&str, i64)> {
        let Some(Step::Choose { arms, .. }) = self.choice_of_kind() else { return Vec::new() };
        arms.iter().map(|arm| (arm.name.as_str(), arm.share as i64)).collect()
    }

    /// Whether it draws keys that are not all alike.
    pub fn draws_skewed(&self) -> bool {
        self.vars().iter().any(|(_, generator)| matches!(generator, Generator::Skewed { .. }))
    }

    pub fn varies(&self) -> bool {
        self.counts_changes() || self.steps().iter().any(|step| matches!(step, Step::Choose { .. }))
    }

    /// Whether only its execution shows how many rows a statement changed.
    pub fn counts_changes(&self) -> bool {
        self.statements.iter().any(|s| matches!(s.effect, Effect::ChangeBetween(..)))
    }

    /// Number of transactions of a full cycle; 1 without [`Generator::Turn`].
    pub fn cycle(&self) -> u64 {
        fn gcd(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { gcd(b, a % b) }
        }
        let turns = self.steps().into_iter().filter_map(|step| match step {
            Step::Bind { generator: Generator::Turn { of }, .. } => Some((*of).max(1)),
            _ => None,
        });
        turns.fold(1, |cycle, of| cycle / gcd(cycle, of) * of)
    }

    pub fn computations_per_tx(&self) -> u64 {
        self.most(&|_, step| if let Step::Compute { times, .. } = step { u64::from(*times) } else { 0 })
    }

    fn effect(&self, statement: usize) -> Option<Effect> {
        self.statements.get(statement).map(|s| s.effect)
    }

    /// Steps of the longest transaction, repetitions included: all that a job does, not only statements.
    pub fn longest(&self) -> u64 {
        let repeat = |times, steps: u64| u64::from(times).saturating_mul(steps.saturating_add(1));
        Walk { step: &|_| 1, repeat, choose: largest, all: u64::saturating_add, nothing: 0 }.over(&self.body)
    }

    /// Sum of `of` over all executed steps, with the largest arm of each choice. Saturates.
    pub(crate) fn most(&self, of: &dyn Fn(&Program, &Step) -> u64) -> u64 {
        let repeat = |times, sum: u64| u64::from(times).saturating_mul(sum);
        Walk { step: &|step| of(self, step), repeat, choose: largest, all: u64::saturating_add, nothing: 0 }
            .over(&self.body)
    }

    /// Sum of `of` over all executed steps, with the mean of the arms of each choice.
    fn mean(&self, of: &dyn Fn(&Program, &Step) -> u64) -> f64 {
        let repeat = |times, sum: f64| f64::from(times) * sum;
        Walk { step: &|step| of(self, step) as f64, repeat, choose: weighted, all: |a, b| a + b, nothing: 0.0 }
            .over(&self.body)
    }
}

#[cfg(test)]
mod tests;
