//! When others see what a job has committed: a session of its own looks for the rows of each batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use loadline_database::clock::now_ns;
use loadline_database::{ClientSession, TargetError, Work};
use loadline_model::{Check, Latencies, Outcome, column};
use loadline_workload::{Arg, Commit, Effect, Generator, Instrument as Listed, Program, Statement, Step, Visible};

use super::{Instrument, Kind, Over, Run};
use crate::figures::Figures;
use crate::window::{JobResult, Request, Schedule, Shared};

pub(super) const KIND: Kind = Kind {
    make: |listed| match listed {
        Listed::Visible(visible) => Some(Box::new(Watch { visible, note: None, reader: None, seen: Seen::default() })),
        _ => None,
    },
    columns: &[column::VISIBLE_DELAY_NS_P50, column::VISIBLE_DELAY_NS_P99],
    absent: "only batches that come at a rate are looked for (DBL-STREAM)",
};

/// Between two looks that found nothing.
const PAUSE: Duration = Duration::from_micros(100);
/// So long after the jobs have been told to end it still looks for what they have made.
const LINGER_NS: u64 = 1_000_000_000;
/// With more batches unseen than this share of them, the 99th percentile is not that of all.
const MOST_UNSEEN: f64 = 0.01;
/// The job beside which it reads: rows are looked for on the node where the first job makes them.
const BESIDE_JOB: u32 = 0;

/// What the reader saw.
#[derive(Debug, Default)]
struct Seen {
    /// When the last row of each batch was seen, ns, in the batches' order.
    at_ns: Vec<u64>,
    /// How often it looked.
    looks: u64,
    /// Why it could not go on.
    failed: Option<String>,
}

/// The running reader.
struct Reader {
    thread: JoinHandle<Seen>,
    /// How many batches there are to be seen, once no more are made.
    made: Arc<AtomicU64>,
}

struct Watch {
    visible: Visible,
    /// That the plan has a rate which does not apply.
    note: Option<String>,
    reader: Option<Reader>,
    seen: Seen,
}

impl Instrument for Watch {
    fn prepare(&mut self, request: &mut Request, _: &Run<'_>) -> Result<(), TargetError> {
        let own = request.work.params.get(self.visible.rate);
        let given = request.rate_tps.replace(own as f64);
        self.note = given.map(|given| other_rate(given, self.visible.rate, own));
        Ok(())
    }

    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        let work = reading(&request.work, self.visible)?;
        let rows = request.work.params.get(self.visible.rows).max(1);
        let mut session = session(&work, |work, job| request.target.client_session(work, job))?;
        let (shared, made) = (Arc::clone(shared), Arc::new(AtomicU64::new(u64::MAX)));
        let of_thread = Arc::clone(&made);
        let look = move || look(session.as_mut(), rows, &shared, &of_thread);
        let thread = std::thread::Builder::new().name("reader".to_owned()).spawn(look);
        let thread = thread.map_err(|e| TargetError::Local(format!("no thread for the reader: {e}")))?;
        self.reader = Some(Reader { thread, made });
        Ok(())
    }

    fn stop(&mut self, jobs: &[JobResult]) {
        let Some(reader) = self.reader.take() else { return };
        reader.made.store(jobs.first().map_or(0, |job| job.total), Ordering::Relaxed);
        let defect = || Seen { failed: Some("the reader ended by a defect of loadline".into()), ..Seen::default() };
        self.seen = reader.thread.join().unwrap_or_else(|_| defect());
    }

    fn finish(&mut self, over: &Over<'_>) -> Figures {
        let mut out = figures(&over.measured.schedule, &over.measured.jobs, &self.seen);
        out.notes.extend(self.note.take());
        out
    }
}

/// That a rate was `given` which does not apply, as the workload has one of its `own`.
fn other_rate(given: f64, name: &str, own: i64) -> String {
    format!("the rate of {given} per second is not for this workload: its own is {name} = {own}")
}

/// The session that looks, as `open` gives them for a job.
fn session<S>(work: &Work, open: impl FnOnce(&Work, u32) -> Result<S, TargetError>) -> Result<S, TargetError> {
    open(work, BESIDE_JOB)
}

/// The work of a session that only looks.
fn reading(work: &Work, visible: Visible) -> Result<Work, TargetError> {
    let statement = Statement::new(visible.query, Effect::ReadAny).map_err(|e| TargetError::Usage(e.to_string()))?;
    let body = vec![Step::bind("id", Generator::Constant(0)), Step::Execute { statement: 0 }];
    Ok(Work { program: Program { statements: vec![statement], body, commit: Commit::Wait }, ..work.clone() })
}

/// Looks for the last row of one batch after the other, until it has seen all that were `made`. The first job
/// makes the keys from 0 on.
fn look(session: &mut dyn ClientSession, rows: i64, shared: &Shared, made: &AtomicU64) -> Seen {
    let _ = nix::sys::prctl::set_timerslack(1);
    let (mut seen, mut end_ns) = (Seen::default(), None);
    while (seen.at_ns.len() as u64) < made.load(Ordering::Relaxed) {
        if shared.stopped() && now_ns() >= *end_ns.get_or_insert_with(|| now_ns() + LINGER_NS) {
            break;
        }
        let key = (seen.at_ns.len() as i64 + 1) * rows - 1;
        seen.looks += 1;
        match session.look(0, &[Arg::Int(key)]) {
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

/// Delays of the batches that were due in the window, from when they were, as far as they were seen.
fn delays(schedule: &Schedule, intended_ns: &[u64], seen: &Seen) -> Latencies {
    let mut delays = Latencies::new();
    let pairs = intended_ns.iter().zip(&seen.at_ns).filter(|(start, _)| schedule.counts(**start));
    pairs.for_each(|(start, at)| delays.record(at.saturating_sub(*start)));
    delays
}

/// The delay, or why there is none; and whether all batches were seen.
fn figures(schedule: &Schedule, jobs: &[JobResult], seen: &Seen) -> Figures {
    let mut out = Figures::default();
    if jobs.iter().any(|j| j.errors_total > 0) {
        // The reader waits for a row that never came.
        out.leave_all_out(KIND.columns, "a batch failed, and those after it were not looked for");
        return out;
    }
    let intended_ns = jobs.first().map_or(&[][..], |j| j.intended_ns.as_slice());
    let delays = delays(schedule, intended_ns, seen);
    if let Some(why) = &seen.failed {
        out.leave_all_out(KIND.columns, &format!("the session that looks for the rows failed: {why}"));
    } else {
        for (id, quantile) in KIND.columns.iter().zip([0.5, 0.99]) {
            let delay = delays.quantile_ns(quantile).map(|ns| ns as f64);
            out.set_or_leave_out(id, delay, "no batch of the window was seen");
        }
    }
    let due = intended_ns.iter().filter(|ns| schedule.counts(**ns)).count() as u64;
    out.checks.push(all_seen(due, delays.count(), seen.looks));
    out
}

/// Whether of the batches that were `due` in the window as many were seen as the figures need.
fn all_seen(due: u64, seen: u64, looks: u64) -> Check {
    let id = "batches-seen";
    let unseen = due.saturating_sub(seen);
    let detail = format!(
        "{seen} of the {due} batches that were due in the window were seen by another session, which looked {looks} \
         times in all"
    );
    if unseen as f64 > due as f64 * MOST_UNSEEN {
        let why = format!("{detail}: the delays are those of these only, the other {unseen} came later or not at all");
        return Check::require(id, false, why);
    }
    match unseen {
        0 => Check::require(id, true, detail),
        _ => Check::new(id, Outcome::Noted, format!("{detail}: the other {unseen} came later or not at all")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_that_of_the_batch_with_the_same_number() {
        let schedule = Schedule { start_ns: 0, open_ns: 1_000, close_ns: 10_000 };
        let seen = Seen { at_ns: vec![700, 2_500, 9_000], ..Seen::default() };
        let delays = delays(&schedule, &[500, 2_000, 8_000, 9_500], &seen);
        assert_eq!(delays.count(), 2, "the first began before the window, the last was not seen");
        assert!((500..=502).contains(&delays.quantile_ns(0.5).unwrap()));
        assert!((1_000..=1_004).contains(&delays.max_ns().unwrap()));
    }

    #[test]
    fn batches_that_nobody_saw_are_told_and_are_no_figures_when_they_are_many() {
        assert_eq!(all_seen(200, 200, 9).outcome, Outcome::Passed);
        let noted = all_seen(200, 198, 9);
        assert!(noted.outcome == Outcome::Noted && noted.detail.contains("the other 2 came later"), "{noted:?}");
        assert_eq!(all_seen(200, 197, 9).outcome, Outcome::Failed);
        assert_eq!(all_seen(12, 11, 9).outcome, Outcome::Failed);
    }

    /// Three rows, which are there from a moment on.
    struct Late(u64);

    impl ClientSession for Late {
        fn begin(&mut self) -> Result<(), TargetError> {
            Ok(())
        }
        fn execute(&mut self, _: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
            // The batches of one row each are 0, 1, 2, …, and there are three of them.
            let there = matches!(args, [Arg::Int(0..=2)]) && now_ns() >= self.0;
            Ok(u64::from(there))
        }
        fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, TargetError> {
            Ok(rows.into())
        }
        fn commit(&mut self) -> Result<(), TargetError> {
            Ok(())
        }
        fn rollback(&mut self) -> Result<(), TargetError> {
            Ok(())
        }
        fn canceller(&self) -> loadline_database::Canceller {
            loadline_database::Canceller::new(|| ())
        }
    }

    #[test]
    fn the_last_batches_are_still_looked_for_when_the_jobs_have_ended() {
        let shared = Shared::new(1, Arc::default());
        shared.stop.store(true, Ordering::Relaxed);
        let mut session = Late(now_ns() + 50_000_000);
        let seen = look(&mut session, 1, &shared, &AtomicU64::new(3));
        assert_eq!((seen.at_ns.len(), seen.failed), (3, None), "and not a fourth, for which it would wait a second");
        let began = now_ns();
        assert_eq!(look(&mut session, 1, &shared, &AtomicU64::new(4)).at_ns.len(), 3);
        assert!(now_ns() - began >= LINGER_NS, "one that never came");
    }

    #[test]
    fn rows_are_looked_for_on_the_node_of_the_job_that_makes_them() {
        let workload = loadline_workload::find("DBL-STREAM").unwrap();
        let work = Work::new(workload, workload.params(&Default::default()).unwrap(), 1, 0.0);
        // Jobs go round the nodes: there is one job, and it is on the first.
        assert_eq!(session(&work, |_, job| Ok(job)).unwrap(), 0);
    }

    #[test]
    fn the_workloads_own_rate_stands_and_that_is_said() {
        let visible = loadline_workload::find("DBL-STREAM").unwrap().visible().unwrap();
        let said = other_rate(100.0, visible.rate, 20);
        assert!(said.contains("100 per second") && said.contains("batches = 20"), "{said}");
    }
}
