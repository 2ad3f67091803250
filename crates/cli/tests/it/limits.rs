//! Limits beside every figure, and their sources.

use crate::common::*;

fn measure(target: &str, results: &tempfile::TempDir, more: &str) -> Ran {
    let ran = lat1(target, results, &format!("--jobs 2 --duration 500ms --warmup 300ms {more}"));
    sound_tests(&ran);
    ran
}

/// The figures of a limit before and after its test.
fn samples(test: &Value) -> [f64; 2] {
    let all = test["limit"]["samples"].as_array().unwrap();
    let all: Vec<f64> = all.iter().map(|s| s.as_f64().unwrap()).collect();
    <[f64; 2]>::try_from(all).unwrap()
}

/// The share of its limit that a test has is that of its figures.
#[track_caller]
fn share_of_the_limit(test: &Value) {
    let share = figure(test, "commit_throughput_tps") / figure(test, "limit_tps") * 100.0;
    assert!(share > 0.0 && (figure(test, "limit_share_pct") - share).abs() < 1e-6, "{share}: {test}");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn every_durable_test_is_held_against_the_reference_log_writer() {
    for target in ["sqlite:", "mariadb-temp:"] {
        let dir = results();
        let folder = measure(target, &dir, "").folder();
        let t = &tests_of(&folder)[0];
        let limit = &t["limit"];
        assert!(limit["source"] == "run" && limit["jobs"] == 2, "{target}: {}", t["absent"]["limit_tps"]);
        let (tps, [before, after]) = (figure(t, "limit_tps"), samples(t));
        assert!((before + after) / 2.0 - tps < 1e-6 * tps);
        share_of_the_limit(t);
        let manifest = manifest_of(&folder);
        // The same work: the redo that calibration saw.
        let calibrated = &manifest["calibration"]["LGWR-LAT1"]["redo_bytes_per_tx"];
        assert_eq!(&limit["redo_bytes_per_tx"], calibrated, "{target}");
        // The storage was probed before.
        let rows = manifest["probes"]["log"]["rows"].as_array().unwrap();
        assert!(rows.iter().any(|r| r["operation"] == "sequential-write" && r["per_s"].as_f64().unwrap() > 0.0));
        assert_eq!(leftovers(dir.path()), Vec::<String>::new());
    }
}

#[test]
fn without_a_limit_its_reason_stands_there() {
    let dir = results();
    for (target, more, says) in
        [("sqlite:", "--no-probe", "--no-probe"), ("wal:", "", "it is itself"), ("null:", "", "no log")]
    {
        let t = &tests_of(&lat1(target, &dir, &format!("--jobs 2 --duration 300ms --warmup 200ms {more}")).folder())[0];
        assert!(t.get("limit").is_none() && t.get("limit_share_pct").is_none(), "{target}");
        assert!(absent(t, "limit_share_pct").contains(says), "{target}: {}", t["absent"]);
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn limits_are_brought_from_the_databases_own_machine() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("limits.json");
    let shown = file.to_str().unwrap();
    ok(&["probe", path, "--seconds", "1", "--size", "16MiB", "--format", "json", "--output", shown]);
    let mut stored = json_of(&file);
    let points = stored["dirs"][0]["log_writer"].as_array().unwrap();
    let of = |point: &Value, name: &str| point[name].as_f64().unwrap_or_else(|| panic!("no {name}: {point}"));
    for workload in ["LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR"] {
        let measured = points.iter().filter(|p| p["workload"] == workload).count();
        assert_eq!(measured, 8, "1 to 128 jobs of {workload}: {points:?}");
    }
    for p in points {
        // Little's law, without the time in which jobs wait for a CPU between transactions.
        let in_flight = of(p, "tps") * of(p, "latency_ns_mean") / 1e9;
        assert!(in_flight > 0.0 && in_flight < of(p, "jobs") * 1.01, "{in_flight} in flight: {p}");
    }
    let t = tests_of(&measure("postgres-temp:", &dir, &format!("--limits {shown}")).folder()).remove(0);
    assert_eq!(t["limit"]["source"], "file", "{}", t["absent"]["limit_tps"]);
    // Of another machine than the database's, and of none.
    stored["machine"]["host"] = "elsewhere".into();
    for (text, says) in [(stored.to_string(), "'elsewhere'"), ("{}".to_owned(), "loadline probe DIR")] {
        std::fs::write(&file, text).unwrap();
        run(&["run", "--limits", shown, "--results", path]).fails(2, &[says]);
    }
}

/// Runs storage workloads on a database in a file in `path`, which may be in memory.
fn storage(path: &Path) -> Vec<Value> {
    let short = "--jobs 2 --duration 800ms --warmup 300ms --allow-cached --force";
    let tests = tests_of(&on("sqlite:", path, &format!("--workload STO-READ,STO-SCAN --size 32MiB {short}")).folder());
    assert_eq!(tests.len(), 2, "the run goes on");
    tests
}

#[test]
fn reads_are_compared_with_the_device_if_there_is_one() {
    let (disk, memory) = (results(), tempfile::tempdir_in("/dev/shm").unwrap());
    for (test, name) in storage(disk.path()).iter().zip(["block reads", "read bandwidth"]) {
        let limit = &test["limit"];
        assert_eq!(limit["name"], name, "{}", test["absent"]["limit_tps"]);
        assert!(limit["of"].as_str().unwrap().contains("reads of"), "{limit}");
        assert!(samples(test).into_iter().all(|s| s > 0.0) && figure(test, "limit_share_pct") > 0.0, "{limit}");
    }
    assert_eq!(leftovers(disk.path()), Vec::<String>::new());
    for test in storage(memory.path()) {
        assert!(absent(&test, "limit_share_pct").contains("in memory (tmpfs)"), "{test}");
    }
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn transactions_that_change_nothing_are_not_compared_with_the_log() {
    let (dir, server) = (results(), Server::start(&[]));
    // A transaction may put no message, and then looks.
    let text = read(EXAMPLE);
    let text = text.replace("default = 3\nmin = 1\nmax = 100\n", "default = 3\nmin = 0\nmax = 100\n");
    let text = text.replace("default = 1\nmin = 0", "default = 1\nmin = 1");
    let file = dir.path().join("queue.toml");
    std::fs::write(&file, text).unwrap();
    let name = |target: &str, puts: u32, jobs: u32| {
        let short = format!("--parameter QUEUE.puts={puts} --jobs {jobs} --duration 300ms --warmup 200ms");
        // Invalid tests on a busy machine have limits, too.
        let ran = on(target, &dir, &format!("--workload-file {} {short}", file.display()));
        let test = tests_of(&ran.folder()).remove(0);
        test["limit"]["name"].as_str().unwrap_or_else(|| panic!("{}", test["absent"]["limit_tps"])).to_owned()
    };
    for target in ["sqlite:", &server.url()] {
        assert_eq!(name(target, 0, 2), "empty statements", "{target}");
    }
    assert_eq!(name(&server.url(), 1, 1), "empty statements + log writer");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn what_bounds_a_test_is_what_its_workload_lists() {
    let dir = results();
    for (target, workloads, jobs) in [
        ("sqlite:", "SRV-QUERY1,SRV-SCAN,DA-SCAN,DA-AGG,DA-JOIN,DA-SORT,DA-WINDOW", "2 --parameter DA-AGG.groups=10"),
        ("postgres-temp:", "SRV-SCAN,PLS-ADD,TP-MEDIUM", "1,2"),
    ] {
        let short = "--size 4MiB --duration 400ms --warmup 200ms";
        // Invalid tests on a busy machine have limits, too.
        let ran = on(target, &dir, &format!("--workload {workloads} --jobs {jobs} {short}"));
        let tests = tests_of(&ran.folder());
        assert!(workloads.split(',').all(|code| tests.iter().any(|t| t["workload"] == code)), "{}", ran.said());
        for t in &tests {
            let code = t["workload"].as_str().unwrap();
            let listed = &loadline_workload::find(code).unwrap().limits;
            let name = t["limit"]["name"].as_str().unwrap_or_else(|| panic!("{code}: {}", t["absent"]["limit_tps"]));
            assert!(name.split(" + ").all(|part| listed.iter().any(|l| l.name() == part)), "{code}: {name}");
            // One job does after each other what several do at once.
            let in_series = t["jobs"] == 1 && listed.iter().filter(|l| l.is_in_series()).count() > 1;
            assert_eq!(name.contains(" + "), in_series, "{code} with {} jobs: {name}", t["jobs"]);
            share_of_the_limit(t);
            assert!(samples(t).into_iter().all(|s| s > 0.0), "{t}");
        }
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn a_killed_runs_reference_log_is_removed() {
    let dir = results();
    // The database is elsewhere on the same filesystem.
    let target = format!("--target sqlite:{0}/x.db --results {0}", dir.path().display());
    let run = format!("run {target} --workload LGWR-LAT1 --jobs 1 --duration 300ms --warmup 200ms");
    let logs = || leftovers(dir.path()).into_iter().filter(|name| name.starts_with("loadline-wal-")).count();
    for next in [&format!("clean {target}"), &run] {
        let child = start(&words(&format!("{run} --repeat 50")));
        wait_for("the run's log", || logs() == 1);
        kill(child);
        assert_eq!(logs(), 1, "the log of the killed run");
        let ran = command(next);
        assert!(ran.code <= 1 && logs() == 0, "{next}: {}", ran.said());
    }
}
