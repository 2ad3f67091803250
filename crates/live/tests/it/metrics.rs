//! Metrics of a run for Prometheus.

use loadline_live::metrics::{FRESH_S, Metrics};
use loadline_live::now::Now;
use loadline_model::column;
use loadline_model::live::{LiveEvent, LiveLine};
use loadline_model::manifest::RunState;

use crate::common::{begun, now, record};

/// Samples of `now` at `now_s`.
fn text(now: &Now, now_s: f64) -> String {
    let mut metrics = Metrics::default();
    metrics.add("r", now, now_s);
    metrics.text()
}

/// A run of which everything is known; its newest second was written at 20 s.
fn full() -> Now {
    let mut now = now();
    for column in [column::TRANSACTION_TIME_NS_MEAN, column::ERRORS, column::CPU_BUSY_PCT, column::LIMIT_SHARE_PCT] {
        now.records[2].set(column, 50.0);
    }
    let newest = now.seconds.back_mut().unwrap();
    (newest.latency_ms, newest.cpu_busy_pct) = (Some(600.0), Some(25.0));
    newest.waits = [("IO:\"x\"".to_owned(), 2.5)].into();
    now
}

#[test]
fn the_dashboard_asks_for_what_is_there() {
    let said = text(&full(), 20.5);
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
    let said = text(&full(), 20.5);
    let test = "{run=\"r\",workload=\"LGWR-LAT1\",jobs=\"8\",test=\"4\"";
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
    assert!(live(&now, 20.0 + FRESH_S) && !live(&now, 20.1 + FRESH_S), "it grows old");
    type Change = fn(&mut Now);
    let changes: [(Change, &str); 4] = [
        (|now| now.apply(begun(21.0, 5)), "another test has begun"),
        (|now| now.records.push(record(4, None)), "its test is done"),
        (
            |now| now.apply(LiveLine { at_s: 21.0, event: LiveEvent::Step { text: "limits".to_owned() } }),
            "its jobs have ended",
        ),
        (|now| now.manifest.as_mut().unwrap().state = RunState::Complete, "the run has ended"),
    ];
    for (change, why) in changes {
        let mut later = now.clone();
        change(&mut later);
        assert!(!live(&later, 21.0), "{why}");
    }
    let mut over = now;
    over.manifest.as_mut().unwrap().state = RunState::Complete;
    assert!(text(&over, 20.5).contains("loadline_run_running{run=\"r\"} 0.0"));
}
