//! Parallel queries: whether all workers were launched, and the speed-up.

use loadline_database::{ParallelWorkers, TargetError, WaitEvents, WorkerLimit};
use loadline_load::{Measured, Request};
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{CheckId, Column, Note, Snapshot, TestRecord, column};

use super::{Instrument, Kind, RunContext, boxed};
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, not_made, noted, passed};

const SPEED_UP: &Column = column::SPEED_UP;

pub(super) const KIND: Kind = Kind {
    make: |workload| boxed(workload.workers.as_ref().map(|_| Workers { before_test: Ok(None), most: None })),
    columns: &[SPEED_UP],
    absent: "its queries are not run in parallel",
};

/// Minimum number of samples to estimate the number of working processes.
const MIN_SAMPLES: u32 = 5;
/// Minimum share of the requested workers that must be seen working in the window, if the database does not count
/// them. They start and end with each query, so samples between queries miss them.
const MIN_SEEN_SHARE: f64 = 0.5;
/// Maximum share of workers that may be missing, if the database counts them.
const MAX_MISSING_SHARE: f64 = 0.01;
struct Workers {
    /// Workers launched when the query was run once before the test, or why that failed.
    before_test: Result<Option<ParallelWorkers>, String>,
    /// The most processes that a query can have on this server, if known.
    most: Option<WorkerLimit>,
}

impl Instrument for Workers {
    fn prepare(&mut self, request: &mut Request, _: &RunContext<'_>) -> Result<(), TargetError> {
        let parallel = request.target.abilities().parallel_queries;
        self.before_test = parallel.map_or(Ok(None), |p| p.try_parallel(&request.work)).map_err(|e| e.to_string());
        Ok(())
    }

    fn complete(&mut self, request: &Request, _: &RunContext<'_>, _: &Test) {
        let parallel = request.target.abilities().parallel_queries;
        self.most = parallel.and_then(|p| p.max_parallel_workers().ok().flatten());
    }

    fn report(&self, e: &Evidence<'_>, out: &mut Test) {
        let (request, manifest) = (e.request, e.run.manifest);
        let processes = Processes {
            asked: request.work.parallel_workers().unwrap_or(1),
            before_test: &self.before_test,
            waits: &e.measured.waits(),
            events: request.target.facts().waits,
            counted: counted(e.measured),
            jobs: request.jobs,
            queries: out.figure(column::COMMITS).unwrap_or(0.0),
            cpus: manifest.target.local.then_some(manifest.machine.cpus),
        };
        out.check(CheckId::ParallelWorkers, check(&processes));
        let alone = |r: &&TestRecord| {
            let same = r.workload == request.work.workload.code && r.jobs == request.jobs;
            same && r.is_usable() && r.figure(column::THREADS) == Some(1.0) && r.repetition == e.run.repetition
        };
        let of_one = || e.run.records.iter().filter(alone);
        // A disturbed test stands in if there is no valid one.
        let base = of_one()
            .find(|r| r.valid)
            .or_else(|| of_one().next())
            .and_then(|r| r.figure(column::COMMIT_THROUGHPUT_TPS));
        let rate = out.figure(column::COMMIT_THROUGHPUT_TPS);
        let itself = (processes.asked == 1).then_some(1.0);
        let speed_up = itself.or_else(|| base.filter(|base| *base > 0.0).zip(rate).map(|(base, rate)| rate / base));
        out.set_or_absent(SPEED_UP, speed_up, "there is no usable test with one worker in this run to compare with");
        if let Some(limit) = &self.most {
            out.notes.push(Note::MostWorkers { workers: limit.workers, because: limit.because.clone() });
        }
    }
}

struct Processes<'a> {
    /// Number of processes asked for, including the session's own.
    asked: u32,
    /// Workers launched when the query was run once before the test, or why that failed.
    before_test: &'a Result<Option<ParallelWorkers>, String>,
    waits: &'a WaitProfile,
    events: &'a WaitEvents,
    /// The database's count of workers in the window, if any.
    counted: Option<Counted>,
    jobs: u32,
    queries: f64,
    /// CPUs of the database's machine, if known.
    cpus: Option<u32>,
}

/// A database's count of workers in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    Workers {
        planned: f64,
        launched: f64,
    },
    /// Queries that got all processes they asked for, and queries that got fewer. May include other sessions'
    /// queries.
    Queries {
        whole: f64,
        less: f64,
    },
}

/// The database's count between window start and window end, read when all jobs had passed them.
fn counted(measured: &Measured) -> Option<Counted> {
    let readings = &measured.readings;
    grown(readings.after_start.snapshot.as_ref().ok()?, readings.after_end.snapshot.as_ref().ok()?)
}

fn grown(open: &Snapshot, close: &Snapshot) -> Option<Counted> {
    let grown = |name| open.delta(close, name);
    let workers = grown(counter::WORKERS_PLANNED).zip(grown(counter::WORKERS_CAME));
    let queries = grown(counter::PARALLEL_WHOLE);
    workers
        .map(|(planned, launched)| Counted::Workers { planned, launched })
        .or_else(|| queries.map(|whole| Counted::Queries { whole, less: grown(counter::PARALLEL_LESS).unwrap_or(0.0) }))
}

/// Checks that as many processes worked on a query as were asked for.
fn check(p: &Processes<'_>) -> Verdict {
    let asked = p.asked;
    if asked == 1 {
        return passed("one process ran each query: its session");
    }
    let parallel = match p.before_test {
        Ok(Some(parallel)) => parallel,
        Ok(None) => {
            return failed(format!(
                "the database does not report whether the {asked} processes asked for were launched, so parallel \
                execution is not proved"
            ));
        }
        Err(e) => return failed(format!("the processes of a query could not be counted: {e}")),
    };
    let (planned, launched) = (parallel.planned, parallel.launched);
    let how = if parallel.how.is_empty() { String::new() } else { format!(" ({})", parallel.how) };
    let launch = format!("{asked} processes were asked for, {planned} planned and {launched} launched{how}");
    if launched < asked {
        return failed(format!("{launch}: the figures are not those of {asked}"));
    }
    let (enough, of_window) = p.counted.map_or_else(|| judge_samples(p), |counted| judge_counters(p, counted));
    let detail = format!("{launch}; {of_window}");
    match (enough, p.cpus) {
        (Some(false), _) => failed(format!("{detail}: the figures are not those of {asked}")),
        (None, _) => not_made(detail),
        (_, Some(cpus)) if cpus < asked => noted(format!("{detail}, on {cpus} CPUs")),
        _ => passed(detail),
    }
}

/// Whether enough workers were launched in the window, by the database's count.
fn judge_counters(p: &Processes<'_>, counted: Counted) -> (Option<bool>, String) {
    // One query of each job may be counted on the wrong side of window start, and one of window end.
    let queries = (p.queries - 2.0 * f64::from(p.jobs)).max(0.0);
    let share = 1.0 - MAX_MISSING_SHARE;
    match counted {
        Counted::Workers { planned, launched } => {
            let wanted = queries * f64::from(p.asked - 1);
            let text = format!(
                "by the database's count, {launched} of {planned} planned workers were launched for {} queries in the \
                window",
                p.queries
            );
            (Some(launched >= planned * share && planned >= wanted * share), text)
        }
        Counted::Queries { whole, less } => {
            let text = format!(
                "by the database's count, {whole} queries in the window got all processes they asked for and {less} \
                got fewer; this test ran {} queries",
                p.queries
            );
            (Some(less <= whole * MAX_MISSING_SHARE && whole >= queries * share), text)
        }
    }
}

/// Whether enough processes worked in the window, by samples of wait events; `None` with too few samples.
fn judge_samples(p: &Processes<'_>) -> (Option<bool>, String) {
    let samples = p.waits.samples;
    let Some(at_work) = at_work(p.waits, p.events).map(|n| n / f64::from(p.jobs.max(1))) else {
        let why = format!(
            "the number of working processes is unknown with {samples} samples of the window: at least {MIN_SAMPLES} are needed"
        );
        return (None, why);
    };
    // All workers start and end at the same time, so the standard deviation of their share in n samples is at most 1
    // / (2 √n).
    let share = MIN_SEEN_SHARE - 1.0 / f64::from(samples.max(1)).sqrt();
    let least = 1.0 + f64::from(p.asked - 1) * share.max(MIN_SEEN_SHARE / 4.0);
    let text = format!(
        "on average {at_work:.1} processes were seen working in the window; with {samples} samples at least \
        {least:.1} are required"
    );
    let enough = at_work >= least;
    // They were launched before the test: now they are not launched, or end at once.
    let advice = if enough {
        ""
    } else {
        "; if queries are short compared with the time to start workers, give a larger --size"
    };
    (Some(enough), format!("{text}{advice}"))
}

/// Mean number of working processes; `None` with too few samples. Workers count as sessions of their job.
fn at_work(waits: &WaitProfile, events: &WaitEvents) -> Option<f64> {
    let working = |event: &str| !events.resting.has(event) || events.sending.has(event);
    if waits.samples >= MIN_SAMPLES { waits.mean_sessions(working) } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use loadline_model::Outcome;

    use super::*;

    /// Of several databases.
    static EVENTS: LazyLock<WaitEvents> = LazyLock::new(|| WaitEvents {
        resting: ["Client:*", "IPC:*", "Activity:*", "Idle:*"].into(),
        sending: ["IPC:MessageQueueSend"].into(),
        ..WaitEvents::default()
    });

    fn waits(samples: u32, at_work: u64, other: &str) -> WaitProfile {
        let n = u64::from(samples);
        let sessions = [("CPU".to_owned(), at_work * n), (other.to_owned(), 4 * n)].into();
        WaitProfile { samples, sessions, others: None }
    }

    fn processes(asked: u32, before_test: Result<Option<(u32, u32)>, String>, waits: &WaitProfile) -> Processes<'_> {
        let before_test = before_test
            .map(|t| t.map(|(planned, launched)| ParallelWorkers { planned, launched, how: "DOP 4".into() }));
        let (before_test, events) = (Box::leak(Box::new(before_test)), &*EVENTS);
        Processes { asked, before_test, waits, events, counted: None, jobs: 1, queries: 100.0, cpus: Some(4) }
    }

    #[test]
    fn fewer_processes_than_asked_for_fail_the_check() {
        for (asked, before_test, at_work, cpus, outcome) in [
            (4, Ok(Some((4, 4))), 3, Some(4), Outcome::Passed),
            (4, Ok(Some((4, 4))), 3, None, Outcome::Passed),
            (4, Ok(Some((4, 3))), 3, Some(4), Outcome::Failed),
            (4, Ok(Some((4, 4))), 1, Some(4), Outcome::Failed),
            // More than CPUs.
            (4, Ok(Some((4, 4))), 3, Some(2), Outcome::Noted),
            // Nothing proves that they were launched.
            (4, Err("no".into()), 3, Some(4), Outcome::Failed),
            (4, Ok(None), 3, Some(4), Outcome::Failed),
            (1, Ok(None), 1, Some(4), Outcome::Passed),
        ] {
            let (waits, label) = (waits(100, at_work, "Client:idle"), format!("{before_test:?} {at_work} {cpus:?}"));
            assert_eq!(check(&Processes { cpus, ..processes(asked, before_test, &waits) }).outcome, outcome, "{label}");
        }
    }

    #[test]
    fn few_samples_prove_less() {
        let before_test = || Ok(Some((16, 16)));
        let of_samples =
            |samples, at_work| check(&processes(16, before_test(), &waits(samples, at_work, "Client:idle")));
        assert_eq!(of_samples(100, 7).outcome, Outcome::Noted, "15 × 0.4 + 1");
        assert_eq!(of_samples(100, 6).outcome, Outcome::Failed);
        assert_eq!(of_samples(10, 4).outcome, Outcome::Noted);
        let few = of_samples(4, 16);
        assert!(few.outcome == Outcome::NotMade && few.detail.contains("unknown with 4 samples"), "{few:?}");
        assert!(few.detail.contains("16 planned and 16 launched (DOP 4)"), "{few:?}");
        // Processes that wait for each other do not work.
        let beside = |other| check(&processes(4, Ok(Some((4, 4))), &waits(100, 1, other))).outcome;
        let waiting = ["IPC:ExecuteGather", "Activity:WalSenderMain", "Idle:PX Deq: Execution Msg"].map(beside);
        assert_eq!(waiting, [Outcome::Failed; 3]);
        assert_eq!(["IO:DataFileRead", "IPC:MessageQueueSend"].map(beside), [Outcome::Passed; 2]);
    }

    #[test]
    fn the_databases_count_is_preferred_to_samples() {
        let none = WaitProfile::default();
        let with =
            |counted| check(&Processes { counted: Some(counted), ..processes(4, Ok(Some((4, 4))), &none) }).outcome;
        let workers = |planned, launched| with(Counted::Workers { planned, launched });
        assert_eq!((workers(300.0, 300.0), workers(300.0, 298.0)), (Outcome::Passed, Outcome::Passed));
        assert_eq!(workers(294.0, 294.0), Outcome::Passed, "a query at window start and end");
        assert_eq!(workers(300.0, 290.0), Outcome::Failed, "some were not launched");
        assert_eq!(workers(200.0, 200.0), Outcome::Failed, "fewer were planned");
        let queries = |whole, less| with(Counted::Queries { whole, less });
        assert_eq!((queries(100.0, 0.0), queries(120.0, 1.0)), (Outcome::Passed, Outcome::Passed));
        assert_eq!((queries(90.0, 10.0), queries(50.0, 0.0)), (Outcome::Failed, Outcome::Failed));
    }

    #[test]
    fn counters_are_those_of_the_window() {
        let at = |given: &[(&str, f64)]| crate::testing::snapshot(0, given);
        let workers = |planned, launched| at(&[(counter::WORKERS_PLANNED, planned), (counter::WORKERS_CAME, launched)]);
        let counted = grown(&workers(3.0, 3.0), &workers(9.0, 8.0));
        assert_eq!(counted, Some(Counted::Workers { planned: 6.0, launched: 5.0 }));
        let whole = |n| at(&[(counter::PARALLEL_WHOLE, n)]);
        assert_eq!(grown(&whole(1.0), &whole(5.0)), Some(Counted::Queries { whole: 4.0, less: 0.0 }));
        assert_eq!(grown(&at(&[]), &at(&[])), None);
    }
}
