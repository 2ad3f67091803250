//! Runs a program for one job at the client: pure, seeded, and without allocation per statement.

use std::sync::Arc;

use thiserror::Error;

use crate::draw::draw;
use crate::payload_offset;
use crate::program::{Arm, Effect, Generator, Kernel, Program, ProgramError, Step};

/// An argument of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg<'a> {
    /// 64-bit signed integer.
    Int(i64),
    /// Binary string.
    Bytes(&'a [u8]),
}

/// What executes the statements of a stream.
pub trait Execute {
    /// How an execution fails.
    type Error;

    /// Executes statement number `statement` and returns how many rows it touched.
    ///
    /// # Errors
    /// Whatever the database says.
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Self::Error>;

    /// Adds the rows with `rows` keys from `first` on to table number `table` and returns how many were
    /// added.
    ///
    /// # Errors
    /// Whatever the database says.
    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, Self::Error>;
}

/// A database in which every statement touches as many rows as it must.
struct Assumed(Vec<u64>);

impl Execute for Assumed {
    type Error = std::convert::Infallible;

    fn execute(&mut self, statement: usize, _: &[Arg<'_>]) -> Result<u64, Self::Error> {
        Ok(self.0.get(statement).copied().unwrap_or(0))
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, Self::Error> {
        Ok(rows.into())
    }
}

/// Where a job begins: what its variables are computed from beside its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobStart {
    /// First key of the rows that the job owns.
    pub first_key: i64,
    /// First of the keys that no other job makes.
    pub new_key: i64,
    /// See [`crate::draw_offset`].
    pub draw: u64,
}

/// Keys that a job can make: those of job `j` begin at `j` times this.
pub const NEW_KEYS_PER_JOB: i64 = 1 << 40;

/// Why a transaction of a stream did not come to its commit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StreamError<E> {
    /// The database refused a statement.
    #[error("{0}")]
    Execute(E),
    /// A statement touched another number of rows than it must.
    #[error("statement {statement} touched {got} rows instead of {expected}")]
    Rows {
        /// Number of the statement.
        statement: usize,
        /// What it must touch.
        expected: u64,
        /// What it touched.
        got: u64,
    },
    /// A computation in the database's own language.
    #[error("a computation ({0:?}) cannot be done at the client")]
    Compute(Kernel),
}

/// A program compiled for one job: names are gone, only slots are left.
#[derive(Debug, Clone)]
pub struct Stream {
    steps: Vec<Op>,
    slots: Vec<Slot>,
    sequence: u64,
    /// Rows changed by the last transaction.
    changed: u64,
    start: JobStart,
    pool: Arc<[u8]>,
}

#[derive(Debug, Clone)]
enum Op {
    Bind {
        slot: usize,
        generator: Generator,
    },
    Plus {
        slot: usize,
        of: usize,
        by: i64,
    },
    Execute {
        statement: usize,
        args: Vec<usize>,
        rows: Option<u64>,
        changes: u64,
    },
    /// Arms with the lowest value that does not choose them any more.
    Choose {
        slot: usize,
        arms: Vec<(i64, Vec<Op>)>,
    },
    Repeat {
        times: u32,
        body: Vec<Op>,
    },
    Bulk {
        table: usize,
        rows: u32,
    },
    Compute {
        kernel: Kernel,
    },
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Int(i64),
    Bytes { start: usize, len: usize },
}

/// Statements take few arguments: this many fit without allocating.
const MAX_ARGS: usize = 16;

impl Stream {
    /// Compiles `program` for a job that begins at `start` and whose payloads are cut from `pool`; its
    /// sequence goes on at `sequence`.
    ///
    /// # Errors
    /// [`ProgramError`] when the program is not sound.
    pub fn new(program: &Program, start: JobStart, pool: Arc<[u8]>, sequence: u64) -> Result<Stream, ProgramError> {
        program.check()?;
        let vars = program.vars();
        let slot = |name: &str| vars.iter().position(|(v, _)| *v == name).ok_or(ProgramError::Unbound(name.to_owned()));
        fn compile(
            program: &Program,
            steps: &[Step],
            slot: &impl Fn(&str) -> Result<usize, ProgramError>,
        ) -> Result<Vec<Op>, ProgramError> {
            steps
                .iter()
                .map(|step| {
                    Ok(match step {
                        Step::Bind { var, generator: Generator::Plus { var: of, by } } => {
                            Op::Plus { slot: slot(var)?, of: slot(of)?, by: *by }
                        }
                        Step::Bind { var, generator } => Op::Bind { slot: slot(var)?, generator: *generator },
                        Step::Repeat { times, body } => {
                            Op::Repeat { times: *times, body: compile(program, body, slot)? }
                        }
                        Step::Bulk { table, rows } => Op::Bulk { table: *table, rows: *rows },
                        Step::Compute { kernel, .. } => Op::Compute { kernel: *kernel },
                        Step::Choose { var, arms } => {
                            let mut below = 0;
                            let mut arm = |arm: &Arm| -> Result<_, ProgramError> {
                                below += arm.share as i64;
                                Ok((below, compile(program, &arm.body, slot)?))
                            };
                            Op::Choose { slot: slot(var)?, arms: arms.iter().map(&mut arm).collect::<Result<_, _>>()? }
                        }
                        Step::Execute { statement } => {
                            let s = program.statements.get(*statement).ok_or(ProgramError::NoStatement(*statement))?;
                            let args = s.template.vars().map(slot).collect::<Result<Vec<_>, _>>()?;
                            let changes = if let Effect::Change(rows) = s.effect { rows } else { 0 };
                            Op::Execute { statement: *statement, args, rows: s.effect.rows(), changes }
                        }
                    })
                })
                .collect()
        }
        let steps = compile(program, &program.body, &slot)?;
        Ok(Stream { steps, slots: vec![Slot::Int(0); vars.len()], sequence, changed: 0, start, pool })
    }

    /// How often the sequence has been bound.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Goes on at `sequence`, where another stream of the same job stopped.
    pub fn go_on_at(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Rows that the last transaction changed.
    #[must_use]
    pub fn rows_changed(&self) -> u64 {
        self.changed
    }

    /// Rows that the next `transactions` transactions change, which are walked through without a database:
    /// what they do follows from the sequence alone.
    #[must_use]
    pub fn rows_changed_by(mut self, program: &Program, transactions: u64) -> u64 {
        let mut assumed = Assumed(program.statements.iter().map(|s| s.effect.rows().unwrap_or(0)).collect());
        let mut sum = 0;
        for _ in 0..transactions {
            // Every statement touches what it must; a computation ends the walk, and changes nothing.
            let _ = self.transaction(&mut assumed);
            sum += self.changed;
        }
        sum
    }

    /// Does one transaction up to, and without, its commit.
    ///
    /// # Errors
    /// [`StreamError`]; the caller rolls back.
    pub fn transaction<E: Execute + ?Sized>(&mut self, executor: &mut E) -> Result<(), StreamError<E::Error>> {
        let steps = std::mem::take(&mut self.steps);
        self.changed = 0;
        let result = self.run(&steps, executor);
        self.steps = steps;
        result
    }

    fn run<E: Execute + ?Sized>(&mut self, steps: &[Op], executor: &mut E) -> Result<(), StreamError<E::Error>> {
        for step in steps {
            match step {
                Op::Bind { slot, generator } => self.slots[*slot] = self.value(*generator),
                Op::Plus { slot, of, by } => {
                    if let Slot::Int(value) = self.slots[*of] {
                        self.slots[*slot] = Slot::Int(value + by);
                    }
                }
                Op::Repeat { times, body } => {
                    for _ in 0..*times {
                        self.run(body, executor)?;
                    }
                }
                Op::Bulk { table, rows } => {
                    let seq = self.sequence.saturating_sub(1);
                    let first = self.start.new_key + (seq * u64::from(*rows)) as i64;
                    let got = executor.bulk(*table, first, *rows).map_err(StreamError::Execute)?;
                    if got != u64::from(*rows) {
                        return Err(StreamError::Rows { statement: 0, expected: u64::from(*rows), got });
                    }
                    self.changed += got;
                }
                Op::Choose { slot, arms } => {
                    let Slot::Int(value) = self.slots[*slot] else { continue };
                    // The shares cover all values: the last arm takes what is left.
                    if let Some((_, body)) = arms.iter().find(|(below, _)| value < *below).or(arms.last()) {
                        self.run(body, executor)?;
                    }
                }
                Op::Compute { kernel } => return Err(StreamError::Compute(*kernel)),
                Op::Execute { statement, args, rows, changes } => {
                    let mut buffer = [Arg::Int(0); MAX_ARGS];
                    let got = if args.len() <= MAX_ARGS {
                        for (place, slot) in buffer.iter_mut().zip(args) {
                            *place = self.arg(*slot);
                        }
                        executor.execute(*statement, &buffer[..args.len()])
                    } else {
                        let args: Vec<Arg<'_>> = args.iter().map(|slot| self.arg(*slot)).collect();
                        executor.execute(*statement, &args)
                    };
                    let got = got.map_err(StreamError::Execute)?;
                    if let Some(expected) = rows.filter(|rows| *rows != got) {
                        return Err(StreamError::Rows { statement: *statement, expected, got });
                    }
                    self.changed += changes;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, generator: Generator) -> Slot {
        // The sequence is bound first in a program; what follows refers to its value then.
        let seq = self.sequence.saturating_sub(1);
        match generator {
            Generator::Sequence => {
                self.sequence += 1;
                Slot::Int(self.sequence as i64 - 1)
            }
            Generator::OwnRow { rows } => Slot::Int(self.start.first_key + (seq % rows.max(1)) as i64),
            Generator::Uniform { from, range, salt } => {
                Slot::Int(from + draw(seq, self.start.draw, salt, range) as i64)
            }
            Generator::Turn { of } => Slot::Int(((seq + self.start.draw) % of.max(1)) as i64),
            Generator::NewKey => Slot::Int(self.start.new_key + seq as i64),
            // `Plus` is an operation of its own.
            Generator::Constant(value) | Generator::Plus { by: value, .. } => Slot::Int(value),
            Generator::Payload { bytes } => {
                let start = payload_offset(seq, bytes);
                Slot::Bytes { start, len: (bytes as usize).min(self.pool.len().saturating_sub(start)) }
            }
        }
    }

    fn arg(&self, slot: usize) -> Arg<'_> {
        match self.slots[slot] {
            Slot::Int(i) => Arg::Int(i),
            Slot::Bytes { start, len } => Arg::Bytes(self.pool.get(start..start + len).unwrap_or_default()),
        }
    }
}
