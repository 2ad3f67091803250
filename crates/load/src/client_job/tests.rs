use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loadline_database::Canceller;
use loadline_model::Latencies;
use loadline_model::plan::Payload;
use loadline_workload::JobStart;

use super::*;
use crate::Tally;
use crate::between::{CurrentCanceller, Renewed};
use crate::schedule::Parts;

/// An engine with a given transaction time and failure rate.
#[derive(Default)]
struct Scripted {
    sleep_ms: u64,
    fail_every: u64,
    done: u64,
    lost_after: Option<u64>,
    rolled_back: u64,
    conflict_every: u64,
    keys: Vec<i64>,
    /// When it published its counters, ns.
    published_ns: Vec<u64>,
}

impl ClientSession for Scripted {
    fn execute(&mut self, _: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.done += 1;
        if self.conflict_every > 0 && self.done.is_multiple_of(self.conflict_every) {
            return Err(TargetError::Conflict("deadlock".into()));
        }
        self.keys.extend(args.iter().filter_map(|a| if let Arg::Int(key) = a { Some(*key) } else { None }));
        if self.lost_after.is_some_and(|after| self.done > after) {
            return Err(TargetError::Lost("the server went away".into()));
        }
        if self.fail_every > 0 && self.done.is_multiple_of(self.fail_every) {
            return Err(TargetError::Statement("ERROR 40001: could not serialize".into()));
        }
        std::thread::sleep(Duration::from_millis(self.sleep_ms));
        Ok(1)
    }
    fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, TargetError> {
        Ok(rows.into())
    }
    fn commit(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
    fn rollback(&mut self) -> Result<(), TargetError> {
        self.rolled_back += 1;
        Ok(())
    }
    fn publish_counters(&mut self) -> Result<(), TargetError> {
        self.published_ns.push(now_ns());
        Ok(())
    }
}

fn engine() -> Scripted {
    Scripted { sleep_ms: 2, ..Scripted::default() }
}

fn run_for(session: &mut Scripted, warmup_ms: u64, window_ms: u64, rate: Option<f64>) -> (JobResult, Tally, Schedule) {
    run_with(|| Session::Fixed(session), warmup_ms, window_ms, rate, None)
}

/// Runs with the session of `session`, and with think times.
fn run_with<'s>(
    session: impl FnOnce() -> Session<'s> + Send,
    warmup_ms: u64,
    window_ms: u64,
    rate: Option<f64>,
    think: Option<Think>,
) -> (JobResult, Tally, Schedule) {
    let workload = loadline_workload::find("LGWR-LAT1").unwrap();
    let params = workload.params(&Default::default()).unwrap();
    let program = workload.make(&params);
    let job_start = JobStart { first_key: 0, new_key: 0, draw: 0 };
    let pool = Arc::new(loadline_workload::Pool::new(1, 0, Payload::default()));
    let mut stream = Stream::new(&program, job_start, pool, 0).unwrap();
    let start_ns = now_ns();
    let open_ns = start_ns + warmup_ms * 1_000_000;
    let schedule = Schedule { start_ns, open_ns, close_ns: open_ns + window_ms * 1_000_000 };
    let shared = Shared::new(1, Arc::new(AtomicBool::new(false))).split(Parts::Marked);
    let timing = Timing { start_ns, window_ns: schedule.window_ns() };
    shared.set_window(schedule);
    shared.mark(true);
    let pace = rate.map(|r| Pace::new(r, 0, 1, start_ns));
    let (result, tally) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let tally = Mutex::new(Tally::new(timing.window_ns, pace.is_some()));
            let (stream, program) = (&mut stream, &program);
            let client = Client { job: 0, session: session(), stream, program, script: None, pace, think };
            let job = super::run(client, timing, &shared, Held::new(&tally, true));
            (job, tally.into_inner().unwrap())
        });
        while shared.after_end.load(Ordering::Relaxed) == 0 && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        shared.stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    let parts: Vec<u64> = shared.parts().iter().map(Latencies::count).collect();
    assert_eq!(parts, [0, tally.transaction.count()]);
    (result, tally, schedule)
}

#[test]
fn time_in_transactions_fills_the_window() {
    let (result, tally, schedule) = run_for(&mut engine(), 50, 300, None);
    assert!(result.ran_through(&schedule) && tally.errors_total == 0);
    assert_eq!(tally.total, result.total);
    // With the one at the window end, if it did not end right there.
    let (kept, counted) = (result.slowest.as_ref().unwrap().kept.len() as u64, tally.transaction.count());
    assert!((counted..=counted + 1).contains(&kept), "{kept} of {counted}");
    assert_eq!(tally.per_step.iter().sum::<u64>(), tally.transaction.count());
    let share = result.time_in_transactions_ns() / schedule.window_ns() as f64;
    // Each of them took 2 ms or more, the first perhaps before the window.
    let least_ns = (tally.transaction.count() - 1) as f64 * 2e6;
    assert!(result.time_in_transactions_ns() >= least_ns && share <= 1.001, "{share} {least_ns}");
}

#[test]
#[ignore = "nightly: a window is full of transactions unless others have the CPU"]
fn a_window_is_full() {
    let share = |(result, _, schedule): (JobResult, Tally, Schedule)| {
        let of_window = |ns: f64| ns / schedule.window_ns() as f64;
        of_window(result.time_in_transactions_ns() + result.thinking_ns as f64)
    };
    let full = share(run_for(&mut engine(), 50, 300, None));
    assert!(full >= 0.95, "{full}");
    let think = Think::new(0.008, 42, 0);
    let mut session = engine();
    let thinking = share(run_with(|| Session::Fixed(&mut session), 50, 400, None, Some(think)));
    assert!(thinking >= 0.97, "{thinking}");
}

#[test]
fn errors_are_counted_separately_and_rolled_back() {
    let mut session = Scripted { fail_every: 5, ..engine() };
    let (result, tally, schedule) = run_for(&mut session, 50, 300, None);
    assert!(tally.errors > 0 && tally.errors_total >= tally.errors && result.ran_through(&schedule));
    assert_eq!(result.total + tally.errors_total, session.done);
    assert_eq!(session.rolled_back, tally.errors_total);
    assert_eq!(tally.error_texts.values().sum::<u64>(), tally.errors_total);
}

#[test]
fn a_transaction_that_lost_against_another_is_tried_again_with_its_values() {
    let mut session = Scripted { conflict_every: 3, ..engine() };
    let (result, tally, schedule) = run_for(&mut session, 50, 300, None);
    assert!(tally.conflicts > 0 && tally.conflicts_total >= tally.conflicts && result.ran_through(&schedule));
    assert_eq!(result.total + tally.conflicts_total, session.done);
    assert_eq!(tally.errors_total, 0, "one that the end of the test cut off is no error");
    let mut undisturbed = engine();
    run_for(&mut undisturbed, 50, 300, None);
    let both = session.keys.len().min(undisturbed.keys.len());
    assert_eq!(session.keys[..both], undisturbed.keys[..both]);
    // One that always loses is an error at last.
    let began = std::time::Instant::now();
    let (_, tally, _) = run_for(&mut Scripted { sleep_ms: 0, conflict_every: 1, ..engine() }, 50, 300, None);
    // Each pause is twice as long as the one before, up to the longest.
    let [first_ns, longest_ns] = PAUSE_AFTER_CONFLICT_NS;
    let pauses_ns: u64 = (0..MAX_ATTEMPTS - 2).map(|n| (first_ns << n.min(20)).min(longest_ns)).sum();
    assert!(began.elapsed() >= Duration::from_nanos(tally.errors_total * pauses_ns), "{}", tally.errors_total);
    assert!(tally.errors_total > 0 && tally.conflicts_total >= tally.errors_total);
}

#[test]
fn a_lost_session_and_a_statement_that_always_fails_end_the_job_with_the_reason() {
    let (result, _, schedule) = run_for(&mut Scripted { lost_after: Some(30), ..engine() }, 50, 300, None);
    assert_eq!(result.lost.as_deref(), Some("the server went away"));
    assert!(!result.ran_through(&schedule));
    let (result, _, _) = run_for(&mut Scripted { fail_every: 1, ..engine() }, 50, 1000, None);
    assert!(result.lost.is_some_and(|l| l.contains("in a row")));
}

#[test]
fn open_loop_counts_from_the_intended_start() {
    // 2 ms of work every 1 ms: the queue grows, and with it the response time, not the service time.
    let (result, tally, schedule) = run_for(&mut engine(), 50, 400, Some(1000.0));
    let response = tally.response.as_ref().unwrap();
    assert_eq!(response.count(), 400, "all that were due in the window, also what ended after it");
    assert!(response.count() > tally.transaction.count());
    let (slowest, service) = (response.max_ns().unwrap(), tally.transaction.quantile_ns(0.5).unwrap());
    assert!(slowest > 50 * service, "response {slowest} ns, service {service} ns");
    assert!(result.behind_ns > 50_000_000, "behind by {} ns", result.behind_ns);
    // Intended starts, not real ones, including transactions that never began.
    let due = &result.intended_ns;
    assert!(due.windows(2).all(|pair| (999_000..=1_001_000).contains(&(pair[1] - pair[0]))), "{due:?}");
    assert_eq!(due.iter().filter(|ns| schedule.counts(**ns)).count(), 400, "{} of {}", due.len(), result.total);
}

#[test]
fn what_was_due_in_the_window_still_begins_for_a_second_after_it() {
    // 2 ms of work every 1 ms: half of it is late at the window end, and done soon after.
    let ran = run_for(&mut engine(), 50, 100, Some(1000.0));
    let due = |(result, _, schedule): &(JobResult, Tally, Schedule)| {
        result.intended_ns.iter().filter(|ns| **ns < schedule.close_ns).count() as u64
    };
    assert_eq!(ran.0.total, due(&ran), "all that was due");
    assert!(ran.0.behind_ns > 50_000_000, "behind by {} ns at the window end", ran.0.behind_ns);
    // 30 ms of work: not within a second.
    let began = std::time::Instant::now();
    let ran = run_for(&mut Scripted { sleep_ms: 30, ..engine() }, 50, 200, Some(1000.0));
    assert!(began.elapsed() >= Duration::from_millis(1250));
    assert!(ran.0.total < due(&ran) / 2, "{} of {}", ran.0.total, due(&ran));
    let response = ran.1.response.as_ref().unwrap();
    assert_eq!(response.count(), 200, "what never began has waited until the end");
    assert!(response.max_ns().unwrap() > 1_000_000_000);
}

#[test]
fn a_job_whose_next_transaction_is_due_after_the_window_ran_through_it() {
    let (result, _, schedule) = run_for(&mut engine(), 50, 200, Some(0.01));
    assert!(result.ran_through(&schedule) && result.total == 1 && result.behind_ns == 0, "{result:?} {schedule:?}");
}

#[test]
fn think_times_fill_the_rest_of_the_window_and_change_no_key() {
    let mut session = engine();
    let (result, tally, schedule) =
        run_with(|| Session::Fixed(&mut session), 50, 400, None, Some(Think::new(0.008, 42, 0)));
    let window_ns = schedule.window_ns() as f64;
    let share = (result.time_in_transactions_ns() + result.thinking_ns as f64) / window_ns;
    assert!(share <= 1.001 && result.thinking_ns > 0, "{share}");
    assert!((result.time_outside_ns(&schedule) / window_ns - (1.0 - share)).abs() < 1e-9);
    assert!(result.ran_through(&schedule), "a job that thinks at window start or end ran through it");
    assert!(tally.thoughts > 5 && tally.thoughts <= result.total, "{} {}", tally.thoughts, result.total);
    let mut quick = engine();
    let (_, _, its) = run_for(&mut quick, 50, 400, None);
    assert!(quick.published_ns[0] >= its.open_ns, "the last transaction before the window start is over then");
    assert!(quick.keys.len() > session.keys.len() && quick.keys.starts_with(&session.keys));
}

#[test]
fn a_long_thought_ends_soon_after_the_test_and_passes_its_window() {
    let began = std::time::Instant::now();
    let mut session = engine();
    let (result, tally, schedule) =
        run_with(|| Session::Fixed(&mut session), 500, 200, None, Some(Think::new(60.0, 42, 0)));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(result.ran_through(&schedule) && tally.thoughts == 0);
    let [open, close, _] = session.published_ns[..] else { panic!("{:?}", session.published_ns) };
    assert!(open < schedule.open_ns && close >= schedule.close_ns, "{open} {close} {schedule:?}");
    assert!(result.thinking_ns as f64 > 0.9 * schedule.window_ns() as f64, "{}", result.thinking_ns);
}

#[test]
fn a_session_is_opened_anew_after_its_transactions() {
    let opened = std::sync::atomic::AtomicU64::new(1);
    let open = || -> Result<Box<dyn ClientSession>, TargetError> {
        if opened.fetch_add(1, Ordering::Relaxed) > 20 {
            return Err(TargetError::Refused("too many connections".into()));
        }
        std::thread::sleep(Duration::from_millis(3));
        Ok(Box::new(engine()))
    };
    let renewed = || {
        let now: Option<Box<dyn ClientSession>> = Some(Box::new(engine()));
        let canceller = CurrentCanceller::new(Canceller::new(|| ()).into());
        Session::Renewed(Renewed { now, every: 4, since: 0, open: Box::new(open), canceller })
    };
    let (result, tally, schedule) = run_with(renewed, 30, 150, None, None);
    assert_eq!(result.lost, None);
    // Whether the last transactions were followed by a new session depends on when the test ended.
    let (opened_by_now, each) = (opened.load(Ordering::Relaxed), result.total / 4 + 1);
    let last = u64::from(result.total.is_multiple_of(4));
    assert!((each - last..=each).contains(&opened_by_now), "{opened_by_now} for {} transactions", result.total);
    let connect = tally.connect.unwrap();
    assert!(connect.count() > 0 && connect.quantile_ns(0.5).unwrap() >= 3_000_000);
    let all = result.time_in_transactions_ns() + result.connecting_ns as f64;
    let share = all / schedule.window_ns() as f64;
    assert!(share <= 1.001, "connecting is no part of a transaction: {share}");
    let (result, _, _) = run_with(renewed, 30, 5_000, None, None);
    let why = result.lost.unwrap();
    assert!(why.contains("no new session") && why.contains("too many connections"), "{why}");
}
