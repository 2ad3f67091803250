//! Runs a program for one job at the client: deterministic, without allocations per statement.

use std::sync::Arc;

use thiserror::Error;

use crate::draw::draw;
use crate::pool::Pool;
use crate::program::{Arm, Effect, Generator, Kernel, Program, ProgramError, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

pub trait Execute {
    type Error;

    /// Executes statement number `statement` and returns how many rows it touched.
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Self::Error>;

    /// Adds `rows` rows with keys from `first` on to table number `table`, and returns how many were added.
    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, Self::Error>;
}

/// An executor in which every statement touches exactly the expected rows.
#[derive(Debug)]
struct AsExpected(Vec<u64>);

impl Execute for AsExpected {
    type Error = std::convert::Infallible;

    fn execute(&mut self, statement: usize, _: &[Arg<'_>]) -> Result<u64, Self::Error> {
        Ok(self.0.get(statement).copied().unwrap_or(0))
    }

    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, Self::Error> {
        Ok(rows.into())
    }
}

/// The start values of a job: its variables are functions of these and its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobStart {
    pub first_key: i64,
    pub new_key: i64,
    /// See [`crate::draw_offset`].
    pub draw: u64,
}

/// Follows transactions that a database runs by itself: what each does follows from its number.
#[derive(Debug)]
pub struct Replay {
    stream: Stream,
    expected: AsExpected,
}

impl Replay {
    pub fn new(stream: Stream, program: &Program) -> Replay {
        Replay { stream, expected: AsExpected(program.statements.iter().map(|s| s.effect.most_rows()).collect()) }
    }

    /// Kind of the next transaction, as [`Stream::kind`]; unknown after a computation, which only a database can do.
    pub fn next_kind(&mut self) -> Option<usize> {
        // The only possible error is a computation, which changes nothing.
        let _ = self.stream.transaction(&mut self.expected);
        self.stream.kind
    }
}

/// Number of new keys per job: those of job `j` start at `j` times this.
pub const NEW_KEYS_PER_JOB: i64 = 1 << 40;

/// Why a transaction did not reach its commit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StreamError<E> {
    #[error("{error}")]
    Execute {
        /// The statement's place in a user's file; empty for those of the catalogue.
        place: String,
        error: E,
    },
    /// A statement touched the wrong number of rows.
    #[error("{statement} touched {got} rows instead of {}", rows(*expected))]
    Rows {
        statement: String,
        /// The fewest and most rows that it may touch.
        expected: [u64; 2],
        got: u64,
    },
    /// A computation that only the database can do.
    #[error("the computation {0:?} cannot run at the client")]
    Compute(Kernel),
}

/// `1`, or `0 to 1`.
fn rows([low, high]: [u64; 2]) -> String {
    if low == high { low.to_string() } else { format!("{low} to {high}") }
}

/// A program compiled for one job: variables are slots, without names.
#[derive(Debug, Clone)]
pub struct Stream {
    steps: Vec<Op>,
    slots: Vec<Slot>,
    /// How often the sequence has been bound; one that is set continues where another stream of the same job stopped.
    pub sequence: u64,
    pub rows_changed: u64,
    /// Kind of the last transaction: index in [`Program::kinds`]; `None` if all are of one.
    pub kind: Option<usize>,
    start: JobStart,
    pool: Arc<Pool>,
    /// Places of the statements in a user's file.
    places: Arc<[String]>,
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
        allowed: Option<[u64; 2]>,
        changes: bool,
    },
    /// Arms, each with the upper bound (exclusive) of its values.
    Choose {
        slot: usize,
        arms: Vec<(i64, Vec<Op>)>,
        /// Whether the arm is the kind of the transaction.
        is_kind: bool,
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

/// Up to this number of arguments, a statement needs no allocation.
const MAX_ARGS: usize = 16;
/// Most statements have no more than these: less of the stack is filled.
const FEW_ARGS: usize = 3;

impl Stream {
    /// Compiles `program` for a job with `start`, with payloads from `pool`, whose sequence continues at `sequence`.
    pub fn new(program: &Program, start: JobStart, pool: Arc<Pool>, sequence: u64) -> Result<Stream, ProgramError> {
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
                        Step::Bind { var, generator } => Op::Bind { slot: slot(var)?, generator: generator.clone() },
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
                            let arms = arms.iter().map(&mut arm).collect::<Result<_, _>>()?;
                            let is_kind = program.choice_of_kind().is_some_and(|first| std::ptr::eq(first, step));
                            Op::Choose { slot: slot(var)?, arms, is_kind }
                        }
                        Step::Execute { statement } => {
                            let s = program.statements.get(*statement).ok_or(ProgramError::NoStatement(*statement))?;
                            let args = s.template.vars().map(slot).collect::<Result<Vec<_>, _>>()?;
                            let changes = matches!(s.effect, Effect::Change(_) | Effect::ChangeBetween(..));
                            Op::Execute { statement: *statement, args, allowed: s.effect.allowed(), changes }
                        }
                    })
                })
                .collect()
        }
        let steps = compile(program, &program.body, &slot)?;
        let places = program.statements.iter().map(|s| s.place.clone()).collect();
        Ok(Stream {
            steps,
            slots: vec![Slot::Int(0); vars.len()],
            sequence,
            rows_changed: 0,
            kind: None,
            start,
            pool,
            places,
        })
    }

    /// Rows that the next `transactions` transactions change. Simulates them without a database, because they are
    /// functions of the sequence.
    pub fn rows_changed_by(self, program: &Program, transactions: u64) -> u64 {
        let mut replay = Replay::new(self, program);
        let mut changed = || {
            replay.next_kind();
            replay.stream.rows_changed
        };
        (0..transactions).map(|_| changed()).sum()
    }

    /// Does one transaction without its commit.
    /// After an error the caller rolls back.
    pub fn transaction<E: Execute + ?Sized>(&mut self, executor: &mut E) -> Result<(), StreamError<E::Error>> {
        let steps = std::mem::take(&mut self.steps);
        self.rows_changed = 0;
        let result = self.run(&steps, executor);
        self.steps = steps;
        result
    }

    fn run<E: Execute + ?Sized>(&mut self, steps: &[Op], executor: &mut E) -> Result<(), StreamError<E::Error>> {
        for step in steps {
            match step {
                Op::Bind { slot, generator } => self.slots[*slot] = self.value(generator),
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
                    let got = executor.bulk(*table, first, *rows);
                    let got = got.map_err(|error| StreamError::Execute { place: String::new(), error })?;
                    if got != u64::from(*rows) {
                        let expected = [u64::from(*rows); 2];
                        return Err(StreamError::Rows { statement: "bulk load".to_owned(), expected, got });
                    }
                    self.rows_changed += got;
                }
                Op::Choose { slot, arms, is_kind } => {
                    let Slot::Int(value) = self.slots[*slot] else { continue };
                    // The shares cover all values; the last arm is a safe default.
                    let chosen =
                        arms.iter().position(|(below, _)| value < *below).unwrap_or(arms.len().saturating_sub(1));
                    if *is_kind {
                        self.kind = Some(chosen);
                    }
                    if let Some((_, body)) = arms.get(chosen) {
                        self.run(body, executor)?;
                    }
                }
                Op::Compute { kernel } => return Err(StreamError::Compute(*kernel)),
                Op::Execute { statement, args, allowed, changes } => {
                    let got = if args.len() <= FEW_ARGS {
                        self.execute::<FEW_ARGS, E>(*statement, args, executor)
                    } else if args.len() <= MAX_ARGS {
                        self.execute::<MAX_ARGS, E>(*statement, args, executor)
                    } else {
                        let args: Vec<Arg<'_>> = args.iter().map(|slot| self.arg(*slot)).collect();
                        executor.execute(*statement, &args)
                    };
                    let got = got.map_err(|error| StreamError::Execute { place: self.place(*statement), error })?;
                    if let Some(expected) = allowed.filter(|[low, high]| !(*low..=*high).contains(&got)) {
                        let place = Some(self.place(*statement)).filter(|place| !place.is_empty());
                        let statement = place.unwrap_or_else(|| format!("statement {statement}"));
                        return Err(StreamError::Rows { statement, expected, got });
                    }
                    if *changes {
                        self.rows_changed += got;
                    }
                }
            }
        }
        Ok(())
    }

    fn place(&self, statement: usize) -> String {
        self.places.get(statement).cloned().unwrap_or_default()
    }

    /// Executes a statement with at most `N` arguments.
    #[inline(never)]
    fn execute<const N: usize, E: Execute + ?Sized>(
        &self,
        statement: usize,
        args: &[usize],
        executor: &mut E,
    ) -> Result<u64, E::Error> {
        let mut buffer = [Arg::Int(0); N];
        for (place, slot) in buffer.iter_mut().zip(args) {
            *place = self.arg(*slot);
        }
        executor.execute(statement, buffer.get(..args.len()).unwrap_or_default())
    }

    fn value(&mut self, generator: &Generator) -> Slot {
        // The sequence was bound before; other generators use that value.
        let seq = self.sequence.saturating_sub(1);
        let turn = |of: u64| (seq + self.start.draw) % of.max(1);
        match *generator {
            Generator::Sequence => {
                self.sequence += 1;
                Slot::Int(self.sequence as i64 - 1)
            }
            Generator::OwnRow { rows } => Slot::Int(self.start.first_key + turn(rows) as i64),
            Generator::OwnRange { rows, ranges } => Slot::Int(self.start.first_key + (turn(ranges) * rows) as i64),
            Generator::Uniform { from, range, salt } => {
                Slot::Int(from + draw(seq, self.start.draw, salt, range) as i64)
            }
            Generator::Skewed { from, ref skew, salt } => {
                Slot::Int(from + skew.draw(seq, self.start.draw, salt) as i64)
            }
            Generator::Turn { of } => Slot::Int(turn(of) as i64),
            Generator::NewKey => Slot::Int(self.start.new_key + seq as i64),
            // `Plus` has its own operation.
            Generator::Constant(value) | Generator::Plus { by: value, .. } => Slot::Int(value),
            Generator::Payload { bytes } => {
                let start = self.pool.offset(seq, bytes);
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
