//! A session of the in-database driver: one CALL per slice, and the two clocks.

use std::sync::Arc;

use loadline_workload::Commit;

use super::connect::{Door, Role};
use super::ledger::Ledger;
use super::procedure::{CALL_TYPES, CLOCK, call};
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
            Value::Int(self.clock.server_us(until_ns)),
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

/// What the procedure returns: one moment per transaction in each list, µs since 2000.
struct Row {
    next: i64,
    start: Vec<i64>,
    commit: Vec<i64>,
    end: Vec<i64>,
}

impl Row {
    fn parse(body: &[u8]) -> Option<Row> {
        let mut columns = protocol::columns(body);
        let next = columns.next()??.try_into().ok().map(i64::from_be_bytes)?;
        let mut moments = || protocol::timestamps(columns.next()??);
        let row = Row { next, start: moments()?, commit: moments()?, end: moments()? };
        (!row.end.is_empty() && row.start.len() == row.end.len() && row.commit.len() == row.end.len()).then_some(row)
    }

    /// The times of all transactions but the last, which crossed the end of the slice.
    fn slice(&self, clock: &ServerClock) -> Result<Slice, TargetError> {
        let mut slice = Slice::default();
        let mut before = i64::MIN;
        let all = self.start.iter().zip(&self.commit).zip(&self.end).map(|((s, c), e)| (*s, *c, *e));
        for (i, (start, commit, end)) in all.enumerate() {
            if !(before <= start && start <= commit && commit <= end) {
                return Err(TargetError::Statement(
                    "the server's clock went back during the measurement: its times cannot be used".into(),
                ));
            }
            before = end;
            if i == 0 {
                slice.first_start_ns = clock.own_ns(start);
            }
            if i + 1 == self.end.len() {
                slice.end = Some(SliceEnd {
                    start_ns: clock.own_ns(start),
                    commit_ns: clock.own_ns(commit),
                    end_ns: clock.own_ns(end),
                });
            } else {
                slice.transaction.record(ns_between(start, end));
                slice.commit.record(ns_between(commit, end));
            }
        }
        Ok(slice)
    }
}

/// Time between two moments of the server's, ns.
fn ns_between(from_us: i64, to_us: i64) -> u64 {
    to_us.abs_diff(from_us).saturating_mul(1000)
}

/// The server's clock against [`crate::clock`].
#[derive(Debug, Clone, Copy)]
struct ServerClock {
    /// Server's time since 2000 less ours, ns.
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
                    server = value.and_then(|v| v.try_into().ok()).map(i64::from_be_bytes);
                }
            })?;
            let after = clock::now_ns();
            let Some(server) = server else {
                return Err(TargetError::Statement("the server did not tell its time".into()));
            };
            let round_trip = after.saturating_sub(before);
            let middle = i128::from(before) + i128::from(round_trip / 2);
            let probe = ServerClock {
                offset_ns: i128::from(server) * 1000 - middle,
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

    /// A moment of ours on the server's clock, µs since 2000. The run's own end may lie before it.
    fn server_us(&self, ns: u64) -> i64 {
        i64::try_from((i128::from(ns) + self.offset_ns) / 1000).unwrap_or(i64::MAX)
    }

    /// A moment of the server's (µs since 2000) on our clock, ns.
    fn own_ns(&self, server_us: i64) -> u64 {
        u64::try_from(i128::from(server_us) * 1000 - self.offset_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLOCK: ServerClock = ServerClock { offset_ns: 790_000_000_123_456_000, uncertainty_ns: 0, measured_ns: 0 };

    #[test]
    fn moments_go_to_the_server_and_back() {
        for ns in [0, 1_000, 86_400_000_000_000] {
            assert_eq!(CLOCK.own_ns(CLOCK.server_us(ns)), ns);
        }
    }

    #[test]
    fn the_last_transaction_is_the_one_that_crossed_the_end() {
        let at = |us: i64| CLOCK.server_us(0) + us;
        let row = Row {
            next: 3,
            start: vec![at(100), at(210), at(330)],
            commit: vec![at(150), at(250), at(340)],
            end: vec![at(200), at(320), at(400)],
        };
        let slice = row.slice(&CLOCK).unwrap();
        assert_eq!((slice.transaction.count(), slice.transaction.sum_ns()), (2, 210_000));
        assert_eq!((slice.commit.sum_ns(), slice.commit.max_ns()), (120_000, Some(70_000)));
        assert_eq!(slice.first_start_ns, 100_000);
        assert_eq!(slice.end, Some(SliceEnd { start_ns: 330_000, commit_ns: 340_000, end_ns: 400_000 }));
    }

    #[test]
    fn a_clock_that_goes_back_is_an_error() {
        for (start, commit, end) in [([10, 20], [12, 22], [15, 21]), ([10, 14], [12, 22], [15, 25])] {
            let row = Row { next: 2, start: start.into(), commit: commit.into(), end: end.into() };
            assert!(row.slice(&CLOCK).unwrap_err().to_string().contains("went back"));
        }
    }

    proptest! {
        #[test]
        fn no_row_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Row::parse(&bytes);
        }
    }
}
