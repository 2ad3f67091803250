//! Metrics of a run for Prometheus.

use loadline_live::metrics::{FRESH_S, Metrics};
use loadline_live::now::Now;
use loadline_model::live::{LiveEvent, LiveLine, LiveSecond, LiveTest};
use loadline_model::manifest::RunState;
use loadline_model::{TestRecord, column};

use crate::common::manifest;

/// Samples of `now` at `now_s`.
fn text(now: &Now, now_s: f64) -> String {
    let mut metrics = Metrics::default();
    metrics.add("r", now, now_s);
    metrics.text()
}

/// A run of which everything is known; its newest second was written at 100 s.
fn full() -> Now {
    let mut now = Now { manifest: Some(manifest(RunState::Started)), ..Now::default() };
    let mut done = TestRecord::blank("W");
    let figures = [
        column::COMMIT_THROUGHPUT_TPS,
        column::TRANSACTION_TIME_NS_MEAN,
        column::TRANSACTION_TIME_NS_P99,
        column::ERRORS,
        column::CPU_BUSY_PCT,
        column::LIMIT_SHARE_PCT,
    ];
    figures.iter().for_each(|column| done.set(column, 50.0));
    now.records.push(done);
    let test = LiveTest { test: 2, workload: "W".to_owned(), jobs: 3, left_s: 9.0, ..LiveTest::default() };
    now.apply(LiveLine { at_s: 99.0, event: LiveEvent::Test(test) });
    let second = LiveSecond {
        test: 2,
        tps: Some(5.0),
        latency_ms: Some(600.0),
        cpu_busy_pct: Some(25.0),
        cpu_iowait_pct: Some(1.0),
        device_util_pct: Some(1.0),
        device_writes_per_s: Some(1.0),
        waits: [("IO:\"x\"".to_owned(), 2.5)].into(),
        ..LiveSecond::default()
    };
    now.apply(LiveLine { at_s: 100.0, event: LiveEvent::Second(second) });
    now
}

#[test]
fn the_dashboard_asks_for_what_is_there() {
    let said = text(&full(), 100.5);
    let dashboard = include_str!("../../../../docs/grafana/loadline.json");
    let words = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let asked: Vec<&str> = words.filter(|word| word.starts_with("loadline_")).collect();
    assert!(asked.len() > 10);
    for metric in asked {
        assert!(said.lines().any(|l| l.starts_with(&format!("{metric}{{"))), "{metric}:\n{said}");
    }
}

#[test]
fn units_are_seconds_and_shares_of_1() {
    let said = text(&full(), 100.5);
    let test = "{run=\"r\",workload=\"W\",jobs=\"3\",test=\"2\"";
    for sample in [
        format!("loadline_test_latency_mean_seconds{test}}} 0.6\n"),
        format!("loadline_test_cpu_busy_ratio{test}}} 0.25\n"),
        format!("loadline_test_wait_sessions{test},wait=\"IO:\\\"x\\\"\"}} 2.5\n"),
    ] {
        assert!(said.contains(&sample), "{sample}\n{said}");
    }
}

#[test]
fn no_figure_outlives_its_second() {
    let now = full();
    let live = |now: &Now, at_s| text(now, at_s).contains("loadline_test_transactions_per_second{");
    assert!(live(&now, 100.0 + FRESH_S) && !live(&now, 100.1 + FRESH_S), "it grows old");
    let mut next = now.clone();
    next.apply(LiveLine { at_s: 101.0, event: LiveEvent::Test(LiveTest { test: 3, ..LiveTest::default() }) });
    assert!(!live(&next, 101.0), "another test has begun");
    let mut done = now.clone();
    done.records.push(TestRecord { test: 2, ..TestRecord::blank("W") });
    assert!(!live(&done, 100.5), "its test is done");
    let mut limits = now.clone();
    limits.apply(LiveLine { at_s: 101.0, event: LiveEvent::Step { text: "limits".to_owned() } });
    assert!(!live(&limits, 101.0), "its jobs have ended");
    let mut over = now;
    over.manifest.as_mut().unwrap().state = RunState::Complete;
    assert!(!live(&over, 100.5) && text(&over, 100.5).contains("loadline_run_running{run=\"r\"} 0.0"));
}
