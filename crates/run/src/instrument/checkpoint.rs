//! Requests a checkpoint in the window, times it, and splits transaction times by it.

use std::ops::Range;
use std::sync::Arc;

use loadline_database::{Target, TargetError};
use loadline_load::{JobResult, Parts, Request, Schedule, Shared};
use loadline_model::snapshot::counter;
use loadline_model::{CheckId, Column, Latencies, Note, column};
use loadline_storage::now_ns;
use loadline_workload::{Instrument as InstrumentSpec, Workload};

use super::{Beside, Instrument, boxed, wait_until};
use crate::evidence::{Evidence, RunContext};
use crate::test::{Test, failed, require};

/// The checkpoint is requested after 1/n of the window.
const AFTER: u64 = 3;

/// Throughput and slowest times in the checkpoint and outside.
const INSIDE: [&Column; 2] = [column::CHECKPOINT_TPS, column::CHECKPOINT_TIME_NS_P99];
const OUTSIDE: [&Column; 2] = [column::CALM_TPS, column::CALM_TIME_NS_P99];

pub(super) fn listed_by(workload: &Workload) -> Option<Box<dyn Instrument>> {
    boxed(workload.has(InstrumentSpec::Checkpoint).then(Checkpoint::default))
}

#[derive(Default)]
struct Checkpoint {
    /// When it began and ended, ns.
    times: Beside<Range<u64>>,
    /// Times of transactions outside and inside.
    shared: Arc<Shared>,
}

/// Time of the window inside and outside a checkpoint at these `times`, ns.
fn split(times: &Range<u64>, schedule: &Schedule) -> [u64; 2] {
    let inside = times.end.min(schedule.close_ns).saturating_sub(times.start.max(schedule.open_ns));
    [inside, schedule.window_ns().saturating_sub(inside)]
}

impl Instrument for Checkpoint {
    fn follows_window(&self) -> bool {
        true
    }

    fn prepare(&mut self, request: &mut Request, _: &RunContext<'_>) -> Result<(), TargetError> {
        request.parts = Parts::Marked;
        Ok(())
    }

    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        self.shared = Arc::clone(shared);
        let (target, shared) = (Arc::clone(&request.target), Arc::clone(shared));
        self.times.start("checkpoint", move || ask(target.as_ref(), &shared))
    }

    fn stop(&mut self, _: &[JobResult]) {
        self.times.join();
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        let why = match (&self.times.outcome, &self.shared.parts()[..]) {
            (Ok(times), [outside, inside]) => return figures(test, e, times, [inside, outside]),
            (Ok(_), _) => "no job ran",
            (Err(why), _) => why,
        };
        let text = format!("there was no checkpoint in the window: {why}");
        test.set_all_absent(&[&[column::CHECKPOINT_SHARE_PCT][..], &INSIDE[..], &OUTSIDE[..]].concat(), &text);
        test.check(CheckId::Checkpoint, failed(text));
    }
}

fn ask(target: &dyn Target, shared: &Shared) -> Result<Range<u64>, String> {
    wait_until(shared, |window| window.open_ns + window.window_ns() / AFTER)?;
    shared.mark(true);
    let begin_ns = now_ns();
    let done = match target.abilities().tables {
        Some(target) => target.checkpoint().map_err(|e| e.to_string()),
        None => Err("this target has no checkpoints".to_owned()),
    };
    let end_ns = now_ns();
    shared.mark(false);
    done.map(|()| begin_ns..end_ns)
}

fn figures(out: &mut Test, e: &Evidence<'_>, at: &Range<u64>, [inside, outside]: [&Latencies; 2]) {
    let schedule = &e.measured.schedule;
    let [inside_ns, outside_ns] = split(at, schedule);
    out.set(column::CHECKPOINT_SHARE_PCT, inside_ns as f64 / schedule.window_ns().max(1) as f64 * 100.0);
    for ([tps, p99], times, ns) in [(INSIDE, inside, inside_ns), (OUTSIDE, outside, outside_ns)] {
        if ns == 0 {
            out.set_all_absent(&[tps, p99], "it was too short to measure transactions");
            continue;
        }
        out.set(tps, times.count() as f64 / (ns as f64 / 1e9));
        let slow = times.quantile_ns(0.99).map(|ns| ns as f64);
        out.set_or_absent(p99, slow, "no transaction ended in it");
    }
    let more = e.grown(counter::CHECKPOINTS).map_or(0.0, |n| n - 1.0);
    if more >= 1.0 {
        out.notes.push(Note::MoreCheckpoints { more });
    }
    let late = if at.end > schedule.close_ns { "; it ended after the window" } else { "" };
    let detail = format!(
        "a checkpoint took {:.0} ms, {:.0} ms of it in the window; {} transactions ended in it{late}",
        at.end.saturating_sub(at.start) as f64 / 1e6,
        inside_ns as f64 / 1e6,
        inside.count()
    );
    out.check(CheckId::Checkpoint, require(at.start < schedule.close_ns, detail));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_in_the_window_counts() {
        let schedule = Schedule { start_ns: 0, open_ns: 100, close_ns: 1100 };
        assert_eq!(split(&(400..2000), &schedule), [700, 300]);
    }
}
