//! MariaDB as a user has it: privileges, encryption, settings that spoil figures, and the trap of a
//! COMMIT in a procedure.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::mariadb::Maria;
use crate::common::{
    Ran, lat1, loadline, manifest_of, ok, on, results, run, signal, sound, sound_tests, start_on, tests_of, wait_for,
};
use nix::sys::signal::Signal;

fn measure(url: &str, results: impl AsRef<Path>, more: &str) -> Ran {
    lat1(url, results, &format!("--jobs 2 --duration 600ms --warmup 300ms --no-probe {more}"))
}

/// The check that a test of a forced in-database commit must not pass.
#[test]
fn a_commit_in_a_procedure_that_does_not_wait_is_caught() {
    let dir = results();
    let with = |more: &str| {
        let more = format!("--jobs 8 --duration 2s --warmup 500ms --no-probe {more}");
        lat1("mariadb-temp:", dir.path(), &more)
    };
    // Left to itself, the workload takes the client and says why; its commits wait.
    let own = with("");
    let t = &sound_tests(&own)[0];
    assert_eq!(t["driver"], "client", "{t:#}");
    assert!(t["commits_per_redo_sync"].as_f64().unwrap() <= 8.1, "{t:#}");
    let manifest = manifest_of(&own.folder());
    let reason = manifest["plan"]["workloads"][0]["driver_reason"].as_str().unwrap();
    assert!(reason.contains("a commit that is durable") && reason.contains("stored procedure"), "{reason}");

    // Asked for the other driver, it is refused.
    let refused = with("--driver database");
    assert!(refused.code == 2 && refused.err.contains("stored procedure"), "{}", refused.said());

    // Forced, it is measured, marked and found out.
    let forced = with("--driver database --force");
    let t = &tests_of(&forced.folder())[0];
    assert_eq!(t["valid"], false, "{t:#}");
    assert!(t["invalid_reason"].as_str().unwrap().contains("commits did not wait until they were durable"), "{t:#}");
    assert!(t["forced"].as_str().unwrap().contains("stored procedure"), "{t:#}");
    assert!(t["commits_per_redo_sync"].as_f64().unwrap() > 8.1, "{t:#}");
    assert_ne!(forced.code, 0, "{}", forced.said());

    // With a binary log they wait, and each commit is counted once all the same.
    for driver in ["database", "client"] {
        let binlog = with(&format!("--driver {driver} --force --setting log_bin=bin"));
        let t = &tests_of(&binlog.folder())[0];
        let reason = t["invalid_reason"].as_str().unwrap_or_default();
        assert!(!reason.contains("did not wait") && !reason.contains("the database"), "{driver}: {reason}");
        assert!(t["commits_per_redo_sync"].as_f64().unwrap() <= 8.2, "{driver}: {t:#}");
        // Timed by the server, not sampled; no longer than the whole transaction.
        let sync = t["log_file_sync_ms"].as_f64().unwrap();
        assert!(sync > 0.0 && sync < t["commit_latency_ms"].as_f64().unwrap(), "{driver}: {t:#}");
        assert!(!t["notes"].to_string().contains("-sampled\""), "{driver}: {t:#}");
    }
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
    let dir = results();
    let ran = measure(&server.url("root"), dir.path(), "");
    let t = &sound_tests(&ran)[0];
    let f = |id: &str| t[id].as_f64().unwrap_or_else(|| panic!("{id}: {:#}", t["absent"]));
    assert!((f("commits_database") - f("commits")).abs() <= f("commits") * 0.05 + 20.0, "{t:#}");
    assert!((1.0..=2.0).contains(&f("redo_kib_per_tx")) && f("cpu_busy_pct") > 0.0);
    // The wait for the log is sampled.
    assert!(f("log_file_sync_ms") > 0.0 && t["notes"].to_string().contains("\"log-sync-sampled\""), "{t:#}");
    assert!(t["absent"]["commit_time_ns_p50"].as_str().unwrap().contains("once, after its commit"), "{t:#}");
    let there = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'loadline'";
    assert_eq!(server.sql(there).unwrap(), "0");

    // A commit that does not wait is a matter of the whole server, which loadline leaves alone.
    let of_nowait =
        |more| on(&server.url("root"), dir.path(), &format!("--no-probe --jobs 1 --workload LGWR-THR {more}"));
    let nowait = of_nowait("");
    assert!(nowait.code == 2 && nowait.err.contains("innodb_flush_log_at_trx_commit = 1"), "{}", nowait.said());
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2").unwrap();
    let nowait = of_nowait("--duration 500ms --warmup 300ms");
    sound_tests(&nowait);
    let wait = measure(&server.url("root"), dir.path(), "");
    assert!(wait.code == 2 && wait.err.contains("innodb_flush_log_at_trx_commit = 2"), "{}", wait.said());
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1").unwrap();

    // A user with nothing but the database, made for it: which figures are there without PROCESS.
    server
        .sql("CREATE USER poor@localhost; CREATE DATABASE loadline; GRANT ALL ON loadline.* TO poor@localhost")
        .unwrap();
    let poor = measure(&server.url("poor"), dir.path(), "");
    let t = &sound_tests(&poor)[0];
    assert!(poor.said().contains("GRANT PROCESS"), "{}", poor.said());
    for id in ["commits_database", "redo_kib_per_tx", "commits_per_redo_sync", "log_file_sync_ms", "cpu_busy_pct"] {
        assert!(t[id].as_f64().is_some(), "{id}: {t:#}");
    }
    let snapshots = |folder: &Path| {
        let files = std::fs::read_dir(folder.join("snapshots")).unwrap().flatten();
        files.map(|f| std::fs::read_to_string(f.path()).unwrap()).collect::<String>()
    };
    assert!(
        snapshots(&ran.folder()).contains("INNODB_METRICS.") && !snapshots(&poor.folder()).contains("INNODB_METRICS.")
    );
    assert_eq!(
        server.sql("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'loadline'").unwrap(),
        "0"
    );
    // What its administrator is given to grant, and the way back.
    let granted = || server.sql("SHOW GRANTS FOR poor@localhost").unwrap();
    let script = |way: &str| ok(&["doctor", "--target", &server.url("poor"), way]).out;
    server.sql(&script("--grants")).unwrap();
    assert!(granted().contains("PROCESS"), "{}", granted());
    assert!(!script("--grants").lines().any(|line| line.starts_with("GRANT")), "{}", script("--grants"));
    server.sql(&script("--revoke")).unwrap();
    assert_eq!(granted().lines().count(), 1, "that of every user: {}", granted());
    server.sql("DROP DATABASE loadline").unwrap();
    let refused = measure(&server.url("poor"), dir.path(), "");
    assert!(refused.code == 3 && refused.err.contains("GRANT ALL ON loadline.*"), "{}", refused.said());

    let many = on(&server.url("root"), dir.path(), "--jobs 50");
    assert!(many.code == 2 && many.err.contains("max_connections = 20"), "{}", many.said());
    server.sql("SET GLOBAL read_only = ON; GRANT ALL ON loadline.* TO poor@localhost").unwrap();
    // Nothing can be measured there: not even forced.
    for more in ["", "--force"] {
        let standby = measure(&server.url("poor"), dir.path(), more);
        assert!(standby.code == 3 && standby.err.contains("name the primary"), "{}", standby.said());
    }
}

#[test]
fn what_a_users_server_lacks_is_known_from_the_server() {
    let (server, dir) = (Maria::start(&[]), results());
    let short = "--jobs 1 --duration 500ms --warmup 200ms --no-probe";
    let own = lat1(&server.url("root"), dir.path(), short);
    assert_eq!(tests_of(&own.folder())[0]["driver"], "client", "{}", own.said());
    let manifest = manifest_of(&own.folder());
    let reason = manifest["plan"]["workloads"][0]["driver_reason"].as_str().unwrap();
    assert!(reason.starts_with("not with the database driver") && reason.contains("in MariaDB"), "{reason}");
    let asked = lat1(&server.url("root"), dir.path(), &format!("{short} --driver database"));
    assert!(asked.code == 2 && asked.err.contains("in MariaDB"), "{}", asked.said());
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
    let doctor = |url: &str| run(&["doctor", "--target", url]);
    let (ca, other) = (server.file("ca.crt"), server.file("other.crt"));
    for query in
        ["?ssl-mode=required".into(), format!("?ssl-mode=verify-identity&ssl-ca={ca}"), "?ssl-mode=disabled".into()]
    {
        let fine = doctor(&server.tcp("ann:tops3cret", &query));
        assert_eq!(fine.code, 0, "{query}: {}", fine.said());
    }
    let slow = server.tcp("ann:tops3cret", "?ssl-mode=required");
    let slow = doctor(&slow.replace(&server.port.to_string(), &far_away(server.port).to_string()));
    assert_eq!(slow.code, 0, "a handshake that takes long: {}", slow.said());
    for (query, words) in [
        (format!("?ssl-mode=verify-identity&ssl-ca={other}"), "TLS handshake"),
        (format!("?ssl-mode=verify-ca&ssl-ca={other}"), "ssl-ca"),
        (format!("?ssl-mode=required&ssl-ca={other}"), "TLS handshake"),
        ("?ssl-mode=verify-ca&ssl-ca=/no/file".into(), "/no/file"),
    ] {
        let bad = doctor(&server.tcp("ann:tops3cret", &query));
        assert!(bad.code != 0 && bad.err.contains(words), "{query}: {}", bad.said());
    }
    let by_address = server.tcp("ann:tops3cret", &format!("?ssl-mode=verify-identity&ssl-ca={ca}"));
    let bad = doctor(&by_address.replace("localhost", "127.0.0.1"));
    assert!(bad.code == 3 && bad.err.contains("another name"), "{}", bad.said());
    let wrong = doctor(&server.tcp("ann:wr0ngpass", ""));
    assert!(wrong.code == 3 && wrong.err.contains("password for user 'ann' is wrong"), "{}", wrong.said());
    assert!(!wrong.said().contains("wr0ngpass"), "{}", wrong.said());
    let none = doctor(&server.tcp("ann", ""));
    assert!(none.code == 3 && none.err.contains("MYSQL_PWD"), "{}", none.said());
    let mut with = loadline();
    with.env("MYSQL_PWD", "tops3cret").args(["doctor", "--target", &server.tcp("ann", "")]);
    assert!(with.output().unwrap().status.success());
}

#[test]
fn a_server_that_goes_away_in_mid_test() {
    let mut server = Maria::start(&[]);
    let dir = results();
    let more = "--no-probe --workload LGWR-LAT1 --jobs 1,2 --duration 2s --warmup 300ms";
    let child = start_on(&server.url("root"), dir.path(), more);
    let folder = crate::common::folder_with_tests(dir.path(), 1);
    std::thread::sleep(std::time::Duration::from_millis(900));
    server.kill();
    let ran = crate::common::Ran::of(child.wait_with_output().unwrap());
    assert!(ran.code == 3 && ran.err.contains("lost"), "{}", ran.said());
    // What was measured before is kept.
    let tests = tests_of(&folder);
    assert!(sound(&tests[0]), "{}", tests[0]);
    assert!(tests.iter().skip(1).all(|t| t["valid"] == false), "{tests:#?}");
}

#[test]
fn a_private_server_takes_settings_and_dies_with_its_owner() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    for (setting, words) in [
        ("innodb_log_file_sise=1G", "did you mean 'innodb_log_file_size'"),
        ("innodb_log_file_size=big", "mariadbd says"),
        ("datadir=/tmp", "itself"),
    ] {
        let bad = measure("mariadb-temp:", dir.path(), &format!("--setting {setting}"));
        assert!(bad.code == 2 && bad.err.contains(words), "{setting}: {}", bad.said());
    }
    let mut command = loadline();
    command.args(["run", "--target", "mariadb-temp:", "--no-probe", "--results", path, "--duration", "60s"]);
    command.args(["--setting", "innodb_log_file_size=1G", "--workload", "LGWR-LAT1", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let server_dir = || {
        let entries = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.path());
        entries.into_iter().find(|p| p.to_string_lossy().contains("loadline-mariadb-"))
    };
    wait_for("the private server", || server_dir().is_some_and(|d| d.join("socket/s").exists()));
    let server = server_dir().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let needle = server.display().to_string();
    wait_for("the server to die with its owner", || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        !entries.into_iter().any(|e| {
            let line = std::fs::read(e.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("mariadbd") && line.contains(&needle)
        })
    });
    assert!(server.exists());
    let cleaned = run(&["clean", "--target", "mariadb-temp:", "--results", path]);
    assert!(cleaned.code == 0 && cleaned.said().contains("private MariaDB server"), "{}", cleaned.said());
    assert!(!server.exists());
}

/// Killed while `mariadb-install-db` runs: what that started has to go as well. A script stands for it
/// whose child would go on for long.
#[test]
fn nothing_outlives_an_owner_that_dies_while_the_database_is_made() {
    let (dir, bin) = (results(), tempfile::Builder::new().prefix("loadline-bin-").tempdir_in("/var/tmp").unwrap());
    let path = dir.path().to_str().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.path(), open.clone()).unwrap();
    for (name, script) in [
        ("mariadbd", "exec /usr/sbin/mariadbd \"$@\""),
        ("mariadb-install-db", "sh -c 'sleep 300; :' mariadbd --bootstrap \"$@\"; exit 0"),
    ] {
        std::fs::write(bin.path().join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(bin.path().join(name), open.clone()).unwrap();
    }
    let target = format!("mariadb-temp:?bin={}", bin.path().display());
    let running = |what: &str| {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.map(|e| std::fs::read(e.path().join("cmdline")).unwrap_or_default());
        let ours = format!("{path}/loadline-mariadb-");
        lines.map(|l| String::from_utf8_lossy(&l).into_owned()).any(|l| l.contains(&ours) && l.contains(what))
    };
    for ends in ["kill", "two interrupts"] {
        let child = start_on(&target, path, "--workload LGWR-LAT1 --jobs 1");
        wait_for("the bootstrap", || running("--bootstrap"));
        if ends == "kill" {
            signal(&child, Signal::SIGKILL);
        } else {
            signal(&child, Signal::SIGINT);
            std::thread::sleep(Duration::from_millis(500));
            signal(&child, Signal::SIGINT);
        }
        let ran = Ran::of(child.wait_with_output().unwrap());
        if ends != "kill" {
            let command = format!("`loadline clean --target '{target}' --results {path}`");
            assert!(ran.code == 130 && ran.err.contains(&command), "{}", ran.said());
        }
        wait_for("all to die with their owner", || !running(""));
        let cleaned = run(&["clean", "--results", path]);
        assert!(cleaned.code == 0 && cleaned.said().contains("private MariaDB server"), "{}", cleaned.said());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
