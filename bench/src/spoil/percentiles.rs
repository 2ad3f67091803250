//! Percentiles against truth: the server is stopped for known times, and what must come out follows from the schedule of
//! arrivals.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use loadline_model::Latencies;
use loadline_store::{StoredRun, parse_rfc3339};
use serde::{Deserialize, Serialize};

use super::Bench;
use super::way::{On, Run, Scene, Seen};
use crate::arena::Outcome;
use crate::outcomes;

const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
const WINDOW_S: f64 = 10.0;
const JOBS: u32 = 2;
/// Transactions per second of the open loop.
const RATE: f64 = 200.0;

/// A time in which nothing ends, s since the window's start.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stall {
    begin_s: f64,
    length_s: f64,
}

/// When `work_s` of work that begins at `at_s` ends.
fn end_s(at_s: f64, work_s: f64, stalls: &[Stall]) -> f64 {
    let (mut at, mut left) = (at_s, work_s);
    for stall in stalls {
        let end = stall.begin_s + stall.length_s;
        if at >= end {
            continue;
        }
        let before = (stall.begin_s - at).max(0.0);
        if at < stall.begin_s && left <= before {
            break;
        }
        left -= before;
        at = end;
    }
    at + left
}

/// Times of transactions by themselves, s: those at evenly spread quantiles, in an order that looks random.
fn alone(quantile_s: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
    (0u32..).map(move |n| quantile_s((f64::from(n) * 0.618_034).fract()))
}

/// Response times of an open loop, s: those of transactions due in the window. `work_s`: how long each takes by itself.
fn open_loop(mut work_s: impl Iterator<Item = f64>, stalls: &[Stall]) -> Vec<f64> {
    let interval = f64::from(JOBS) / RATE;
    let mut times = Vec::new();
    for job in 0..JOBS {
        let mut free = f64::NEG_INFINITY;
        for n in 0..(WINDOW_S / interval) as u32 {
            let due = interval * (f64::from(n) + f64::from(job) / f64::from(JOBS));
            free = end_s(due.max(free), work_s.next().unwrap_or(f64::NAN), stalls);
            times.push(free - due);
        }
    }
    times
}

/// Transaction times of a closed loop, s: those that begin in the window.
fn closed_loop(mut work_s: impl Iterator<Item = f64>, stalls: &[Stall]) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..JOBS {
        let mut at = 0.0;
        while at < WINDOW_S {
            let end = end_s(at, work_s.next().unwrap_or(f64::NAN), stalls);
            times.push(end - at);
            at = end;
        }
    }
    times
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
const INSIDE: &str = "--workload LGWR-LAT1 --jobs 2 --driver database --duration 10s";
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
    Case {
        name: "closed-inside",
        does: "closed loop, PostgreSQL, in the database",
        run: (On::Postgres, INSIDE),
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
        let ((seen, stalls, [said, alone_ns]), server) = bench.scene(self.run, true, |s| {
            let (seen, stalls) = self.stalled(s)?;
            let said = latencies(&seen, if self.open { "response" } else { "transaction" })?;
            let alone = latencies(&seen, "transaction")?;
            Ok((seen, stalls, [said, alone]))
        })?;
        // Each stall meets one transaction of each job: the others say how long one takes by itself.
        let others = 1.0 - f64::from(JOBS) * stalls.len() as f64 / alone_ns.count() as f64;
        let work_s = alone(|q| alone_ns.quantile_ns(q * others).map_or(f64::NAN, |ns| ns as f64 / 1e9));
        let opened = seen.records.last().and_then(|r| parse_rfc3339(&r.started_at)).ok_or_else(|| seen.said.clone())?;
        let since = |at: SystemTime| at.duration_since(opened).map_or(0.0, |d| d.as_secs_f64());
        let stalls: Vec<Stall> =
            stalls.iter().map(|(at, time)| Stall { begin_s: since(*at), length_s: time.as_secs_f64() }).collect();
        let mut must = if self.open { open_loop(work_s, &stalls) } else { closed_loop(work_s, &stalls) };
        let row = |(name, q): (&str, f64)| {
            let said = if q < 1.0 { said.quantile_ns(q) } else { said.max_ns() };
            (name.to_owned(), quantile(&mut must, q) * 1e3, said.map_or(f64::NAN, |ns| ns as f64 / 1e6))
        };
        Ok(Percentiles {
            name: self.name.to_owned(),
            date: outcomes::today(),
            server,
            stalls_s: stalls.iter().map(|s| s.length_s).collect(),
            count: said.count(),
            rows: QUANTILES.into_iter().map(row).collect(),
        })
    }

    /// The run, with when each stall began and how long it was.
    fn stalled(&self, s: &Scene<'_>) -> Outcome<(Seen, Vec<(SystemTime, Duration)>)> {
        let mut stalls = Vec::new();
        let seen = s.in_window(|_| {
            for (pause_s, length_s) in self.stalls {
                sleep(Duration::from_secs_f64(*pause_s));
                let begin = SystemTime::now();
                stalls.push((begin, s.server()?.stall(Duration::from_secs_f64(*length_s))?));
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
    use std::iter::repeat;

    use super::*;

    const STALL: Stall = Stall { begin_s: 4.0, length_s: 1.0 };

    #[test]
    fn work_waits_for_the_end_of_a_stall() {
        assert_eq!(end_s(1.0, 0.5, &[STALL]), 1.5, "before it");
        assert_eq!(end_s(3.75, 0.5, &[STALL]), 5.25, "through it");
        assert_eq!(end_s(4.5, 0.5, &[STALL]), 5.5, "in it");
        assert_eq!(end_s(6.0, 0.5, &[STALL]), 6.5, "after it");
        let two = [STALL, Stall { begin_s: 5.25, length_s: 2.0 }];
        assert_eq!(end_s(4.5, 0.5, &two), 7.5, "a part of it between two");
    }

    #[test]
    fn each_arrival_in_a_stall_waits_for_its_end() {
        let mut times = open_loop(repeat(0.0), &[STALL]);
        assert_eq!(times.len(), 2000);
        // A tenth of all arrive in the stall, spread evenly over it.
        assert_eq!(quantile(&mut times, 0.5), 0.0);
        for (q, must) in [(0.95, 0.5), (0.99, 0.9), (0.999, 0.99), (1.0, 1.0)] {
            assert!((quantile(&mut times, q) - must).abs() < 0.02, "{q}: {}", quantile(&mut times, q));
        }
    }

    #[test]
    fn a_queue_is_worked_off_one_by_one() {
        // 5 ms of work every 10 ms of each job: what came in a stall of a second is done after another.
        let long = open_loop(repeat(0.005), &[STALL]).into_iter().filter(|s| *s > 0.0051).count();
        assert!((396..=404).contains(&long), "{long}");
    }

    #[test]
    fn a_closed_loop_sees_a_stall_once_per_job() {
        let mut times = closed_loop(repeat(0.001), &[STALL]);
        assert_eq!(times.iter().filter(|s| **s > 0.5).count(), JOBS as usize);
        assert!((quantile(&mut times, 0.999) - 0.001).abs() < 1e-6 && (quantile(&mut times, 1.0) - 1.001).abs() < 1e-6);
    }

    #[test]
    fn times_alone_have_the_given_distribution() {
        let mut times: Vec<f64> = alone(|q| q).take(1000).collect();
        assert!(times.windows(2).any(|pair| pair[1] < pair[0]), "in no order");
        for q in [0.1, 0.5, 0.9, 0.999] {
            assert!((quantile(&mut times, q) - q).abs() < 0.01, "{q}");
        }
    }

    #[test]
    fn a_quantile_is_the_smallest_value_with_that_share_below() {
        let mut times = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.25, 0.5, 0.51, 1.0].map(|q| quantile(&mut times, q)), [1.0, 2.0, 3.0, 4.0]);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
