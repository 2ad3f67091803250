//! Every workload on every target with every driver for a moment: new ones get this for free.

use crate::common::*;
use crate::pages::workloads;

/// Tests on `target` with `driver` are valid and have their figures; workloads that do not run have their reason.
fn every_workload_on(target: &str, driver: &str) {
    let dir = results();
    let workloads = workloads();
    // Redo per transaction needs a window of a second, after PostgreSQL has logged whole pages in the warm-up; storage and analytics
    // need little data here, and their sweeps over a parameter are those of other tests. The scan has a test of its own, below.
    let of_log = workloads.iter().filter(|w| w["group"] == "log-writer" && w["code"] != SCAN);
    let of_log: Vec<&str> = of_log.map(|w| w["code"].as_str().unwrap()).collect();
    let log = format!("workload = {of_log:?}\nduration = \"1s\"\nwarmup = \"500ms\"\n");
    let (mut tests, mut skipped) = (Vec::new(), Vec::new());
    // The null engine counts a million transactions a second: in a short window no two clocks agree on them.
    let plans = [("log.toml", log), ("rest.toml", REST.to_owned())];
    for (name, text) in plans.into_iter().take(if target == "null:" { 1 } else { 2 }) {
        let plan = dir.path().join(name);
        std::fs::write(&plan, text).unwrap();
        let ran = on(target, &dir, &format!("{} --driver {driver} --jobs 2 --no-probe", plan.display()));
        if ran.code == 2 && ran.err.contains("nothing to run") {
            assert_eq!(target, "wal:", "{}", ran.said());
            continue;
        }
        tests.extend(sound_tests(&ran));
        skipped.extend(manifest_of(&ran.folder())["plan"]["skipped"].as_array().unwrap().clone());
    }
    let scheme = target.trim_end_matches(':');
    for w in workloads.iter().filter(|w| w["targets"].as_str().unwrap().split(' ').any(|t| t == scheme)) {
        let code = w["code"].as_str().unwrap();
        if code == SCAN || (target == "null:" && w["group"] != "log-writer") {
            continue;
        }
        // What a driver cannot do on a target is skipped with its reason; another driver can.
        let can = w["drivers"].as_str().unwrap().split(' ').any(|of| {
            of.split_once('=').is_some_and(|(t, drivers)| t == scheme && drivers.split('+').any(|d| d == driver))
        });
        // A column store reads no whole rows from the storage, and so few rows are no work for two threads and too few blocks.
        let refused_later =
            scheme == "duckdb" && ["STO-READ", "STO-READ-ASYNC", "STO-SCAN", "DA-PARALLEL"].contains(&code);
        if !can || refused_later {
            let why = skipped.iter().find(|s| s["code"] == code).map(|s| s["reason"].as_str().unwrap());
            assert!(why.is_some_and(|why| why.len() > 30), "{code} on {target} is skipped with its reason: {why:?}");
            continue;
        }
        let t = tests.iter().find(|t| t["workload"] == code).unwrap_or_else(|| panic!("{code} on {target}"));
        // Every column has a figure or a reason, and the first that counts has a figure.
        for id in ["redo_kib_per_tx", "log_file_sync_ms", "redo_writes_per_s", "cpu_busy_pct", "limit_share_pct"] {
            assert!(t.get(id).is_some() != t["absent"].get(id).is_some(), "{code} on {target}: {id}");
        }
        let kpi = t["kpis"][0].as_str().unwrap();
        // DuckDB has so few new rows in memory only, where their size is unknown.
        let unknown = scheme == "null" || (scheme == "duckdb" && kpi == "data_mib_per_s");
        let none_here = t["absent"].get(kpi).is_some() && unknown;
        // So little data is in every cache: a storage figure may be 0 here, which is allowed and marked.
        // A checkpoint may end between two transactions.
        let least = if w["group"] == "storage" || w["group"] == "database-writer" { -1.0 } else { 0.0 };
        assert!(none_here || t[kpi].as_f64().is_some_and(|v| v > least), "{code} on {target}: {kpi}: {t}");
    }
    assert!(leftovers(dir.path()).iter().all(|name| name.ends_with(".toml")), "{:?}", leftovers(dir.path()));
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "every workload in a window: ./test")]
fn every_workload_runs_on_the_null_engine_and_the_reference_log_writer() {
    every_workload_on("null:", "client");
    every_workload_on("wal:", "client");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "every workload in a window: ./test")]
fn every_workload_runs_on_sqlite() {
    every_workload_on("sqlite:", "client");
}

#[test]
fn every_workload_runs_on_duckdb() {
    crate::common::fetch_duckdb();
    every_workload_on("duckdb:", "client");
}

#[test]
#[ignore = "nightly: every workload in a window on every server"]
fn every_workload_runs_on_servers() {
    for target in ["postgres-temp:", "mariadb-temp:"] {
        ["client", "database"].into_iter().for_each(|driver| every_workload_on(target, driver));
    }
}

const REST: &str = include_str!("data/registry.toml");

const SCAN: &str = "LGWR-SIZE";
