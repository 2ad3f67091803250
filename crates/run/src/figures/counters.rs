//! The database's counters between window start and window end.

use loadline_load::{Measured, Request};
use loadline_model::snapshot::counter;
use loadline_model::{Driver, JobLoad, Snapshot};

/// Transactions that the jobs completed between two snapshots, by their own count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Completed {
    pub(crate) count: f64,
    /// Half of those completed while the snapshots were read: how far `count` may be off.
    pub(crate) uncertain: f64,
}

/// The jobs' count between snapshots is as good as exact if it is off by at most this share.
const UNCERTAIN: f64 = 0.1;

/// For so long a session of PostgreSQL does not publish its counters again by itself, s (PGSTAT_MIN_INTERVAL in `pgstat.c`).
const PUBLISHED_STAYS_S: f64 = 1.0;

/// Snapshots of the counters at window start and window end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counters<'a> {
    /// Includes all that the jobs did up to the window start.
    pub(crate) open: &'a Snapshot,
    pub(crate) close: &'a Snapshot,
    /// Taken on time, for counters that change continuously.
    pub(crate) on_time: [&'a Snapshot; 2],
    /// Time between `open` and `close`, s.
    pub(crate) seconds: f64,
    /// Distance of `open` and `close` from window start and window end, sum, s.
    pub(crate) off_s: f64,
    /// Of a server that counts late: all transactions of the jobs. `open` and `close` are of before and after them, and
    /// `seconds` is the time that they would have taken at the rate of the window.
    pub(crate) whole: Option<f64>,
}

impl<'a> Counters<'a> {
    pub(crate) fn new(request: &Request, measured: &'a Measured) -> Result<Counters<'a>, String> {
        let readings = &measured.readings;
        let both = |a: &'a Result<Snapshot, String>, b: &'a Result<Snapshot, String>| match (a, b) {
            (Ok(a), Ok(b)) => Ok([a, b]),
            _ => Err(readings.unread().unwrap_or_else(|| "the database's counters could not be read".to_owned())),
        };
        let on_time = both(&readings.at_start.snapshot, &readings.at_end.snapshot)?;
        let window_s = measured.schedule.window_s();
        let facts = request.target.facts();
        if facts.counter_lag_s > 0.0 {
            let [open, close] = both(&measured.before, &measured.after)?;
            let (all, done) = (measured.merged.total as f64, measured.merged.transaction.count() as f64);
            return Ok(Counters { open, close, on_time, seconds: all / done * window_s, off_s: 0.0, whole: Some(all) });
        }
        // Sessions publish their counters when they pass window start and window end.
        let [open, close] = if facts.publishes_counters {
            both(&readings.after_start.snapshot, &readings.after_end.snapshot)?
        } else {
            on_time
        };
        let seconds = if facts.publishes_counters { window_s } else { on_time[0].seconds_until(on_time[1]) };
        let off = |s: &Snapshot, edge_ns: u64| s.at_ns.abs_diff(edge_ns) as f64 / 1e9;
        let off_s = off(open, measured.schedule.open_ns) + off(close, measured.schedule.close_ns);
        Ok(Counters { open, close, on_time, seconds, off_s, whole: None })
    }

    /// Transactions that the jobs completed between the snapshots taken on time, if the snapshots have their count.
    pub(crate) fn completed_on_time(&self) -> Option<Completed> {
        let [open, close] = self.on_time;
        let at = |snapshot: &Snapshot| {
            let count = |name| snapshot.counters.get(name).copied();
            count(counter::JOBS_BEFORE).zip(count(counter::JOBS_AFTER))
        };
        at(open).zip(at(close)).map(|((a0, a1), (b0, b1))| Completed {
            count: (b0 + b1 - a0 - a1) / 2.0,
            uncertain: (b1 - b0 + a1 - a0) / 2.0,
        })
    }

    /// Counts if few were completed while the snapshots were read: their counters are of as many, however late they were read.
    pub(crate) fn exact_on_time(&self) -> Option<Completed> {
        self.completed_on_time().filter(|done| done.count > 0.0 && done.uncertain <= UNCERTAIN * done.count)
    }

    /// As [`Self::completed_on_time`], between `open` and `close`. `None` if these hold what sessions published, at a time of their own.
    pub(crate) fn completed(&self) -> Option<Completed> {
        if let Some(count) = self.whole {
            return Some(Completed { count, uncertain: 0.0 });
        }
        if self.are_on_time() { self.completed_on_time() } else { None }
    }

    /// Whether `open` and `close` were taken on time, and do not hold what sessions published, at a time of their own.
    fn are_on_time(&self) -> bool {
        let [open, close] = self.on_time;
        std::ptr::eq(open, self.open) && std::ptr::eq(close, self.close)
    }

    /// For how long the counters in `open` and `close` may have grown outside the window, s. What sessions of the client driver
    /// published at the window start stays as it is for [`PUBLISHED_STAYS_S`], however late it is read. Jobs that think have published
    /// before; new sessions publish as they come and go, and slices of the in-database driver each time.
    pub(crate) fn grew_outside_s(&self, driver: Driver, load: &JobLoad) -> f64 {
        let stays = !self.are_on_time() && driver == Driver::Client && !load.thinks() && load.reconnect_every.is_none();
        if stays && self.off_s < PUBLISHED_STAYS_S { 0.0 } else { self.off_s }
    }

    /// Counters that were lower at the end, and views whose time of their last reset differs or is new: somebody reset them.
    /// Queries of loadline's own, which are subtracted, may be counted late.
    pub(crate) fn went_back(&self) -> Vec<String> {
        const LATE: f64 = 20.0;
        let (open, close) = (&self.open.counters, &self.close.counters);
        let lower = open.iter().filter_map(|(name, was)| {
            let is_gauge = counter::GAUGES.contains(&name.as_str());
            let short = if is_gauge { return None } else { name.strip_prefix("loadline.")? };
            (close.get(name)? + LATE < *was).then_some(short)
        });
        lower.chain(self.open.reset_until(self.close)).map(str::to_owned).collect()
    }

    pub(crate) fn grown(&self, name: &str) -> Option<f64> {
        self.open.delta(self.close, name)
    }

    /// Growth in the window: of a server that counts late, at the rate of the window.
    pub(crate) fn in_window(&self, name: &str) -> Option<f64> {
        let [open, close] = self.on_time;
        let share = if self.whole.is_some() { open.seconds_until(close) / self.seconds } else { 1.0 };
        self.grown(name).map(|n| n * share)
    }

    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        self.grown(name).map(|d| d / self.seconds)
    }

    /// Reads of data files, at most: blocks of a database that does not count its reads.
    pub(crate) fn most_reads(&self) -> Option<f64> {
        self.grown(counter::READ_CALLS).or_else(|| self.grown(counter::BLOCK_READS))
    }

    /// Reads of data files. Those of single blocks are as many as the blocks.
    pub(crate) fn reads(&self, is_sequential: bool) -> Option<f64> {
        if is_sequential { self.grown(counter::READ_CALLS) } else { self.most_reads() }
    }

    /// Growth of a counter that changes continuously.
    pub(crate) fn grown_on_time(&self, name: &str) -> Option<f64> {
        let [open, close] = self.on_time;
        open.delta(close, name)
    }

    pub(crate) fn rate_on_time(&self, name: &str) -> Option<f64> {
        let [open, close] = self.on_time;
        self.grown_on_time(name).map(|n| n / open.seconds_until(close))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn snapshot(at_ns: u64, jobs: Option<(f64, f64)>) -> Snapshot {
        let jobs = jobs.map(|(before, after)| [(counter::JOBS_BEFORE, before), (counter::JOBS_AFTER, after)]);
        testing::snapshot(at_ns, jobs.as_ref().map_or(&[], |counts| counts))
    }

    fn on_time<'a>(open: &'a Snapshot, close: &'a Snapshot) -> Counters<'a> {
        Counters { open, close, on_time: [open, close], seconds: 1.0, off_s: 0.0, whole: None }
    }

    #[test]
    fn the_jobs_count_is_that_of_the_snapshots() {
        let [open, close] = [snapshot(1, Some((100.0, 104.0))), snapshot(2, Some((900.0, 902.0)))];
        let [other, vague] = [snapshot(0, None), snapshot(2, Some((900.0, 1200.0)))];
        let (both, done) = (on_time(&open, &close), Some(Completed { count: 799.0, uncertain: 3.0 }));
        let published = Counters { open: &other, ..both };
        let all = Counters { whole: Some(1000.0), ..published };
        assert_eq!((both.completed(), both.exact_on_time()), (done, done));
        assert_eq!((published.completed(), published.completed_on_time()), (None, done));
        assert_eq!(all.completed(), Some(Completed { count: 1000.0, uncertain: 0.0 }));
        assert_eq!((on_time(&open, &other).completed(), on_time(&open, &vague).exact_on_time()), (None, None));
        let [thinking, renewed] = [(Some(2.0), None), (None, Some(5))];
        for (counters, off_s, driver, (think_s, reconnect_every), grew_s) in [
            (both, 0.3, Driver::Client, (None, None), 0.3),
            (published, 0.3, Driver::Client, (None, None), 0.0),
            (published, 0.3, Driver::Database, (None, None), 0.3),
            (published, 1.3, Driver::Client, (None, None), 1.3),
            (published, 0.3, Driver::Client, thinking, 0.3),
            (published, 0.3, Driver::Client, renewed, 0.3),
        ] {
            let load = JobLoad { think_s, reconnect_every, ..JobLoad::default() };
            assert_eq!(Counters { off_s, ..counters }.grew_outside_s(driver, &load), grew_s, "{driver} {load:?}");
        }
    }

    #[test]
    fn a_counter_that_goes_backwards_was_reset() {
        let back = |before, after: f64| {
            let (open, close) = (snapshot(1, Some((before, 0.0))), snapshot(2, Some((after, 0.0))));
            on_time(&open, &close).went_back()
        };
        assert_eq!((back(100.0, 900.0), back(900.0, 899.0)), (vec![], vec![]));
        assert_eq!(back(900.0, 100.0), ["jobs_before"]);
        // A reset is seen when the counter passed its old value again.
        let at = |reset: Option<f64>| testing::snapshot(1, reset.map(|s| ("pg_stat_wal.stats_reset", s)).as_slice());
        let between = |open: Option<f64>, close: Option<f64>| on_time(&at(open), &at(close)).went_back();
        assert_eq!((between(None, None), between(Some(5.0), Some(5.0))), (vec![], vec![]));
        assert_eq!(
            (between(None, Some(7.5)), between(Some(5.0), Some(7.5))),
            (vec!["pg_stat_wal".to_owned()], vec!["pg_stat_wal".to_owned()])
        );
    }
}
