//! When others see what a job has committed: a session of its own looks for the rows of each batch.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use loadline_model::{Latencies, TestRecord};
use loadline_target::clock::now_ns;
use loadline_target::{ClientSession, TargetError, Work};
use loadline_workload::{Arg, Commit, Effect, Generator, Program, Statement, Step, Visible};

use crate::job::JobResult;
use crate::schedule::{Schedule, Shared};
use crate::test::Request;

/// Between two looks that found nothing.
const PAUSE: Duration = Duration::from_micros(100);
/// Columns of the delay.
const COLUMNS: [(&str, f64); 2] = [("visible_delay_ns_p50", 0.5), ("visible_delay_ns_p99", 0.99)];

/// What the reader saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// When the last row of each batch was seen, ns, in the batches' order.
    pub at_ns: Vec<u64>,
    /// How often it looked.
    pub looks: u64,
    /// Why it could not go on.
    pub failed: Option<String>,
}

/// The running reader.
pub(crate) struct Reader(JoinHandle<Seen>);

/// Starts the reader of a workload whose rows are looked for.
///
/// # Errors
/// When its session cannot be had.
pub(crate) fn start(request: &Request, shared: &Arc<Shared>) -> Result<Option<Reader>, TargetError> {
    let Some(visible) = request.work.workload.visible else { return Ok(None) };
    let work = reading(&request.work, visible)?;
    let rows = request.work.params.get(visible.rows).max(1);
    let mut session = request.target.client_session(&work, request.jobs)?;
    let shared = Arc::clone(shared);
    let look = move || look(session.as_mut(), rows, &shared);
    let thread = std::thread::Builder::new().name("reader".to_owned()).spawn(look);
    thread.map(|t| Some(Reader(t))).map_err(|e| TargetError::Local(format!("no thread for the reader: {e}")))
}

impl Reader {
    /// What it saw, when the test has been told to stop.
    pub(crate) fn finish(self) -> Seen {
        let defect = || Seen { failed: Some("the reader ended by a defect of loadline".into()), ..Seen::default() };
        self.0.join().unwrap_or_else(|_| defect())
    }
}

/// The work of a session that only looks.
fn reading(work: &Work, visible: Visible) -> Result<Work, TargetError> {
    let statement = Statement::new(visible.query, Effect::ReadAny).map_err(|e| TargetError::Usage(e.to_string()))?;
    let body = vec![Step::bind("id", Generator::Constant(0)), Step::Execute { statement: 0 }];
    Ok(Work { program: Program { statements: vec![statement], body, commit: Commit::Wait }, ..work.clone() })
}

/// Looks for the last row of one batch after the other. The first job makes the keys from 0 on.
fn look(session: &mut dyn ClientSession, rows: i64, shared: &Shared) -> Seen {
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut seen = Seen::default();
    while !shared.stopped() {
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

/// Delays of the batches that began in the window, as far as they were seen.
fn delays(schedule: &Schedule, starts_ns: &[u64], seen: &Seen) -> Latencies {
    let mut delays = Latencies::new();
    let pairs = starts_ns.iter().zip(&seen.at_ns).filter(|(start, _)| schedule.counts(**start));
    pairs.for_each(|(start, at)| delays.record(at.saturating_sub(*start)));
    delays
}

/// Sets the figures of the delay, or says why there are none.
pub(crate) fn visible_figures(record: &mut TestRecord, schedule: &Schedule, jobs: &[JobResult], seen: Option<&Seen>) {
    let none = |record: &mut TestRecord, why: &str| COLUMNS.iter().for_each(|(id, _)| record.leave_out(id, why));
    let Some(seen) = seen else {
        return none(record, "only batches that come at a rate are looked for (DBL-STREAM)");
    };
    let starts_ns = jobs.first().map_or(&[][..], |j| j.starts_ns.as_slice());
    if jobs.iter().any(|j| j.errors_total > 0) {
        // The reader waits for a row that never came.
        return none(record, "a batch failed, and those after it were not looked for");
    }
    let delays = delays(schedule, starts_ns, seen);
    if let Some(why) = &seen.failed {
        none(record, &format!("the session that looks for the rows failed: {why}"));
    } else if delays.count() == 0 {
        none(record, "no batch of the window was seen");
    } else {
        for (id, quantile) in COLUMNS {
            delays.quantile_ns(quantile).into_iter().for_each(|ns| record.set(id, ns as f64));
        }
    }
    let began = starts_ns.iter().filter(|ns| schedule.counts(**ns)).count() as u64;
    record.notes.push(format!(
        "{} of the {began} batches that began in the window were seen by another session, which looked {} times in all",
        delays.count(),
        seen.looks
    ));
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
}
