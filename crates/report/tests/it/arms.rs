//! Runs of two arms, and two runs compared.

use loadline_model::limits::{LimitSource, TestLimit};
use loadline_model::manifest::{TargetInfo, VariantFound};
use loadline_model::plan::PlannedWorkload;
use loadline_model::variant::{InPair, Letter, Paired, Variant};
use loadline_model::{Check, CheckId, Driver, Outcome, TestRecord, column};
use loadline_report::{Compared, Format, RunData, Terms};

use crate::common::*;

/// Windows of `pairs` pairs in turns, B being `ratio` times as fast; levels vary by `spread`.
fn windows(pairs: u32, ratio: f64, spread: f64) -> Vec<TestRecord> {
    let mut out: Vec<TestRecord> = Vec::new();
    for pair in 1..=pairs {
        for arm in if pair % 2 == 1 { [Letter::A, Letter::B] } else { [Letter::B, Letter::A] } {
            let test = out.len() as u32 + 1;
            let noise = 1.0 + spread * (f64::from(test * 7919 % 101) / 50.0 - 1.0);
            let mut r = TestRecord {
                test,
                variant: Some(InPair::of_two(arm)),
                repetition: pair,
                group: "log-writer".to_owned(),
                run: "run-1".to_owned(),
                ..TestRecord::blank("LGWR-LAT1")
            };
            let tps = if arm == Letter::A { 1000.0 } else { 1000.0 * ratio };
            r.set(column::COMMIT_THROUGHPUT_TPS, tps * noise);
            r.set(column::COMMIT_LATENCY_MS, 1000.0 / tps / noise);
            r.set(column::REDO_MIB_PER_S, tps * noise / 700.0);
            out.push(r);
        }
    }
    out
}

/// A run of arms on two targets.
fn run(records: Vec<TestRecord>, pairs: u32, precision: Option<f64>) -> RunData {
    let mut m = manifest("x", "run-1");
    let arm = |label: &str, target: &str, why: &str| Variant {
        label: label.to_owned(),
        target: target.to_owned(),
        workloads: vec![PlannedWorkload {
            driver_reason: why.to_owned(),
            ..PlannedWorkload::new("LGWR-LAT1", Driver::Client)
        }],
        ..Variant::default()
    };
    let looks = if precision.is_some() { vec![6, pairs as usize] } else { vec![pairs as usize] };
    m.plan.paired = Some(Box::new(Paired {
        variants: vec![
            arm("A: one", "postgres://bench@db1/bench", "no procedures in one"),
            arm("B: other", "mysql://bench@db2/bench", "no procedures in other"),
        ],
        pairs,
        precision,
        looks,
        margin: 0.02,
        seed: 1,
        links: None,
    }));
    let other = TargetInfo {
        product: "Other".to_owned(),
        version: "9.9".to_owned(),
        url: "mysql://bench@db2/bench".to_owned(),
        settings: [("fsync".into(), "off".into())].into(),
        notes: vec!["a note on the other".to_owned()],
        ..TargetInfo::default()
    };
    m.variants = [m.target.clone(), other].map(|target| VariantFound { target, doctor: Vec::new() }).to_vec();
    RunData::new(m, records, Vec::new())
}

/// Answer of a run of arms on `records`.
fn said(records: Vec<TestRecord>, pairs: u32, precision: Option<f64>) -> String {
    Compared::of_arms(&run(records, pairs, precision), 100).unwrap().text().to_owned()
}

#[test]
fn each_arm_is_shown_as_it_was_found() {
    let report = |run: RunData| text(&[run], Format::Markdown);
    let rows = |report: &str| {
        let of = ["| Product |", "| Version |", "| fsync |", "| Workloads |", "- B: other: "];
        let lines = report.lines().filter(|line| of.iter().any(|start| line.starts_with(start)));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("arms_as_found", rows(&report(run(windows(6, 1.2, 0.0), 6, None))));
    // A run of an older version knows nothing of arm B: nothing of A's is said of it.
    let mut old = run(windows(6, 1.2, 0.0), 6, None);
    old.manifest.variants = Vec::new();
    assert!(rows(&report(old)).contains("| Product | PostgreSQL | unknown product |"));
}

#[test]
fn a_precision_that_was_not_reached_is_said_with_what_it_takes() {
    insta::assert_snapshot!("precision_reached", said(windows(16, 1.2, 0.0), 16, Some(0.02)));
    insta::assert_snapshot!("precision_not_reached", said(windows(16, 1.2, 0.2), 16, Some(0.001)));
    insta::assert_snapshot!("precision_of_too_few_pairs", said(windows(4, 1.2, 0.2), 4, Some(0.001)));
}

#[test]
fn a_setting_that_the_workload_does_not_show_is_named() {
    for (name, redo, reads, wanted) in [
        ("wal_compression", [25.0, 25.1], [0.0, 0.0], "wal_compression changed nothing"),
        ("wal_compression", [25.0, 20.0], [0.0, 0.0], ""),
        ("shared_buffers", [25.0, 25.0], [0.0, 1.0], "what is read fits shared_buffers of both"),
        ("shared_buffers", [25.0, 25.0], [900.0, 1.0], ""),
        ("work_mem", [25.0, 25.0], [0.0, 0.0], ""),
    ] {
        let mut records = windows(6, 1.0, 0.1);
        for r in &mut records {
            let arm = usize::from(r.arm() == Some(Letter::B));
            r.set(column::REDO_KIB_PER_TX, redo[arm]);
            r.set(column::BLOCK_READS_PER_S, reads[arm]);
        }
        let mut run = run(records, 6, None);
        run.manifest.plan.paired.as_mut().unwrap().variants[1].settings.insert(name.to_owned(), "on".to_owned());
        let text = words(Compared::of_arms(&run, 100).unwrap().text());
        let named = text.contains("changed nothing") || text.contains("what is read fits");
        assert!(text.contains(wanted) && named != wanted.is_empty(), "{name} {redo:?}: {text}");
    }
}

#[test]
fn what_fell_into_one_arm_and_what_was_judged_together_is_said() {
    let mut records = windows(6, 1.0, 0.1);
    for r in records.iter_mut().filter(|r| r.arm() == Some(Letter::B)) {
        r.set(column::REDO_KIB_PER_TX, 7.65);
        r.set(column::CHECKPOINTS, 1.0);
        r.set(column::AUTOVACUUM_SHARE_PCT, 30.0);
        r.disturbed_by = Some("CPU steal 8 %".to_owned());
        r.forced.refused = Some("its commits do not wait".to_owned());
    }
    records.iter_mut().filter(|r| r.arm() == Some(Letter::A)).for_each(|r| r.set(column::REDO_KIB_PER_TX, 1.0));
    records[0].add_check(Check::new(CheckId::Steady, Outcome::Noted, "throughput was 2 % of the usual"));
    insta::assert_snapshot!("arms_not_alike", said(records, 6, None));
}

#[test]
fn more_than_two_arms_are_each_shown_against_the_first() {
    let mut records = windows(6, 1.2, 0.0);
    for mut r in windows(6, 0.8, 0.0) {
        let arm = if r.arm() == Some(Letter::A) { Letter::A } else { Letter::nth(2) };
        r.variant = Some(InPair { arm, beside: Letter::nth(2), level: None });
        r.test += 12;
        records.push(r);
    }
    let mut run = run(records, 6, None);
    let third =
        Variant { label: "C: third".to_owned(), ..run.manifest.plan.paired.as_ref().unwrap().variants[0].clone() };
    run.manifest.plan.paired.as_mut().unwrap().variants.push(third);
    run.manifest.variants.push(run.manifest.variants[0].clone());
    let compared = Compared::of_arms(&run, 100).unwrap();
    let csv = compared.csv();
    let main: Vec<Vec<&str>> = csv
        .lines()
        .map(|line| line.split(',').collect())
        .filter(|row: &Vec<&str>| row[2] == "commit_throughput_tps")
        .collect();
    assert_eq!(
        main.iter().map(|row| (row[8], row[11])).collect::<Vec<_>>(),
        [("faster", "B"), ("slower", "C")],
        "{csv}"
    );
    let said = words(compared.text());
    assert!(said.contains("B, LGWR-LAT1 with 1 job: B is faster") && said.contains("C is slower"), "{said}");
    assert!(text(&[run], Format::Markdown).contains("C: third"), "each is a platform");
}

/// A stored run of one workload, whose tests had these throughputs and limits.
fn stored(id: &str, tps: &[f64], limits: &[f64], within_pct: Option<f64>) -> RunData {
    let test = |(n, (tps, limit)): (usize, (&f64, &f64))| {
        let mut r = TestRecord {
            test: n as u32 + 1,
            run: id.to_owned(),
            group: "log-writer".to_owned(),
            ..TestRecord::blank("LGWR-LAT1")
        };
        r.repetition = r.test;
        r.kpis = vec![column::COMMIT_THROUGHPUT_TPS.id.to_owned()];
        r.set(column::COMMIT_THROUGHPUT_TPS, *tps);
        r.set(column::REDO_KIB_PER_TX, 1.5);
        if let Some(pct) = within_pct {
            r.set(column::WITHIN_WINDOW_PCT, pct);
        }
        r.limit = Some(TestLimit {
            name: "log writer".to_owned(),
            of: String::new(),
            jobs: 1,
            redo_bytes_per_tx: None,
            tps: *limit,
            samples: Vec::new(),
            source: LimitSource::Run,
        });
        r
    };
    let records = tps.iter().zip(limits).enumerate().map(test).collect();
    RunData::new(manifest(id, id), records, Vec::new())
}

const TERMS: Terms = Terms { margin: 0.02, across_drivers: false, unequal: false };

fn compared(a: RunData, b: RunData) -> Compared {
    Compared::new(&[a, b], TERMS, 100).unwrap()
}

#[test]
fn the_machine_of_two_runs_is_compared_with_as_many_measurements_as_there_are() {
    let a = || stored("a", &[1000.0, 1010.0, 990.0], &[2000.0, 2020.0, 1980.0], None);
    let b = stored("b", &[700.0, 707.0, 693.0], &[1380.0, 1400.0, 1360.0], None);
    insta::assert_snapshot!("two_runs", compared(a(), b).text());
    let noisy = stored("b", &[700.0, 707.0, 693.0], &[700.0, 4000.0, 2000.0], None);
    let text = words(compared(a(), noisy).text());
    assert!(text.contains("not shown to have been faster or slower"), "{text}");
}

#[test]
fn single_tests_have_the_interval_of_their_windows_and_it_is_marked() {
    let pair = |pct| compared(stored("a", &[1000.0], &[2000.0], pct), stored("b", &[800.0], &[2000.0], pct));
    for (pct, with_interval, slower) in [(Some(3.0), 1, 1), (Some(50.0), 1, 0), (None, 0, 0)] {
        let compared = pair(pct);
        assert_eq!((compared.counts()[1], compared.slower_by(0.03).len()), (with_interval, slower), "{pct:?}");
        assert_eq!(words(compared.text()).contains("course of a single window"), with_interval > 0, "{pct:?}");
        let page = compared.html();
        assert!(page.contains("B/A of the main figures"), "{pct:?}: no chart");
        assert_eq!(page.matches("class=\"wh\"").count(), with_interval, "{pct:?}: the interval is drawn");
    }
    // Two repetitions tell more than the course of a window.
    let twice = |tps: [f64; 2]| stored("x", &tps, &[2000.0; 2], Some(0.1));
    assert!(compared(twice([500.0, 1500.0]), twice([400.0, 1200.0])).slower_by(0.03).is_empty());
}

#[test]
fn unequal_work_is_compared_if_told_and_marked() {
    let rows = |n: i64, run: &str| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        run.records.iter_mut().for_each(|r| r.parameters = [("rows".to_owned(), n)].into());
        run
    };
    for (others, unequal, counts, marked) in
        [(2, false, [0, 0, 1], false), (2, true, [1, 1, 0], true), (1, true, [1, 1, 0], false)]
    {
        let compared = Compared::new(&[rows(1, "a"), rows(others, "b")], Terms { unequal, ..TERMS }, 100).unwrap();
        assert_eq!(compared.counts(), counts, "{others}, {unequal}");
        let text = words(compared.text());
        let mark = "not the same work (--unequal): different parameters: rows is 1";
        assert_eq!(text.contains(mark), marked, "{text}");
    }
}

#[test]
fn of_an_open_loop_the_response_time_is_the_main_figure() {
    let at_rate = |run: &str, response_ms: f64| {
        let mut run = stored(run, &[100.0, 100.1, 99.9], &[2000.0; 3], None);
        for (r, more) in run.records.iter_mut().zip([1.0, 1.01, 0.99]) {
            r.set(column::RATE_TPS, 100.0);
            r.set(column::RESPONSE_TIME_NS_MEAN, response_ms * more * 1e6);
        }
        run
    };
    let slower = |a, b| compared(at_rate("a", a), at_rate("b", b)).slower_by(0.03).len();
    assert_eq!((slower(2.0, 4.0), slower(4.0, 2.0)), (1, 0), "throughput is as given in both");
}

#[test]
fn what_only_one_run_measured_is_a_row_of_its_own() {
    let with = |run: &str, more: u32| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        let last = TestRecord { test: 3, jobs: more, repetition: 1, ..run.records[0].clone() };
        run.records.push(last);
        run
    };
    let both = compared(with("a", 4), with("b", 8));
    assert_eq!(both.counts(), [1, 1, 2], "{}", both.text());
    insta::assert_snapshot!("one_sided_csv", both.csv());
    // A main figure that one of both lacks is said, and no other takes its place.
    let latency = |run: &str| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        run.records.iter_mut().for_each(|r| r.set(column::COMMIT_LATENCY_MS, 1.0));
        run
    };
    let mut b = latency("b");
    b.records.iter_mut().for_each(|r| r.leave_out(column::COMMIT_THROUGHPUT_TPS, "not counted"));
    assert_eq!(compared(latency("a"), b).counts(), [0, 0, 1]);
    // A swept value is no number of jobs.
    let swept = |run: &str| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        run.records.iter_mut().for_each(|r| r.swept = Some("rows_per_tx".to_owned()));
        run.records.iter_mut().for_each(|r| r.set(column::ROWS_PER_TX, 100.0));
        run
    };
    let csv = compared(swept("a"), swept("b")).csv();
    assert!(csv.contains("LGWR-LAT1 rows_per_tx=100,,commit_throughput_tps"), "{csv}");
}
