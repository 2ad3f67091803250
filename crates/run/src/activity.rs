//! Activity of a database beside a test, for the test's page: its statistics views, its background work, and what the sampling
//! asked of it.

use loadline_collect::Collected;
use loadline_database::Target;
use loadline_load::Measured;
use loadline_model::Activity;
use loadline_model::Snapshot;
use loadline_model::activity::{ACTIVITY_SCHEMA, Counted, Sampling, Span, View, growth};
use loadline_storage::now_ns;

use crate::figures::counters::Counters;

/// Samples of background work that are further apart are two spans, s.
const GAP_S: f64 = 0.35;

/// The views of a target, with the time at which they were read, ns; or why they were not.
#[derive(Debug)]
pub(crate) struct ReadViews {
    at_ns: u64,
    views: Result<Vec<View>, String>,
}

impl ReadViews {
    /// Reads them, but not in a run of two arms, whose windows are many and short. A test does not fail without an answer: its page says
    /// why there are none.
    pub(crate) fn new(target: &dyn Target, arms: bool) -> ReadViews {
        let views = match target.abilities().tables {
            _ if arms => Err("a run of two arms does not read them".to_owned()),
            Some(role) => role.views().map_err(|e| e.to_string()),
            None => Err("the target has none".to_owned()),
        };
        ReadViews { at_ns: now_ns(), views }
    }

    /// Activity until now by the views alone: their growth, or why it is not known.
    pub(crate) fn grown(self, target: &dyn Target) -> Activity {
        let from_ns = self.at_ns;
        let grown = self.views.and_then(|before| {
            let after = ReadViews::new(target, false);
            Ok((after.at_ns.saturating_sub(from_ns) as f64 / 1e9, growth(&before, after.views?)))
        });
        match grown {
            Ok((seconds, views)) => Activity { seconds, views, ..Activity::default() },
            Err(why) => Activity { unread: Some(why), ..Activity::default() },
        }
    }
}

/// Activity in the window of a test, with that of the `views`.
pub(crate) fn of_window(measured: &Measured, counters: Option<&Counters<'_>>, views: Activity) -> Activity {
    let name = |of: &Snapshot| {
        measured.snapshots().find(|(_, snapshot)| std::ptr::eq(*snapshot, of)).map(|(name, _)| name.to_owned())
    };
    let counted =
        counters.and_then(|c| Some(Counted { open: name(c.open)?, close: name(c.close)?, seconds: c.seconds }));
    let schedule = &measured.schedule;
    Activity { counted, ..of_period(&measured.collected, schedule.open_ns, schedule.close_ns, views) }
}

/// Activity between two moments, with that of the `views`, and without counters.
pub(crate) fn of_period(collected: &Collected, open_ns: u64, close_ns: u64, views: Activity) -> Activity {
    let inside = |ns: &u64| (open_ns..close_ns).contains(ns);
    let samples = || collected.wait_samples.iter().filter(|(at, _)| inside(at));
    let answer_ns: u64 = collected.answers.iter().filter(|(at, _)| inside(at)).map(|(_, ns)| ns).sum();
    let window_ns = close_ns.saturating_sub(open_ns).max(1);
    let known = samples().any(|(_, s)| s.background.is_some());
    let at = |ns: u64| (ns - open_ns) as f64 / 1e9;
    let running = samples().flat_map(|(ns, s)| s.background.iter().flatten().map(move |what| (at(*ns), what.as_str())));
    Activity {
        schema: ACTIVITY_SCHEMA,
        spans: known.then(|| spans(running)),
        sampling: Sampling {
            readings: collected.points.iter().filter(|p| p.snapshot.is_some() && inside(&p.system.at_ns)).count()
                as u32,
            samples: samples().count() as u32,
            answer_ms: answer_ns as f64 / 1e6,
            answer_pct: answer_ns as f64 / window_ns as f64 * 100.0,
        },
        ..views
    }
}

/// Moments at which work was seen, in order, as spans.
fn spans<'a>(seen: impl Iterator<Item = (f64, &'a str)>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for (at, what) in seen {
        match out.iter_mut().rev().find(|s| s.what == what).filter(|s| at - s.to_s <= GAP_S) {
            Some(span) => span.to_s = at,
            None => out.push(Span { what: what.to_owned(), from_s: at, to_s: at }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_close_together_are_one_span() {
        let seen =
            [(0.1, "checkpoint"), (0.2, "checkpoint"), (0.2, "autovacuum"), (0.3, "checkpoint"), (2.0, "checkpoint")];
        let span = |what: &str, from_s, to_s| Span { what: what.to_owned(), from_s, to_s };
        let found = spans(seen.into_iter());
        assert_eq!(found, [span("checkpoint", 0.1, 0.3), span("autovacuum", 0.2, 0.2), span("checkpoint", 2.0, 2.0)]);
        // Of a window from 5 to 7 s, before and after which it went on.
        let sample = |tenths: u64| {
            let background = Some(vec!["checkpoint".to_owned()]);
            (tenths * 100_000_000, loadline_model::snapshot::WaitSample { background, ..Default::default() })
        };
        let collected = Collected { wait_samples: (40..80).map(sample).collect(), ..Collected::default() };
        let activity = of_period(&collected, 5_000_000_000, 7_000_000_000, Activity::default());
        assert_eq!((activity.sampling.samples, activity.spans), (20, Some(vec![span("checkpoint", 0.0, 1.9)])));
    }
}
