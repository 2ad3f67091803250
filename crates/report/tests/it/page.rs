//! The page of key figures, sections of groups and wait histograms.

use crate::common::*;
use loadline_model::{Check, CheckId, Outcome, TestRecord, column};
use loadline_report::{Format, RunData, done_line, end_page};
use serde_json::json;

#[test]
fn a_rate_that_was_not_reached_is_said_at_the_end_of_a_run() {
    let mut run = run("disk", "run-disk", 1.0);
    let detail = "54648.0 tps of 9999999.0 asked for: the target cannot sustain this rate";
    let missed = format!("Test 2 did not reach the rate asked for: {detail}.");
    assert_says(&end(&run), &["!rate asked for"]);
    for (test, outcome) in [(0, Outcome::Passed), (1, Outcome::Noted)] {
        run.records[test].add_check(Check::new(CheckId::Rate, outcome, detail));
    }
    let page = end(&run);
    assert_eq!(page.matches("rate asked for").count(), 1, "{page}");
    assert_says(&page, &[&format!("! {missed}")]);
    assert_says(&words(&text(std::slice::from_ref(&run), Format::Text)), &[&missed]);
    run.records[2].add_check(Check::new(CheckId::Rate, Outcome::Noted, detail));
    let third = missed.replace("Test 2", "Test 3");
    let page = end(&run);
    assert_says(&page, &[&format!("! Tests 2–3 did not reach the rate asked for. {third}")]);
    assert_eq!(page.matches("tps of").count(), 1, "{page}");
}

#[test]
fn settings_that_differ_come_first_and_are_in_the_text_report() {
    let mut runs = two_platforms();
    for (at, name, value) in [(0, "aaa_same", "1"), (1, "aaa_same", "1"), (1, "zzz_only_here", "2")] {
        runs[at].manifest.target.settings.insert(name.to_owned(), value.to_owned());
    }
    let of = |runs: &[RunData]| {
        let report = text(runs, Format::Text);
        Some(report.split("Settings that differ\n").nth(1)?.split("\n==").next()?.to_owned())
    };
    insta::assert_snapshot!("settings", of(&runs).unwrap());
    let markdown = text(&runs, Format::Markdown).replace('\\', "");
    let at = ["| ≠ wal_buffers |", "| ≠ zzz_only_here |", "| aaa_same |"].map(|row| markdown.find(row).unwrap());
    assert!(at.is_sorted(), "{markdown}");
    // Another product has settings of its own.
    runs[1].manifest.target.product = "MariaDB".to_owned();
    assert!(!of(&runs).unwrap().contains("zzz_only_here"));
    assert_eq!(of(&runs[..1]), None, "one platform differs from nothing");
}

#[test]
fn a_limit_is_in_the_unit_of_the_peak_and_a_doubtful_one_has_a_footnote() {
    for (name, samples, share) in [
        ("limit", [2_000.0, 2_000.0], 40.0),
        ("limit_not_steady", [500.0, 2_000.0], 60.0),
        ("limit_exceeded", [1_000.0, 1_020.0], 160.0),
    ] {
        let mut run = all_groups("disk", "run-disk", 1.0);
        run.records.retain(|r| r.workload == "STO-READ");
        for r in &mut run.records {
            r.set(column::COMMIT_THROUGHPUT_TPS, (samples[0] + samples[1]) / 2.0 * share / 100.0);
            limit(r, "block reads", "io_uring in /data", samples);
        }
        let lines = sections(&[run.clone()], &["Load lines"]);
        let row = lines.lines().find(|l| l.starts_with("| STO-READ |")).unwrap();
        let number =
            |at: usize| row.split('|').nth(at).unwrap().trim().split(['<', ' ']).next().unwrap().replace(',', "");
        let [peak, limit] = [2, 8].map(|at| number(at).parse::<f64>().unwrap());
        assert!((peak / limit * 100.0 - share).abs() < 0.1, "{row}");
        insta::assert_snapshot!(name, sections(&[run.clone()], &["Key figures"]) + &lines);
    }
}

#[test]
fn no_line_of_the_page_is_wider_than_the_terminal() {
    for run in [all_groups("disk", "run-disk", 1.0), two_platforms().remove(1)] {
        for width in [50, 60, 80, 90, 100, 120, 160, 200, 300] {
            for line in end_page(&run, Some(width)).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn a_workload_without_kpis_is_shown_by_its_throughput_and_an_invalid_one_with_its_reason() {
    let mut run = run("pg", "run-1", 1.0);
    let mut other = TestRecord { test: 7, ..run.records[2].clone() };
    other.parameters.insert("a_parameter_with_a_long_name".to_owned(), 1_200_000);
    run.records.push(other);
    change(&mut run, "LGWR-THR", &json!({"kpis": ["redo_mib_per_s"]}));
    insta::assert_snapshot!("page_without_kpis", end_page(&run, Some(200)));
    change(&mut run, "LGWR-THR", &json!({"valid": false, "invalid_reason": "it was cut off"}));
    insta::assert_snapshot!("page_on_a_narrow_terminal", end_page(&run, Some(60)));
}

#[test]
fn waits_have_power_of_two_buckets() {
    let mut runs = [all_groups("disk", "run-a", 1.0)];
    let json = json(&runs);
    let waits = json["summary"]["waits"].as_array().unwrap();
    let first = waits.iter().find(|w| w["workload"] == "STO-READ" && w["at"] == 8).unwrap();
    let counts = first["buckets"].as_array().unwrap().iter().map(|b| b["count"].as_u64().unwrap());
    assert_eq!((first["kind"].as_str(), counts.sum::<u64>()), (Some("read"), 5_000));
    runs[0].histograms.clear();
    assert_says(&text(&runs, Format::Html), &["!times at the peak"]);
}

#[test]
fn the_line_of_a_test_has_its_first_kpi() {
    let mut run = all_groups("disk", "run-disk", 1.0);
    let of = |run: &RunData, code: &str| {
        words(&done_line(run.records.iter().rev().find(|r| r.workload == code && r.swept().is_none()).unwrap()))
    };
    assert_eq!(of(&run, "SRV-SCAN"), "test 8 SRV-SCAN 8 jobs 8,317.0 MiB/s 123.534 ms");
    assert_eq!(of(&run, "LGWR-LAT1"), "test 24 LGWR-LAT1 8 jobs 8,574 tps 0.933 ms 2.90 MiB/s of redo");
    // The line of an invalid test has its figure; the verdict follows it.
    assert_says(&of(&run, "STO-WRITE"), &["505.9 MiB/s written"]);
    let swept = run.records.iter().find(|r| r.workload == "DA-PARALLEL").unwrap();
    assert_says(&words(&done_line(swept)), &["DA-PARALLEL 1 job 1 thread 7,800,000 rows/s"]);
    run.records[7].leave_out(column::DATA_MIB_PER_S, "the tables' size could not be read");
    assert_eq!(of(&run, "SRV-SCAN"), "test 8 SRV-SCAN 8 jobs 65 tps 123.534 ms");
}
