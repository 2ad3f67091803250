//! What does not come is not waited for: a lock that somebody holds, a server that is stopped.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::common::mariadb::Maria;
use crate::common::{Ran, Server, folder_with_tests, results, signal, start, wait_for};

const SHORT: [&str; 9] =
    ["--workload", "LGWR-LAT1", "--jobs", "1,2", "--duration", "1s", "--warmup", "200ms", "--no-probe"];

fn short(url: &str, results: &Path) -> Child {
    start(&[&["run", "--target", url, "--results", results.to_str().unwrap()], &SHORT[..]].concat())
}

/// The end of a run, which must come within `seconds`.
fn ends(mut child: Child, seconds: u64) -> Ran {
    wait_for("the run to end", seconds, || child.try_wait().unwrap().is_some());
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn a_lock_that_is_held_is_named_and_not_waited_for() {
    let dir = results();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let server = Server::start(&[]);
            std::thread::scope(|holding| {
                holding.spawn(|| server.sql("BEGIN; CREATE SCHEMA loadline; SELECT pg_sleep(30)"));
                let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
                wait_for("the lock", 30, || server.sql(held).unwrap() == "1");
                let ran = ends(short(&format!("{}&connect_timeout=1", server.url()), dir.path()), 30);
                assert!(
                    ran.code == 3 && ran.err.contains("a lock (Lock:") && ran.err.contains("psql"),
                    "{}",
                    ran.said()
                );
                let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
                wait_for("the end of what was given up", 5, || server.sql(waiting).unwrap() == "0");
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
                server.sql(end).unwrap();
            });
        });
        scope.spawn(|| {
            let server = Maria::start(&[]);
            std::thread::scope(|holding| {
                holding.spawn(|| server.sql("FLUSH TABLES WITH READ LOCK; SELECT SLEEP(30)"));
                let held = "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
                wait_for("the lock", 30, || !server.sql(held).unwrap().is_empty());
                let ran = ends(short(&format!("{}&connect-timeout=1", server.url("root")), dir.path()), 30);
                assert!(ran.code == 3 && ran.err.contains("another session"), "{}", ran.said());
                let waiting = "SELECT INFO FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%'";
                wait_for("the end of what was given up", 5, || server.sql(waiting).unwrap().is_empty());
                server.sql(&format!("KILL {}", server.sql(held).unwrap())).unwrap();
            });
        });
    });
}

#[test]
fn a_stopped_server_does_not_keep_an_interrupted_run() {
    let dir = results();
    let server = Server::start(&[]);
    let child = short(&server.url(), dir.path());
    folder_with_tests(dir.path(), 1);
    server.signal_all("-STOP");
    signal(&child, Signal::SIGINT);
    let begin = Instant::now();
    let ran = ends(child, 20);
    let took = begin.elapsed();
    server.signal_all("-CONT");
    assert!(ran.code == 130 && took < Duration::from_secs(8), "after {took:?}: {}", ran.said());
    assert!(ran.err.contains("`loadline clean --target 'postgres://"), "{}", ran.said());
}
