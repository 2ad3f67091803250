//! End to end: thousands of sessions, each with a thread.

use crate::common::*;

/// Jobs that think for most of the time: also a small machine has CPU for all.
const THINKING: &str = "--workload LGWR-LAT1 --jobs 2000 --think 500ms --warmup 2s --no-probe";

#[test]
fn two_thousand_sessions_lose_and_miscount_nothing() {
    let dir = results();
    let ran = on("null:", dir.path(), &format!("{THINKING} --duration 3s"));
    let test = &tests_of(&ran.folder())[0];
    assert!(sound(test), "{test:#}");
    ["commits-database", "work-evidence"].iter().for_each(|id| passed(test, id));
    assert_eq!(figure(test, "errors"), 0.0);
    // Each thinks for 500 ms, so in 3 s all have done something, and nobody more than that allows.
    let tps = figure(test, "tx_per_s");
    assert!((1000.0..=4400.0).contains(&tps), "{tps}");
    // Little's law: transactions and think times have the jobs' time, but for loadline's own, which others make longer.
    let [think_ms, tx_ns, outside] =
        ["think_time_ms_mean", "transaction_time_ns_mean", "outside_tx_pct"].map(|id| figure(test, id));
    let jobs = tps * (think_ms / 1e3 + tx_ns / 1e9) / (1.0 - outside / 100.0);
    assert!((jobs / 2000.0 - 1.0).abs() < 0.05 && outside < 50.0, "{jobs} jobs: {test:#}");
}

#[test]
fn an_interrupt_ends_two_thousand_sessions_in_the_middle_of_a_long_window() {
    let dir = results();
    let mut running = start_on("null:", dir.path(), &format!("{THINKING} --duration 600s"));
    let tasks = format!("/proc/{}/task", running.id());
    wait_for("2,000 threads", || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 2000));
    std::thread::sleep(Duration::from_secs(3));
    signal(&running, Signal::SIGINT);
    wait_for("its end", || running.try_wait().unwrap().is_some());
    ended(running).fails(130, &[]);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}
