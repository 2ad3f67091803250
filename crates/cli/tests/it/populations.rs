//! End to end: jobs that think, open new sessions, or differ.

use std::path::Path;

use serde_json::Value;

use crate::common::figures::{check, figure, passed};
use crate::common::{measured, results, tests_of};

/// A target whose transactions take 1 ms and a little, with one short test.
const ONE_MS: [&str; 8] =
    ["--target", "null:?pause=1ms", "--workload", "TP-LIGHT", "--no-probe", "--duration", "3s", "--warmup=300ms"];

fn at(dir: &Path, args: &[&str]) -> (Value, String, String) {
    let ran = measured(&[&["run", "--results", dir.to_str().unwrap()], args].concat());
    let folder = ran.folder();
    (tests_of(&folder).remove(0), folder.display().to_string(), ran.out)
}

#[test]
fn populations_of_one_test_keep_to_their_own_load() {
    let dir = results();
    let plan = dir.path().join("mix.toml");
    let text = "[[populations]]\njobs = 6\nthink = \"10ms\"\n[[populations]]\njobs = 3\nrate = 300\n\
                [[populations]]\njobs = 1\n";
    std::fs::write(&plan, text).unwrap();
    let (test, folder, said) = at(dir.path(), &[&[plan.to_str().unwrap()], &ONE_MS[..]].concat());
    assert_eq!(test["jobs"], 10, "{test}");
    let parts = test["populations"].as_array().unwrap();
    let tps: Vec<f64> = parts.iter().map(|p| p["tps"].as_f64().unwrap()).collect();
    let total = figure(&test, "commit_throughput_tps");
    assert!((tps.iter().sum::<f64>() - total).abs() < 1e-6 * total, "{tps:?} of {total}");
    // Each is below its own bound; on an idle machine they nearly reach it.
    let of_closed = |n: f64, ms: f64| n * 1e3 / ms * (1.0 + 5.0 / (3.0 * n * 1e3 / ms).sqrt());
    assert!(tps[0] < of_closed(6.0, 11.0) && tps[2] < of_closed(1.0, 1.0), "{tps:?}");
    let kept = check(&test, "rate")["outcome"] == "passed";
    assert_eq!(kept, tps[1] >= 300.0 * 0.98, "{tps:?}: {}", check(&test, "rate"));
    let response = |p: &Value| p["response_ns"][1].as_f64();
    assert!(response(&parts[0]).is_none() && response(&parts[1]) >= parts[1]["transaction_ns"][1].as_f64());
    assert!(test["rate_tps"].is_null() && test["response_time_ns_mean"].is_null());
    assert!(said.contains("3 jobs: open loop at 300 tps") && said.contains("mix of 3 populations"), "{said}");
    let html = std::fs::read_to_string(Path::new(&folder).join("report/index.html")).unwrap();
    assert!(html.contains("6 jobs: closed loop, think time 10 ms"));
}

/// New sessions on a server: what connecting and loadline's own statements commit must not be missing in the books.
fn new_sessions(target: &str, every: u64) {
    let dir = results();
    let n = every.to_string();
    let load = ["--jobs", "3", "--reconnect-every", &n, "--driver", "client", "--no-probe", "--duration", "2s"];
    let (test, folder, said) = at(dir.path(), &[&["--target", target, "--workload", "TP-LIGHT"], &load[..]].concat());
    passed(&test, "work-evidence");
    let (tps, connects) = (figure(&test, "commit_throughput_tps"), figure(&test, "connects_per_s"));
    // Each job may be between its last transaction and a new session.
    assert!(
        (connects * every as f64 - tps).abs() < 0.05 * tps + 3.0 * every as f64,
        "{connects} sessions/s, {tps} tps"
    );
    let [p50, p99, max] = ["p50", "p99", "max"].map(|q| figure(&test, &format!("connect_time_ns_{q}")));
    assert!(0.0 < p50 && p50 <= p99 && p99 <= max, "{p50} {p99} {max}");
    assert!(figure(&test, "connecting_pct") > 0.0 && said.contains("Connecting"), "{said}");
    let hlog = std::fs::read_to_string(Path::new(&folder).join("histograms/1.hlog")).unwrap();
    assert!(hlog.contains("connect"), "the histogram of connect times is stored");
    if target != "sqlite:" {
        passed(&test, "commits-database");
        passed(&test, "commits-window");
        // All sessions opened and closed, each with its own statements, and the counts still agree to a few commits.
        let detail = check(&test, "commits-database")["detail"].as_str().unwrap();
        let counts: Vec<f64> = detail.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        assert!((counts[0] - counts[1]).abs() <= 6.0, "{detail}");
        assert!(figure(&test, "commits") > 4.0 * every as f64);
    }
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn new_sessions_are_in_the_books() {
    for (target, every) in [("sqlite:", 50), ("postgres-temp:", 5), ("mariadb-temp:", 5)] {
        new_sessions(target, every);
    }
}
