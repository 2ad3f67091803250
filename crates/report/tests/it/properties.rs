//! Properties of all reports, snapshots of whole ones, how large a report is, and how its time grows with the tests.

use std::time::{Duration, Instant};

use loadline_analyze::waits::Counts;
use loadline_model::limits::SizePoint;
use loadline_model::{Check, CheckId, Detail, Latencies, Outcome, column};
use loadline_report::{Format, Options, ReportError, RunData, end_page, example, render};
use proptest::prelude::*;
use serde_json::json;

use crate::common::*;

const ALL: [Format; 5] = [Format::Html, Format::Markdown, Format::Csv, Format::Json, Format::Text];

#[test]
fn every_reason_for_a_missing_figure_is_shown() {
    let mut runs = two_platforms();
    runs[0].records[0].leave_out(column::DEVICE_UTIL_PCT, "reason of a column that tables do not show");
    runs[1].records[3].leave_out(column::LOG_FILE_SYNC_MS, "reason of one test only");
    let absent = json!({"client_ns_per_tx": null, "client_absent": "no transaction was through within 250 ms"});
    runs[0].manifest.overhead = patched(&runs[0].manifest.overhead, absent);
    let overhead = "not measured: no transaction was through within 250 ms";
    assert_says(&text(&runs, Format::Html), &[overhead]);
    for format in [Format::Html, Format::Markdown, Format::Json] {
        let report = text(&runs, format);
        for reason in runs.iter().flat_map(|r| &r.records).flat_map(|r| r.absent.values()) {
            assert!(report.contains(reason.as_str()), "{format:?} lacks '{reason}'");
        }
    }
}

#[test]
fn the_page_asks_for_nothing_from_the_network() {
    let page = unscripted(&text(&two_platforms(), Format::Html));
    let none = ["!http", "!//cdn", "!<script", "!<link", "!@import", "!url(", "!src=", "!<img", "!<iframe"];
    assert_says(&page, &none);
}

#[test]
fn hostile_text_is_escaped() {
    let evil = "</text><script>alert('x')</script>\"&|`\n\u{1b}[31m";
    let mut runs = two_platforms();
    for r in &mut runs {
        let m = &mut r.manifest;
        m.plan.platform = format!("{evil}{}", m.plan.platform);
        m.target.url = evil.to_owned();
        m.command.push(evil.to_owned());
        m.machine.cpu_model = evil.to_owned();
        m.target.settings.insert(evil.to_owned(), evil.to_owned());
        r.warnings.push(evil.to_owned());
        for t in &mut r.records {
            t.platform = m.plan.platform.clone();
            let outcome = if t.test == 2 { Outcome::Failed } else { Outcome::Passed };
            t.add_check(Check { id: loadline_model::CheckId::Errors, outcome, detail: evil.to_owned() });
            t.error_texts.insert(evil.to_owned(), 1);
            t.leave_out(column::REDO_WRITES_PER_S, evil);
            t.notes.push(evil.into());
        }
    }
    assert_says(&unscripted(&text(&runs, Format::Html)), &["!<script", "&lt;script&gt;"]);
    // Lines indented by four are code.
    let markdown = text(&runs, Format::Markdown);
    assert!(!markdown.lines().any(|l| l.contains("<script") && !l.starts_with("    ")));
    assert_says(&markdown, &["!\u{1b}"]);
    assert_says(&text(&runs, Format::Text), &["!\u{1b}"]);
    assert_says(&text(&runs, Format::Csv), &["\"</text><script>alert('x')</script>\"\"&|`\n"]);
}

#[test]
fn columns_are_those_chosen_and_an_unknown_one_names_the_nearest() {
    let of =
        |ids: &[&str]| Options { columns: Some(ids.iter().map(|id| (*id).to_owned()).collect()), ..Options::default() };
    let (runs, misspelt) = (two_platforms(), of(&["jobs", "commit_throuhgput_tps"]));
    assert!(with(&runs, Format::Csv, &of(&["jobs", "valid"])).starts_with("jobs,valid\n1,true\n2,true\n"));
    for format in ALL {
        let error = render(&runs, format, &misspelt).unwrap_err();
        let near = matches!(&error, ReportError::UnknownColumn { near, .. } if near == &["commit_throughput_tps"]);
        assert!(near, "{format:?}");
    }
    let said = |id: &str| render(&runs, Format::Csv, &of(&[id])).unwrap_err().to_string();
    // One that is in several ids, and one like none: a line each, not the list of all.
    assert_says(&said("lock_wait"), &["'lock_wait_pct'"]);
    assert!(said("commit").matches(" or ").count() > 1, "{}", said("commit"));
    assert_eq!(said("§§§§§§§§§§"), "there is no column '§§§§§§§§§§': `loadline columns` lists them");
    assert!(matches!(render(&runs, Format::Csv, &of(&[])), Err(ReportError::NoColumn)));
    assert!(matches!(render(&[], Format::Html, &Options::default()), Err(ReportError::NoRun)));
}

#[test]
fn platforms_of_one_name_are_distinguished_by_their_run() {
    let runs = [run("pg", "run-1", 1.0), run("pg", "run-2", 1.1), run("pg", "run-2", 1.2)];
    assert_says(&text(&runs, Format::Html), &["pg (run-1)", "pg (run-2)", "pg (run-2) #2"]);
}

#[test]
fn repetitions_have_intervals() {
    let mut r = run("pg", "run-1", 1.0);
    for mut t in r.records.clone() {
        (t.test, t.repetition) = (t.test + 6, 2);
        t.set(column::COMMIT_THROUGHPUT_TPS, t.figure(column::COMMIT_THROUGHPUT_TPS).unwrap() * 1.01);
        r.records.push(t);
    }
    // 5,800 and 5,858: mean 5,829, half width 12.706 × 41.01 / √2 = 368. Error bars are drawn.
    let wanted = ["5,829 ± 368", "class=\"er\"", "1 against 2 tests: no interval"];
    assert_says(&text(&[r, run("other", "run-2", 2.0)], Format::Html), &wanted);
}

#[test]
fn json_holds_runs_and_summary() {
    let json = json(&two_platforms());
    assert_eq!(json["runs"][1]["tests"][5]["valid"], false);
    assert_eq!(json["runs"][0]["manifest"]["plan"]["platform"], "sata ssd");
    assert_eq!(json["summary"]["refused"], 1);
    let factor = &json["summary"]["comparisons"][0]["rows"][0]["factors"][0];
    assert_eq!(factor["metric"], "commit_throughput_tps");
    assert!((factor["factor"]["value"].as_f64().unwrap() - 2.6).abs() < 1e-9);
}

#[test]
fn scans_have_charts_and_causes_and_stay_out_of_sweeps() {
    let mut runs = two_scans();
    insta::assert_snapshot!("scans_section", sections(&runs, &["Commit time over redo since the last commit"]));
    assert_says(
        &text(&runs, Format::Html),
        &[
            "flash – LGWR-SIZE, test 4",
            "class=\"bd\"",
            "class=\"ft\"",
            "!LGWR-SIZE: throughput over jobs",
            "!LGWR-SIZE: throughput over time",
        ],
    );
    let json = json(&runs);
    assert_eq!(json["summary"]["sweeps"].as_array().unwrap().len(), 2);
    assert_eq!(json["runs"][0]["tests"][3]["sizes"].as_array().unwrap().len(), 97);
    let [sawtooth, line] = [0, 1].map(|n| &json["summary"]["scans"][n]["result"]);
    assert_eq!([&sawtooth["shape"], &line["shape"]], ["sawtooth", "straight"]);
    assert!((sawtooth["period_bytes"].as_f64().unwrap() / 1_048_576.0 - 1.0).abs() < 0.01, "{sawtooth}");
    assert_eq!(text(&runs, Format::Csv).lines().count(), 9, "one line a test, scans among them");
    // A scan over idle times is a table.
    let mut idle = two_scans();
    let commit_ns = vec![1_000_000, 2_000_000, 3_000_000];
    let point = SizePoint { idle_s: 0.5, redo_bytes: 1024.0, commit_ns, write_ns: Vec::new() };
    idle[1].records[3].details = vec![Detail::Sizes(vec![point])];
    assert_says(&words(&text(&idle, Format::Markdown)), &["| 4 | 0.500 | 3 | 1.500 | 2.000 | 2.500 |"]);
    // With another setting there is no likely cause.
    runs[0].manifest.target.settings.insert("wal_writer_flush_after".to_owned(), "2MB".to_owned());
    let none = "No setting explains it: wal_writer_flush_after = 2MB (2.0 MiB)";
    assert_says(&words(&text(&runs, Format::Text)), &[none]);
    // A refused test has no shape, and its medians are hollow.
    runs[0].records[3].add_check(failed(CheckId::CommitsWindow, "the counts differ"));
    let wanted = ["!Sawtooth:", "Test 4 is refused: the counts differ. No shape is given.", "class=\"mk ho sm\""];
    assert_says(&text(&runs, Format::Html), &wanted);
}

fn any_figure() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-0.0), Just(1e300), Just(f64::MAX), Just(f64::NAN), Just(f64::INFINITY), -1e9..1e9f64]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("<script>".to_owned()),
        Just("\"',;\n\r\t|`*_\\é–µ".to_owned()),
        Just("x".repeat(3_000)),
        "\\PC{0,20}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_runs_are_rendered(
        tests in prop::collection::vec((any::<u32>(), any_figure(), any_figure(), any::<bool>(), any_text(), 0..3usize), 0..6),
        platform in any_text(),
        width in prop::option::of(0..400usize),
    ) {
        let mut runs = vec![run("base", "run-0", 1.0), run(&platform, &platform, 1.0)];
        let m = runs[1].manifest.clone();
        runs[1].records = tests.iter().enumerate().map(|(i, (jobs, tps, ms, valid, words, w))| {
            let mut r = record(&m, i as u32, ["LGWR-LAT1", "LGWR-THR", "?"][*w], *jobs, 1.0, 1.0);
            r.figures.insert("commit_throughput_tps".to_owned(), *tps);
            r.figures.insert("commit_latency_ms".to_owned(), *ms);
            r.figures.insert("redo_kib_per_tx".to_owned(), *ms);
            r.valid = *valid;
            r.group = ["log-writer", "storage", words.as_str()][*w].to_owned();
            r.kpis = vec![["rows_per_s", "commit_latency_ms", words.as_str()][*w].to_owned()];
            r.figures.insert("rows_per_s".to_owned(), *ms);
            let swept = jobs.is_multiple_of(3).then(|| ["rows_per_tx", "threads", words.as_str()][*w].to_owned());
            r.details.extend(swept.map(Detail::Swept));
            r.invalid_reason = (!valid).then(|| words.clone());
            r.leave_out(column::ERRORS, words.clone());
            r.error_texts.insert(words.clone(), u64::MAX);
            if *w == 2 {
                let point = |i: u32| SizePoint { idle_s: 0.0, redo_bytes: f64::from(i) * tps, commit_ns: vec![u64::from(i.wrapping_mul(*jobs) % 7); 3], write_ns: Vec::new() };
                r.details.push(Detail::Sizes((0..20).map(point).collect()));
            }
            r
        }).collect();
        let mut waits = Latencies::new();
        tests.iter().for_each(|t| waits.record(u64::from(t.0) * 1_000));
        runs[1].histograms = (0..6).map(|test| (test, vec![("commit".to_owned(), Counts::from_latencies(&waits))])).collect();
        for format in ALL {
            prop_assert!(render(&runs, format, &Options::default()).is_ok());
            prop_assert!(render(&runs[1..], format, &Options::default()).is_ok());
        }
        let _ = end_page(&runs[1], width);
        let page = unscripted(&text(&runs, Format::Html));
        prop_assert!(!page.contains("<script") && !page.contains("error in a template"));
    }
}

#[test]
fn whole_reports() {
    let all = [all_groups("disk", "run-disk", 1.0)];
    for (name, runs, format) in [
        ("html", &two_platforms()[..], Format::Html),
        ("markdown", &two_platforms(), Format::Markdown),
        ("csv", &two_platforms(), Format::Csv),
        ("plain_text", &two_platforms(), Format::Text),
        ("scans_as_plain_text", &two_scans(), Format::Text),
        ("all_groups_html", &all, Format::Html),
        ("all_groups_plain_text", &all, Format::Text),
    ] {
        insta::assert_snapshot!(name, text(runs, format));
    }
    insta::assert_snapshot!("page_at_120", end_page(&all[0], Some(120)));
    insta::assert_snapshot!("page_at_80", end_page(&all[0], Some(80)));
    insta::assert_snapshot!("page_of_the_log_writer", end_page(&two_platforms()[1], Some(120)));
}

#[test]
fn the_example_is_a_small_page_of_two_platforms() {
    let page = text(&example().unwrap(), Format::Html);
    assert!(page.len() < 800_000, "{}", page.len());
    // Each has one test: no interval.
    let wanted = ["<h3>PostgreSQL 15</h3>", "commits/s", "MariaDB 10.11 against PostgreSQL 15", "!class=\"wh\""];
    assert_says(&page, &wanted);
    assert_says(&page, &["<div class=\"answer\"><h3>PostgreSQL 15</h3>"]);
}

/// A run of so many tests of two workloads, with throughput over time.
fn long(tests: u32) -> RunData {
    let of_six = run("disk", "run-disk", 1.0);
    let mut long = RunData { records: Vec::new(), ..of_six.clone() };
    for (test, record) in (1..=tests).zip(of_six.records.iter().cycle()) {
        long.over_time.insert(test, of_six.over_time[&record.test].clone());
        let repetition = (test - 1) / 6 + 1;
        long.records.push(loadline_model::TestRecord { test, repetition, ..record.clone() });
    }
    long
}

#[test]
fn a_page_of_sixty_tests_is_below_900_kb() {
    let bytes = text(&[long(60)], Format::Html).len();
    assert!(bytes < 900_000, "{bytes}");
}

/// Time on this machine: `cargo test --release -p loadline-report --test it -- --ignored --nocapture thousand` prints time and
/// peak memory, which should be a second and 150 MB at most.
#[test]
#[ignore = "nightly: measures time"]
#[expect(clippy::print_stdout)]
fn a_report_of_a_thousand_tests_takes_no_longer_than_in_proportion() {
    let fastest = |tests: u32| -> Duration {
        let runs = [long(tests)];
        let once = |_| {
            let begin = Instant::now();
            assert!(text(&runs, Format::Html).contains("</html>"));
            begin.elapsed()
        };
        (0..5).map(once).min().unwrap()
    };
    let (hundred, thousand) = (fastest(100), fastest(1000));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("peak unknown");
    println!("1,000 tests: {thousand:?}, 100 tests: {hundred:?}; {peak}");
    assert!(thousand < hundred * 15, "{thousand:?}, {hundred:?}");
}
