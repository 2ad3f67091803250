//! End to end: thousands of sessions, each with a thread.

use nix::sys::signal::Signal;

use crate::common::figures::{figure, passed};
use crate::common::{on, results, signal, sound, start_on, tests_of, wait_for};

/// Jobs that think for most of the time: also a small machine has CPU for all.
const THINKING: &str = "--workload LGWR-LAT1 --jobs 2000 --think 500ms --warmup 2s --no-probe";

#[test]
fn two_thousand_sessions_lose_and_miscount_nothing() {
    let dir = results();
    let ran = on("null:", dir.path(), &format!("{THINKING} --duration 3s"));
    assert!(ran.code <= 1, "{}", ran.said());
    let test = &tests_of(&ran.folder())[0];
    assert!(sound(test), "{test:#}");
    for id in ["commits-database", "work-evidence"] {
        passed(test, id);
    }
    assert_eq!(figure(test, "errors"), 0.0);
    // Each thinks for 500 ms, so in 3 s all have done something, and nobody more than that allows.
    let tps = figure(test, "tx_per_s");
    assert!((1000.0..=4400.0).contains(&tps), "{tps}");
}

#[test]
fn an_interrupt_ends_two_thousand_sessions() {
    let dir = results();
    let running = start_on("null:", dir.path(), &format!("{THINKING} --duration 60s"));
    let tasks = format!("/proc/{}/task", running.id());
    wait_for("2,000 threads", || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 2000));
    signal(&running, Signal::SIGINT);
    assert_eq!(running.wait_with_output().unwrap().status.code(), Some(130));
}
