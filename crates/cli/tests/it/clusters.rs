//! Runs over nodes, and levels of replication.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::common::{ok, results, run, tests_of, valid};

/// The rows of a run's CSV.
fn csv(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let out = ok(&["report", folder.to_str().unwrap(), "--format", "csv", "--output", "-"]).out;
    let mut lines = out.lines();
    let head: Vec<String> = lines.next().unwrap().split(',').map(str::to_owned).collect();
    lines.map(|l| head.iter().cloned().zip(l.split(',').map(str::to_owned)).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

fn check<'a>(test: &'a Value, id: &str) -> &'a Value {
    let found = test["checks"].as_array().unwrap().iter().find(|c| c["id"] == id);
    found.unwrap_or_else(|| panic!("no check {id}: {test}"))
}

#[test]
fn a_level_that_waits_pays_its_round_trip() {
    let results = results();
    let results = results.path().to_str().unwrap();
    let ran = run(&[
        "replica-cost",
        "--target",
        "postgres-temp:",
        "--levels",
        "local,on",
        "--delay",
        "4ms",
        "--jobs",
        "2",
        "--pairs",
        "2",
        "--duration",
        "1s",
        "--warmup",
        "200ms",
        "--results",
        results,
    ]);
    assert!(ran.out.contains("What a level adds to a commit"), "{}", ran.said());
    let folder = ran.folder();
    let tests = tests_of(&folder);
    // On a busy machine the log's position is read late in some windows.
    assert!(tests.len() == 8 && tests.iter().filter(|t| t["valid"] == true).count() >= 5, "{}", ran.said());
    let rows = csv(&folder);
    let [local, on] = ["local", "on"].map(|level| rows.iter().find(|r| r["level"] == level).unwrap());
    // Four ms each way; the machine may add to them, never take away.
    assert!(rows.len() == 2 && number(on, "rtt_ms") >= 8.0, "{rows:?}");
    assert!(number(on, "commit_latency_ms") >= number(on, "rtt_ms") * 0.95, "{on:?}");
    assert!(number(on, "added_ms") > number(local, "added_ms") && number(on, "tps_share") < 0.9, "{rows:?}");
    for test in tests.iter().filter(|t| t["level"]["level"] == "on" && t["arm"] == "B") {
        for id in ["replicas", "round-trip"] {
            assert_eq!(check(test, id)["outcome"], "passed", "{test}");
        }
    }
    // Complete: nothing is measured again.
    let again = run(&["run", "--resume", folder.to_str().unwrap()]);
    assert_eq!(tests_of(&again.folder()).len(), 8, "{}", again.said());
}

#[test]
fn jobs_that_read_are_spread_over_standbys_and_counted_there() {
    let results = results();
    let ran = ok(&[
        "run",
        "--target",
        "postgres-temp:?standbys=1",
        "--nodes",
        "1,2",
        "--workload",
        "TP-LOOKUP,LGWR-LAT1",
        "--jobs",
        "2",
        "--duration",
        "400ms",
        "--warmup",
        "200ms",
        "--size",
        "1MiB",
        "--no-probe",
        "--results",
        results.path().to_str().unwrap(),
    ]);
    assert!(ran.err.contains("LGWR-LAT1 is not measured over 2 nodes"), "{}", ran.said());
    let tests = tests_of(&ran.folder());
    let of: Vec<(&str, u64)> =
        tests.iter().map(|t| (t["workload"].as_str().unwrap(), t["nodes"].as_u64().unwrap())).collect();
    assert_eq!(of, [("LGWR-LAT1", 1), ("TP-LOOKUP", 1), ("TP-LOOKUP", 2)], "{}", ran.said());
    for test in &tests {
        assert!(valid(test) && check(test, "commits-node")["outcome"] == "passed", "{test}");
    }
    let both = tests[2]["by_node"].as_array().unwrap();
    assert!(both.iter().all(|n| n["jobs"] == 1 && n["tps"].as_f64().unwrap() > 0.0), "{both:?}");
    assert_eq!(csv(&ran.folder()).iter().map(|r| r["nodes"].as_str()).collect::<Vec<_>>(), ["1", "1", "2"]);
}

#[test]
fn a_galera_cluster_is_measured_over_its_nodes() {
    let results = results();
    let ran = ok(&[
        "run",
        "--target",
        "galera-temp:?nodes=3",
        "--nodes",
        "1,3",
        "--workload",
        "LGWR-LAT1",
        "--jobs",
        "3",
        "--duration",
        "500ms",
        "--warmup",
        "200ms",
        "--no-probe",
        "--results",
        results.path().to_str().unwrap(),
    ]);
    let tests = tests_of(&ran.folder());
    assert_eq!(tests.iter().map(|t| t["nodes"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3], "{}", ran.said());
    for test in &tests {
        assert!(valid(test) && check(test, "commits-node")["outcome"] == "passed", "{test}");
    }
    assert!(ran.out.contains("LGWR-LAT1 on 3 nodes"), "{}", ran.said());
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_starts() {
    let results = results();
    let folder = results.path().to_str().unwrap();
    for (args, says) in [
        (&["replica-cost", "--levels", "sync"][..], "no level 'sync'"),
        (&["replica-cost", "--delay", "-1ms"], "-1ms"),
        (&["replica-cost", "--delay", "1h"], "must be between"),
        (&["replica-cost", "--target", "sqlite:"], "postgres-temp:"),
        (&["replica-cost", "--workload", "TP-LOOKUP"], "writes nothing"),
        (&["replica-cost", "--bandwidth", "1KiB"], "64KiB"),
        (&["run", "--target", "postgres-temp:?standbys=0"], "standbys"),
        (&["run", "--target", "galera-temp:?nodes=99"], "nodes"),
        (&["run", "--nodes", "2,2"], "given twice"),
        (&["run", "--nodes", "0"], "between 1"),
        (&["run", "--nodes", "2", "--target", "null:"], "the target has 1 node"),
    ] {
        let args: Vec<&str> = args.iter().copied().chain(["--results", folder]).collect();
        let ran = run(&args);
        assert!(ran.code == 2 && ran.err.contains(says), "{args:?}: {}", ran.said());
    }
    assert_eq!(std::fs::read_dir(results.path()).unwrap().count(), 0);
}
