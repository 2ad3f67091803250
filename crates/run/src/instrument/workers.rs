//! Queries done by several processes: whether they came, and what they were good for.

use loadline_database::{ParallelWorkers, TargetError};
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Check, Column, Outcome, Snapshot, TestRecord, column};
use loadline_workload::Instrument as Listed;

use super::{Instrument, Kind, Over, Run};
use crate::figures::Figures;
use crate::window::{Measured, Request};

const SPEED_UP: &Column = column::SPEED_UP;

pub(super) const KIND: Kind = Kind {
    make: |listed| match listed {
        Listed::Workers(_) => Some(Box::new(Workers { tried: Ok(None) })),
        _ => None,
    },
    columns: &[SPEED_UP],
    absent: "its queries are not run in parallel",
};

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

struct Workers {
    /// How many came when the query was tried before the test; or why that failed.
    tried: Result<Option<ParallelWorkers>, String>,
}

impl Instrument for Workers {
    fn prepare(&mut self, request: &mut Request, _: &Run<'_>) -> Result<(), TargetError> {
        let parallel = request.target.abilities().parallel_queries;
        self.tried = parallel.map_or(Ok(None), |p| p.try_parallel(&request.work)).map_err(|e| e.to_string());
        Ok(())
    }

    fn finish(&mut self, over: &Over<'_>) -> Figures {
        let (request, figures, mut out) = (over.request, over.figures, Figures::default());
        let manifest = over.run.manifest;
        let processes = Processes {
            asked: request.work.parallel_workers().unwrap_or(1),
            tried: std::mem::replace(&mut self.tried, Ok(None)),
            waits: &over.measured.waits(),
            counted: counted(over.measured),
            jobs: request.jobs,
            queries: figures.figure(column::COMMITS).unwrap_or(0.0),
            cpus: manifest.target.local.then_some(manifest.machine.cpus),
        };
        out.checks.push(check(&processes));
        let alone = |r: &&TestRecord| {
            let same = r.workload == request.work.workload.code && r.jobs == request.jobs;
            same && r.valid && r.figure(column::THREADS) == Some(1.0) && r.repetition == over.run.repetition
        };
        let base = over.run.records.iter().find(alone).and_then(|r| r.figure(column::COMMIT_THROUGHPUT_TPS));
        let rate = figures.figure(column::COMMIT_THROUGHPUT_TPS);
        let of_one = (processes.asked == 1).then_some(1.0);
        let speed_up = of_one.or_else(|| base.filter(|base| *base > 0.0).zip(rate).map(|(base, rate)| rate / base));
        out.set_or_leave_out(SPEED_UP, speed_up, "there is no valid test with one worker in this run to compare with");
        let limit = request.target.abilities().parallel_queries.map(|p| p.max_parallel_workers());
        if let Some(Ok(Some(limit))) = limit {
            out.notes.push(format!(
                "at most {} processes do a query together on this server ({}): a sweep over workers ends there",
                limit.workers, limit.because
            ));
        }
        out
    }
}

/// What is known of the processes of a test.
struct Processes<'a> {
    /// How many were asked for, the session's own among them.
    asked: u32,
    /// How many came when the query was tried before the test; or why that failed.
    tried: Result<Option<ParallelWorkers>, String>,
    /// What the sessions were seen doing in the window, each process by itself.
    waits: &'a WaitProfile,
    /// What the database counted in the window, if it counts them.
    counted: Option<Counted>,
    /// Number of jobs.
    jobs: u32,
    /// Queries that completed in the window.
    queries: f64,
    /// CPUs of the database's machine, if that is known.
    cpus: Option<u32>,
}

/// What a database counted in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    /// Workers that queries were to have, and those of them that came.
    Workers { planned: f64, came: f64 },
    /// Queries that got all processes they had asked for, and those that got fewer. Other sessions' may be
    /// among them.
    Queries { whole: f64, less: f64 },
}

/// What the database counted in the window, when all jobs had passed its start and its end.
fn counted(measured: &Measured) -> Option<Counted> {
    let edges = &measured.edges;
    grown(edges.passed_open.snapshot.as_ref().ok()?, edges.passed_close.snapshot.as_ref().ok()?)
}

fn grown(open: &Snapshot, close: &Snapshot) -> Option<Counted> {
    let grown = |name| open.delta(close, name);
    let workers = grown(counter::WORKERS_PLANNED).zip(grown(counter::WORKERS_CAME));
    let queries = grown(counter::PARALLEL_WHOLE);
    workers
        .map(|(planned, came)| Counted::Workers { planned, came })
        .or_else(|| queries.map(|whole| Counted::Queries { whole, less: grown(counter::PARALLEL_LESS).unwrap_or(0.0) }))
}

/// Whether as many processes worked on a query as were asked for.
fn check(p: &Processes<'_>) -> Check {
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
        let at = |given: &[(&str, f64)]| {
            let counters = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            Snapshot { counters, ..Snapshot::default() }
        };
        let workers = |planned, came| at(&[(counter::WORKERS_PLANNED, planned), (counter::WORKERS_CAME, came)]);
        let counted = grown(&workers(3.0, 3.0), &workers(9.0, 8.0));
        assert_eq!(counted, Some(Counted::Workers { planned: 6.0, came: 5.0 }));
        let whole = |n| at(&[(counter::PARALLEL_WHOLE, n)]);
        assert_eq!(grown(&whole(1.0), &whole(5.0)), Some(Counted::Queries { whole: 4.0, less: 0.0 }));
        assert_eq!(grown(&at(&[]), &at(&[])), None);
    }
}
