//! Remarks beside figures: tests that are disturbed or valid by an option only, caveats, missing histograms.

use loadline_analyze::waits::Counts;
use loadline_model::disturbance::disturbed_by;
use loadline_model::{CheckId, Latencies, TestRecord, column};
use loadline_report::{Format, Options, RunData, end_page};
use serde_json::{Value, json};

use crate::common::*;

fn cached() -> Value {
    json!({"data_source": "cached", "forced": "--allow-cached: not the device's figures"})
}

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

/// A run whose first tests have these figures: other processes on the CPU, with their check, and steal, %.
fn disturbed(figures: &[[f64; 2]]) -> RunData {
    let mut run = run("disk", "run-disk", 1.0);
    for (record, [others, steal]) in run.records.iter_mut().zip(figures) {
        record.set(column::OTHER_CPU_PCT, *others);
        record.set(column::CPU_STEAL_PCT, *steal);
        record.disturbed_by = disturbed_by(record);
        if *others >= 20.0 {
            record.add_check(failed(CheckId::OtherCpu, &format!("x {others}")));
        }
    }
    run
}

#[test]
fn each_cause_is_said_once_and_marked_at_each_test() {
    assert_says(&end(&disturbed(&[[4.9, 0.9], [0.0, 0.0]])), &["!Noticed at"]);
    let run = disturbed(&[[12.0, 0.0], [1.0, 0.0], [9.0, 8.0]]);
    insta::assert_snapshot!("disturbed", end_page(&run, Some(100)));
    let csv = text(std::slice::from_ref(&run), Format::Csv);
    assert_says(&csv, &[",other processes on the CPU 9 %; CPU steal 8 %,"]);
    let markdown = text(&[run], Format::Markdown);
    let said: Vec<&str> = markdown.lines().filter(|line| line.contains("Noticed at")).collect();
    insta::assert_snapshot!("disturbed_in_the_report", said.join("\n"));
}

#[test]
fn figures_of_disturbed_tests_are_marked_and_set_aside_beside_clean_tests() {
    let marked = "disturbed: other processes on the CPU; throughput without the disturbance was at most 317 % higher";
    let mut runs = [disturbed(&[[76.0, 0.0]; 6]), disturbed(&[])];
    "quiet".clone_into(&mut runs[1].manifest.plan.platform);
    runs[1].records.iter_mut().for_each(|r| "quiet".clone_into(&mut r.platform));
    let all = text(&runs, Format::Text);
    assert_says(&words(&all), &["12 tests: 6 valid, 6 disturbed."]);
    for title in ["Key figures\n", "Load lines\n", "Factors between platforms\n"] {
        assert_says(&words(all.split(title).nth(1).unwrap().split("\n==").next().unwrap()), &[marked]);
    }
    // Disturbed tests do not count as well.
    let wanted = ["6 tests: 0 valid, 6 disturbed.", "!class=\"cross\"", "<p class=\"verdict marked\">"];
    assert_says(&text(&runs[..1], Format::Html), &wanted);
    assert_says(&text(&runs[1..], Format::Text), &["!at most 317 %"]);

    // A clean repetition is the figure; the disturbed one is shown beside it.
    let mut run = disturbed(&[[76.0, 0.0]]);
    run.records[0].test = 99;
    run.records.push(TestRecord { repetition: 2, ..disturbed(&[]).records.remove(0) });
    assert_says(&end(&run), &[&format!("test 99 is {marked}; not part of the mean")]);
}

#[test]
fn a_sweep_that_rises_up_to_tests_that_do_not_count_says_which_and_why() {
    let mut run = disturbed(&[[0.0, 0.0], [0.0, 0.0], [76.0, 0.0]]);
    let more = |jobs: u32| TestRecord { jobs, test: 10 + jobs, ..run.records[2].clone() };
    run.records.extend([more(8), more(16)]);
    run.records[7].add_check(failed(CheckId::Errors, "errors"));
    let below = "whose tests count: LGWR-LAT1 (disturbed at 4, 8 jobs; refused at 16 jobs).";
    let markdown = text(&[run], Format::Markdown);
    let all = "Still rising at the most jobs measured: LGWR-THR.";
    assert_says(&words(&markdown), &[below, all, "still rising at 2 jobs (+80.0 % over 1); disturbed at 4, 8 jobs;"]);
}

#[test]
fn the_worst_of_disturbed_tests_stands_for_all_and_a_refused_one_is_in_no_figure() {
    let said = "Noticed at test 1: other processes on the CPU 50 %. That is too much for a valid test: x 50.";
    assert_says(&end(&disturbed(&[[50.0, 0.0]])), &[said]);
    let mut run = disturbed(&[[50.0, 0.0], [70.0, 0.0], [9.0, 0.0]]);
    assert_says(&end(&run), &["2 of them had too much for a valid test, most of all test 2: x 70."]);
    run.records[1].add_check(failed(CheckId::Errors, "errors"));
    let runs = [run];
    assert_says(&text(&runs, Format::Html), &["1 disturbed, 1 refused.", "is refused: x 70; errors"]);
    let validity = |n: usize| json(&runs)["runs"][0]["tests"][n]["validity"].as_str().unwrap().to_owned();
    assert_eq!([0, 1, 2].map(validity), ["disturbed", "refused", "valid"]);
}

#[test]
fn charts_of_waits_leave_disturbed_tests_out_beside_valid_ones() {
    let chart = |run: &RunData| {
        let html = text(std::slice::from_ref(run), Format::Html);
        let of_waits = html.split("<svg").find(|svg| svg.contains("LGWR-LAT1: what sessions did\""));
        of_waits.unwrap().split("</svg>").next().unwrap().to_owned()
    };
    let mut run = disturbed(&[]);
    let before = chart(&run);
    let mut more = TestRecord { test: 99, repetition: 2, ..run.records[0].clone() };
    more.waits.sessions.values_mut().for_each(|n| *n *= 9);
    more.add_check(failed(CheckId::OtherCpu, "busy"));
    run.records.push(more);
    assert_eq!(chart(&run), before);
}
