//! Percentiles against truth: the server is stopped for known times, and what must come out follows from what a relay before
//! it saw of each transaction, and from the schedule of arrivals.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use loadline_model::Latencies;
use loadline_store::{StoredRun, parse_rfc3339};
use serde::{Deserialize, Serialize};

use super::Bench;
use super::way::{On, Run, Scene, Seen};
use super::wire::{Session, Wire};
use crate::arena::Outcome;
use crate::outcomes;

const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
const WINDOW_S: f64 = 10.0;
const JOBS: usize = 2;
/// Transactions per second of the open loop.
const RATE: f64 = 200.0;

/// Response times of an open loop, s: those of the transactions of `session` that were due in the window. One is due every
/// `interval`, and the first ones began at once: none began earlier than it was due.
fn open_loop(session: &Session, opened_s: f64) -> Vec<f64> {
    let interval = JOBS as f64 / RATE;
    let due = |n: usize| interval * n as f64;
    let origin = session.iter().enumerate().map(|(n, (begin, _))| begin - due(n)).fold(f64::INFINITY, f64::min);
    let all = session.iter().enumerate().map(|(n, (_, end))| (origin + due(n), *end));
    let in_window = all.filter(|(due, _)| (opened_s..opened_s + WINDOW_S).contains(due));
    in_window.map(|(due, end)| end - due).collect()
}

/// Transaction times of a closed loop, s: those that ended in the window.
fn closed_loop(session: &Session, opened_s: f64) -> Vec<f64> {
    let in_window = session.iter().filter(|(_, end)| (opened_s..opened_s + WINDOW_S).contains(end));
    in_window.map(|(begin, end)| end - begin).collect()
}

/// The value at quantile `q` of `times`: the smallest with at least that share at or below it.
fn quantile(times: &mut [f64], q: f64) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    let rank = (q * times.len() as f64).ceil() as usize;
    times.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// A measurement.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) does: &'static str,
    run: Run,
    open: bool,
    /// Pauses and the stalls that follow them, s, from a second after the window's start on.
    stalls: &'static [(f64, f64)],
}

const OPEN: &str = "--workload LGWR-LAT1 --jobs 2 --driver client --rate 200 --duration 10s";
const CLOSED: &str = "--workload LGWR-LAT1 --jobs 2 --driver client --duration 10s";
const THREE: &[(f64, f64)] = &[(0.0, 0.2), (2.0, 0.5), (2.0, 0.8)];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "open-postgresql",
        does: "open loop, PostgreSQL",
        run: (On::Postgres, OPEN),
        open: true,
        stalls: THREE,
    },
    Case { name: "open-mariadb", does: "open loop, MariaDB", run: (On::MariaDb, OPEN), open: true, stalls: THREE },
    Case {
        name: "open-end",
        does: "open loop, PostgreSQL, a stall from 0.5 s before the window's end on",
        run: (On::Postgres, OPEN),
        open: true,
        stalls: &[(8.5, 1.2)],
    },
    Case {
        name: "closed-client",
        does: "closed loop, PostgreSQL, client",
        run: (On::Postgres, CLOSED),
        open: false,
        stalls: THREE,
    },
];

/// Percentiles that were measured, and those that had to be.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Percentiles {
    pub(super) name: String,
    pub(super) date: String,
    pub(super) server: String,
    /// Stalls as they were, s.
    pub(super) stalls_s: Vec<f64>,
    pub(super) count: u64,
    /// Of each quantile: its name, ms that had to come out, ms that loadline says.
    pub(super) rows: Vec<(String, f64, f64)>,
}

impl Case {
    pub(super) fn measure(&self, bench: &Bench<'_>) -> Outcome<Percentiles> {
        let ((seen, stalls, said, sessions), server) = bench.scene(self.run, true, |s| {
            let server = s.server()?;
            let wire = Wire::before(server.socket(), server.knows_execute())?;
            let (seen, stalls) = self.stalled(s, &server.over_tcp(wire.port))?;
            let said = latencies(&seen, if self.open { "response" } else { "transaction" })?;
            Ok((seen, stalls, said, wire.sessions()))
        })?;
        let opened = seen.records.last().and_then(|r| parse_rfc3339(&r.started_at)).ok_or_else(|| seen.said.clone())?;
        let opened_s = opened.duration_since(UNIX_EPOCH)?.as_secs_f64();
        let times = if self.open { open_loop } else { closed_loop };
        let mut each: Vec<Vec<f64>> = sessions.iter().map(|session| times(session, opened_s)).collect();
        // Those of the jobs; others calibrated before, or read counters.
        each.sort_by_key(|times| std::cmp::Reverse(times.len()));
        let mut was: Vec<f64> = each.into_iter().take(JOBS).flatten().collect();
        let row = |(name, q): (&str, f64)| {
            let said = if q < 1.0 { said.quantile_ns(q) } else { said.max_ns() };
            (name.to_owned(), quantile(&mut was, q) * 1e3, said.map_or(f64::NAN, |ns| ns as f64 / 1e6))
        };
        Ok(Percentiles {
            name: self.name.to_owned(),
            date: outcomes::today(),
            server,
            stalls_s: stalls.iter().map(Duration::as_secs_f64).collect(),
            count: said.count(),
            rows: QUANTILES.into_iter().map(row).collect(),
        })
    }

    /// The run through `url`, with how long each stall was.
    fn stalled(&self, s: &Scene<'_>, url: &str) -> Outcome<(Seen, Vec<Duration>)> {
        let mut stalls = Vec::new();
        let seen = s.in_window_of(&["--target", url], |_| {
            for (pause_s, length_s) in self.stalls {
                sleep(Duration::from_secs_f64(*pause_s));
                stalls.push(s.server()?.stall(Duration::from_secs_f64(*length_s))?);
            }
            Ok(())
        })?;
        Ok((seen, stalls))
    }
}

/// The latencies of the run's only test.
fn latencies(seen: &Seen, kind: &str) -> Outcome<Latencies> {
    let all = StoredRun::open(&seen.folder).map_err(|e| format!("{e}\n{}", seen.said))?.histograms(1)?;
    let found = all.into_iter().find(|(name, _)| name == kind);
    Ok(found.ok_or_else(|| format!("no {kind} times"))?.1)
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<18} {} transactions", self.name, self.count)?;
        self.rows.iter().try_for_each(|(name, must, said)| write!(f, "; {name} {said:.1} of {must:.1} ms"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_count_from_when_a_transaction_was_due() {
        // Due every 10 ms from 100 s on; the third begins 25 ms late, because the one before it took 34 ms.
        let session = vec![(100.0, 100.001), (100.011, 100.045), (100.045, 100.047), (100.047, 100.049)];
        let near = |times: Vec<f64>, must: &[f64]| {
            assert_eq!(times.len(), must.len(), "{times:?}");
            assert!(times.iter().zip(must).all(|(a, b)| (a - b).abs() < 1e-6), "{times:?}");
        };
        near(open_loop(&session, 100.005), &[0.035, 0.027, 0.019]);
        near(closed_loop(&session, 100.005), &[0.034, 0.002, 0.002]);
    }

    #[test]
    fn a_quantile_is_the_smallest_value_with_that_share_below() {
        let mut times = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.25, 0.5, 0.51, 1.0].map(|q| quantile(&mut times, q)), [1.0, 2.0, 3.0, 4.0]);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
