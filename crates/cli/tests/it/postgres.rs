//! PostgreSQL as a user has it: passwords, privileges, limits, settings that spoil figures.

use crate::common::*;

const SHORT: &str = "--jobs 2 --duration 800ms --warmup 500ms --no-probe";

fn measure(url: &str, results: impl AsRef<Path>, more: &str) -> Ran {
    lat1(url, results, &format!("{SHORT} {more}"))
}

#[test]
fn a_users_server_is_measured_checked_and_left_clean() {
    let server = Server::start(&["max_connections=20", "superuser_reserved_connections=3"]);
    let dir = results();
    let path = dir.path().to_str().unwrap();

    // Over the socket with both drivers: the database's own counters stand beside the jobs' counts.
    for driver in ["client", "database"] {
        let ran = measure(&server.url(), path, &format!("--driver {driver}"));
        let t = &sound_tests(&ran)[0];
        let f = |id: &str| figure(t, id);
        let commits = f("commits");
        assert!((f("commits_database") - commits).abs() <= commits * 0.05 + 20.0, "{t:#}");
        assert!(f("commits_per_redo_sync") <= 2.05, "no more commits per sync than jobs");
        let kib = f("redo_kib_per_tx");
        assert!((1.0..=2.0).contains(&kib), "LAT1 writes 1 to 2 KiB: {kib}");
        assert!(f("cpu_busy_pct") > 0.0 && f("redo_writes_per_s") > 0.0);
    }
    assert!(!server.has_schema());

    // Over TCP, as a role with just what is needed: its password stands in no file.
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'tops3cret'").unwrap();
    server.sql("GRANT CREATE ON DATABASE postgres TO ann").unwrap();
    sound_tests(&measure(&server.tcp("ann", Some("tops3cret")), path, ""));
    let everything = Command::new("grep").args(["-rl", "tops3cret", path]).output().unwrap();
    assert!(everything.stdout.is_empty(), "a password in {}", String::from_utf8_lossy(&everything.stdout));

    // More jobs than connections: which setting, and what fits.
    on(&server.url(), path, "--jobs 50").fails(2, &["max_connections", "20"]);
}

#[test]
fn settings_that_spoil_figures_are_refused_or_marked() {
    // With fsync off the server claims durability that no sync backs.
    let server = Server::start(&["synchronous_commit=off", "fsync=off"]);
    let (dir, url) = (results(), server.url());
    measure(&url, dir.path(), "").fails(3, &["synchronous_commit"]);
    run(&["doctor", "--target", &url]).fails(3, &[]);
    let forced = measure(&url, dir.path(), "--force");
    let t = &tests_of(&forced.folder())[0];
    let why = t["forced"].as_str().unwrap();
    assert!(["synchronous_commit", "fsync"].iter().all(|name| why.contains(name)), "{t:#}");
    assert_ne!(outcome(t, "commits-per-sync"), "passed", "{t:#}");
    // Nothing can be written where all is read only: refused, with --force as well.
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on").unwrap();
    measure(&url, dir.path(), "--force").fails(3, &["default_transaction_read_only"]);
}
