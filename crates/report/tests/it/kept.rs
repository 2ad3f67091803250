//! Remarks beside figures: tests that are valid by an option only, caveats, missing histograms.

use crate::common::*;
use loadline_analyze::waits::Counts;
use loadline_model::DataSource;
use loadline_model::{Latencies, TestRecord, column};
use loadline_report::{Format, Options, RunData, end_page, render};

/// Tests of `code`.
fn records_of<'a>(run: &'a mut RunData, code: &str) -> Vec<&'a mut TestRecord> {
    run.records.iter_mut().filter(|r| r.workload == code).collect()
}

fn keep(record: &mut TestRecord, source: DataSource) {
    record.data_source = Some(source);
    record.forced.not_the_devices = true;
}

/// Sections of a report of `runs` in Markdown.
fn sections(runs: &[RunData], titles: &[&str]) -> String {
    let markdown = text(runs, Format::Markdown);
    titles.iter().map(|title| section(&markdown, title)).collect::<Vec<_>>().join("\n## ")
}

#[test]
fn cached_figures_are_marked_everywhere() {
    let mut run = all_groups("disk", "run-disk", 1.0);
    records_of(&mut run, "STO-READ").into_iter().for_each(|r| keep(r, DataSource::Cached));
    let runs = [run];
    insta::assert_snapshot!("cached", sections(&runs, &["Key figures", "Load lines"]));
    let why = "kept by --allow-cached: cached, not the device's figures";
    let page = words(&end_page(&runs[0], Some(100)));
    assert!(page.contains(why) && page.contains("STO-READ: tests 9–12 are kept by"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&text(&runs, Format::Json)).unwrap();
    assert_eq!(json["summary"]["kept_by_option"], 4);
}

#[test]
fn a_summary_on_paper_says_once_what_is_kept() {
    let mut run = all_groups("disk", "run-disk", 1.0);
    records_of(&mut run, "STO-READ").into_iter().for_each(|r| keep(r, DataSource::Cached));
    let runs = [run, all_groups("flash", "run-flash", 2.0)];
    let options = Options { summary: true, paper: true, ..Options::default() };
    let page = String::from_utf8(render(&runs, Format::Html, &options).unwrap()).unwrap();
    assert!(page.contains("valid tests are kept only by --allow-cached"), "what to mind says it");
    assert!(!page.contains("tests 9–12 are kept") && page.contains("cached, not the device"), "{page}");
    assert!(!page.contains("Point at a marker"), "not on paper");
    assert!(page.contains("<section id=\"key-figures\"") && !page.contains("<section id=\"evidence\""));
}

#[test]
fn different_sources_are_not_compared_and_other_redo_is_noted_once() {
    let mut runs = [all_groups("disk", "run-a", 1.0), all_groups("flash", "run-b", 2.0)];
    records_of(&mut runs[1], "STO-READ").into_iter().skip(2).for_each(|r| keep(r, DataSource::Cached));
    for run in &mut runs {
        records_of(run, "STO-RANDOM").into_iter().for_each(|r| keep(r, DataSource::Cached));
    }
    for (i, r) in records_of(&mut runs[1], "TP-LIGHT").into_iter().enumerate() {
        r.set(column::REDO_KIB_PER_TX, 4.0 + i as f64 / 10.0);
    }
    insta::assert_snapshot!("factors", sections(&runs, &["Factors between platforms"]));
}

#[test]
fn a_verdict_counts_tests_valid_by_an_option_only() {
    let mut run = run("pg", "run-1", 1.0);
    run.records[0].forced.refused = Some("fsync = off: commits are not durable".to_owned());
    let page = text(std::slice::from_ref(&run), Format::Html);
    assert!(page.contains("6 tests, all valid; 1 of the valid ones is kept only by --force."), "{page}");
    assert!(page.contains("<p class=\"verdict unwell\">"), "kept tests do not count as well");
    keep(&mut run.records[1], DataSource::Cached);
    assert!(text(&[run], Format::Html).contains("2 of the valid ones are kept only by --allow-cached or --force."));
}

#[test]
fn a_test_left_out_of_the_mean_is_noted_and_drawn() {
    let mut run = all_groups("disk", "run-disk", 1.0);
    let mut cached = records_of(&mut run, "STO-READ")[3].clone();
    (cached.test, cached.repetition) = (99, 2);
    keep(&mut cached, DataSource::Cached);
    cached.set(column::BLOCK_READS_PER_S, 400_000.0);
    run.records.push(cached);
    let page = words(&end_page(&run, Some(120)));
    assert!(page.contains("STO-READ 11,318 block reads/s 8 jobs"), "the mean is the device's: {page}");
    assert!(
        page.contains("test 99 is kept by --allow-cached: cached, not the device's figures; not part of the mean"),
        "{page}"
    );
    assert!(text(&[run], Format::Html).contains("(test 99 is not part of the mean: kept by"));
}

#[test]
fn transactions_are_called_commits_in_the_log_group_only() {
    let mut runs = [all_groups("disk", "run-a", 1.0), all_groups("flash", "run-b", 2.0)];
    for run in &mut runs {
        let over_time = crate::common::run("x", "y", 1.0).over_time[&1].clone();
        run.over_time = run.records.iter().map(|r| (r.test, over_time.clone())).collect();
        let again: Vec<TestRecord> =
            run.records.iter().map(|r| TestRecord { repetition: 2, test: r.test + 100, ..r.clone() }).collect();
        run.records.extend(again);
    }
    let page = text(&runs, Format::Html).replace("&#x2f;", "/");
    let over_time = page.split("<section id=\"over-time\"").nth(1).unwrap().split("</section>").next().unwrap();
    let of =
        |code: &str| over_time.split("<svg").find(|s| s.contains(&format!("{code}: throughput over time"))).unwrap();
    assert!(of("TP-LIGHT").contains("Transactions [tps]") && !of("TP-LIGHT").contains("Commit"));
    assert!(of("LGWR-LAT1").contains("Commit throughput [tps]"));
    let markdown = words(&text(&runs, Format::Markdown));
    let means = |code: &str| {
        let table = markdown.split(&format!("**disk – {code}: means over repetitions**")).nth(1).unwrap();
        table.split(" | --- |").next().unwrap()
    };
    assert!(means("TP-LIGHT").contains("| Transactions [tps] |") && !means("TP-LIGHT").contains("Commit"));
    assert!(means("LGWR-LAT1").contains("| Commit throughput [tps] |"));
    assert!(words(&sections(&runs, &["Factors between platforms"])).contains("| TP-LIGHT | Transactions [tps] |"));
}

fn only(kind: &str, ns: u64) -> Vec<(String, Counts)> {
    let mut all = Latencies::new();
    (0..100).for_each(|_| all.record(ns));
    vec![(kind.to_owned(), Counts::from_latencies(&all))]
}

#[test]
fn histograms_are_headed_by_the_latency_of_each_point() {
    let mut runs = [all_groups("disk", "run-a", 1.0), all_groups("flash", "run-b", 2.5)];
    // One platform has commit times, the other one transaction times only.
    let tests: Vec<u32> = records_of(&mut runs[1], "LGWR-LAT1").iter().map(|r| r.test).collect();
    tests.iter().for_each(|t| drop(runs[1].histograms.insert(*t, only("transaction", 700_000))));
    // Only with one job a transaction was one read.
    let reads: Vec<u32> = records_of(&mut runs[1], "STO-READ").iter().map(|r| r.test).collect();
    for (i, test) in reads.iter().enumerate() {
        runs[1].histograms.insert(*test, only("transaction", 300_000));
        if i > 0 {
            records_of(&mut runs[1], "STO-READ")[i]
                .leave_out(column::READ_TIME_US_P99, "a transaction read 0.50 blocks");
        }
    }
    let markdown = words(&text(&runs, Format::Markdown));
    for wanted in [
        "**disk – LGWR-LAT1: commit times**",
        "**flash – LGWR-LAT1: transaction times**",
        "**disk – STO-READ: read times**",
        "**flash – STO-READ: read times** | Up to | 1 job [waits] | [%] | [≤ %] |",
        "**flash – STO-READ: transaction times** | Up to | 2 jobs",
    ] {
        assert!(markdown.contains(wanted), "{wanted}");
    }
    let page = text(&runs, Format::Html);
    assert!(
        page.contains("LGWR-LAT1: commit times at the peak")
            && page.contains("LGWR-LAT1: transaction times at the peak")
    );
    // A platform without histograms is listed.
    tests.iter().for_each(|t| drop(runs[1].histograms.remove(t)));
    let page = text(&runs, Format::Html);
    assert!(page.contains("Without a histogram: flash – LGWR-LAT1: the run stores none."));
    records_of(&mut runs[1], "LGWR-LAT1").into_iter().for_each(|r| r.valid = false);
    assert!(text(&runs, Format::Html).contains("Without a histogram: flash – LGWR-LAT1: it has no valid test."));
}

#[test]
fn a_mean_above_the_99th_percentile_is_explained() {
    let said = |change: fn(&mut TestRecord)| {
        let mut run = all_groups("disk", "run-disk", 1.0);
        records_of(&mut run, "LGWR-LAT1").into_iter().for_each(change);
        let markdown = text(std::slice::from_ref(&run), Format::Markdown);
        let line = markdown.lines().find(|line| line.contains("mean is above the 99th percentile"));
        line.map(str::to_owned)
    };
    let p99 = |r: &TestRecord| r.figures[column::TRANSACTION_TIME_NS_P99.id];
    assert!(p99(records_of(&mut all_groups("disk", "run-disk", 1.0), "LGWR-LAT1")[0]) > 0.0);
    assert_eq!(said(|_| ()), None);
    let line = said(|r| {
        let p99 = r.figures[column::TRANSACTION_TIME_NS_P99.id];
        r.figures.insert(column::TRANSACTION_TIME_NS_MEAN.id.to_owned(), 2.0 * p99);
    });
    assert!(line.is_some_and(|line| line.contains("LGWR-LAT1.") && line.contains("not served in turn")));
    let unknown = said(|r| {
        r.figures.remove(column::TRANSACTION_TIME_NS_P99.id);
    });
    assert_eq!(unknown, None, "no percentile is no small one");
}
