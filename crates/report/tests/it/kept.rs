//! Remarks beside figures: tests that are valid by an option only, caveats, missing histograms.

use crate::common::*;
use loadline_analyze::waits::Counts;
use loadline_model::{Latencies, TestRecord, column};
use loadline_report::{Format, Options, RunData};
use serde_json::{Value, json};

fn cached() -> Value {
    json!({"data_source": "cached", "forced": "--allow-cached: not the device's figures"})
}

/// Runs of all groups on two platforms.
fn two() -> [RunData; 2] {
    [all_groups("disk", "run-a", 1.0), all_groups("flash", "run-b", 2.0)]
}

#[test]
fn cached_figures_are_marked_everywhere() {
    let mut runs = two();
    change(&mut runs[0], "STO-READ", &cached());
    insta::assert_snapshot!("cached", sections(&runs[..1], &["Key figures", "Load lines"]));
    let why = "kept by --allow-cached: cached, not the device's figures";
    assert_says(&end(&runs[0]), &[why, "STO-READ: tests 9–12 are kept by"]);
    assert_eq!(json(&runs[..1])["summary"]["kept_by_option"], 4);
    // A summary on paper says it once: what to mind says it.
    let options = Options { summary: true, paper: true, ..Options::default() };
    assert_says(
        &with(&runs, Format::Html, &options),
        &[
            "valid tests are kept only by --allow-cached",
            "!tests 9–12 are kept",
            "cached, not the device",
            "!Point at a marker",
            "<section id=\"key-figures\"",
            "!<section id=\"evidence\"",
        ],
    );
}

#[test]
fn different_sources_are_not_compared_and_other_redo_is_noted_once() {
    let mut runs = two();
    tests_of(&mut runs[1], "STO-READ").into_iter().skip(2).for_each(|r| *r = patched(r, cached()));
    runs.iter_mut().for_each(|run| change(run, "STO-RANDOM", &cached()));
    for (i, r) in tests_of(&mut runs[1], "TP-LIGHT").into_iter().enumerate() {
        r.set(column::REDO_KIB_PER_TX, 4.0 + i as f64 / 10.0);
    }
    insta::assert_snapshot!("factors", sections(&runs, &["Factors between platforms"]));
}

#[test]
fn a_verdict_counts_tests_valid_by_an_option_only() {
    let mut run = run("pg", "run-1", 1.0);
    run.records[0].forced.refused = Some("fsync = off: commits are not durable".to_owned());
    let wanted = [
        "6 tests, all valid; 1 of the valid ones is kept only by --force.",
        // Kept tests do not count as well.
        "<p class=\"verdict unwell\">",
    ];
    assert_says(&text(std::slice::from_ref(&run), Format::Html), &wanted);
    run.records[1] = patched(&run.records[1], cached());
    let both = "2 of the valid ones are kept only by --allow-cached or --force.";
    assert_says(&text(&[run], Format::Html), &[both]);
}

#[test]
fn a_test_left_out_of_the_mean_is_noted_and_drawn() {
    let mut run = all_groups("disk", "run-disk", 1.0);
    let more = json!({"test": 99, "repetition": 2, "block_reads_per_s": 400_000});
    let aside = patched(&patched(tests_of(&mut run, "STO-READ")[3], cached()), more);
    run.records.push(aside);
    assert_says(
        &end(&run),
        &[
            // The mean is the device's.
            "STO-READ 11,318 block reads/s 8 jobs",
            "test 99 is kept by --allow-cached: cached, not the device's figures; not part of the mean",
        ],
    );
    assert_says(&text(&[run], Format::Html), &["(test 99 is not part of the mean: kept by"]);
}

#[test]
fn transactions_are_called_commits_in_the_log_group_only() {
    let mut runs = two();
    for run in &mut runs {
        let over_time = crate::common::run("x", "y", 1.0).over_time[&1].clone();
        run.over_time = run.records.iter().map(|r| (r.test, over_time.clone())).collect();
        let again = |r: &TestRecord| TestRecord { repetition: 2, test: r.test + 100, ..r.clone() };
        run.records.extend(run.records.iter().map(again).collect::<Vec<_>>());
    }
    let page = text(&runs, Format::Html).replace("&#x2f;", "/");
    let over_time = page.split("<section id=\"over-time\"").nth(1).unwrap().split("</section>").next().unwrap();
    let markdown = words(&text(&runs, Format::Markdown));
    for (code, called) in
        [("TP-LIGHT", &["Transactions [tps]", "!Commit"][..]), ("LGWR-LAT1", &["Commit throughput [tps]"])]
    {
        let chart = format!("{code}: throughput over time");
        assert_says(over_time.split("<svg").find(|s| s.contains(&chart)).unwrap(), called);
        let means = markdown.split(&format!("**disk – {code}: means over repetitions**")).nth(1).unwrap();
        assert_says(means.split(" | --- |").next().unwrap(), called);
    }
    assert_says(&words(&sections(&runs, &["Factors between platforms"])), &["| TP-LIGHT | Transactions [tps] |"]);
}

#[test]
fn histograms_are_headed_by_the_latency_of_each_point() {
    let only = |kind: &str, ns: u64| {
        let mut all = Latencies::new();
        (0..100).for_each(|_| all.record(ns));
        vec![(kind.to_owned(), Counts::from_latencies(&all))]
    };
    let mut runs = two();
    // One platform has commit times, the other one transaction times only.
    let tests: Vec<u32> = tests_of(&mut runs[1], "LGWR-LAT1").iter().map(|r| r.test).collect();
    runs[1].histograms.extend(tests.iter().map(|test| (*test, only("transaction", 700_000))));
    // Only with one job a transaction was one read.
    let reads: Vec<u32> = tests_of(&mut runs[1], "STO-READ").iter().map(|r| r.test).collect();
    runs[1].histograms.extend(reads.iter().map(|test| (*test, only("transaction", 300_000))));
    for r in tests_of(&mut runs[1], "STO-READ").into_iter().skip(1) {
        r.leave_out(column::READ_TIME_US_P99, "a transaction read 0.50 blocks");
    }
    assert_says(
        &words(&text(&runs, Format::Markdown)),
        &[
            "**disk – LGWR-LAT1: commit times**",
            "**flash – LGWR-LAT1: transaction times**",
            "**disk – STO-READ: read times**",
            "**flash – STO-READ: read times** | Up to | 1 job [waits] | [%] | [≤ %] |",
            "**flash – STO-READ: transaction times** | Up to | 2 jobs",
        ],
    );
    let peaks = ["LGWR-LAT1: commit times at the peak", "LGWR-LAT1: transaction times at the peak"];
    assert_says(&text(&runs, Format::Html), &peaks);
    // A platform without histograms is listed.
    tests.iter().for_each(|t| drop(runs[1].histograms.remove(t)));
    let none = "Without a histogram: flash – LGWR-LAT1: the run stores none.";
    assert_says(&text(&runs, Format::Html), &[none]);
    change(&mut runs[1], "LGWR-LAT1", &json!({"valid": false}));
    let refused = "Without a histogram: flash – LGWR-LAT1: it has no valid test.";
    assert_says(&text(&runs, Format::Html), &[refused]);
}

#[test]
fn a_mean_above_the_99th_percentile_is_explained() {
    for (change_to, said) in [
        (json!({}), false),
        (json!({"transaction_time_ns_p99": 1e6, "transaction_time_ns_mean": 2e6}), true),
        // No percentile is no small one.
        (json!({"transaction_time_ns_p99": null}), false),
    ] {
        let mut run = all_groups("disk", "run-disk", 1.0);
        change(&mut run, "LGWR-LAT1", &change_to);
        let markdown = text(&[run], Format::Markdown);
        let line = markdown.lines().find(|line| line.contains("mean is above the 99th percentile"));
        assert_eq!(line.is_some(), said, "{change_to}");
        line.into_iter().for_each(|line| assert_says(line, &["LGWR-LAT1.", "not served in turn"]));
    }
}
