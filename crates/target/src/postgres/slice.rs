//! A session of the in-database driver: one CALL per slice, and the two clocks.

use std::sync::Arc;

use loadline_model::Latencies;
use loadline_model::histogram::LogLinear;
use loadline_workload::Commit;

use super::connect::{Door, Role};
use super::ledger::Ledger;
use super::procedure::{CALL_TYPES, CLOCK, RESULT_COLUMNS, call};
use super::protocol::{self, Value};
use super::wire::Connection;
use crate::clock;
use crate::error::TargetError;
use crate::session::{Canceller, DatabaseSession, Slice, SliceEnd};
use crate::work::Work;

/// How long an offset is used before it is measured anew, ns.
const REFRESH_NS: u64 = 5_000_000_000;
/// By how much two machines' clocks may drift apart: 200 µs per second, more than any quartz does
/// while it is being disciplined.
const DRIFT: f64 = 200e-6;

/// A job's session.
pub(super) struct Database {
    connection: Connection,
    ledger: Ledger,
    pool: Arc<[u8]>,
    first_key: i64,
    next: i64,
    clock: ServerClock,
}

impl Database {
    /// Opens the session of `job`.
    pub(super) fn open(door: &Door, ledger: &Ledger, work: &Work, job: u32) -> Result<Database, TargetError> {
        let nowait = work.program.commit == Commit::Nowait;
        let mut connection = door.connect(Role::Job { job, nowait })?;
        let (call, clock) = (call(work), format!("SELECT {CLOCK}"));
        connection.prepare(&[("call", &call, &CALL_TYPES), ("clock", &clock, &[])])?;
        let clock = ServerClock::measure(&mut connection, 8)?;
        connection.publish(ledger)?;
        let (pool, first_key) = (work.pool(job), work.first_key(job));
        Ok(Database { connection, ledger: ledger.clone(), pool, first_key, next: 0, clock })
    }
}

impl DatabaseSession for Database {
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError> {
        self.clock.refresh(&mut self.connection)?;
        let values = [
            Value::Int(self.first_key),
            Value::Bytes(&self.pool),
            Value::Float(self.clock.server_s(until_ns)),
            Value::Int(self.next),
        ];
        let out = &mut self.connection.out;
        protocol::bind(out, "call", true, values.len(), values.into_iter());
        protocol::execute(out);
        protocol::sync(out);
        self.connection.send()?;
        let mut row = None;
        // The call's own transaction after the last COMMIT is counted as one of loadline's.
        self.connection.until_own_ready(|tag, body| {
            if tag == b'D' {
                row = Row::parse(body);
            }
        })?;
        self.ledger.add(self.connection.take_own_commits());
        let row = row.ok_or_else(|| {
            TargetError::Statement("the procedure returned a row that cannot be read: run `loadline clean`".into())
        })?;
        self.next = row.next;
        row.slice(&self.clock)
    }

    fn canceller(&self) -> Canceller {
        self.connection.canceller()
    }
}

/// What the procedure returns: times in s since 1970, sums and maxima in µs.
struct Row {
    next: i64,
    first_start: f64,
    done: i64,
    tx: Sums,
    commit: Sums,
    end: [f64; 3],
}

#[derive(Default)]
struct Sums {
    sum: f64,
    max: f64,
    buckets: Vec<i64>,
}

impl Row {
    fn parse(body: &[u8]) -> Option<Row> {
        let columns: Vec<&[u8]> = protocol::columns(body).collect::<Option<_>>()?;
        if columns.len() != RESULT_COLUMNS {
            return None;
        }
        let int = |i: usize| columns[i].try_into().ok().map(i64::from_be_bytes);
        let float = |i: usize| columns[i].try_into().ok().map(f64::from_be_bytes);
        Some(Row {
            next: int(0)?,
            first_start: float(1)?,
            done: int(2)?,
            tx: Sums { sum: float(3)?, max: float(4)?, buckets: protocol::int8_array(columns[7])? },
            commit: Sums { sum: float(5)?, max: float(6)?, buckets: protocol::int8_array(columns[8])? },
            end: [float(9)?, float(10)?, float(11)?],
        })
    }

    fn slice(&self, clock: &ServerClock) -> Result<Slice, TargetError> {
        let [start, commit, end] = self.end;
        Ok(Slice {
            first_start_ns: clock.own_ns(self.first_start),
            transaction: self.tx.latencies(self.done)?,
            commit: self.commit.latencies(self.done)?,
            end: Some(SliceEnd {
                start_ns: clock.own_ns(start),
                commit_ns: clock.own_ns(commit),
                end_ns: clock.own_ns(end),
            }),
        })
    }
}

impl Sums {
    /// The latencies, after a check that the histogram holds each of the `done` transactions.
    fn latencies(&self, done: i64) -> Result<Latencies, TargetError> {
        let counted: i64 = self.buckets.iter().sum();
        if counted != done || self.buckets.iter().any(|n| *n < 0) {
            return Err(TargetError::Statement(format!(
                "the procedure did {done} transactions, but its histogram holds {counted}: this is a mistake in loadline"
            )));
        }
        let mut latencies = Latencies::new();
        for (index, count) in self.buckets.iter().enumerate().filter(|(_, n)| **n > 0) {
            latencies.record_bucket(LogLinear::middle_ns(index), *count as u64);
        }
        latencies.add_sum((self.sum * 1000.0) as u128, (self.max * 1000.0) as u64);
        Ok(latencies)
    }
}

/// The server's clock against [`crate::clock`].
#[derive(Debug, Clone, Copy)]
struct ServerClock {
    /// Server's time since 1970 less ours, ns.
    offset_ns: i128,
    /// Half the round trip in which it was measured, ns: it is no further off than that.
    uncertainty_ns: u64,
    measured_ns: u64,
}

impl ServerClock {
    /// Asks `probes` times and keeps the answer that came back fastest.
    fn measure(connection: &mut Connection, probes: u32) -> Result<ServerClock, TargetError> {
        let mut best: Option<ServerClock> = None;
        for _ in 0..probes {
            let before = clock::now_ns();
            protocol::bind(&mut connection.out, "clock", true, 0, std::iter::empty());
            protocol::execute(&mut connection.out);
            protocol::sync(&mut connection.out);
            connection.send()?;
            let mut server = None;
            connection.until_own_ready(|tag, body| {
                if tag == b'D' {
                    let value = protocol::columns(body).next().flatten();
                    server = value.and_then(|v| v.try_into().ok()).map(f64::from_be_bytes);
                }
            })?;
            let after = clock::now_ns();
            let Some(server) = server else {
                return Err(TargetError::Statement("the server did not tell its time".into()));
            };
            let round_trip = after.saturating_sub(before);
            let middle = i128::from(before) + i128::from(round_trip / 2);
            let probe = ServerClock {
                offset_ns: epoch_ns(server) - middle,
                uncertainty_ns: round_trip / 2,
                measured_ns: after,
            };
            if best.is_none_or(|b| probe.uncertainty_ns < b.uncertainty_ns) {
                best = Some(probe);
            }
        }
        best.ok_or_else(|| TargetError::Statement("the server's clock was not asked".into()))
    }

    /// Measures anew when it is time, and keeps what is then the more certain.
    fn refresh(&mut self, connection: &mut Connection) -> Result<(), TargetError> {
        let age = clock::now_ns().saturating_sub(self.measured_ns);
        if age < REFRESH_NS {
            return Ok(());
        }
        let new = ServerClock::measure(connection, 3)?;
        if (new.uncertainty_ns as f64) <= self.uncertainty_ns as f64 + age as f64 * DRIFT {
            *self = new;
        }
        Ok(())
    }

    /// A moment of ours on the server's clock, s since 1970.
    fn server_s(&self, ns: u64) -> f64 {
        (i128::from(ns) + self.offset_ns) as f64 / 1e9
    }

    /// A moment of the server's (s since 1970, whole µs) on our clock, ns.
    fn own_ns(&self, server_s: f64) -> u64 {
        u64::try_from(epoch_ns(server_s) - self.offset_ns).unwrap_or(0)
    }
}

/// Seconds since 1970 in ns; the server's clock ticks in whole µs.
fn epoch_ns(s: f64) -> i128 {
    (s * 1e6).round() as i128 * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_go_to_the_server_and_back() {
        let clock = ServerClock { offset_ns: 1_790_000_000_123_456_000, uncertainty_ns: 0, measured_ns: 0 };
        for ns in [0, 1_000, 86_400_000_000_000] {
            let there = clock.server_s(ns);
            assert!(clock.own_ns(there).abs_diff(ns) <= 1_000, "{ns}");
        }
    }

    #[test]
    fn a_histogram_that_lacks_transactions_is_refused() {
        let sums = Sums { sum: 300.0, max: 200.0, buckets: vec![0, 2] };
        assert_eq!(sums.latencies(2).unwrap().count(), 2);
        assert!(sums.latencies(3).unwrap_err().to_string().contains("did 3"));
    }

    proptest! {
        #[test]
        fn no_row_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Row::parse(&bytes);
        }
    }
}
