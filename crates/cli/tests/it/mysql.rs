//! MariaDB as a user has it: privileges, encryption, settings that spoil figures, and the trap of a COMMIT in a procedure.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::commands::hold;
use crate::common::*;

fn measure(url: &str, results: impl AsRef<Path>, more: &str) -> Ran {
    lat1(url, results, &format!("--jobs 2 --duration 600ms --warmup 300ms --no-probe {more}"))
}

#[test]
fn with_a_binary_log_commits_in_a_procedure_wait_and_are_counted_once() {
    let dir = results();
    let more = "--driver database --force --setting log_bin=bin --jobs 8 --duration 2s --warmup 500ms --no-probe";
    let t = &tests_of(&lat1("mariadb-temp:", dir.path(), more).folder())[0];
    let reason = t["invalid_reason"].as_str().unwrap_or_default();
    assert!(!reason.contains("did not wait") && !reason.contains("the database"), "{reason}");
    assert!(figure(t, "commits_per_redo_sync") <= 8.2, "{t:#}");
    // Timed by the server, not sampled; no longer than the whole transaction.
    let sync = figure(t, "log_file_sync_ms");
    assert!(sync > 0.0 && sync < figure(t, "commit_latency_ms"), "{t:#}");
    assert!(!t["notes"].to_string().contains("-sampled\""), "{t:#}");
}

#[test]
fn a_users_server_is_measured_checked_and_left_clean() {
    // Settings of a server that loadline's sessions must not take over.
    let server = Maria::start(&[
        "--skip-character-set-client-handshake",
        "--character-set-server=latin1",
        "--collation-server=latin1_german2_ci",
        "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,PIPES_AS_CONCAT,IGNORE_SPACE",
        "--default-time-zone=+05:30",
        "--autocommit=0",
        "--max-connections=20",
    ]);
    let (dir, url) = (results(), server.url("root"));
    let ran = measure(&url, dir.path(), "");
    let t = &sound_tests(&ran)[0];
    let f = |id: &str| figure(t, id);
    assert!((f("commits_database") - f("commits")).abs() <= f("commits") * 0.05 + 20.0, "{t:#}");
    assert!((1.0..=2.0).contains(&f("redo_kib_per_tx")) && f("cpu_busy_pct") > 0.0);
    // The wait for the log is sampled.
    assert!(f("log_file_sync_ms") > 0.0 && t["notes"].to_string().contains("\"log-sync-sampled\""), "{t:#}");
    assert!(t["absent"]["commit_time_ns_p50"].is_string(), "{t:#}");
    let there = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'loadline'";
    assert_eq!(server.sql(there).unwrap(), "0");
    assert!(f("commits_per_redo_sync") <= 2.1, "{t:#}");
    // What it lacks is known from the server itself: the workload takes the client and says why.
    assert_eq!(t["driver"], "client");
    let reason = manifest_of(&ran.folder())["plan"]["workloads"][0]["driver_reason"].clone();
    let says = |part: &str| reason.as_str().unwrap().contains(part);
    assert!(says("not with the database driver") && says("a commit that is durable") && says("in MariaDB"), "{reason}");
    measure(&url, dir.path(), "--driver database").fails(2, &["stored procedure", "in MariaDB"]);
    // Forced, it is measured, marked and found out: a commit does not wait if another session is writing the log.
    let more = "--driver database --force --jobs 8 --duration 2s --warmup 500ms --no-probe";
    let forced = lat1(&url, dir.path(), more);
    let t = &tests_of(&forced.folder())[0];
    assert!(forced.code != 0 && t["valid"] == false, "{t:#}");
    assert!(t["invalid_reason"].as_str().unwrap().contains("commits did not wait until they were durable"), "{t:#}");
    assert!(t["forced"].as_str().unwrap().contains("stored procedure"), "{t:#}");
    assert!(figure(t, "commits_per_redo_sync") > 8.1, "{t:#}");

    // A commit that does not wait is a matter of the whole server, which loadline leaves alone.
    let nowait = |more| on(&url, dir.path(), &format!("--no-probe --jobs 1 --workload LGWR-THR {more}"));
    nowait("").fails(2, &["innodb_flush_log_at_trx_commit = 1"]);
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2").unwrap();
    sound_tests(&nowait("--duration 500ms --warmup 300ms"));
    measure(&url, dir.path(), "").fails(2, &["innodb_flush_log_at_trx_commit = 2"]);
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1").unwrap();

    on(&url, dir.path(), "--jobs 50").fails(2, &["max_connections = 20"]);
}

/// A port that leads to `port`, with half a second for each of the first answers of a session.
fn far_away(port: u16) -> u16 {
    let way = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = way.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (client, server) in way.incoming().map(|c| (c.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap())) {
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
            let (mut from_server, mut to_client) = (server, client);
            std::thread::spawn(move || {
                let mut bytes = [0; 65536];
                let mut answers = 0;
                while let Ok(n @ 1..) = from_server.read(&mut bytes) {
                    answers += 1;
                    std::thread::sleep(Duration::from_millis(if answers <= 2 { 500 } else { 0 }));
                    let _ = to_client.write_all(&bytes[..n]);
                }
            });
        }
    });
    there
}

#[test]
fn encryption_and_passwords() {
    let server = Maria::start(&[]);
    let [port, far] = [server.port, far_away(server.port)].map(|port| port.to_string());
    let [ca, other] = ["ca.crt", "other.crt"].map(|name| server.file(name));
    let names = [("{port}", port.as_str()), ("{far}", &far), ("{ca}", &ca), ("{other}", &other)];
    hold(include_str!("data/encryption.toml"), &names);
    let mut with = loadline();
    with.env("MYSQL_PWD", "tops3cret").args(["doctor", "--target", &server.tcp("ann", "")]);
    assert!(with.output().unwrap().status.success());
}
