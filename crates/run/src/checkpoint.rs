//! A checkpoint in the middle of a window: asked for, timed, and transactions told apart by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use loadline_database::Target;
use loadline_database::clock::now_ns;
use loadline_model::check::Check;
use loadline_model::snapshot::counter;
use loadline_model::{Column, Latencies, Snapshot, TestRecord, column};

use crate::job::JobResult;
use crate::schedule::{Schedule, Shared};

/// Part of the window after which the checkpoint is asked for.
const AFTER: u64 = 3;
const FIGURES: [&Column; 5] = [
    column::CHECKPOINT_SHARE_PCT,
    column::CHECKPOINT_TPS,
    column::CALM_TPS,
    column::CHECKPOINT_TIME_NS_P99,
    column::CALM_TIME_NS_P99,
];

/// How often the checkpoint has begun and ended by now, for the jobs to look at: 0, 1 while it is under way,
/// then 2.
#[derive(Debug, Default)]
pub struct Edges(AtomicU32);

impl Edges {
    /// As it is now.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn pass(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A job's transactions of the window, told apart.
#[derive(Debug, Clone, Default)]
pub struct Split {
    /// Times of those that ended while the checkpoint was under way.
    pub inside: Latencies,
    /// Times of the others.
    pub outside: Latencies,
    /// Time of the job in which the first kind was counted, ns.
    pub inside_ns: u64,
    /// The same for the others.
    pub outside_ns: u64,
}

impl Split {
    /// Counts a transaction that ended with the edges as they are.
    #[inline]
    pub(crate) fn record(&mut self, edges: u32, ns: u64) {
        if edges == 1 { self.inside.record(ns) } else { self.outside.record(ns) }
    }

    /// Adds another job's.
    pub(crate) fn merge(&mut self, other: &Split) {
        self.inside.merge(&other.inside);
        self.outside.merge(&other.outside);
        self.inside_ns += other.inside_ns;
        self.outside_ns += other.outside_ns;
    }
}

/// When a checkpoint began and ended, ns, or why there was none.
pub type Outcome = Result<(u64, u64), String>;

/// Asks for a checkpoint when a third of the window has passed.
pub(crate) fn ask(target: Arc<dyn Target>, schedule: Schedule, shared: Arc<Shared>) -> Option<JoinHandle<Outcome>> {
    let at_ns = schedule.open_ns + schedule.window_ns() / AFTER;
    let run = move || {
        while now_ns() < at_ns {
            if shared.stopped() {
                return Err("the test ended before".to_owned());
            }
            std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns()).min(20_000_000)));
        }
        shared.checkpoint.pass();
        let begin_ns = now_ns();
        let done = match target.abilities().checkpoints {
            Some(target) => target.checkpoint().map_err(|e| e.to_string()),
            None => Err("this target has no checkpoints".to_owned()),
        };
        let end_ns = now_ns();
        shared.checkpoint.pass();
        done.map(|()| (begin_ns, end_ns))
    };
    std::thread::Builder::new().name("checkpoint".to_owned()).spawn(run).ok()
}

/// Gives the jobs the times in which they counted either kind: all the time of the window.
pub(crate) fn time_jobs(jobs: &mut [JobResult], schedule: &Schedule, outcome: &Outcome) {
    let Ok((begin, end)) = outcome else { return };
    let inside = (*end).min(schedule.close_ns).saturating_sub((*begin).max(schedule.open_ns));
    for split in jobs.iter_mut().filter_map(|j| j.split.as_deref_mut()) {
        (split.inside_ns, split.outside_ns) = (inside, schedule.window_ns().saturating_sub(inside));
    }
}

/// Sets the figures. `edges` are the snapshots at the edges of the window.
pub(crate) fn figures(
    record: &mut TestRecord,
    merged: &JobResult,
    schedule: &Schedule,
    outcome: Option<&Outcome>,
    edges: Option<(&Snapshot, &Snapshot)>,
) -> Option<Check> {
    const ID: &str = "checkpoint";
    let leave_out = |record: &mut TestRecord, why: &str| {
        FIGURES.iter().for_each(|id| record.leave_out(id, why));
    };
    let Some((outcome, split)) = outcome.zip(merged.split.as_deref()) else {
        leave_out(record, "no checkpoint was asked for");
        return None;
    };
    let (begin, end) = match outcome {
        Ok(times) => *times,
        Err(why) => {
            let text = format!("there was no checkpoint in the window: {why}");
            leave_out(record, &text);
            return Some(Check::require(ID, false, text));
        }
    };
    let inside_ns = end.min(schedule.close_ns).saturating_sub(begin.max(schedule.open_ns));
    record.set(column::CHECKPOINT_SHARE_PCT, inside_ns as f64 / schedule.window_ns().max(1) as f64 * 100.0);
    let jobs = f64::from(record.jobs.max(1));
    let kinds = [
        (column::CHECKPOINT_TPS, column::CHECKPOINT_TIME_NS_P99, &split.inside, split.inside_ns),
        (column::CALM_TPS, column::CALM_TIME_NS_P99, &split.outside, split.outside_ns),
    ];
    for (tps, p99, times, ns) in kinds {
        if ns == 0 {
            [tps, p99]
                .iter()
                .for_each(|id| record.leave_out(id, "it was too short for any transaction to be told apart"));
            continue;
        }
        record.set(tps, times.count() as f64 / (ns as f64 / jobs / 1e9));
        match times.quantile_ns(0.99) {
            Some(ns) => record.set(p99, ns as f64),
            None => record.leave_out(p99, "no transaction ended in it"),
        }
    }
    let more = edges.and_then(|(a, b)| a.delta(b, counter::CHECKPOINTS)).map_or(0.0, |n| n - 1.0);
    if more >= 1.0 {
        record.notes.push(format!(
            "besides the checkpoint that loadline asked for the database made {more:.0} more in the window: they are among \
             the calm times"
        ));
    }
    let ended = if end > schedule.close_ns { "; it ended after the window" } else { "" };
    Some(Check::require(
        ID,
        begin < schedule.close_ns,
        format!(
            "a checkpoint took {:.0} ms, {:.0} ms of them in the window, in which {} transactions ended{ended}",
            end.saturating_sub(begin) as f64 / 1e6,
            inside_ns as f64 / 1e6,
            split.inside.count()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_while_it_is_under_way_is_told_apart() {
        let mut split = Split::default();
        for edges in [0, 0, 1, 2] {
            split.record(edges, 1000 + u64::from(edges));
        }
        assert_eq!((split.inside.count(), split.outside.count()), (1, 3));
        assert_eq!(split.inside.max_ns(), Some(1001));
        let mut jobs = vec![JobResult { split: Some(Box::new(split)), ..JobResult::default() }];
        let schedule = Schedule { start_ns: 0, open_ns: 100, close_ns: 1100 };
        time_jobs(&mut jobs, &schedule, &Ok((400, 2000)));
        let split = jobs[0].split.as_ref().unwrap();
        assert_eq!((split.inside_ns, split.outside_ns), (700, 300), "only what lies in the window");
    }
}
