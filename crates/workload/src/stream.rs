//! Runs a program for one job at the client: pure, seeded, and without allocation per statement.

use std::sync::Arc;

use thiserror::Error;

use crate::payload_offset;
use crate::program::{Generator, Program, ProgramError, Step};

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
}

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
}

/// A program compiled for one job: names are gone, only slots are left.
#[derive(Debug, Clone)]
pub struct Stream {
    steps: Vec<Op>,
    slots: Vec<Slot>,
    sequence: u64,
    first_key: i64,
    pool: Arc<[u8]>,
}

#[derive(Debug, Clone)]
enum Op {
    Bind { slot: usize, generator: Generator },
    Execute { statement: usize, args: Vec<usize>, rows: u64 },
    Repeat { times: u32, body: Vec<Op> },
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Int(i64),
    Bytes { start: usize, len: usize },
}

/// Statements take few arguments: this many fit without allocating.
const MAX_ARGS: usize = 16;

impl Stream {
    /// Compiles `program` for a job whose own rows begin at `first_key` and whose payloads are cut
    /// from `pool`; its sequence goes on at `sequence`.
    ///
    /// # Errors
    /// [`ProgramError`] when the program is not sound.
    pub fn new(program: &Program, first_key: i64, pool: Arc<[u8]>, sequence: u64) -> Result<Stream, ProgramError> {
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
                        Step::Bind { var, generator } => Op::Bind { slot: slot(var)?, generator: *generator },
                        Step::Repeat { times, body } => {
                            Op::Repeat { times: *times, body: compile(program, body, slot)? }
                        }
                        Step::Execute { statement } => {
                            let s = program.statements.get(*statement).ok_or(ProgramError::NoStatement(*statement))?;
                            let args = s.template.vars().map(slot).collect::<Result<Vec<_>, _>>()?;
                            Op::Execute { statement: *statement, args, rows: s.rows }
                        }
                    })
                })
                .collect()
        }
        let steps = compile(program, &program.body, &slot)?;
        Ok(Stream { steps, slots: vec![Slot::Int(0); vars.len()], sequence, first_key, pool })
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

    /// Does one transaction up to, and without, its commit.
    ///
    /// # Errors
    /// [`StreamError`]; the caller rolls back.
    pub fn transaction<E: Execute + ?Sized>(&mut self, executor: &mut E) -> Result<(), StreamError<E::Error>> {
        let steps = std::mem::take(&mut self.steps);
        let result = self.run(&steps, executor);
        self.steps = steps;
        result
    }

    fn run<E: Execute + ?Sized>(&mut self, steps: &[Op], executor: &mut E) -> Result<(), StreamError<E::Error>> {
        for step in steps {
            match step {
                Op::Bind { slot, generator } => self.slots[*slot] = self.value(*generator),
                Op::Repeat { times, body } => {
                    for _ in 0..*times {
                        self.run(body, executor)?;
                    }
                }
                Op::Execute { statement, args, rows } => {
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
                    if got != *rows {
                        return Err(StreamError::Rows { statement: *statement, expected: *rows, got });
                    }
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
            Generator::OwnRow { rows } => Slot::Int(self.first_key + (seq % rows.max(1)) as i64),
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
