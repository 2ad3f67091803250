//! Parallel queries: whether all workers were launched, and the speed-up.

use loadline_database::{ParallelWorkers, TargetError, WaitEvents, WorkerLimit};
use loadline_load::Request;
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{CheckId, Note, Outcome, Snapshot, TestRecord, column};
use loadline_workload::Workload;

use super::{Instrument, RunContext, boxed};
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, not_made, noted, passed, require};

pub(super) fn listed_by(workload: &Workload) -> Option<Box<dyn Instrument>> {
    boxed(workload.workers.as_ref().map(|_| Workers { before_test: Ok(None), most: None }))
}

/// Minimum number of samples to estimate the number of working processes.
const MIN_SAMPLES: u32 = 5;
/// Minimum share of the requested workers that must be seen working in the window, if the database does not count
/// them. They start and end with each query, so samples between queries miss them.
const MIN_SEEN_SHARE: f64 = 0.5;
/// Maximum share of workers that may be missing, if the database counts them.
const MAX_MISSING_SHARE: f64 = 0.01;

/// Workers launched when the query was run once before the test, or why that failed.
type BeforeTest = Result<Option<ParallelWorkers>, String>;

struct Workers {
    before_test: BeforeTest,
    /// The most processes that a query can have on this server, if known.
    most: Option<WorkerLimit>,
}

impl Instrument for Workers {
    fn prepare(&mut self, request: &mut Request, _: &RunContext<'_>) -> Result<(), TargetError> {
        let parallel = request.target.abilities().parallel_queries;
        self.before_test = parallel.map_or(Ok(None), |p| p.try_parallel(&request.work)).map_err(|e| e.to_string());
        self.most = parallel.and_then(|p| p.max_parallel_workers().ok().flatten());
        Ok(())
    }

    fn report(&self, e: &Evidence<'_>, out: &mut Test) {
        let (request, manifest, readings) = (e.request, e.run.manifest, &e.measured.readings);
        let asked = Asked {
            processes: request.work.parallel_workers().unwrap_or(1),
            jobs: request.jobs,
            queries: out.figure(column::COMMITS).unwrap_or(0.0),
        };
        // Read when all jobs had passed window start and window end.
        let read = readings.after_start.snapshot.as_ref().ok().zip(readings.after_end.snapshot.as_ref().ok());
        let seen = || {
            let counted = read.and_then(|(open, close)| asked.counted(open, close));
            counted.unwrap_or_else(|| asked.sampled(&e.measured.waits(), request.target.facts().waits))
        };
        let cpus = manifest.target.local.then_some(manifest.machine.cpus);
        out.check(CheckId::ParallelWorkers, check(asked.processes, &self.before_test, seen, cpus));
        let alone = |r: &&TestRecord| {
            let same = r.workload == request.work.workload.code && r.jobs == request.jobs;
            same && r.is_usable() && r.figure(column::THREADS) == Some(1.0) && r.repetition == e.run.repetition
        };
        let of_one = || e.run.records.iter().filter(alone);
        // A disturbed test stands in if there is no valid one.
        let base = of_one().find(|r| r.valid).or_else(|| of_one().next());
        let base = base.and_then(|r| r.figure(column::COMMIT_THROUGHPUT_TPS)).filter(|base| *base > 0.0);
        let itself = (asked.processes == 1).then_some(1.0);
        let speed_up = itself.or_else(|| Some(out.figure(column::COMMIT_THROUGHPUT_TPS)? / base?));
        let why = "there is no usable test with one worker in this run to compare with";
        out.set_or_absent(column::SPEED_UP, speed_up, why);
        if let Some(limit) = &self.most {
            out.notes.push(Note::MostWorkers { workers: limit.workers, because: limit.because.clone() });
        }
    }
}

/// Queries of a window.
#[derive(Clone, Copy)]
struct Asked {
    /// Processes asked for, including the session's own.
    processes: u32,
    jobs: u32,
    queries: f64,
}

/// Checks that as many processes worked on a query as were asked for, before the test and `in_window`, on so many CPUs, if known.
fn check(asked: u32, before_test: &BeforeTest, in_window: impl FnOnce() -> Verdict, cpus: Option<u32>) -> Verdict {
    if asked == 1 {
        return passed("one process ran each query: its session");
    }
    let ParallelWorkers { planned, launched, how } = match before_test {
        Ok(Some(parallel)) => parallel,
        Ok(None) => {
            return failed(format!(
                "the database does not report whether the {asked} processes asked for were launched, so parallel \
                execution is not proved"
            ));
        }
        Err(e) => return failed(format!("the processes of a query could not be counted: {e}")),
    };
    let how = if how.is_empty() { String::new() } else { format!(" ({how})") };
    let launch = format!("{asked} processes were asked for, {planned} planned and {launched} launched{how}");
    if *launched < asked {
        return failed(format!("{launch}: the figures are not those of {asked}"));
    }
    let Verdict { outcome, detail } = in_window();
    let detail = format!("{launch}; {detail}");
    match (outcome, cpus) {
        (Outcome::Failed, _) => failed(format!("{detail}: the figures are not those of {asked}")),
        (Outcome::NotMade, _) => not_made(detail),
        (_, Some(cpus)) if cpus < asked => noted(format!("{detail}, on {cpus} CPUs")),
        _ => passed(detail),
    }
}

impl Asked {
    /// By the database's count of workers, or of queries, which may include those of other sessions; `None` if it counts neither.
    fn counted(self, open: &Snapshot, close: &Snapshot) -> Option<Verdict> {
        let (grown, queries) = (|name| open.delta(close, name), self.queries);
        // One query of each job may be counted on the wrong side of window start, and one of window end.
        let certain = (queries - 2.0 * f64::from(self.jobs)).max(0.0);
        let share = 1.0 - MAX_MISSING_SHARE;
        if let Some((planned, launched)) = grown(counter::WORKERS_PLANNED).zip(grown(counter::WORKERS_CAME)) {
            let wanted = certain * f64::from(self.processes - 1);
            let text = format!(
                "by the database's count, {launched} of {planned} planned workers were launched for {queries} queries in the window"
            );
            return Some(require(launched >= planned * share && planned >= wanted * share, text));
        }
        let (whole, less) = (grown(counter::PARALLEL_WHOLE)?, grown(counter::PARALLEL_LESS).unwrap_or(0.0));
        let text = format!(
            "by the database's count, {whole} queries in the window got all processes they asked for and {less} got fewer; this test \
             ran {queries} queries"
        );
        Some(require(less <= whole * MAX_MISSING_SHARE && whole >= certain * share, text))
    }

    /// By samples of wait events. Workers count as sessions of their job.
    fn sampled(self, waits: &WaitProfile, events: &WaitEvents) -> Verdict {
        let samples = waits.samples;
        let working = |event: &str| !events.resting.has(event) || events.sending.has(event);
        let at_work = if samples >= MIN_SAMPLES { waits.mean_sessions(working) } else { None };
        let Some(at_work) = at_work else {
            return not_made(format!(
                "the number of working processes is unknown with {samples} samples of the window: at least {MIN_SAMPLES} are needed"
            ));
        };
        let at_work = at_work / f64::from(self.jobs.max(1));
        // All workers start and end at the same time, so the standard deviation of their share in n samples is at most 1
        // / (2 √n).
        let share = MIN_SEEN_SHARE - 1.0 / f64::from(samples.max(1)).sqrt();
        let least = 1.0 + f64::from(self.processes - 1) * share.max(MIN_SEEN_SHARE / 4.0);
        let enough = at_work >= least;
        // They were launched before the test: now they are not launched, or end at once.
        let advice = "; if queries are short compared with the time to start workers, give a larger --size";
        let text = format!(
            "on average {at_work:.1} processes were seen working in the window; with {samples} samples at least {least:.1} are required{}",
            if enough { "" } else { advice }
        );
        require(enough, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(planned: u32, launched: u32) -> BeforeTest {
        Ok(Some(ParallelWorkers { planned, launched, how: "DOP 4".into() }))
    }

    /// With so many samples, in which `at_work` processes of a job worked and four were in the wait `other`.
    fn sampled(processes: u32, before: &BeforeTest, cpus: u32, samples: u32, at_work: u64, other: &str) -> Verdict {
        let sessions = [("CPU", at_work), (other, 4)].map(|(event, n)| (event.to_owned(), n * u64::from(samples)));
        let waits = WaitProfile { samples, sessions: sessions.into(), others: None };
        // Of several databases.
        let events = WaitEvents {
            resting: ["Client:*", "IPC:*", "Activity:*", "Idle:*"].into(),
            sending: ["IPC:MessageQueueSend"].into(),
            ..WaitEvents::default()
        };
        let asked = Asked { processes, jobs: 1, queries: 100.0 };
        check(processes, before, || asked.sampled(&waits, &events), Some(cpus).filter(|cpus| *cpus > 0))
    }

    #[test]
    fn fewer_processes_than_asked_for_fail_the_check_and_few_samples_prove_less() {
        use Outcome::{Failed, NotMade, Noted, Passed};
        for (asked, before, cpus, [samples, at_work], other, outcome) in [
            (4, before(4, 4), 4, [100, 3], "Client:idle", Passed),
            (4, before(4, 4), 0, [100, 3], "Client:idle", Passed),
            (4, before(4, 3), 4, [100, 3], "Client:idle", Failed),
            (4, before(4, 4), 4, [100, 1], "Client:idle", Failed),
            // More than CPUs.
            (4, before(4, 4), 2, [100, 3], "Client:idle", Noted),
            // Nothing proves that they were launched.
            (4, Err("no".into()), 4, [100, 3], "Client:idle", Failed),
            (4, Ok(None), 4, [100, 3], "Client:idle", Failed),
            (1, Ok(None), 4, [100, 1], "Client:idle", Passed),
            // 15 × 0.4 + 1.
            (16, before(16, 16), 16, [100, 7], "Client:idle", Passed),
            (16, before(16, 16), 16, [100, 6], "Client:idle", Failed),
            (16, before(16, 16), 16, [10, 4], "Client:idle", Passed),
            (16, before(16, 16), 16, [4, 16], "Client:idle", NotMade),
            // Processes that wait for each other do not work.
            (4, before(4, 4), 4, [100, 1], "IPC:ExecuteGather", Failed),
            (4, before(4, 4), 4, [100, 1], "Activity:WalSenderMain", Failed),
            (4, before(4, 4), 4, [100, 1], "Idle:PX Deq: Execution Msg", Failed),
            (4, before(4, 4), 4, [100, 1], "IO:DataFileRead", Passed),
            (4, before(4, 4), 4, [100, 1], "IPC:MessageQueueSend", Passed),
        ] {
            let verdict = sampled(asked, &before, cpus, samples, at_work.into(), other);
            assert_eq!(verdict.outcome, outcome, "{asked} {before:?} {at_work} {cpus} {other}");
        }
        let few = sampled(16, &before(16, 16), 4, 4, 16, "Client:idle").detail;
        assert!(few.contains("16 planned and 16 launched (DOP 4)") && few.contains("with 4 samples"), "{few}");
    }

    #[test]
    fn the_databases_count_in_the_window_is_preferred_to_samples() {
        let asked = Asked { processes: 4, jobs: 1, queries: 100.0 };
        let counted = |names: [&str; 2], grown: [f64; 2]| {
            let at = |more: f64| {
                crate::testing::snapshot(0, &[(names[0], 3.0 + grown[0] * more), (names[1], grown[1] * more)])
            };
            asked.counted(&at(0.0), &at(1.0)).unwrap().outcome
        };
        let workers =
            |planned, launched| counted([counter::WORKERS_PLANNED, counter::WORKERS_CAME], [planned, launched]);
        assert_eq!([workers(300.0, 300.0), workers(300.0, 298.0)], [Outcome::Passed; 2]);
        assert_eq!(workers(294.0, 294.0), Outcome::Passed, "a query at window start and end");
        assert_eq!(
            [workers(300.0, 290.0), workers(200.0, 200.0)],
            [Outcome::Failed; 2],
            "not launched, or not planned"
        );
        let queries = |whole, less| counted([counter::PARALLEL_WHOLE, counter::PARALLEL_LESS], [whole, less]);
        assert_eq!([queries(100.0, 0.0), queries(120.0, 1.0)], [Outcome::Passed; 2]);
        assert_eq!([queries(90.0, 10.0), queries(50.0, 0.0)], [Outcome::Failed; 2]);
        let none = crate::testing::snapshot(0, &[]);
        assert!(asked.counted(&none, &none).is_none());
    }
}
