//! Queries done by several processes: whether they came, and what they were good for.

use loadline_database::ParallelWorkers;
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Check, Column, Outcome, Snapshot, TestRecord, column};

/// Fewer samples than these say nothing of how many processes were at work.
const LEAST_SAMPLES: u32 = 5;
/// Of the processes that a query asks for beside the session itself, this share must have been seen at work in
/// the window where the database does not count them: they come and go with each query, and are not seen in
/// between.
const LEAST_SEEN: f64 = 0.5;
/// Where the database counts them, so few may be missing.
const MOST_MISSING: f64 = 0.01;
/// Beginnings of wait events in which a process does no work on a query: it waits for a client, for another
/// process of the same query, or for something to do.
const NOT_AT_WORK: [&str; 4] = ["Client:", "IPC:", "Activity:", "Idle:"];
/// One of them in which it has done some: it has rows and waits until the session takes them.
const HANDS_OVER: &str = "IPC:MessageQueueSend";

/// What is known of the processes of a test.
pub(crate) struct Processes<'a> {
    /// How many were asked for, the session's own among them.
    pub(crate) asked: u32,
    /// How many came when the query was tried before the test; or why that failed.
    pub(crate) tried: Result<Option<ParallelWorkers>, String>,
    /// What the sessions were seen doing in the window, each process by itself.
    pub(crate) waits: &'a WaitProfile,
    /// What the database counted in the window, if it counts them.
    pub(crate) counted: Option<Counted>,
    /// Number of jobs.
    pub(crate) jobs: u32,
    /// Queries that completed in the window.
    pub(crate) queries: f64,
    /// CPUs of the database's machine, if that is known.
    pub(crate) cpus: Option<u32>,
}

/// What a database counted in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Counted {
    /// Workers that queries were to have, and those of them that came.
    Workers { planned: f64, came: f64 },
    /// Queries that got all processes they had asked for, and those that got fewer. Other sessions' may be
    /// among them.
    Queries { whole: f64, less: f64 },
}

/// What the database counted between the edges of a window, which are among `snapshots`: those that were taken
/// when all jobs had passed them.
pub(crate) fn counted(snapshots: &[(String, Snapshot)]) -> Option<Counted> {
    let at = |name: &str| snapshots.iter().find(|(n, _)| n == name).map(|(_, snapshot)| snapshot);
    let (open, close) = (at("passed open")?, at("passed close")?);
    let grown = |name| open.delta(close, name);
    let workers = grown(counter::WORKERS_PLANNED).zip(grown(counter::WORKERS_CAME));
    let queries = grown(counter::PARALLEL_WHOLE);
    workers
        .map(|(planned, came)| Counted::Workers { planned, came })
        .or_else(|| queries.map(|whole| Counted::Queries { whole, less: grown(counter::PARALLEL_LESS).unwrap_or(0.0) }))
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
            let why = format!(
                "the database does not say whether the {asked} processes that were asked for came: the figures prove nothing"
            );
            return Check::require(id, false, why);
        }
        Err(e) => return Check::require(id, false, format!("the processes of a query could not be counted: {e}")),
    };
    let (planned, came) = (together.planned, together.launched);
    let how = if together.how.is_empty() { String::new() } else { format!(" ({})", together.how) };
    let tried = format!("{asked} processes were asked for, {planned} planned and {came} came{how}");
    if came < asked {
        return Check::require(id, false, format!("{tried}: the figures are not those of {asked}"));
    }
    let (enough, of_window) = p.counted.map_or_else(|| seen(p), |counted| of_counters(p, counted));
    let detail = format!("{tried}; {of_window}");
    match (enough, p.cpus) {
        (Some(false), _) => Check::require(id, false, format!("{detail}: the figures are not those of {asked}")),
        (None, _) => Check::new(id, Outcome::NotMade, detail),
        (_, Some(cpus)) if cpus < asked => Check::new(id, Outcome::Noted, format!("{detail}, on {cpus} CPUs")),
        _ => Check::require(id, true, detail),
    }
}

/// Whether enough came in the window, by what the database counted.
fn of_counters(p: &Processes<'_>, counted: Counted) -> (Option<bool>, String) {
    // A query of each job may be counted on the other side of an edge; there are two.
    let queries = (p.queries - 2.0 * f64::from(p.jobs)).max(0.0);
    let share = 1.0 - MOST_MISSING;
    match counted {
        Counted::Workers { planned, came } => {
            let wanted = queries * f64::from(p.asked - 1);
            let text = format!(
                "in the window {came} of the {planned} workers came that {} queries were to have by the database's count",
                p.queries
            );
            (Some(came >= planned * share && planned >= wanted * share), text)
        }
        Counted::Queries { whole, less } => {
            let text = format!(
                "in the window {whole} queries had all the processes they asked for and {less} fewer by the database's \
                 count, {} of them of this test",
                p.queries
            );
            (Some(less <= whole * MOST_MISSING && whole >= queries * share), text)
        }
    }
}

/// Whether enough were at work in the window, by the samples of what the sessions do; `None` if these are too few
/// to tell.
fn seen(p: &Processes<'_>) -> (Option<bool>, String) {
    let samples = p.waits.samples;
    let Some(at_work) = at_work(p.waits).map(|n| n / f64::from(p.jobs.max(1))) else {
        let why =
            format!("{samples} samples of the window do not tell how many worked in it: it needs {LEAST_SAMPLES}");
        return (None, why);
    };
    // All workers come and go together: the share of n samples is off by half of 1 / √n as a standard deviation,
    // at the most.
    let share = LEAST_SEEN - 1.0 / f64::from(samples.max(1)).sqrt();
    let least = 1.0 + f64::from(p.asked - 1) * share.max(LEAST_SEEN / 4.0);
    let text = format!(
        "in the window {at_work:.1} were seen at work on average, of which {least:.1} are asked with {samples} samples"
    );
    let enough = at_work >= least;
    // They came when they were tried: either they stay away now, or they are gone again at once.
    let advice =
        if enough { "" } else { "; where a query is short for the time that it takes to start them, give more --size" };
    (Some(enough), format!("{text}{advice}"))
}

/// Mean number of processes that were seen at work; `None` with too few samples. Workers are seen as
/// sessions of their job.
fn at_work(waits: &WaitProfile) -> Option<f64> {
    let idle = |event: &str| event != HANDS_OVER && NOT_AT_WORK.iter().any(|beginning| event.starts_with(beginning));
    let working = waits.sessions.iter().filter(|(event, _)| !idle(event));
    let n: u64 = working.map(|(_, n)| *n).sum();
    (waits.samples >= LEAST_SAMPLES).then(|| n as f64 / f64::from(waits.samples))
}

/// Sets the speed-up of `record` against the test with one process among `others`, tests of the same run.
pub(crate) fn speed_up(record: &mut TestRecord, others: &[TestRecord]) {
    const ID: &Column = column::SPEED_UP;
    let alone = |r: &TestRecord| r.figure(column::THREADS) == Some(1.0);
    if alone(record) {
        return record.set(ID, 1.0);
    }
    let same = |r: &&TestRecord| {
        alone(r) && r.workload == record.workload && r.jobs == record.jobs && r.repetition == record.repetition
    };
    let base = others.iter().filter(same).find(|r| r.valid).and_then(|r| r.figure(column::COMMIT_THROUGHPUT_TPS));
    match base.zip(record.figure(column::COMMIT_THROUGHPUT_TPS)) {
        Some((base, rate)) if base > 0.0 => record.set(ID, rate / base),
        _ => record.leave_out(ID, "there is no valid test with one worker in this run to compare with"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(samples: u32, at_work: u64, beside: &str) -> WaitProfile {
        let n = u64::from(samples);
        let sessions = [("CPU".to_owned(), at_work * n), (beside.to_owned(), 4 * n)].into();
        WaitProfile { samples, sessions }
    }

    fn of(asked: u32, tried: Result<Option<(u32, u32)>, String>, waits: &WaitProfile) -> Processes<'_> {
        let tried =
            tried.map(|t| t.map(|(planned, came)| ParallelWorkers { planned, launched: came, how: "DOP 4".into() }));
        Processes { asked, tried, waits, counted: None, jobs: 1, queries: 100.0, cpus: Some(4) }
    }

    fn outcome(asked: u32, tried: Result<Option<(u32, u32)>, String>, at_work: u64, cpus: Option<u32>) -> Outcome {
        let waits = waits(100, at_work, "Client:idle");
        check(&Processes { cpus, ..of(asked, tried, &waits) }).outcome
    }

    #[test]
    fn fewer_processes_than_asked_for_are_no_figure() {
        assert_eq!(outcome(4, Ok(Some((4, 4))), 3, Some(4)), Outcome::Passed);
        assert_eq!(outcome(4, Ok(Some((4, 4))), 3, None), Outcome::Passed);
        assert_eq!(outcome(4, Ok(Some((4, 3))), 3, Some(4)), Outcome::Failed, "one did not come");
        assert_eq!(outcome(4, Ok(Some((4, 4))), 1, Some(4)), Outcome::Failed, "none was seen in the window");
        assert_eq!(outcome(4, Ok(Some((4, 4))), 3, Some(2)), Outcome::Noted, "more than CPUs");
        assert_eq!(outcome(4, Err("no".into()), 3, Some(4)), Outcome::Failed);
        assert_eq!(outcome(4, Ok(None), 3, Some(4)), Outcome::Failed, "nothing proves that they came");
        assert_eq!(outcome(1, Ok(None), 1, Some(4)), Outcome::Passed);
    }

    #[test]
    fn samples_say_as_much_as_they_are() {
        let tried = || Ok(Some((16, 16)));
        let of_samples = |samples, at_work| check(&of(16, tried(), &waits(samples, at_work, "Client:idle")));
        assert_eq!(of_samples(100, 7).outcome, Outcome::Noted, "15 × 0.4 + 1");
        assert_eq!(of_samples(100, 6).outcome, Outcome::Failed);
        assert_eq!(of_samples(10, 4).outcome, Outcome::Noted);
        let few = of_samples(4, 16);
        assert!(
            few.outcome == Outcome::NotMade && few.detail.contains("4 samples of the window do not tell"),
            "{few:?}"
        );
        assert!(few.detail.contains("16 planned and 16 came (DOP 4)"), "{few:?}");
        // Those that wait for each other do no work.
        for beside in ["IPC:ExecuteGather", "Activity:WalSenderMain", "Idle:PX Deq: Execution Msg"] {
            assert_eq!(check(&of(4, Ok(Some((4, 4))), &waits(100, 1, beside))).outcome, Outcome::Failed, "{beside}");
        }
        for beside in ["IO:DataFileRead", HANDS_OVER] {
            assert_eq!(check(&of(4, Ok(Some((4, 4))), &waits(100, 1, beside))).outcome, Outcome::Passed, "{beside}");
        }
    }

    #[test]
    fn what_the_database_counts_goes_before_samples() {
        let none = WaitProfile::default();
        let with = |counted| check(&Processes { counted: Some(counted), ..of(4, Ok(Some((4, 4))), &none) }).outcome;
        let workers = |planned, came| with(Counted::Workers { planned, came });
        assert_eq!((workers(300.0, 300.0), workers(300.0, 298.0)), (Outcome::Passed, Outcome::Passed));
        assert_eq!(workers(294.0, 294.0), Outcome::Passed, "a query at each edge");
        assert_eq!(workers(300.0, 290.0), Outcome::Failed, "some did not come");
        assert_eq!(workers(200.0, 200.0), Outcome::Failed, "fewer were planned");
        let queries = |whole, less| with(Counted::Queries { whole, less });
        assert_eq!((queries(100.0, 0.0), queries(120.0, 1.0)), (Outcome::Passed, Outcome::Passed));
        assert_eq!((queries(90.0, 10.0), queries(50.0, 0.0)), (Outcome::Failed, Outcome::Failed));
    }

    #[test]
    fn counters_are_those_of_the_window() {
        let at = |name: &str, given: &[(&str, f64)]| {
            let counters = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            (name.to_owned(), Snapshot { counters, ..Snapshot::default() })
        };
        let planned = |n| (counter::WORKERS_PLANNED, n);
        let came = |n| (counter::WORKERS_CAME, n);
        let edges = [
            at("open", &[]),
            at("passed open", &[planned(3.0), came(3.0)]),
            at("passed close", &[planned(9.0), came(8.0)]),
        ];
        assert_eq!(counted(&edges), Some(Counted::Workers { planned: 6.0, came: 5.0 }));
        let whole = |n| (counter::PARALLEL_WHOLE, n);
        let edges = [at("passed open", &[whole(1.0)]), at("passed close", &[whole(5.0)])];
        assert_eq!(counted(&edges), Some(Counted::Queries { whole: 4.0, less: 0.0 }));
        assert_eq!(counted(&[at("passed open", &[]), at("passed close", &[])]), None);
    }
}
