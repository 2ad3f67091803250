//! Queries done by several processes: whether they came, and what they were good for.

use loadline_model::snapshot::WaitProfile;
use loadline_model::{Check, Outcome, TestRecord};
use loadline_target::Together;

/// Fewer samples than these say nothing of how many processes were at work.
const LEAST_SAMPLES: u32 = 5;
/// Of the processes that a query asks for, this share must have been seen at work in the window beside the
/// session itself: they come and go with each query, and are not seen in between.
const LEAST_SEEN: f64 = 0.3;

/// What is known of the processes of a test.
pub(crate) struct Processes<'a> {
    /// How many were asked for, the session's own among them.
    pub(crate) asked: u32,
    /// How many came when the query was tried before the test; or why that failed.
    pub(crate) tried: Result<Option<Together>, String>,
    /// What the sessions were seen doing in the window, each process by itself.
    pub(crate) waits: &'a WaitProfile,
    /// Number of jobs.
    pub(crate) jobs: u32,
    /// CPUs of the database's machine, if that is known.
    pub(crate) cpus: Option<u32>,
}

/// Whether as many processes worked on a query as were asked for.
pub(crate) fn check(p: &Processes<'_>) -> Check {
    let id = "parallel-workers";
    let asked = p.asked;
    if asked == 1 {
        return Check::require(id, true, "one process did each query: its session".into());
    }
    let together = match &p.tried {
        Ok(Some(together)) => together,
        Ok(None) => {
            let why = format!("the database does not say whether the {asked} processes that were asked for came");
            return Check::new(id, Outcome::NotMade, why);
        }
        Err(e) => return Check::require(id, false, format!("the processes of a query could not be counted: {e}")),
    };
    let seen = at_work(p.waits).map(|n| n / f64::from(p.jobs.max(1)));
    let seen_text = seen.map_or(String::new(), |n| format!("; in the window {n:.1} were seen at work on average"));
    let (planned, came) = (together.planned, together.came);
    let detail = format!("{asked} processes were asked for, {planned} planned and {came} came{seen_text}");
    let fewer = came < asked || seen.is_some_and(|n| n < 1.0 + f64::from(asked - 1) * LEAST_SEEN);
    match p.cpus {
        _ if fewer => Check::require(id, false, format!("{detail}: the figures are not those of {asked}")),
        Some(cpus) if cpus < asked => Check::new(id, Outcome::Noted, format!("{detail}, on {cpus} CPUs")),
        _ => Check::require(id, true, detail),
    }
}

/// Mean number of processes that were seen at work; `None` with too few samples. Workers are seen as
/// sessions of their job.
fn at_work(waits: &WaitProfile) -> Option<f64> {
    let working = waits.sessions.iter().filter(|(event, _)| !event.starts_with("Client:"));
    let n: u64 = working.map(|(_, n)| *n).sum();
    (waits.samples >= LEAST_SAMPLES).then(|| n as f64 / f64::from(waits.samples))
}

/// Sets the speed-up of `record` against the test with one process among `others`, tests of the same run.
pub(crate) fn speed_up(record: &mut TestRecord, others: &[TestRecord]) {
    const ID: &str = "speed_up";
    let alone = |r: &TestRecord| r.figure("threads") == Some(1.0);
    if alone(record) {
        return record.set(ID, 1.0);
    }
    let same = |r: &&TestRecord| {
        alone(r) && r.workload == record.workload && r.jobs == record.jobs && r.repetition == record.repetition
    };
    let base = others.iter().filter(same).find(|r| r.valid).and_then(|r| r.figure("commit_throughput_tps"));
    match base.zip(record.figure("commit_throughput_tps")) {
        Some((base, rate)) if base > 0.0 => record.set(ID, rate / base),
        _ => record.leave_out(ID, "there is no valid test with one worker in this run to compare with"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(at_work: u64) -> WaitProfile {
        let sessions = [("CPU".to_owned(), at_work * 10), ("Client:idle".to_owned(), 10)].into();
        WaitProfile { samples: 10, sessions }
    }

    fn outcome(asked: u32, tried: Result<Option<(u32, u32)>, String>, at_work: u64, cpus: Option<u32>) -> Outcome {
        let tried = tried.map(|t| t.map(|(planned, came)| Together { planned, came }));
        check(&Processes { asked, tried, waits: &waits(at_work), jobs: 1, cpus }).outcome
    }

    #[test]
    fn fewer_processes_than_asked_for_are_no_figure() {
        assert_eq!(outcome(4, Ok(Some((4, 4))), 3, Some(4)), Outcome::Passed);
        assert_eq!(outcome(4, Ok(Some((4, 4))), 3, None), Outcome::Passed);
        assert_eq!(outcome(4, Ok(Some((4, 3))), 3, Some(4)), Outcome::Failed, "one did not come");
        assert_eq!(outcome(4, Ok(Some((4, 4))), 1, Some(4)), Outcome::Failed, "none was seen in the window");
        assert_eq!(outcome(4, Ok(Some((4, 4))), 3, Some(2)), Outcome::Noted, "more than CPUs");
        assert_eq!(outcome(4, Err("no".into()), 3, Some(4)), Outcome::Failed);
        assert_eq!(outcome(4, Ok(None), 3, Some(4)), Outcome::NotMade);
        assert_eq!(outcome(1, Ok(None), 1, Some(4)), Outcome::Passed);
    }
}
