//! A run folder as loadline writes it.

#[path = "../../../analyze/tests/it/common/made.rs"]
mod made;

use std::path::Path;

use loadline_analyze::waits::Counts;
use loadline_live::now::Now;
use loadline_model::live::{LiveEvent, LiveLine, LiveSecond, LiveTest};
use loadline_model::manifest::{MANIFEST_SCHEMA, RunState};
use loadline_model::{Latencies, Manifest, TestRecord};
use serde_json::json;

/// A manifest of a run in `state` that measures three workloads.
pub(crate) fn manifest(state: RunState) -> Manifest {
    let workloads = ["LGWR-LAT1", "LGWR-THR", "TP-MIXED"].map(|code| json!({"code": code, "driver": "client"}));
    let plan = json!({"size_bytes": 128 << 20, "target": "null:", "platform": "laptop", "workloads": workloads,
        "jobs": {"list": [1, 2]}, "duration_s": 30, "warmup_s": 2, "repeat": 2, "seed": 1});
    let run = json!({"schema": MANIFEST_SCHEMA, "run": "2026-11-20-161530-postgres", "loadline_version": "0.1.0",
        "started_at": "2026-11-20T16:15:30.000Z", "command": ["loadline", "run"], "plan": plan,
        "target": {"product": "PostgreSQL", "version": "17.5"}, "state": state});
    made::patched(&Manifest::default(), run)
}

pub(crate) fn record(test: u32, why_invalid: Option<&str>) -> TestRecord {
    made::patched(
        &TestRecord::blank("LGWR-LAT1"),
        json!({"test": test, "jobs": test, "group": "log-writer",
        "platform": "laptop", "target": "null:", "valid": why_invalid.is_none(), "invalid_reason": why_invalid,
        "commit_throughput_tps": 1234 * test, "commit_latency_ms": 0.81, "transaction_time_ns_p99": 2.31e6}),
    )
}

pub(crate) fn begun(at_s: f64, test: u32) -> LiveLine {
    let workload = "LGWR-LAT1".to_owned();
    let test = LiveTest { test, workload, jobs: 8, repetition: 1, repeat: 2, left_s: 200.0, ..LiveTest::default() };
    LiveLine { at_s, event: LiveEvent::Test(test) }
}

pub(crate) fn second(test: u32, elapsed_s: f64) -> LiveLine {
    let second = LiveSecond {
        test,
        elapsed_s,
        total_s: 32.0,
        held: None,
        tps: Some(5000.0 + 400.0 * (elapsed_s / 5.0).sin()),
        latency_ms: Some(1.6),
        cpu_busy_pct: Some(64.2),
        cpu_iowait_pct: Some(12.0),
        device_util_pct: Some(97.0),
        device_writes_per_s: Some(3120.0),
        waits: [("IO:WALSync".to_owned(), 5.1), ("LWLock:WALWrite".to_owned(), 1.9), ("CPU".to_owned(), 0.7)].into(),
    };
    LiveLine { at_s: elapsed_s, event: LiveEvent::Second(second) }
}

/// A run in its fourth test.
pub(crate) fn now() -> Now {
    let mut now = Now { manifest: Some(manifest(RunState::Started)), ..Now::default() };
    now.records = vec![record(1, None), record(2, Some("too few samples")), record(3, None)];
    for test in [1, 3] {
        let mut latencies = Latencies::new();
        (0..1000).for_each(|n| latencies.record(u64::from(test) * 100_000 + n * n));
        now.latencies.insert(test, Counts::from_latencies(&latencies));
    }
    now.apply(begun(0.0, 4));
    (1..=20).for_each(|s| now.apply(second(4, f64::from(s))));
    now
}

pub(crate) fn write_manifest(path: &Path, state: RunState) {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("manifest.json"), serde_json::to_string(&manifest(state)).unwrap()).unwrap();
}
