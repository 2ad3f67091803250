//! What the machine allows stands beside every figure, and where it comes from.

use crate::common::{
    as_on_a_quiet_machine, json_of, lat1, leftovers, manifest_of, ok, results, run, sound_tests, tests_of,
};

fn measure(target: &str, path: &str, more: &str) -> crate::common::Ran {
    let ran = lat1(target, path, &format!("--jobs 2 --duration 1s --warmup 300ms {more}"));
    sound_tests(&ran);
    ran
}

fn held_against_the_reference(target: &str) {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let folder = measure(target, path, "").folder();
    let t = &tests_of(&folder)[0];
    let limit = &t["limit"];
    assert_eq!(limit["source"], "run", "{target}: {}", t["absent"]["limit_tps"]);
    assert_eq!(limit["jobs"], 2);
    let samples: Vec<f64> = limit["samples"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    assert_eq!(samples.len(), 2, "before and after");
    let tps = t["limit_tps"].as_f64().unwrap();
    assert!((samples[0] + samples[1]) / 2.0 - tps < 1e-6 * tps);
    let share = t["limit_share_pct"].as_f64().unwrap();
    assert!((share - t["commit_throughput_tps"].as_f64().unwrap() / tps * 100.0).abs() < 1e-6);
    // The storage was probed before, and the report says so.
    let manifest = manifest_of(&folder);
    // The same work: the redo that calibration saw.
    let calibrated = manifest["calibration"]["LGWR-LAT1"]["redo_bytes_per_tx"].as_f64().unwrap();
    assert_eq!(limit["redo_bytes_per_tx"].as_f64().unwrap(), calibrated, "{target}");
    let rows = manifest["probes"]["log"]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|r| r["operation"] == "sequential-write" && r["per_s"].as_f64().unwrap() > 0.0));
    as_on_a_quiet_machine(&folder);
    let html = ok(&["report", folder.to_str().unwrap(), "--format", "html", "--output", "-"]).out;
    assert!(html.contains("reference log writer"), "{target}");
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn every_durable_test_on_sqlite_is_held_against_the_reference_log_writer() {
    held_against_the_reference("sqlite:");
}

#[test]
fn every_durable_test_on_postgres_is_held_against_the_reference_log_writer() {
    held_against_the_reference("postgres-temp:");
}

#[test]
fn every_durable_test_on_mariadb_is_held_against_the_reference_log_writer() {
    held_against_the_reference("mariadb-temp:");
}

#[test]
fn without_a_limit_its_reason_stands_there() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    for (target, more, says) in
        [("sqlite:", "--no-probe", "--no-probe"), ("wal:", "", "it is itself"), ("null:", "", "no log")]
    {
        let t = &tests_of(&measure(target, path, more).folder())[0];
        assert!(t.get("limit").is_none() && t.get("limit_share_pct").is_none(), "{target}");
        assert!(t["absent"]["limit_share_pct"].as_str().unwrap().contains(says), "{target}: {}", t["absent"]);
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn limits_are_brought_from_the_databases_own_machine() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("limits.json");
    let shown = file.to_str().unwrap();
    ok(&["probe", path, "--seconds", "1", "--size", "16MiB", "--format", "json", "--output", shown]);
    let mut stored = json_of(&file);
    let points = stored["dirs"][0]["log_writer"].as_array().unwrap();
    let figure = |p: &serde_json::Value, name: &str| p[name].as_f64().unwrap_or_else(|| panic!("no {name}: {p}"));
    for workload in ["LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR"] {
        let measured = points.iter().filter(|p| p["workload"] == workload).count();
        assert_eq!(measured, 8, "1 to 128 jobs of {workload}: {points:?}");
    }
    for p in points {
        // Little's law, without the time in which jobs wait for a CPU between transactions.
        let in_flight = figure(p, "tps") * figure(p, "latency_ns_mean") / 1e9;
        assert!(in_flight > 0.0 && in_flight < figure(p, "jobs") * 1.01, "{in_flight} in flight: {p}");
    }
    let t = &tests_of(&measure("wal:", path, &format!("--limits {shown}")).folder())[0];
    assert!(t.get("limit").is_none(), "the reference is not held against itself");
    let t = &tests_of(&measure("postgres-temp:", path, &format!("--limits {shown}")).folder())[0];
    assert_eq!(t["limit"]["source"], "file", "{}", t["absent"]["limit_tps"]);
    // Of another machine: refused with both names.
    stored["machine"]["host"] = "elsewhere".into();
    std::fs::write(&file, stored.to_string()).unwrap();
    let other = run(&["run", "--target", "sqlite:", "--limits", shown, "--results", path]);
    assert!(other.code == 2 && other.err.contains("'elsewhere', but the database runs on '"), "{}", other.said());

    std::fs::write(&file, "{}").unwrap();
    let bad = run(&["run", "--limits", shown, "--results", path]);
    assert!(bad.code == 2 && bad.err.contains("loadline probe DIR"), "{}", bad.said());
}

/// Runs storage workloads on a database in a file in `path`, which may be in memory.
fn storage(path: &str) -> Vec<serde_json::Value> {
    let args = ["run", "--target", "sqlite:", "--workload", "STO-READ", "--workload", "STO-SCAN", "--size", "32MiB"];
    let more =
        ["--jobs", "2", "--duration", "800ms", "--warmup", "300ms", "--allow-cached", "--force", "--results", path];
    tests_of(&run(&[&args[..], &more].concat()).folder())
}

#[test]
fn reads_are_compared_with_the_device() {
    let dir = results();
    let tests = storage(dir.path().to_str().unwrap());
    for (test, name) in tests.iter().zip(["block reads", "read bandwidth"]) {
        let limit = &test["limit"];
        assert_eq!(limit["name"], name, "{}", test["absent"]["limit_tps"]);
        assert!(limit["of"].as_str().unwrap().contains("reads of"), "{limit}");
        assert!(limit["samples"].as_array().unwrap().iter().all(|s| s.as_f64().unwrap() > 0.0), "{limit}");
        assert!(test["limit_share_pct"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(tests.len(), 2);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn transactions_that_change_nothing_are_not_compared_with_the_log() {
    const PUTS: &str = r#"
code = "PUTS"
summary = "changes rows or none"
program = [
    { bind = "k", to = { constant = 1 } },
    { repeat = "puts", steps = [{ execute = "put" }] },
    { execute = "look" },
]
[[parameter]]
name = "puts"
default = 1
min = 0
max = 9
meaning = "changes"
[[table]]
name = "t"
rows = 10
column = [{ name = "id", type = "int", fill = "key" }, { name = "n", type = "int", fill = "zero" }]
[[statement]]
name = "put"
sql = "UPDATE {t} SET n = n + 1 WHERE id = :k"
effect = { change = 1 }
[[statement]]
name = "look"
sql = "SELECT n FROM {t} WHERE id = :k"
effect = { read = 1 }
"#;
    let dir = results();
    let path = dir.path().to_str().unwrap();
    std::fs::write(dir.path().join("puts.toml"), PUTS).unwrap();
    let plan = dir.path().join("plan.toml");
    let names = |target: &str, puts: u32, jobs: &[u32]| {
        let text = "workload-file = [\"puts.toml\"]\nduration = \"300ms\"\nwarmup = \"200ms\"\n";
        std::fs::write(&plan, format!("{text}jobs = {jobs:?}\n[parameters.PUTS]\nputs = {puts}\n")).unwrap();
        // Invalid tests on a busy machine have limits, too.
        let tests = tests_of(&run(&["run", plan.to_str().unwrap(), "--target", target, "--results", path]).folder());
        let name = |t: &serde_json::Value| {
            t["limit"]["name"].as_str().unwrap_or_else(|| panic!("{}", t["absent"]["limit_tps"])).to_owned()
        };
        tests.iter().map(name).collect::<Vec<_>>()
    };
    for target in ["sqlite:", "postgres-temp:", "mariadb-temp:"] {
        assert_eq!(names(target, 0, &[2]), ["empty statements"], "{target}");
    }
    // A change of PostgreSQL's is smaller than a record of the reference log usually is.
    assert_eq!(names("postgres-temp:", 1, &[1]), ["empty statements + log writer"]);
}

#[test]
fn data_in_memory_has_no_device_to_compare_with() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let tests = storage(memory.path().to_str().unwrap());
    assert_eq!(tests.len(), 2, "the run goes on");
    for test in &tests {
        let why = test["absent"]["limit_share_pct"].as_str().unwrap();
        assert!(why.contains("in memory (tmpfs)"), "{why}");
    }
}

#[test]
fn what_bounds_a_test_is_what_its_workload_lists() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let fixed = ["--results", path, "--size", "4MiB", "--duration", "400ms", "--warmup", "200ms", "--jobs"];
    for (target, jobs, workloads) in [
        ("sqlite:", "2", &["SRV-QUERY1", "SRV-SCAN", "DA-SCAN", "DA-AGG", "DA-JOIN", "DA-SORT", "DA-WINDOW"][..]),
        ("postgres-temp:", "1,2", &["SRV-SCAN", "PLS-ADD", "TP-MEDIUM"]),
    ] {
        let named = workloads.iter().flat_map(|code| ["--workload", code]);
        let args = ["run", "--target", target].into_iter().chain(fixed).chain([jobs]).chain(named);
        let args: Vec<&str> = args.collect();
        // Invalid tests on a busy machine have limits, too.
        let tests = tests_of(&run(&args).folder());
        assert!(tests.len() >= workloads.len());
        for code in workloads {
            let workload = loadline_workload::find(code).unwrap();
            let listed = &workload.limits;
            let of_code: Vec<_> = tests.iter().filter(|t| t["workload"] == *code).collect();
            assert!(!of_code.is_empty(), "{code} on {target}");
            for t in of_code {
                let limit = &t["limit"];
                let Some(name) = limit["name"].as_str() else {
                    panic!("{code} on {target}: {}", t["absent"]["limit_tps"])
                };
                assert!(name.split(" + ").all(|part| listed.iter().any(|l| l.name() == part)), "{code}: {name}");
                // One job does after each other what several do at once.
                let in_series = t["jobs"] == 1 && listed.iter().filter(|l| l.is_in_series()).count() > 1;
                assert_eq!(name.contains(" + "), in_series, "{code} with {} jobs: {name}", t["jobs"]);
                let figure = |id: &str| t[id].as_f64().unwrap_or_else(|| panic!("{code} on {target}: no {id}"));
                let share = figure("commit_throughput_tps") / figure("limit_tps") * 100.0;
                assert!(share > 0.0 && (figure("limit_share_pct") - share).abs() < 1e-6, "{code} on {target}: {share}");
                let samples = limit["samples"].as_array().unwrap();
                assert!(samples.len() == 2 && samples.iter().all(|s| s.as_f64().unwrap() > 0.0), "{samples:?}");
            }
        }
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}
