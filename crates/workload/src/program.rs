//! A transaction program: a small value that every target renders, in the database or at the client.

use thiserror::Error;

use crate::template::{Piece, Template, TemplateError};

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
            | Generator::NewKey
            | Generator::Constant(_)
            | Generator::Plus { .. } => VarType::Int,
            Generator::Payload { .. } => VarType::Bytes,
        }
    }
}

/// What is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A statement cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A statement uses a variable that nothing binds.
    #[error("the variable «{0}» is used but never bound")]
    Unbound(String),
    /// A statement number that does not exist.
    #[error("there is no statement number {0}")]
    NoStatement(usize),
}

impl Program {
    /// Variables in the order in which they are first bound, with their generators.
    #[must_use]
    pub fn vars(&self) -> Vec<(&'static str, Generator)> {
        fn walk(steps: &[Step], out: &mut Vec<(&'static str, Generator)>) {
            for step in steps {
                match step {
                    Step::Bind { var, generator } if !out.iter().any(|(v, _)| v == var) => out.push((var, *generator)),
                    Step::Repeat { body, .. } => walk(body, out),
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.body, &mut out);
        out
    }

    /// Checks that every statement exists and every variable is bound.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ProgramError> {
        fn walk(program: &Program, steps: &[Step], bound: &mut Vec<&'static str>) -> Result<(), ProgramError> {
            for step in steps {
                match step {
                    Step::Bind { generator: Generator::Plus { var, .. }, .. } if !bound.contains(var) => {
                        return Err(ProgramError::Unbound((*var).to_owned()));
                    }
                    Step::Bind { var, .. } => bound.push(var),
                    Step::Repeat { body, .. } => walk(program, body, bound)?,
                    Step::Bulk { .. } | Step::Compute { .. } => {}
                    Step::Execute { statement } => {
                        let s = program.statements.get(*statement).ok_or(ProgramError::NoStatement(*statement))?;
                        if let Some(v) = s.template.vars().find(|v| !bound.contains(v)) {
                            return Err(ProgramError::Unbound(v.to_owned()));
                        }
                    }
                }
            }
            Ok(())
        }
        walk(self, &self.body, &mut Vec::new())
    }

    /// Statements executed by one transaction, its commit not counted; a bulk of rows is one.
    #[must_use]
    pub fn statements_per_tx(&self) -> u64 {
        self.total(&|step| u64::from(matches!(step, Step::Execute { .. } | Step::Bulk { .. })))
    }

    /// Rows touched by one transaction, as far as that is known beforehand.
    #[must_use]
    pub fn rows_per_tx(&self) -> u64 {
        self.total(&|step| match step {
            Step::Execute { statement } => self.effect(*statement).and_then(Effect::rows).unwrap_or(0),
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        })
    }

    /// Rows changed by one transaction.
    #[must_use]
    pub fn rows_changed_per_tx(&self) -> u64 {
        self.total(&|step| match step {
            Step::Execute { statement } => match self.effect(*statement) {
                Some(Effect::Change(rows)) => rows,
                _ => 0,
            },
            Step::Bulk { rows, .. } => u64::from(*rows),
            _ => 0,
        })
    }

    /// Whether it changes anything: if not, its commit has nothing to make durable.
    #[must_use]
    pub fn writes(&self) -> bool {
        let commands = |step: &Step| match step {
            Step::Execute { statement } => u64::from(self.effect(*statement) == Some(Effect::Command)),
            _ => 0,
        };
        self.rows_changed_per_tx() > 0 || self.total(&commands) > 0
    }

    /// Whether a transaction is one statement and its commit: an application would then leave both
    /// to the database in one round trip (autocommit).
    #[must_use]
    pub fn is_single_statement(&self) -> bool {
        self.statements_per_tx() == 1 && self.total(&|step| u64::from(!is_plain(step))) == 0
    }

    /// Computations of a transaction.
    #[must_use]
    pub fn computations_per_tx(&self) -> u64 {
        self.total(&|step| if let Step::Compute { times, .. } = step { u64::from(*times) } else { 0 })
    }

    fn effect(&self, statement: usize) -> Option<Effect> {
        self.statements.get(statement).map(|s| s.effect)
    }

    /// Sum of what `of` says of each step, as often as it is done.
    fn total(&self, of: &dyn Fn(&Step) -> u64) -> u64 {
        fn walk(steps: &[Step], of: &dyn Fn(&Step) -> u64) -> u64 {
            let one = |step: &Step| match step {
                Step::Repeat { times, body } => u64::from(*times) * walk(body, of),
                step => of(step),
            };
            steps.iter().map(one).sum()
        }
        walk(&self.body, of)
    }
}

/// Steps that a transaction of one statement may have.
fn is_plain(step: &Step) -> bool {
    matches!(step, Step::Bind { .. } | Step::Execute { .. })
}
