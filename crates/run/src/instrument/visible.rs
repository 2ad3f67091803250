//! Visibility of committed rows: a separate session polls for the rows of each batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loadline_database::{TargetError, Work};
use loadline_load::{JobResult, Request, Schedule, Shared};
use loadline_model::{CheckId, Column, Latencies, Note, column};
use loadline_storage::now_ns;
use loadline_workload::{Arg, Commit, Effect, Generator, Program, Statement, Step, Visible, Workload};

use super::{Beside, Instrument, RunContext};
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, noted, passed};

const COLUMNS: [&Column; 2] = [column::VISIBLE_DELAY_NS_P50, column::VISIBLE_DELAY_NS_P99];

pub(super) fn listed_by(workload: &Workload) -> Option<Box<dyn Instrument>> {
    let (visible, seen, made) = (workload.visible.clone()?, Beside::default(), AtomicU64::new(u64::MAX));
    Some(Box::new(Visibility { visible, note: None, seen, made: Arc::new(made) }))
}

/// Pause after a poll that found nothing.
const PAUSE: Duration = Duration::from_micros(100);
/// How long it still polls after the jobs have ended, ns.
const LINGER_NS: u64 = 1_000_000_000;
/// If a larger share of the batches is not seen, the 99th percentile is invalid.
const MAX_UNSEEN_SHARE: f64 = 0.01;
/// The job whose node it reads on: the only one, which makes the rows. Jobs are assigned to nodes in turn.
const READER_JOB: u32 = 0;

#[derive(Debug, Clone, Default)]
struct ReaderResult {
    /// When the last row of each batch was seen, ns, in the batches' order.
    at_ns: Vec<u64>,
    polls: u64,
    failed: Option<String>,
}

struct Visibility {
    visible: Visible,
    /// Note that the plan's rate does not apply.
    note: Option<Note>,
    seen: Beside<ReaderResult>,
    /// Number of batches to see; set when no more are made.
    made: Arc<AtomicU64>,
}

impl Instrument for Visibility {
    fn prepare(&mut self, request: &mut Request, _: &RunContext<'_>) -> Result<(), TargetError> {
        let own = request.work.params.get(&self.visible.rate);
        let given = request.load.rate_tps.replace(own as f64);
        let parameter = self.visible.rate.clone();
        self.note = given.map(|given_tps| Note::OwnRate { given_tps, parameter, value: own });
        Ok(())
    }

    fn follows_window(&self) -> bool {
        true
    }

    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        let query = Statement::new(&self.visible.query, Effect::ReadAny);
        let statements = vec![query.map_err(|e| TargetError::Usage(e.to_string()))?];
        let body = vec![Step::bind("id", Generator::Constant(0)), Step::Execute { statement: 0 }];
        let work = Work { program: Program { statements, body, commit: Commit::Wait }, ..Work::clone(&request.work) };
        let rows = request.work.params.get(&self.visible.rows).max(1);
        let mut session = request.target.client_session(&work, READER_JOB)?;
        let (shared, made) = (Arc::clone(shared), Arc::clone(&self.made));
        let look = move |key| session.look(0, &[Arg::Int(key)]);
        self.seen.start("reader", move || Ok(poll_batches(look, rows, &shared, &made)))
    }

    fn stop(&mut self, jobs: &[JobResult]) {
        self.made.store(jobs.first().map_or(0, |job| job.total), Ordering::Relaxed);
        self.seen.join();
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        figures(test, &e.measured.schedule, &e.measured.jobs, self.seen.outcome.as_ref());
        test.notes.extend(self.note.clone());
    }
}

/// Polls for the last row of each batch in order, until it has seen all that were `made`. Keys start at 0. `look`: the number of rows
/// that have a key.
fn poll_batches(
    mut look: impl FnMut(i64) -> Result<u64, TargetError>,
    rows: i64,
    shared: &Shared,
    made: &AtomicU64,
) -> ReaderResult {
    let _ = nix::sys::prctl::set_timerslack(1);
    let (mut seen, mut end_ns) = (ReaderResult::default(), None);
    while (seen.at_ns.len() as u64) < made.load(Ordering::Relaxed) {
        if shared.stopped() && now_ns() >= *end_ns.get_or_insert_with(|| now_ns() + LINGER_NS) {
            break;
        }
        let key = (seen.at_ns.len() as i64 + 1) * rows - 1;
        seen.polls += 1;
        match look(key) {
            Ok(0) => std::thread::sleep(PAUSE),
            Ok(_) => seen.at_ns.push(now_ns()),
            Err(e) => {
                seen.failed = Some(e.to_string());
                break;
            }
        }
    }
    seen
}

/// Delays of the seen batches that were due in the window, measured from when they were due.
fn delays(schedule: &Schedule, intended_ns: &[u64], seen_ns: &[u64]) -> Latencies {
    let mut delays = Latencies::new();
    let pairs = intended_ns.iter().zip(seen_ns).filter(|(start, _)| schedule.counts(**start));
    pairs.for_each(|(start, at)| delays.record(at.saturating_sub(*start)));
    delays
}

/// The delays or why there are none, and the check that all batches were seen.
fn figures(out: &mut Test, schedule: &Schedule, jobs: &[JobResult], seen: Result<&ReaderResult, &String>) {
    if jobs.iter().any(|j| j.errors_total > 0) {
        // The reader waits for the failed batch, whose rows do not exist.
        return out.set_all_absent(&COLUMNS, "a batch failed, and later batches were not polled");
    }
    let intended_ns = jobs.first().map_or(&[][..], |j| j.intended_ns.as_slice());
    let at_ns = seen.map_or(&[][..], |seen| seen.at_ns.as_slice());
    let delays = delays(schedule, intended_ns, at_ns);
    if let Some(why) = seen.map_or_else(Some, |seen| seen.failed.as_ref()) {
        out.set_all_absent(&COLUMNS, &format!("the session that polls for rows failed: {why}"));
    } else {
        for (id, quantile) in COLUMNS.into_iter().zip([0.5, 0.99]) {
            let delay = delays.quantile_ns(quantile).map(|ns| ns as f64);
            out.set_or_absent(id, delay, "no batch of the window was seen");
        }
    }
    let due = intended_ns.iter().filter(|ns| schedule.counts(**ns)).count() as u64;
    out.check(CheckId::BatchesSeen, all_seen(due, delays.count(), seen.map_or(0, |seen| seen.polls)));
}

/// Checks that enough of the batches `due` in the window were seen.
fn all_seen(due: u64, seen: u64, polls: u64) -> Verdict {
    let unseen = due.saturating_sub(seen);
    let detail =
        format!("another session saw {seen} of the {due} batches that were due in the window, with {polls} polls");
    if unseen as f64 > due as f64 * MAX_UNSEEN_SHARE {
        return failed(format!("{detail}: delays exclude the other {unseen}, which were seen later or never"));
    }
    match unseen {
        0 => passed(detail),
        _ => noted(format!("{detail}: the other {unseen} were seen later or never")),
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;

    use super::*;

    #[test]
    fn a_delay_is_that_of_the_batch_with_the_same_number() {
        let schedule = Schedule { start_ns: 0, open_ns: 1_000, close_ns: 10_000 };
        let delays = delays(&schedule, &[500, 2_000, 8_000, 9_500], &[700, 2_500, 9_000]);
        assert_eq!(delays.count(), 2, "the first began before the window, the last was not seen");
        assert!((500..=502).contains(&delays.quantile_ns(0.5).unwrap()));
        assert!((1_000..=1_004).contains(&delays.max_ns().unwrap()));
    }

    #[test]
    fn unseen_batches_are_noted_and_too_many_fail_the_check() {
        assert_eq!(all_seen(200, 200, 9).outcome, Outcome::Passed);
        let noted = all_seen(200, 198, 9);
        assert!(noted.outcome == Outcome::Noted && noted.detail.contains("the other 2 were seen later"), "{noted:?}");
        assert_eq!(all_seen(200, 197, 9).outcome, Outcome::Failed);
        assert_eq!(all_seen(12, 11, 9).outcome, Outcome::Failed);
    }

    #[test]
    fn the_last_batches_are_still_looked_for_when_the_jobs_have_ended() {
        let shared = Shared::new(1, Arc::default());
        shared.stop.store(true, Ordering::Relaxed);
        // Three batches of one row each, 0, 1 and 2, are visible from a time on.
        let visible_ns = now_ns() + 50_000_000;
        let look = |key: i64| Ok(u64::from((0..=2).contains(&key) && now_ns() >= visible_ns));
        let seen = poll_batches(look, 1, &shared, &AtomicU64::new(3));
        assert_eq!((seen.at_ns.len(), seen.failed), (3, None), "and not a fourth, for which it would wait a second");
        let began = now_ns();
        assert_eq!(poll_batches(look, 1, &shared, &AtomicU64::new(4)).at_ns.len(), 3);
        assert!(now_ns() - began >= LINGER_NS, "one that never came");
    }
}
