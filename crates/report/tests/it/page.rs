//! The page of key figures, sections of groups and wait histograms.

use crate::common::*;
use loadline_model::{Check, CheckId, Detail, LimitSource, Outcome, TestLimit, TestRecord, column};
use loadline_report::{Format, RunData, done_line, end_page};

/// A run of `code` whose peak of `rate` per transaction has a limit with these `samples`, tps.
fn with_limit(code: &str, samples: [f64; 2], share: f64) -> RunData {
    let mut run = all_groups("disk", "run-disk", 1.0);
    run.records.retain(|r| r.workload == code);
    for r in &mut run.records {
        let limit = (samples[0] + samples[1]) / 2.0;
        r.details.push(Detail::Limit(TestLimit {
            name: "block reads".to_owned(),
            of: "io_uring in /data".to_owned(),
            jobs: r.jobs,
            redo_bytes_per_tx: None,
            tps: limit,
            samples: samples.to_vec(),
            source: LimitSource::Run,
        }));
        r.set(column::LIMIT_TPS, limit);
        r.set(column::LIMIT_SHARE_PCT, share);
        r.set(column::COMMIT_THROUGHPUT_TPS, limit * share / 100.0);
    }
    run
}

#[test]
fn a_rate_that_was_not_reached_is_said_at_the_end_of_a_run() {
    let mut run = run("disk", "run-disk", 1.0);
    let detail = "54648.0 tps of 9999999.0 asked for: the target cannot sustain this rate";
    let missed = |test: u32| format!("Test {test} did not reach the rate asked for: {detail}.");
    assert!(!end_page(&run, Some(100)).contains("rate asked for"));
    run.records[0].add_check(Check::new(CheckId::Rate, Outcome::Passed, detail));
    run.records[1].add_check(Check::new(CheckId::Rate, Outcome::Noted, detail));
    let second = run.records[1].test;
    let page = words(&end_page(&run, Some(100)));
    assert_eq!(page.matches("rate asked for").count(), 1, "{page}");
    assert!(page.contains(&format!("! {}", missed(second))), "{page}");
    assert!(words(&text(std::slice::from_ref(&run), Format::Text)).contains(&missed(second)));
    run.records[2].add_check(Check::new(CheckId::Rate, Outcome::Noted, detail));
    let third = run.records[2].test;
    let page = words(&end_page(&run, Some(100)));
    let all = format!("! Tests {second}–{third} did not reach the rate asked for. {}", missed(third));
    assert!(page.contains(&all) && page.matches("tps of").count() == 1, "{page}");
}

#[test]
fn settings_that_differ_come_first_and_are_in_the_text_report() {
    let mut runs = two_platforms();
    let mut set = |at: usize, name: &str, value: &str| {
        let settings = &mut runs[at].manifest.target.settings;
        settings.insert(name.to_owned(), value.to_owned());
    };
    set(0, "aaa_same", "1");
    set(1, "aaa_same", "1");
    set(1, "zzz_only_here", "2");
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
        let markdown = text(&[with_limit("STO-READ", samples, share)], Format::Markdown);
        let lines = section(&markdown, "Load lines");
        let row = lines.lines().find(|l| l.starts_with("| STO-READ |")).unwrap();
        let number =
            |at: usize| row.split('|').nth(at).unwrap().trim().split(['<', ' ']).next().unwrap().replace(',', "");
        let [peak, limit] = [2, 8].map(|at| number(at).parse::<f64>().unwrap());
        assert!((peak / limit * 100.0 - share).abs() < 0.1, "{row}");
        insta::assert_snapshot!(name, section(&markdown, "Key figures") + &lines);
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
    for r in run.records.iter_mut().filter(|r| r.workload == "LGWR-THR") {
        r.kpis = vec!["redo_mib_per_s".to_owned()];
    }
    insta::assert_snapshot!("page_without_kpis", end_page(&run, Some(200)));
    for r in run.records.iter_mut().filter(|r| r.workload == "LGWR-THR") {
        r.valid = false;
        r.invalid_reason = Some("it was cut off".to_owned());
    }
    insta::assert_snapshot!("page_on_a_narrow_terminal", end_page(&run, Some(60)));
}

#[test]
fn waits_have_power_of_two_buckets() {
    let runs = [all_groups("disk", "run-a", 1.0)];
    let json: serde_json::Value = serde_json::from_str(&text(&runs, Format::Json)).unwrap();
    let waits = json["summary"]["waits"].as_array().unwrap();
    let first = waits.iter().find(|w| w["workload"] == "STO-READ" && w["at"] == 8).unwrap();
    let counts = first["buckets"].as_array().unwrap().iter().map(|b| b["count"].as_u64().unwrap());
    assert_eq!((first["kind"].as_str(), counts.sum::<u64>()), (Some("read"), 5_000));
    let mut without = runs[0].clone();
    without.histograms.clear();
    assert!(!text(&[without], Format::Html).contains("times at the peak"));
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
    assert!(of(&run, "STO-WRITE").contains("505.9 MiB/s written"));
    let swept = run.records.iter().find(|r| r.workload == "DA-PARALLEL").unwrap();
    assert!(words(&done_line(swept)).contains("DA-PARALLEL 1 job 1 thread 7,800,000 rows/s"));
    run.records[7].leave_out(column::DATA_MIB_PER_S, "the tables' size could not be read");
    assert_eq!(of(&run, "SRV-SCAN"), "test 8 SRV-SCAN 8 jobs 65 tps 123.534 ms");
}
