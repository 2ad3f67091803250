//! A session of the in-database driver: one CALL per slice, and the two clocks.

use std::sync::Arc;

use loadline_workload::Arg;

use super::connect::{self, Door};
use super::procedure::{self, CLOCK, NEXT};
use super::wire::{Connection, Prepared};
use crate::clock;
use crate::error::TargetError;
use crate::session::{Canceller, DatabaseSession, Slice, SliceEnd};
use crate::work::Work;

/// How long an offset is used before it is measured anew, ns.
const REFRESH_NS: u64 = 5_000_000_000;
/// By how much two machines' clocks may drift apart, as in the PostgreSQL target.
const DRIFT: f64 = 200e-6;

/// A job's session.
pub(super) struct Database {
    connection: Connection,
    door: Arc<Door>,
    call: Prepared,
    pool: Arc<[u8]>,
    first_key: i64,
    next: i64,
    clock: ServerClock,
}

impl Database {
    /// Opens the session of `job`.
    pub(super) fn open(door: &Arc<Door>, work: &Work, job: u32) -> Result<Database, TargetError> {
        let mut connection = door.connect()?;
        // A second of the fastest server's moments.
        connection.query("SET SESSION max_heap_table_size = 67108864")?;
        connection.query(&procedure::create_moments())?;
        let call = connection.prepare(&procedure::call(work))?;
        let clock = ServerClock::measure(&mut connection, 8)?;
        let (pool, first_key) = (work.pool(job), work.first_key(job));
        Ok(Database { connection, door: Arc::clone(door), call, pool, first_key, next: 0, clock })
    }
}

impl DatabaseSession for Database {
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError> {
        let c = &mut self.connection;
        self.clock.refresh(c)?;
        let args = [
            Arg::Int(self.first_key),
            Arg::Bytes(&self.pool),
            Arg::Int(self.clock.server_us(until_ns)),
            Arg::Int(self.next),
        ];
        c.execute(&mut self.call, &args)?;
        let next = c.value(&format!("SELECT {NEXT}"))?.and_then(|v| v.parse().ok());
        self.next = next.ok_or_else(|| TargetError::Statement("the procedure left no sequence".into()))?;
        let table = procedure::moments();
        let rows = c.query(&format!("SELECT t FROM {table} ORDER BY k"))?;
        c.query(&format!("DELETE FROM {table}"))?;
        let moments = rows.iter().flatten().flatten().map(|t| parse(t)).collect::<Option<Vec<_>>>();
        let moments = moments.map(|m| m.concat()).filter(|m| !m.is_empty());
        let moments = moments.ok_or_else(|| {
            TargetError::Statement("the procedure left times that cannot be read: run `loadline clean`".into())
        })?;
        slice(&moments, &self.clock)
    }

    fn canceller(&self) -> Canceller {
        connect::canceller(&self.door, &self.connection)
    }
}

/// Start, begin of the commit and end of a transaction, µs of the server's clock.
type Moments = [i64; 3];

/// Lines of `start time-to-commit time-of-commit`.
fn parse(text: &[u8]) -> Option<Vec<Moments>> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines()
        .map(|line| {
            let mut numbers = line.split(' ').map(|n| n.parse::<i64>().ok());
            let (start, work, commit) = (numbers.next()??, numbers.next()??, numbers.next()??);
            numbers.next().is_none().then_some([start, start + work, start + work + commit])
        })
        .collect()
}

/// The times of all transactions but the last, which crossed the end of the slice.
fn slice(moments: &[Moments], clock: &ServerClock) -> Result<Slice, TargetError> {
    let mut slice = Slice::default();
    let mut before = i64::MIN;
    for (i, [start, commit, end]) in moments.iter().copied().enumerate() {
        if !(before <= start && start <= commit && commit <= end) {
            return Err(TargetError::Statement(
                "the server's clock went back during the measurement: its times cannot be used".into(),
            ));
        }
        before = end;
        if i == 0 {
            slice.first_start_ns = clock.own_ns(start);
        }
        if i + 1 == moments.len() {
            slice.end = Some(SliceEnd {
                start_ns: clock.own_ns(start),
                commit_ns: clock.own_ns(commit),
                end_ns: clock.own_ns(end),
            });
        } else {
            slice.transaction.record(end.abs_diff(start).saturating_mul(1000));
            slice.commit.record(end.abs_diff(commit).saturating_mul(1000));
        }
    }
    Ok(slice)
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
    fn measure(c: &mut Connection, probes: u32) -> Result<ServerClock, TargetError> {
        let mut best: Option<ServerClock> = None;
        for _ in 0..probes {
            let before = clock::now_ns();
            let server: Option<i64> = c.value(&format!("SELECT {CLOCK}"))?.and_then(|v| v.parse().ok());
            let after = clock::now_ns();
            let server = server.ok_or_else(|| TargetError::Statement("the server did not tell its time".into()))?;
            let round_trip = after.saturating_sub(before);
            let probe = ServerClock {
                offset_ns: i128::from(server) * 1000 - i128::from(before) - i128::from(round_trip / 2),
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
    fn refresh(&mut self, c: &mut Connection) -> Result<(), TargetError> {
        let age = clock::now_ns().saturating_sub(self.measured_ns);
        if age < REFRESH_NS {
            return Ok(());
        }
        let new = ServerClock::measure(c, 3)?;
        if (new.uncertainty_ns as f64) <= self.uncertainty_ns as f64 + age as f64 * DRIFT {
            *self = new;
        }
        Ok(())
    }

    /// A moment of ours on the server's clock, µs since 1970. The run's own end may lie before it.
    fn server_us(&self, own_ns: u64) -> i64 {
        i64::try_from((i128::from(own_ns) + self.offset_ns) / 1000).unwrap_or(i64::MAX)
    }

    /// A moment of the server's on our clock, ns.
    fn own_ns(&self, server_us: i64) -> u64 {
        u64::try_from(i128::from(server_us) * 1000 - self.offset_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: ServerClock = ServerClock { offset_ns: 0, uncertainty_ns: 1, measured_ns: 0 };

    #[test]
    fn moments_become_times() {
        let moments = parse(b"100 5 20\n130 6 30\n").unwrap();
        let s = slice(&moments, &CLOCK).unwrap();
        assert_eq!((s.first_start_ns, s.transaction.count(), s.transaction.sum_ns()), (100_000, 1, 25_000));
        assert_eq!(s.commit.sum_ns(), 20_000);
        assert_eq!(s.end, Some(SliceEnd { start_ns: 130_000, commit_ns: 136_000, end_ns: 166_000 }));
    }

    #[test]
    fn a_clock_that_goes_back_and_other_texts_are_errors() {
        assert!(slice(&[[100, 105, 120], [90, 95, 99]], &CLOCK).is_err());
        assert!(slice(&[[100, 99, 120]], &CLOCK).is_err());
        for text in [&b"1 2"[..], b"a b c", b"1 2 3 4", b"\xff"] {
            assert!(parse(text).is_none());
        }
    }
}
