//! The database's counters between window start and window end.

use loadline_model::Snapshot;

use crate::window::{Measured, Request};

/// Snapshots of the counters at window start and window end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counters<'a> {
    /// Includes all that the jobs did up to the window start.
    pub(crate) open: &'a Snapshot,
    /// The same for the window end.
    pub(crate) close: &'a Snapshot,
    /// Taken on time, for counters that change continuously.
    pub(crate) on_time: [&'a Snapshot; 2],
    /// Time between `open` and `close`, s.
    pub(crate) seconds: f64,
    /// Distance of `open` and `close` from window start and window end, sum, s.
    pub(crate) off_s: f64,
    /// Maximum lag of the counters behind the sessions, s.
    pub(crate) lag_s: f64,
}

impl<'a> Counters<'a> {
    /// Counters of a test.
    ///
    /// # Errors
    /// Why they could not be read.
    pub(crate) fn of(request: &Request, measured: &'a Measured) -> Result<Counters<'a>, String> {
        let edges = &measured.edges;
        let unread =
            || measured.edges.unread().unwrap_or_else(|| "the database's counters could not be read".to_owned());
        let both = |a: &'a Result<Snapshot, String>, b: &'a Result<Snapshot, String>| {
            a.as_ref().ok().zip(b.as_ref().ok()).ok_or_else(unread)
        };
        let on_time = both(&edges.at_open.snapshot, &edges.at_close.snapshot)?;
        let facts = request.target.facts();
        // Sessions publish their counters when they pass window start and window end.
        let (open, close) = if facts.publishes_counters {
            both(&edges.passed_open.snapshot, &edges.passed_close.snapshot)?
        } else {
            on_time
        };
        let window_s = measured.schedule.window_s();
        let seconds = if facts.publishes_counters { window_s } else { on_time.0.seconds_until(on_time.1) };
        let off = |s: &Snapshot, edge_ns: u64| s.at_ns.abs_diff(edge_ns) as f64 / 1e9;
        let off_s = off(open, measured.schedule.open_ns) + off(close, measured.schedule.close_ns);
        Ok(Counters { open, close, on_time: [on_time.0, on_time.1], seconds, off_s, lag_s: facts.counter_lag_s })
    }

    /// Growth of a counter.
    pub(crate) fn grown(&self, name: &str) -> Option<f64> {
        self.open.delta(self.close, name)
    }

    /// The same per second.
    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        self.grown(name).map(|d| d / self.seconds)
    }

    /// Growth of two counters.
    pub(crate) fn both(&self, a: &str, b: &str) -> Option<(f64, f64)> {
        self.grown(a).zip(self.grown(b))
    }

    /// Growth per second of a counter that changes continuously.
    pub(crate) fn rate_on_time(&self, name: &str) -> Option<f64> {
        let [open, close] = self.on_time;
        open.delta(close, name).map(|d| d / open.seconds_until(close))
    }
}
