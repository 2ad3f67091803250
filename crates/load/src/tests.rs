//! A whole test of jobs on the null engine.

use std::path::PathBuf;

use loadline_database::{OpenRequest, Work, open};
use loadline_model::JobLoad;
use loadline_model::snapshot::counter;

use super::*;
use crate::warmup::LEAD_NS;
use crate::watch::HOLD_NS;

/// When the jobs were about to start, and when it was looked whether the window may, ns, with the transactions that were completed by
/// then; and, if one window is `repeated`, when the first was over.
#[derive(Default)]
struct Looks {
    began_ns: u64,
    jobs: Arc<Shared>,
    looks_ns: Vec<u64>,
    completed: Vec<u64>,
    repeated: Option<Vec<u64>>,
}

impl TestHooks for Looks {
    fn start(&mut self, _: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        self.jobs = Arc::clone(shared);
        self.began_ns = now_ns();
        Ok(())
    }

    fn holds(&self) -> bool {
        true
    }

    fn may_open(&mut self) -> bool {
        self.looks_ns.push(now_ns());
        self.completed.push(self.jobs.completed());
        self.looks_ns.len() > 2
    }

    fn opens_again(&mut self) -> bool {
        self.repeated.as_mut().map(|over_ns| over_ns.push(now_ns())).is_some()
    }
}

fn on_null(jobs: u32) -> Request {
    let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new("null:", PathBuf::new())).unwrap());
    let of_null = Request::new(&target, &Arc::new(Work::from_catalogue("LGWR-LAT1", &[]).unwrap()), jobs);
    Request { warmup: Warmup::Seconds(0.5), duration_s: 0.3, ..of_null }
}

#[test]
fn jobs_work_while_a_window_is_held_back_and_of_one_that_does_not_count_nothing_is_in_the_next() {
    let mut looks = Looks { repeated: Some(Vec::new()), ..Looks::default() };
    let measured = run_test(&on_null(2), &mut looks, |_| ()).unwrap();
    let (window, tally) = (&measured.schedule, &measured.merged);
    let (looks, repeated) = (looks.completed, looks.repeated.unwrap());
    assert!(looks.len() > 3 && looks.is_sorted_by(|a, b| a < b), "jobs work between two looks: {looks:?}");
    assert_eq!(repeated.len(), 1, "the last one that may follow counts");
    assert!(repeated[0] < window.open_ns, "{repeated:?} {window:?}");
    // A look more than a quiet machine needs, and a window.
    assert!(measured.warmup.taken_s >= 0.6 + window.window_s(), "{:?}", measured.warmup);
    let completed: u64 = measured.jobs.iter().map(|job| job.completed).sum();
    assert_eq!([tally.transaction.count(), tally.per_step.iter().sum()], [completed; 2]);
    for job in &measured.jobs {
        assert!(job.ran_through(window) && job.lost.is_none(), "{job:?}");
        let outside = job.time_outside_ns(window) / window.window_ns() as f64;
        assert!((-0.001..1.0).contains(&outside), "transactions fill no more than the window: {job:?}");
        assert!(job.slowest.as_ref().unwrap().kept.iter().all(|[_, end]| *end >= window.open_ns));
    }
    assert_eq!(tally.total, measured.jobs.iter().map(|job| job.total).sum::<u64>());
    assert!(completed <= tally.total - looks.last().unwrap(), "{completed} of {}: {looks:?}", tally.total);
    // Jobs of an open loop pass one window.
    let (mut looks, mut request) = (Looks { repeated: Some(Vec::new()), ..Looks::default() }, on_null(1));
    request.load.rate_tps = Some(1000.0);
    let measured = run_test(&request, &mut looks, |_| ()).unwrap();
    assert!(looks.repeated == Some(Vec::new()) && measured.jobs[0].completed > 0);
}

#[test]
fn a_window_starts_when_it_may_and_its_counters_have_the_jobs_counts() {
    let request = on_null(2);
    let (mut looks, mut ticks) = (Looks::default(), Vec::new());
    let (wall, clock_ns) = (SystemTime::now(), now_ns());
    let measured = run_test(&request, &mut looks, |tick| ticks.push(tick.when)).unwrap();
    let (window, looks_ns) = (&measured.schedule, &looks.looks_ns);
    assert!(window.start_ns >= looks.began_ns + START_DELAY.as_nanos() as u64, "{window:?}");
    assert!(looks_ns[0] + LEAD_NS + HOLD_NS >= window.start_ns + 500_000_000, "{looks_ns:?} {window:?}");
    assert!(looks_ns.windows(2).all(|pair| pair[1] >= pair[0] + HOLD_NS), "{looks_ns:?}");
    assert!(window.open_ns >= looks_ns[2] + LEAD_NS, "{looks_ns:?} {window:?}");
    // Two clocks are read one after the other.
    let opens_at = wall + Duration::from_nanos(window.open_ns - clock_ns);
    assert!(measured.opened_at + Duration::from_millis(150) >= opens_at, "{:?} {opens_at:?}", measured.opened_at);
    assert_eq!(ticks.iter().filter(|at| [TickAt::WindowStart, TickAt::WindowEnd].contains(at)).count(), 2);
    let [open, close] = [&measured.readings.after_start, &measured.readings.after_end].map(|edge| {
        let counters = &edge.snapshot.as_ref().unwrap().counters;
        [counters[counter::JOBS_BEFORE], counters[counter::JOBS_AFTER]]
    });
    let total = measured.jobs.iter().map(|job| job.total).sum::<u64>() as f64;
    assert!(
        open[0] <= open[1] && open[1] < close[1] && close[0] <= close[1] && close[1] <= total,
        "{open:?} {close:?}"
    );
    let merged = &measured.merged;
    assert_eq!((merged.total as f64, merged.per_step.iter().sum()), (total, merged.transaction.count()));
    assert_eq!(measured.jobs.iter().map(|job| job.completed).sum::<u64>(), merged.transaction.count());
    assert!(measured.jobs.iter().all(|job| job.ran_through(window)) && measured.completed_before == 0);
    assert!(measured.warmup.taken_s >= 0.5 && measured.around.is_some());
    request.interrupted.store(true, Ordering::Relaxed);
    assert!(matches!(run_test(&request, &mut (), |_| ()), Err(TestError::Interrupted)));
}

#[test]
fn what_is_sampled_and_whose_cost_is_measured_and_whether_a_window_is_repeated_follows_from_the_jobs() {
    let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new("null:", PathBuf::new())).unwrap());
    let plain = Request::new(&target, &Arc::new(Work::from_catalogue("LGWR-LAT1", &[]).unwrap()), 2);
    let plain = Request { disk: Some("a".to_owned()), data_disk: Some("b".to_owned()), ..plain };
    let with = |load: JobLoad| Request { load, ..plain.clone() };
    let keys = with(JobLoad { keys: Some("hot:10%:90%".parse().unwrap()), ..JobLoad::default() });
    let thinks = with(JobLoad { think_s: Some(1.0), ..JobLoad::default() });
    let renewed = with(JobLoad { reconnect_every: Some(5), ..JobLoad::default() });
    let of_database = Request { driver: Driver::Database, ..plain.clone() };
    let of_snapshots = Request { cpu: CpuSource::Snapshot, ..plain.clone() };
    let elsewhere = Request { place: Place::Part { first_job: 0, all_jobs: 4 }, ..plain.clone() };
    let parts = Request { parts: Parts::Equal(4), ..plain.clone() };
    let jobs = |jobs| Request { jobs, ..plain.clone() };
    let until = |s: u64| Schedule { start_ns: 0, open_ns: SECOND_NS, close_ns: (1 + s) * SECOND_NS };
    // A request, the length of its window, s, whether it is read each tenth of a second, the sessions' tasks are, and its window may be
    // repeated.
    for (request, s, is_fine, sessions, repeats) in [
        (&plain, 19, true, true, true),
        (&plain, 20, false, true, true),
        (&keys, 19, true, true, true),
        (&thinks, 19, true, true, false),
        (&renewed, 19, true, false, false),
        (&of_database, 19, false, true, false),
        (&of_snapshots, 19, false, true, true),
        (&elsewhere, 19, true, true, false),
        (&parts, 19, true, true, false),
        (&jobs(256), 19, true, true, true),
        (&jobs(257), 19, true, true, false),
    ] {
        let tasks = || Tasks::own(vec![1]);
        let config = sampler_config(request, &until(s), tasks(), Some(tasks()));
        assert_eq!(config.between_ns, is_fine.then_some(STEP_NS));
        assert_eq!((config.sessions.is_some(), request.may_repeat_window()), (sessions, repeats), "{:?}", request.load);
        assert_eq!((config.origin_ns, config.before_others), (SECOND_NS, request.jobs > 63));
        assert_eq!((config.disk.as_deref(), config.data_disk.as_deref()), (Some("a"), Some("b")));
    }
    assert!(
        [63, 64].map(|n| sampler_config(&jobs(n), &until(1), Tasks::own(vec![]), None).before_others) == [false, true]
    );
    let dir = tempfile::tempdir().unwrap();
    let (log, database) = (format!("wal:{}", dir.path().display()), format!("sqlite:{}/x.db", dir.path().display()));
    let threads = |url: &str, of_sessions: Option<Tasks>| {
        let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new(url, dir.path().to_owned())).unwrap());
        let request = Request { target, ..plain.clone() };
        match whose(&request, &Server::Inside, of_sessions.as_ref(), || vec![2]) {
            Whose::Threads(tasks) => Ok(tasks.ids().collect::<Vec<u32>>()),
            Whose::None(why) => Err(why),
            Whose::Server(_) => panic!("{url} is in this process"),
        }
    };
    let of_sessions = || Some(Tasks::own(vec![1]));
    assert!(matches!(threads("null:", of_sessions()), Err(CostUnknown::NoDatabase)));
    assert!(matches!(threads(&log, of_sessions()), Err(CostUnknown::NoDatabase)));
    assert_eq!(threads(&database, of_sessions()).ok(), Some(vec![1, 2]));
    assert!(matches!(threads(&database, None), Err(CostUnknown::OtherThreads)));
}
