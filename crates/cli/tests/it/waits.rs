//! Waits end: for a lock that somebody holds, a server that is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::common::*;

fn short(url: &str, results: &Path) -> Child {
    start_on(url, results, "--workload LGWR-LAT1 --jobs 1,2 --duration 1s --warmup 200ms --no-probe")
}

/// The end of a run, which must come.
fn ends(mut child: Child) -> Ran {
    wait_for("the run to end", || child.try_wait().unwrap().is_some());
    ended(child)
}

#[test]
fn a_lock_that_is_held_is_named_and_not_waited_for() {
    let dir = results();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let server = Server::start(&[]);
            std::thread::scope(|holding| {
                holding.spawn(|| server.sql("BEGIN; CREATE SCHEMA loadline; SELECT pg_sleep(300)"));
                let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
                wait_for("the lock", || server.sql(held).unwrap() == "1");
                let url = format!("{}&connect_timeout=1", server.url());
                ends(short(&url, dir.path())).fails(3, &["a lock (Lock:", "psql"]);
                let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
                wait_for("the end of what was given up", || server.sql(waiting).unwrap() == "0");
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
                server.sql(end).unwrap();
            });
        });
        scope.spawn(|| {
            let server = Maria::start(&[]);
            std::thread::scope(|holding| {
                holding.spawn(|| server.sql("FLUSH TABLES WITH READ LOCK; SELECT SLEEP(300)"));
                let held = "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
                wait_for("the lock", || !server.sql(held).unwrap().is_empty());
                ends(short(&format!("{}&connect-timeout=1", server.url("root")), dir.path()))
                    .fails(3, &["another session"]);
                let waiting = "SELECT INFO FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%'";
                wait_for("the end of what was given up", || server.sql(waiting).unwrap().is_empty());
                server.sql(&format!("KILL {}", server.sql(held).unwrap())).unwrap();
            });
        });
    });
}

/// Rolled back, so that the server counts no commit.
const LOCK: &str = "BEGIN; LOCK TABLE loadline.tp_light_account IN EXCLUSIVE MODE; SELECT pg_sleep(0.5); ROLLBACK";

/// A test on `url` whose transactions somebody `stalls`, again and again; and what is said of the slowest.
fn stalled(url: &str, stall: &(dyn Fn() + Sync)) -> (serde_json::Value, String) {
    let dir = results();
    let few = "--workload TP-LIGHT --parameter TP-LIGHT.accounts=100 --driver client --jobs 2 --duration 10s --warmup 300ms --no-probe";
    let ended_now = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended_now.load(Ordering::Relaxed) {
                stall();
                std::thread::sleep(Duration::from_millis(700));
            }
        });
        let ran = ended(start_on(url, dir.path(), few));
        ended_now.store(true, Ordering::Relaxed);
        ran
    });
    // The other session's work is not the jobs': whatever the checks say of it, the figures are there.
    let [test] = &tests_of(&ran.folder())[..] else { panic!("{}", ran.said()) };
    let pages = report(&ran.folder(), "--test 1 --format md");
    let said = pages.lines().find(|line| line.starts_with("The slowest ")).unwrap_or_else(|| panic!("{pages}"));
    (test.clone(), said.to_owned())
}

#[test]
fn a_lock_that_stalls_some_transactions_is_why_they_are_slow() {
    let locked = |(test, said): (serde_json::Value, String), event: &str| {
        assert!(said.contains("waited for locks"), "{said}");
        let wait = &test["slow"]["waits"][0];
        assert_eq!((&wait["class"], &wait["event"]), (&"lock".into(), &event.into()), "{}", test["slow"]);
        let [slow, others] = ["slow_wait_pct", "slow_wait_others_pct"].map(|id| figure(&test, id));
        assert!(slow > 50.0 && others < slow / 2.0, "{}", test["slow"]);
    };
    let server = Server::start(&[]);
    locked(stalled(&server.url(), &|| drop(server.sql(LOCK))), "Lock:relation");
    let server = Maria::start(&[]);
    let stall = "BEGIN; SELECT COUNT(*) FROM (SELECT id FROM loadline.tp_light_account FOR UPDATE) x; SELECT SLEEP(0.5); ROLLBACK";
    locked(stalled(&server.url("root"), &|| drop(server.sql(stall))), "Lock:row");
}

#[test]
#[ignore = "nightly: ten windows, in which others may stall transactions as well"]
fn planted_stalls_are_named_in_nine_of_ten() {
    let dir = results();
    let [library, flag] = ["syncs.so", "throttled"].map(|name| dir.path().join(name));
    let define = format!("-DFLAG=\"{}\"", flag.display());
    done(Command::new("cc").args([&define, "-shared", "-fPIC", "-o"]).arg(&library).arg(format!("{DATA}/syncs.c")));
    done(Command::new("chmod").arg("755").arg(dir.path()));
    let mut server = Server::start(&[]);
    server.kill();
    server.preload = Some(library);
    server.launch(&[]);
    let throttled = |meanwhile: &(dyn Fn() + Sync)| {
        std::fs::write(&flag, "").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(meanwhile);
            std::thread::sleep(Duration::from_millis(500));
            std::fs::remove_file(&flag).unwrap();
        });
    };
    let [lock, device, checkpoint]: [&(dyn Fn() + Sync); 3] =
        [&|| drop(server.sql(LOCK)), &|| throttled(&|| ()), &|| throttled(&|| drop(server.sql("CHECKPOINT")))];
    let planted = [(lock, "locks", false, 4), (device, "log sync", false, 3), (checkpoint, "log sync", true, 3)];
    let mut wrong = Vec::new();
    for (stall, cause, in_checkpoint, times) in planted {
        for _ in 0..times {
            let (_, said) = stalled(&server.url(), stall);
            let named = said.contains(&format!("waited for {cause} ("));
            if !named || said.contains("during checkpoint") != in_checkpoint {
                wrong.push(format!("{cause}, during a checkpoint: {in_checkpoint}: {said}"));
            }
        }
    }
    assert!(wrong.len() <= 1, "{} of 10 stalls are named wrong: {wrong:#?}", wrong.len());
}

#[test]
fn a_stopped_server_does_not_keep_an_interrupted_run() {
    interrupted_at_a_stopped_server();
}

#[test]
#[ignore = "nightly: asserts seconds"]
fn an_interrupted_run_ends_within_seconds() {
    let took = interrupted_at_a_stopped_server();
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// How long a run takes to end that is interrupted while its server is stopped.
fn interrupted_at_a_stopped_server() -> Duration {
    let dir = results();
    let server = Server::start(&[]);
    let child = short(&server.url(), dir.path());
    folder_with_tests(dir.path(), 1);
    server.signal_all("-STOP");
    let interrupted = Instant::now();
    signal(&child, Signal::SIGINT);
    let ran = ends(child);
    let took = interrupted.elapsed();
    server.signal_all("-CONT");
    ran.fails(130, &["`loadline clean --target 'postgres://"]);
    took
}

#[test]
fn a_standby_that_is_stopped_is_named() {
    let (server, dir) = (Server::start(&["synchronous_standby_names=sb"]), results());
    let url = format!("{}&connect_timeout=1", server.url());
    let receiver = Command::new(Server::bin().join("pg_receivewal"))
        .args(["--synchronous", "-D", dir.path().to_str().unwrap()])
        .arg(format!(
            "--dbname=host={} port={} user=boss application_name=sb",
            server.folder_path().display(),
            server.port
        ))
        .spawn();
    let receiver = Killed(receiver.unwrap());
    let count = |what: &str| server.sql(&format!("SELECT count(*) FROM {what}")).unwrap();
    wait_for("the standby", || count("pg_stat_replication WHERE sync_state = 'sync'") == "1");
    let named = "a synchronous standby (synchronous_standby_names = 'sb'; connected: sb, streaming";

    let child = short(&url, dir.path());
    wait_for("a job's session", || count("pg_stat_activity WHERE application_name LIKE 'loadline% job 0'") == "1");
    signal(&receiver.0, Signal::SIGSTOP);
    ends(child).fails(3, &["was given up after", named]);

    let doctor = run(&["doctor", "--target", &url]);
    let told = ["durable commit = does not return", named].iter().all(|part| doctor.out.contains(part));
    assert!(doctor.code == 3 && told, "{}", doctor.said());
    signal(&receiver.0, Signal::SIGCONT);
}
