//! PostgreSQL as a user has it: passwords, privileges, limits, settings that spoil figures.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use crate::common::figures::check;
use crate::common::{Ran, Server, far, lat1, loadline, on, results, run, sound_tests, start, tests_of, words};

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
        let f = |id: &str| t[id].as_f64().unwrap_or_else(|| panic!("{id}: {:#}", t["absent"]));
        let commits = f("commits");
        assert!((f("commits_database") - commits).abs() <= commits * 0.05 + 20.0, "{t:#}");
        assert!(f("commits_per_redo_sync") <= 2.05, "no more commits per sync than jobs");
        let kib = f("redo_kib_per_tx");
        assert!((1.0..=2.0).contains(&kib), "LAT1 writes 1 to 2 KiB: {kib}");
        assert!(f("cpu_busy_pct") > 0.0 && f("redo_writes_per_s") > 0.0);
    }
    assert_eq!(server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'").unwrap(), "0");

    // Over TCP with a password; a wrong one is refused and never shown.
    let right = measure(&server.tcp("boss", Some("tops3cret")), path, "");
    sound_tests(&right);
    let everything = std::process::Command::new("grep").args(["-rl", "tops3cret", path]).output().unwrap();
    assert!(everything.stdout.is_empty(), "a password in {}", String::from_utf8_lossy(&everything.stdout));
    let wrong = measure(&server.tcp("boss", Some("wr0ngpass")), path, "");
    assert!(wrong.code == 3 && wrong.err.contains("password"), "{}", wrong.said());
    assert!(!wrong.said().contains("wr0ngpass"), "{}", wrong.said());
    let none = measure(&server.tcp("boss", None), path, "");
    assert!(none.code == 3 && none.err.contains("PGPASSWORD"), "{}", none.said());

    // More jobs than connections: which setting, and what fits.
    let many = on(&server.url(), path, "--jobs 50");
    assert!(many.code == 2 && many.err.contains("max_connections") && many.err.contains("20"), "{}", many.said());

    // A role that may not create anything, and a database that does not exist.
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'x'; REVOKE CREATE ON DATABASE postgres FROM PUBLIC").unwrap();
    let poor = measure(&server.url().replace("boss@", "ann@"), path, "");
    assert!(poor.code == 3 && poor.err.contains("CREATE"), "{}", poor.said());
    let missing = measure(&server.url().replace("/postgres?", "/nodb?"), path, "");
    assert!(missing.code == 3 && missing.err.contains("nodb"), "{}", missing.said());

    // A role with just what is needed: works, and what it may not see is said.
    server.sql("GRANT CREATE ON DATABASE postgres TO ann").unwrap();
    let plain = measure(&server.url().replace("boss@", "ann@"), path, "");
    sound_tests(&plain);

    // A schema of that name that is not loadline's is never touched.
    server.sql("CREATE SCHEMA loadline; CREATE TABLE loadline.mine (a int)").unwrap();
    let foreign = measure(&server.url(), path, "");
    assert!(foreign.code == 3 && foreign.err.contains("schema"), "{}", foreign.said());
    let clean = run(&["clean", "--target", &server.url()]);
    assert!(clean.code != 0, "{}", clean.said());
    assert_eq!(server.sql("SELECT count(*) FROM loadline.mine").unwrap(), "0", "it is still there");
    server.sql("DROP SCHEMA loadline CASCADE").unwrap();
}

#[test]
fn settings_that_spoil_figures_are_refused_or_marked() {
    let server = Server::start(&["synchronous_commit=off"]);
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let refused = measure(&server.url(), path, "");
    assert!(refused.code == 3 && refused.err.contains("synchronous_commit"), "{}", refused.said());
    let doctor = run(&["doctor", "--target", &server.url()]);
    assert!(
        doctor.code == 3 && doctor.out.contains("synchronous_commit") && doctor.out.contains("REFUSED"),
        "{}",
        doctor.said()
    );
    let forced = measure(&server.url(), path, "--force");
    let t = &tests_of(&forced.folder())[0];
    assert!(t["forced"].as_str().unwrap().contains("synchronous_commit"), "{t:#}");

    let read_only = Server::start(&["default_transaction_read_only=on"]);
    let ran = measure(&read_only.url(), path, "");
    assert!(ran.code == 3 && ran.err.contains("read"), "{}", ran.said());
    drop(read_only);

    // A standby can be read only: refused, with --force as well, because nothing can be written.
    let standby = server.standby();
    for more in ["", "--force"] {
        let ran = measure(&standby.url(), path, more);
        assert!(ran.code == 3 && ran.err.contains("standby"), "{}", ran.said());
    }
}

#[test]
fn a_server_elsewhere_gives_its_cpu_figures_through_the_database() {
    let server = Server::start(&[]);
    let dir = results();
    let measure = |url: &str| {
        far(&words(&format!("run --target {url} --results {} --workload LGWR-LAT1 {SHORT}", dir.path().display())))
    };
    let ran = measure(&server.tcp("boss", Some("tops3cret")));
    let t = &sound_tests(&ran)[0];
    assert!(t["cpu_busy_pct"].as_f64().unwrap() > 0.0, "{t:#}");
    assert!(t["absent"]["device_util_pct"].as_str().unwrap().contains("another machine"), "{t:#}");
    let manifest = std::fs::read_to_string(ran.folder().join("manifest.json")).unwrap();
    assert!(manifest.contains("\"local\": false"), "{manifest}");

    // A role that may not read the server's files: no CPU figures, and why.
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'x'; GRANT CREATE ON DATABASE postgres TO ann").unwrap();
    let ran = measure(&server.tcp("ann", Some("x")));
    let t = &tests_of(&ran.folder())[0];
    assert!(t.get("cpu_busy_pct").is_none() && t["absent"]["cpu_busy_pct"].is_string(), "{t:#}");
}

#[test]
fn work_that_goes_wrong_in_mid_run_is_marked() {
    let server = Server::start(&[]);
    let dir = results();
    let url = server.url();
    for driver in ["client", "database"] {
        let results = dir.path().join(driver);
        let of = ["run", "--target", &url, "--driver", driver, "--results", results.to_str().unwrap(), "--no-probe"];
        let child = start(&[&of[..], &["--workload", "LGWR-LAT1", "--jobs", "2", "--duration", "3000s"]].concat());
        crate::common::wait_for("the jobs to run", || {
            server
                .sql("SELECT sum(n) FROM loadline.lgwr_lat1_redo WHERE id >= 128")
                .is_ok_and(|n| n.parse::<i64>().is_ok_and(|n| n > 50))
        });
        server.sql("DROP TABLE loadline.lgwr_lat1_redo").unwrap();
        let ran = crate::common::Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 1, "{driver}: {}", ran.said());
        let t = &tests_of(&ran.folder())[0];
        assert_eq!(t["valid"], false, "{t:#}");
        assert!(t["invalid_reason"].as_str().unwrap().contains("lgwr_lat1_redo"), "{t:#}");
    }
}

#[test]
fn commits_that_do_not_wait_are_caught_by_the_counters() {
    // fsync off: the server claims durability that no sync backs.
    let server = Server::start(&["fsync=off"]);
    let dir = results();
    let ran = measure(&server.url(), dir.path(), "--force");
    let t = &tests_of(&ran.folder())[0];
    assert!(t["forced"].as_str().unwrap().contains("fsync"), "{t:#}");
    assert_ne!(check(t, "commits-per-sync")["outcome"], "passed", "{t:#}");
}

#[test]
fn no_password_stands_in_the_process_list() {
    // Somebody who accepts the connection and never answers.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ann:h1dden@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
    let mut child =
        loadline().args(["doctor", "--target", &url]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (_stream, _) = listener.accept().unwrap();
    let cmdline = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    let shown = String::from_utf8_lossy(&cmdline).into_owned();
    child.kill().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(shown.contains("ann@127.0.0.1") && !shown.contains("h1dden"), "{shown}");
    assert!(!said.contains("h1dden"), "{said}");
}
