//! Every workload on every target with every driver for a second: new ones get this for free.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{leftovers, ok, results, tests_of};

#[test]
fn every_workload_runs_on_every_target() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    // Targets that need nothing but this machine; the catalogue comes from the program itself.
    let targets = [
        ("null:", "client"),
        ("sqlite:", "client"),
        ("postgres-temp:", "client"),
        ("postgres-temp:", "database"),
        ("mariadb-temp:", "client"),
        ("mariadb-temp:", "database"),
    ];
    let listed = ok(&["workloads", "--format", "json"]).out;
    let workloads: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    for (target, driver) in targets {
        let ran = common::run(&[
            "run",
            "--target",
            target,
            "--driver",
            driver,
            "--jobs",
            "2",
            "--duration",
            "1s",
            "--warmup",
            "500ms",
            "--results",
            path,
        ]);
        let tests = tests_of(&ran.folder());
        let manifest = std::fs::read_to_string(ran.folder().join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let skipped = manifest["plan"]["skipped"].as_array().unwrap();
        assert!(!tests.is_empty(), "{target} with the {driver} driver: {}", ran.said());
        let scheme = target.trim_end_matches(':');
        for w in workloads.iter().filter(|w| w["targets"].as_str().unwrap().split(' ').any(|t| t == scheme)) {
            let code = w["code"].as_str().unwrap();
            // What a driver cannot do on a target is skipped with its reason; another driver can.
            let skipped = skipped.iter().find(|s| s["code"] == code);
            if let Some(skipped) = skipped.filter(|_| driver == "database") {
                assert!(skipped["reason"].as_str().unwrap().contains("it needs a commit"), "{skipped}");
                continue;
            }
            let t = tests
                .iter()
                .find(|t| t["workload"] == code)
                .unwrap_or_else(|| panic!("{code} on {target}: {}", ran.said()));
            assert_eq!(t["valid"], true, "{code} on {target} with the {driver} driver: {}", t["invalid_reason"]);
            assert!(t["commit_throughput_tps"].as_f64().unwrap() > 0.0);
            // Every column has a figure or a reason.
            for id in ["redo_kib_per_tx", "log_file_sync_ms", "redo_writes_per_s", "cpu_busy_pct", "limit_share_pct"] {
                assert!(t.get(id).is_some() != t["absent"].get(id).is_some(), "{code} on {target}: {id}");
            }
        }
        assert_eq!(ran.code, 0, "{}", ran.said());
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}
