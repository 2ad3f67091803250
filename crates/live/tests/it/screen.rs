//! A run on a terminal, and its metrics for Prometheus.

use loadline_live::metrics::{FRESH_S, Metrics};
use loadline_live::now::Now;
use loadline_live::screen::{draw, escaped, table};
use loadline_model::live::{Held, LiveEvent, LiveLine};
use loadline_model::manifest::RunState;
use loadline_model::plan::PlannedWorkload;
use loadline_model::{CheckId, Driver, column};
use loadline_report::{live_text, render_live};
use proptest::prelude::*;

use crate::common::{begun, manifest, now, record, second};

/// The screen, each row between bars, which shows the blanks at its end.
fn screen(now: &Now, width: usize, height: usize) -> String {
    let rows = draw(now, "2026-11-20-161530-postgres", 21.0, width, height);
    rows.iter().map(|row| format!("|{row}|\n")).collect()
}

#[test]
fn a_run_in_its_fourth_test() {
    insta::assert_snapshot!(screen(&now(), 80, 24));
}

#[test]
fn a_run_that_has_just_begun() {
    let mut now = Now { manifest: Some(manifest(RunState::Started)), ..Now::default() };
    now.apply(LiveLine { at_s: 20.0, event: LiveEvent::Step { text: "loading rows for 8 jobs".to_owned() } });
    insta::assert_snapshot!(screen(&now, 80, 12));
}

#[test]
fn a_run_is_a_table_with_a_line_for_each_workload() {
    let mut now = now();
    insta::assert_snapshot!(table(&now, 21.0, 78, 24));
    // The test is done, and so is all of its workload; what is known of the others stays.
    now.records.push(record(4, None));
    let done = table(&now, 21.0, 78, 24);
    assert!(done.contains("3 valid, 1 refused") && done.contains("4,936 tps"), "{done}");
    // Of many workloads those around the one under way are shown.
    let workload = |n: usize| PlannedWorkload::new(&format!("W-{n}"), Driver::Client);
    now.manifest.as_mut().unwrap().plan.workloads.extend((0..40).map(workload));
    let many = table(&now, 21.0, 78, 24);
    assert!(many.lines().count() <= 24 && many.contains("43 workloads in all") && many.contains("LGWR-LAT1"), "{many}");
}

#[test]
fn a_window_that_waits_or_is_measured_again_says_why() {
    for (held, says) in [
        (Held::Waits, "Running, waits for a quiet machine"),
        (Held::Again { by: CheckId::OtherCpu, pct: 24.0 }, "Running, measured again: other processes on the CPU 24 %"),
    ] {
        let mut now = now();
        now.seconds.back_mut().unwrap().held = Some(held);
        for text in [table(&now, 21.0, 100, 24), live_text(&now.shown(21.0), 100), render_live(&now.shown(21.0))] {
            assert!(text.contains(says), "{text}");
        }
    }
}

#[test]
fn figures_of_a_test_do_not_stand_under_the_next_one() {
    let mut now = now();
    now.records.push(record(4, None));
    now.apply(begun(20.5, 5));
    let shown = now.shown(21.0);
    assert_eq!((shown.last(), shown.newest(|s| s.tps)), (None, None));
    for text in [live_text(&shown, 80), render_live(&shown)] {
        assert!(text.contains("Test 5: ") && !text.contains("WALSync") && !text.contains("4,69"), "{text}");
    }
}

#[test]
fn tests_are_lines_of_their_own_and_other_workloads_are_left_out() {
    let mut now = now();
    now.records[2].workload = "SRV-SCAN".to_owned();
    now.seconds.clear();
    for test in [2, 2, 3, 4, 4, 4] {
        now.apply(second(test, f64::from(test)));
    }
    let shown = now.shown(21.0);
    let tests: Vec<u32> = shown.seconds.iter().map(|s| s.test).collect();
    assert_eq!(tests, [2, 2, 4, 4, 4], "without that of SRV-SCAN");
    let lengths: Vec<usize> = shown.lines(|s| s.tps).iter().map(Vec::len).collect();
    assert_eq!(lengths, [2, 3]);
}

#[test]
fn colour_marks_only_what_a_cross_marks() {
    let rows = draw(&now(), "run", 21.0, 80, 24);
    let crossed = rows.iter().filter(|row| row.contains('✗')).count();
    assert_eq!(escaped(&rows, true).matches("\x1b[31m").count(), crossed);
    assert_eq!(escaped(&rows, false).matches("\x1b[31m").count(), 0, "NO_COLOR");
    assert!(crossed > 0, "{rows:?}");
}

#[test]
fn texts_of_a_run_cannot_control_the_terminal() {
    let mut now = now();
    let evil = "\u{1b}[31m\u{7}\u{9b}2J\nx";
    now.warnings.push(evil.to_owned());
    now.records.iter_mut().for_each(|r| (r.workload, r.invalid_reason) = (evil.to_owned(), Some(evil.to_owned())));
    if let Some(m) = &mut now.manifest {
        m.plan.platform = evil.to_owned();
    }
    now.seconds.back_mut().unwrap().waits = [(evil.to_owned(), 1.0)].into();
    let rows = draw(&now, evil, 21.0, 80, 50);
    assert!(rows.iter().all(|row| !row.chars().any(char::is_control)), "{rows:?}");
}

proptest! {
    #[test]
    fn no_size_and_no_figure_panics(width in 0usize..200, height in 0usize..80, tps in any::<f64>(), total in any::<f64>()) {
        let mut now = now();
        now.warnings.push("時間 ".repeat(50));
        for second in &mut now.seconds {
            second.tps = Some(tps);
            second.total_s = total;
        }
        let rows = draw(&now, "run", tps, width, height);
        prop_assert_eq!(rows.len(), height);
        let table = table(&now, tps, width, height);
        let mut rows = rows.iter().map(String::as_str).chain(table.lines());
        prop_assert!(rows.all(|row| unicode_width::UnicodeWidthStr::width(row) <= width));
    }
}

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
