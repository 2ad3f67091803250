//! A transaction program: a small value that every target renders, in the database or at the client.

use crate::template::{Piece, Template, TemplateError};

mod check;

pub use check::ProgramError;

/// Whether a commit waits until it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Durable when it returns.
    Wait,
    /// Returns before it is durable.
    Nowait,
}

/// The work of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Statements by number.
    pub statements: Vec<Statement>,
    /// What is done, in order; the commit follows.
    pub body: Vec<Step>,
    /// How it is committed.
    pub commit: Commit,
}

/// A statement of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Portable SQL, taken apart.
    pub template: Template,
    /// What an execution does; rows in another number are an error of the transaction.
    pub effect: Effect,
}

impl Statement {
    /// Reads `sql`, which does `effect`.
    ///
    /// # Errors
    /// [`TemplateError`] when it cannot be taken apart.
    pub fn new(sql: &str, effect: Effect) -> Result<Statement, TemplateError> {
        Ok(Statement { template: Template::parse(sql)?, effect })
    }

    /// The same for a text in the source: one that cannot be taken apart stays as it is, and the
    /// catalogue's tests find it.
    pub(crate) fn fixed(sql: &str, effect: Effect) -> Statement {
        let template = Template::parse(sql).unwrap_or_else(|_| Template { pieces: vec![Piece::Sql(sql.to_owned())] });
        Statement { template, effect }
    }
}

/// What an execution of a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes exactly so many rows.
    Change(u64),
    /// Returns exactly so many rows, all of which are fetched.
    Read(u64),
    /// Returns rows, however many, all of which are fetched.
    ReadAny,
    /// Neither: it makes or drops something, for example.
    Command,
}

impl Effect {
    /// Rows that it must touch, `None` if that is open.
    #[must_use]
    pub fn rows(self) -> Option<u64> {
        match self {
            Effect::Change(rows) | Effect::Read(rows) => Some(rows),
            Effect::ReadAny | Effect::Command => None,
        }
    }

    /// Whether it returns rows.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Effect::Read(_) | Effect::ReadAny)
    }
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Gives a variable its next value.
    Bind {
        /// Name of the variable.
        var: &'static str,
        /// Where its values come from.
        generator: Generator,
    },
    /// Executes statement number `statement`.
    Execute {
        /// Index in [`Program::statements`].
        statement: usize,
    },
    /// Does `body` `times` times.
    Repeat {
        /// How often.
        times: u32,
        /// What.
        body: Vec<Step>,
    },
    /// Adds `rows` rows that were never there to a table by the fastest way that the target has for
    /// many rows (`COPY`, for example). The rows follow each other: numbers `sequence · rows` and up of
    /// the job's own.
    Bulk {
        /// Index in the workload's tables.
        table: usize,
        /// Rows.
        rows: u32,
    },
    /// Computes inside the database's own language.
    Compute {
        /// What.
        kernel: Kernel,
        /// How often.
        times: u32,
    },
    /// Does one of its arms: that in whose share of the numbers the variable falls. The shares together are
    /// as many as the variable has values.
    Choose {
        /// Name of the variable, bound by [`Generator::Turn`] or [`Generator::Uniform`] from 0.
        var: &'static str,
        /// What it can be, in the order of the numbers.
        arms: Vec<Arm>,
    },
}

/// One of the things that a [`Step::Choose`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// How many of the variable's values choose it.
    pub share: u64,
    /// What is done.
    pub body: Vec<Step>,
}

/// A computation that each database writes in its own language; [`crate::kernel`] defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Adds integers in a loop.
    Add,
    /// Fibonacci numbers by a routine that calls itself.
    Fibonacci,
    /// Looks for primes by trial division.
    Prime,
    /// Puts texts together and takes them apart.
    Text,
    /// Calls built-in functions.
    Builtin,
}

/// Where a variable's values come from. All are functions of a job's number and of how often the
/// job has bound its sequence: no state besides that one counter, so that a program can be cut
/// anywhere and go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// The job's sequence: 0, 1, 2, …
    Sequence,
    /// Key of the job's own row number `sequence mod rows`, counted from the job's first key.
    OwnRow {
        /// Rows that each job owns.
        rows: u64,
    },
    /// Payload of `bytes` bytes from the job's pool, at [`crate::payload_offset`] of the sequence.
    Payload {
        /// Length.
        bytes: u32,
    },
    /// A number from `from` up, below `from + range`, each as likely as another: see
    /// [`crate::draw`]. Different `salt`s give numbers that do not depend on each other.
    Uniform {
        /// The lowest.
        from: i64,
        /// How many there are.
        range: u64,
        /// Which of several numbers for one sequence.
        salt: u32,
    },
    /// The place in a turn of `of` places: a job begins anywhere and goes on by one for each number of its
    /// sequence, so that all places come equally often.
    Turn {
        /// Places.
        of: u64,
    },
    /// A key that no other job and no other sequence has: `job · 2⁴⁰ + sequence`.
    NewKey,
    /// Always the same.
    Constant(i64),
    /// What another variable holds, and `by` more.
    Plus {
        /// The other variable, bound before.
        var: &'static str,
        /// How much more.
        by: i64,
    },
}

impl Step {
    /// Gives `var` its next value from `generator`.
    #[must_use]
    pub const fn bind(var: &'static str, generator: Generator) -> Step {
        Step::Bind { var, generator }
    }
}

/// Type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarType {
    /// 64-bit signed integer.
    Int,
    /// Binary string.
    Bytes,
}

impl Generator {
    /// Type of the values.
    #[must_use]
    pub fn var_type(self) -> VarType {
        match self {
            Generator::Sequence
            | Generator::OwnRow { .. }
            | Generator::Uniform { .. }
            | Generator::Turn { .. }
            | Generator::NewKey
            | Generator::Constant(_)
            | Generator::Plus { .. } => VarType::Int,
            Generator::Payload { .. } => VarType::Bytes,
        }
    }

    /// How many values a [`Step::Choose`] can choose by, if it can.
    #[must_use]
    pub fn choices(self) -> Option<u64> {
        match self {
            Generator::Turn { of } => Some(of),
            Generator::Uniform { from: 0, range, .. } => Some(range),
            _ => None,
        }
    }
}

impl Program {
    /// Variables in the order in which they are first bound, with their generators.
    #[must_use]
    pub fn vars(&self) -> Vec<(&'static str, Generator)> {
        let mut out: Vec<(&'static str, Generator)> = Vec::new();
        each(&self.body, &mut |step| match step {
            Step::Bind { var, generator } if !out.iter().any(|(v, _)| v == var) => out.push((var, *generator)),
            _ => {}
        });
        out
    }

    /// Statements executed by one transaction, its commit not counted; a bulk of rows is one. Where
    /// transactions differ, those of the longest.
    #[must_use]
    pub fn statements_per_tx(&self) -> u64 {
        self.most(&Program::statements_of)
    }

    /// The same, the mean over all transactions.
    #[must_use]
    pub fn mean_statements_per_tx(&self) -> f64 {
        self.mean(&Program::statements_of)
    }

    fn statements_of(&self, step: &Step) -> u64 {
        u64::from(matches!(step, Step::Execute { .. } | Step::Bulk { .. }))
    }

    /// Rows touched by one transaction, as far as that is known beforehand. Where transactions differ,
    /// those of the largest.
    #[must_use]
    pub fn rows_per_tx(&self) -> u64 {
        self.most(&Program::rows_of)
    }

    /// The same, the mean over all transactions.
    #[must_use]
    pub fn mean_rows_per_tx(&self) -> f64 {
        self.mean(&Program::rows_of)
    }

    /// Whether [`Program::rows_per_tx`] and its mean are all the rows: of statements that read any number, how many
    /// they return is not known beforehand, and they are not in it.
    #[must_use]
    pub fn rows_are_known(&self) -> bool {
        let any = |_: &Program, step: &Step| match step {
            Step::Execute { statement } => u64::from(self.effect(*statement) == Some(Effect::ReadAny)),
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

    /// Rows changed by one transaction. Where transactions differ, those of the largest.
    #[must_use]
    pub fn rows_changed_per_tx(&self) -> u64 {
        self.most(&Program::changes_of)
    }

    /// The same, the mean over all transactions.
    #[must_use]
    pub fn mean_rows_changed_per_tx(&self) -> f64 {
        self.mean(&Program::changes_of)
    }

    fn changes_of(&self, step: &Step) -> u64 {
        match step {
            Step::Execute { statement } => match self.effect(*statement) {
                Some(Effect::Change(rows)) => rows,
                _ => 0,
            },
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        }
    }

    /// Whether a step changes anything, 1 or 0.
    fn writes_of(&self, step: &Step) -> u64 {
        let command = match step {
            Step::Execute { statement } => self.effect(*statement) == Some(Effect::Command),
            _ => false,
        };
        u64::from(command || self.changes_of(step) > 0)
    }

    /// Whether it changes anything: if not, its commit has nothing to make durable.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.most(&Program::writes_of) > 0
    }

    /// Share of the transactions that change something, 0…1.
    #[must_use]
    pub fn writing_share(&self) -> f64 {
        fn none(program: &Program, steps: &[Step]) -> f64 {
            let one = |step: &Step| match step {
                Step::Repeat { body, .. } => none(program, body),
                Step::Choose { arms, .. } => weighted(arms, &|body| none(program, body)),
                step => f64::from(u8::from(program.writes_of(step) == 0)),
            };
            steps.iter().map(one).product()
        }
        1.0 - none(self, &self.body)
    }

    /// Whether one of its statements returns rows.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.statements.iter().any(|s| s.effect.reads())
    }

    /// Whether it returns rows as well as changing them.
    #[must_use]
    pub fn reads_and_writes(&self) -> bool {
        self.writes() && self.reads()
    }

    /// Whether a transaction is one statement and its commit: an application would then leave both
    /// to the database in one round trip (autocommit).
    #[must_use]
    pub fn is_single_statement(&self) -> bool {
        // A repetition says that BEGIN and COMMIT are sent, even if it is done once.
        self.statements_per_tx() == 1 && self.body.iter().all(is_plain) && !self.varies()
    }

    /// Whether it adds many rows at once.
    #[must_use]
    pub fn bulks(&self) -> bool {
        !self.bulk_tables().is_empty()
    }

    /// Numbers of the tables to which it adds many rows at once, one for each such step.
    #[must_use]
    pub fn bulk_tables(&self) -> Vec<usize> {
        let mut tables = Vec::new();
        each(&self.body, &mut |step| {
            if let Step::Bulk { table, .. } = step {
                tables.push(*table);
            }
        });
        tables
    }

    /// Whether one transaction can do something else than the next.
    #[must_use]
    pub fn varies(&self) -> bool {
        let mut chooses = false;
        each(&self.body, &mut |step| chooses |= matches!(step, Step::Choose { .. }));
        chooses
    }

    /// After how many transactions a turn is through; 1 where there is none.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        fn gcd(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { gcd(b, a % b) }
        }
        let mut cycle = 1;
        each(&self.body, &mut |step| {
            if let Step::Bind { generator: Generator::Turn { of }, .. } = step {
                let of = (*of).max(1);
                cycle = cycle / gcd(cycle, of) * of;
            }
        });
        cycle
    }

    /// Computations of a transaction.
    #[must_use]
    pub fn computations_per_tx(&self) -> u64 {
        self.most(&|_, step| if let Step::Compute { times, .. } = step { u64::from(*times) } else { 0 })
    }

    fn effect(&self, statement: usize) -> Option<Effect> {
        self.statements.get(statement).map(|s| s.effect)
    }

    /// Steps of the longest transaction, each as often as it is done, and every repetition besides: what a job goes
    /// through, whatever of it is a statement.
    #[must_use]
    pub fn longest(&self) -> u64 {
        fn walk(steps: &[Step]) -> u64 {
            let one = |step: &Step| match step {
                Step::Repeat { times, body } => u64::from(*times).saturating_mul(walk(body).saturating_add(1)),
                Step::Choose { arms, .. } => arms.iter().map(|arm| walk(&arm.body)).max().unwrap_or(0),
                _ => 1,
            };
            steps.iter().map(one).fold(0, u64::saturating_add)
        }
        walk(&self.body)
    }

    /// Sum of what `of` says of each step, as often as it is done; of several arms the largest. What does not fit a
    /// number is the largest one.
    fn most(&self, of: &dyn Fn(&Program, &Step) -> u64) -> u64 {
        fn walk(program: &Program, steps: &[Step], of: &dyn Fn(&Program, &Step) -> u64) -> u64 {
            let one = |step: &Step| match step {
                Step::Repeat { times, body } => u64::from(*times).saturating_mul(walk(program, body, of)),
                Step::Choose { arms, .. } => {
                    let arms = arms.iter().map(|arm| walk(program, &arm.body, of)).max();
                    of(program, step).saturating_add(arms.unwrap_or(0))
                }
                step => of(program, step),
            };
            steps.iter().map(one).fold(0, u64::saturating_add)
        }
        walk(self, &self.body, of)
    }

    /// The same, where each arm counts as often as it is chosen.
    fn mean(&self, of: &dyn Fn(&Program, &Step) -> u64) -> f64 {
        fn walk(program: &Program, steps: &[Step], of: &dyn Fn(&Program, &Step) -> u64) -> f64 {
            let one = |step: &Step| match step {
                Step::Repeat { times, body } => f64::from(*times) * walk(program, body, of),
                Step::Choose { arms, .. } => weighted(arms, &|body| walk(program, body, of)),
                step => of(program, step) as f64,
            };
            steps.iter().map(one).sum()
        }
        walk(self, &self.body, of)
    }
}

/// Mean of what `of` says of each arm, by their shares.
fn weighted(arms: &[Arm], of: &dyn Fn(&[Step]) -> f64) -> f64 {
    let all: u64 = arms.iter().map(|a| a.share).sum();
    arms.iter().map(|a| a.share as f64 / all.max(1) as f64 * of(&a.body)).sum()
}

/// Calls `see` with every step, those inside others included, in order.
fn each<'a>(steps: &'a [Step], see: &mut dyn FnMut(&'a Step)) {
    for step in steps {
        see(step);
        match step {
            Step::Repeat { body, .. } => each(body, see),
            Step::Choose { arms, .. } => arms.iter().for_each(|arm| each(&arm.body, see)),
            _ => {}
        }
    }
}

/// Steps that a transaction of one statement may have.
fn is_plain(step: &Step) -> bool {
    matches!(step, Step::Bind { .. } | Step::Execute { .. })
}

#[cfg(test)]
mod tests;
