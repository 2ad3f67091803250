//! A transaction program: a small value that every target renders, in the database or at the client.

use thiserror::Error;

use crate::template::{Template, TemplateError};

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
    /// Rows that each execution must touch; another count is an error of the transaction.
    pub rows: u64,
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
            Generator::Sequence | Generator::OwnRow { .. } => VarType::Int,
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
                    Step::Bind { var, .. } => bound.push(var),
                    Step::Repeat { body, .. } => walk(program, body, bound)?,
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

    /// Statements executed by one transaction, its commit not counted.
    #[must_use]
    pub fn statements_per_tx(&self) -> u64 {
        self.total(|_| 1)
    }

    /// Rows touched by one transaction.
    #[must_use]
    pub fn rows_per_tx(&self) -> u64 {
        self.total(|statement| statement.rows)
    }

    /// Whether a transaction is one statement and its commit: an application would then leave both
    /// to the database in one round trip (autocommit).
    #[must_use]
    pub fn is_single_statement(&self) -> bool {
        self.statements_per_tx() == 1
    }

    fn total(&self, of: impl Fn(&Statement) -> u64 + Copy) -> u64 {
        fn walk(program: &Program, steps: &[Step], of: impl Fn(&Statement) -> u64 + Copy) -> u64 {
            steps
                .iter()
                .map(|step| match step {
                    Step::Bind { .. } => 0,
                    Step::Execute { statement } => program.statements.get(*statement).map_or(0, of),
                    Step::Repeat { times, body } => u64::from(*times) * walk(program, body, of),
                })
                .sum()
        }
        walk(self, &self.body, of)
    }
}
