//! Runs of two arms, and two runs compared.

use loadline_model::arms::ArmName;
use loadline_model::limits::{LimitSource, TestLimit};
use loadline_model::manifest::{ArmFound, TargetInfo};
use loadline_model::plan::{Arm, Arms, PlannedWorkload};
use loadline_model::{Check, CheckId, Driver, Outcome, TestRecord, column};
use loadline_report::{Compared, Format, Options, RunData, Terms, redact, render};

use crate::common::manifest;

/// Windows of `pairs` pairs in turns, B being `ratio` times as fast; levels vary by `spread`.
fn windows(pairs: u32, ratio: f64, spread: f64) -> Vec<TestRecord> {
    let mut out: Vec<TestRecord> = Vec::new();
    for pair in 1..=pairs {
        for arm in if pair % 2 == 1 { [ArmName::A, ArmName::B] } else { [ArmName::B, ArmName::A] } {
            let test = out.len() as u32 + 1;
            let noise = 1.0 + spread * (f64::from(test * 7919 % 101) / 50.0 - 1.0);
            let mut r = TestRecord {
                test,
                arm: Some(arm),
                repetition: pair,
                group: "log-writer".to_owned(),
                run: "run-1".to_owned(),
                ..TestRecord::blank("LGWR-LAT1")
            };
            let tps = if arm == ArmName::A { 1000.0 } else { 1000.0 * ratio };
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
    let arm = |label: &str, target: &str, why: &str| Arm {
        label: label.to_owned(),
        target: target.to_owned(),
        settings: Default::default(),
        workloads: vec![PlannedWorkload {
            driver_reason: why.to_owned(),
            ..PlannedWorkload::of("LGWR-LAT1", Driver::Client)
        }],
        switch: None,
    };
    let looks = if precision.is_some() { vec![6, pairs as usize] } else { vec![pairs as usize] };
    m.plan.arms = Some(Box::new(Arms {
        a: arm("A: one", "postgres://bench@db1/bench", "no procedures in one"),
        b: arm("B: other", "mysql://bench@db2/bench", "no procedures in other"),
        pairs,
        precision,
        looks,
        margin: 0.02,
        seed: 1,
    }));
    let other = TargetInfo {
        product: "Other".to_owned(),
        version: "9.9".to_owned(),
        url: "mysql://bench@db2/bench".to_owned(),
        host: Some("secrethost".to_owned()),
        settings: [("fsync", "off"), ("cluster_name", "secretcluster")].map(|(n, v)| (n.into(), v.into())).into(),
        notes: vec!["a note on the other".to_owned()],
        ..TargetInfo::default()
    };
    let found = [m.target.clone(), other].map(|target| ArmFound { target, doctor: Vec::new() });
    m.arms = Some(Box::new(found));
    RunData::new(m, records, Vec::new())
}

fn markdown(run: RunData) -> String {
    String::from_utf8(render(&[run], Format::Markdown, &Options::default()).unwrap()).unwrap()
}

#[test]
fn each_arm_is_shown_as_it_was_found() {
    let text = markdown(run(windows(6, 1.2, 0.0), 6, None));
    for row in
        ["| Product | PostgreSQL | Other |", "| Version | 15.8 (Debian 15.8-0+deb12u1) | 9.9 |", "| fsync | on | off |"]
    {
        assert!(text.contains(row), "{row}");
    }
    assert!(text.contains("B: other: a note on the other.") && text.contains("B: other: Other 9.9, measured"));
    assert!(text.contains("no procedures in one") && text.contains("no procedures in other"), "{text}");
    // A run of an older version knows nothing of arm B: nothing of A's is said of it.
    let mut old = run(windows(6, 1.2, 0.0), 6, None);
    old.manifest.arms = None;
    let text = markdown(old);
    assert!(text.contains("| Product | PostgreSQL | unknown product |"), "{text}");
}

#[test]
fn what_identifies_arm_b_is_redacted_as_well() {
    let mut runs = [run(windows(6, 1.2, 0.0), 6, None)];
    redact(&mut runs, false, &|_| false).unwrap();
    let [run] = runs;
    let text = serde_json::to_string(&run.manifest).unwrap();
    assert!(!text.contains("secret") && !text.contains("db2"), "{text}");
}

#[test]
fn a_precision_that_was_not_reached_is_said_with_what_it_takes() {
    let said = |run: &RunData| Compared::of_arms(run, 2000).unwrap().text().to_owned();
    let reached = said(&run(windows(16, 1.2, 0.0), 16, Some(0.02)));
    assert!(!reached.contains("not reached"), "{reached}");
    let wide = said(&run(windows(16, 1.2, 0.2), 16, Some(0.001)));
    assert!(wide.contains("±0.1 % was not reached with 16 pairs") && wide.contains("more"), "{wide}");
    let none = said(&run(windows(4, 1.2, 0.2), 4, Some(0.001)));
    assert!(none.contains("±0.1 % was not reached"), "{none}");
}

#[test]
fn a_setting_that_the_workload_does_not_show_is_named() {
    let said = |name: &str, redo: [f64; 2], reads: [f64; 2]| {
        let mut records = windows(6, 1.0, 0.1);
        for r in &mut records {
            let arm = usize::from(r.arm == Some(ArmName::B));
            r.set(column::REDO_KIB_PER_TX, redo[arm]);
            r.set(column::BLOCK_READS_PER_S, reads[arm]);
        }
        let mut run = run(records, 6, None);
        run.manifest.plan.arms.as_mut().unwrap().b.settings.insert(name.to_owned(), "on".to_owned());
        let text = Compared::of_arms(&run, 2000).unwrap().text().to_owned();
        ["wal_compression changed nothing", "what is read fits shared_buffers of both"].map(|part| text.contains(part))
    };
    assert_eq!(said("wal_compression", [25.0, 25.1], [0.0, 0.0]), [true, false]);
    assert_eq!(said("wal_compression", [25.0, 20.0], [0.0, 0.0]), [false, false]);
    assert_eq!(said("shared_buffers", [25.0, 25.0], [0.0, 1.0]), [false, true]);
    assert_eq!(said("shared_buffers", [25.0, 25.0], [900.0, 1.0]), [false, false]);
    assert_eq!(said("work_mem", [25.0, 25.0], [0.0, 0.0]), [false, false]);
}

#[test]
fn what_fell_into_one_arm_and_what_was_judged_together_is_said() {
    let mut records = windows(6, 1.0, 0.1);
    records.iter_mut().for_each(|r| r.set(column::REDO_KIB_PER_TX, 1.0));
    let text = Compared::of_arms(&run(records.clone(), 6, None), 2000).unwrap().text().to_owned();
    assert!(!text.contains("redo per transaction"), "{text}");
    for r in records.iter_mut().filter(|r| r.arm == Some(ArmName::B)) {
        r.set(column::REDO_KIB_PER_TX, 7.65);
        r.set(column::CHECKPOINTS, 1.0);
        r.set(column::AUTOVACUUM_SHARE_PCT, 30.0);
        r.disturbed_by = Some("CPU steal 8 %".to_owned());
        r.forced.refused = Some("its commits do not wait".to_owned());
    }
    records[0].add_check(Check::new(CheckId::Steady, Outcome::Noted, "throughput was 2 % of the usual"));
    let text = Compared::of_arms(&run(records, 6, None), 2000).unwrap().text().to_owned();
    for part in [
        "LGWR-LAT1 with 1 job: 1.00 KiB of redo per transaction in A, 7.65 KiB in B.",
        "a checkpoint in 0 windows of A and 6 of B",
        "autovacuum in 0 windows of A and 6 of B",
        "a stall or a change of level in 1 window of A and 0 of B",
        "a disturbance by others in 0 windows of A and 6 of B",
        "Other figures: ",
        "Benjamini",
        "Arm B was measured although its commits do not wait",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
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

#[test]
fn the_machine_of_two_runs_is_compared_with_as_many_measurements_as_there_are() {
    let a = stored("a", &[1000.0, 1010.0, 990.0], &[2000.0, 2020.0, 1980.0], None);
    let b = stored("b", &[700.0, 707.0, 693.0], &[1380.0, 1400.0, 1360.0], None);
    let compared = Compared::of_runs(&[a, b], TERMS, 2000);
    let text = compared.text();
    assert!(text.contains("31 % slower in B, by 3 measurements") && text.contains("of A and 3 of B"), "{text}");
    assert!(text.contains("95 % interval 0.67") && text.contains("that is part of the ratios"), "{text}");
    let noisy = stored("b", &[700.0, 707.0, 693.0], &[700.0, 4000.0, 2000.0], None);
    let text = Compared::of_runs(&[stored("a", &[1.0; 3], &[2000.0, 2020.0, 1980.0], None), noisy], TERMS, 2000);
    assert!(text.text().contains("not shown to have been faster or slower"), "{}", text.text());
}

#[test]
fn single_tests_have_the_interval_of_their_windows_and_it_is_marked() {
    let pair = |pct| [stored("a", &[1000.0], &[2000.0], pct), stored("b", &[800.0], &[2000.0], pct)];
    let compared = Compared::of_runs(&pair(Some(3.0)), TERMS, 2000);
    assert_eq!((compared.counts()[1], compared.slower_by(0.03).len()), (1, 1), "{}", compared.text());
    assert!(compared.text().contains("course of a single window"), "{}", compared.text());
    assert!(Compared::of_runs(&pair(Some(50.0)), TERMS, 2000).slower_by(0.03).is_empty(), "too wide");
    assert_eq!(Compared::of_runs(&pair(None), TERMS, 2000).counts()[1], 0);
    // Two repetitions tell more than the course of a window.
    let twice = |tps: [f64; 2]| stored("x", &tps, &[2000.0; 2], Some(0.1));
    assert!(
        Compared::of_runs(&[twice([500.0, 1500.0]), twice([400.0, 1200.0])], TERMS, 2000).slower_by(0.03).is_empty()
    );
}

#[test]
fn unequal_work_is_compared_if_told_and_marked() {
    let rows = |n: i64, run: &str| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        run.records.iter_mut().for_each(|r| r.parameters = [("rows".to_owned(), n)].into());
        run
    };
    let pair = || [rows(1, "a"), rows(2, "b")];
    let refused = Compared::of_runs(&pair(), TERMS, 2000);
    assert_eq!(refused.counts(), [0, 0, 1]);
    let told = Compared::of_runs(&pair(), Terms { unequal: true, ..TERMS }, 2000);
    assert_eq!(told.counts(), [1, 1, 0], "{}", told.text());
    assert!(told.text().contains("not the same work (--unequal): different parameters: rows is 1"), "{}", told.text());
    let equal = Compared::of_runs(&[rows(1, "a"), rows(1, "b")], Terms { unequal: true, ..TERMS }, 2000);
    assert!(!equal.text().contains("--unequal"), "{}", equal.text());
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
    let compared = Compared::of_runs(&[at_rate("a", 2.0), at_rate("b", 4.0)], TERMS, 2000);
    assert_eq!(compared.slower_by(0.03).len(), 1, "throughput is as given in both: {}", compared.text());
    let faster = Compared::of_runs(&[at_rate("a", 4.0), at_rate("b", 2.0)], TERMS, 2000);
    assert!(faster.slower_by(0.03).is_empty() && faster.csv().contains("response_time_ns_mean"), "{}", faster.csv());
}

#[test]
fn what_only_one_run_measured_is_a_row_of_its_own() {
    let with = |run: &str, more: u32| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        let last = TestRecord { test: 3, jobs: more, repetition: 1, ..run.records[0].clone() };
        run.records.push(last);
        run
    };
    let compared = Compared::of_runs(&[with("a", 4), with("b", 8)], TERMS, 2000);
    assert_eq!(compared.counts(), [1, 1, 2], "{}", compared.text());
    for row in ["LGWR-LAT1,4,commit_throughput_tps,,,,,,refused,,0", "LGWR-LAT1,8,commit_throughput_tps,,,,,,refused"] {
        assert!(compared.csv().contains(row), "{}", compared.csv());
    }
    assert!(compared.text().contains("'b' has no test there"), "{}", compared.text());
    // A main figure that one of both lacks is said, and no other takes its place.
    let mut b = stored("b", &[1000.0, 1010.0], &[2000.0; 2], None);
    for r in &mut b.records {
        r.leave_out(column::COMMIT_THROUGHPUT_TPS, "not counted");
        r.set(column::COMMIT_LATENCY_MS, 1.0);
    }
    let mut a = stored("a", &[1000.0, 1010.0], &[2000.0; 2], None);
    a.records.iter_mut().for_each(|r| r.set(column::COMMIT_LATENCY_MS, 1.0));
    let compared = Compared::of_runs(&[a, b], TERMS, 2000);
    assert_eq!(compared.counts(), [0, 0, 1], "{}", compared.text());
    // A swept value is no number of jobs.
    let swept = |run: &str| {
        let mut run = stored(run, &[1000.0, 1010.0], &[2000.0; 2], None);
        run.records.iter_mut().for_each(|r| r.swept = Some("rows_per_tx".to_owned()));
        run.records.iter_mut().for_each(|r| r.set(column::ROWS_PER_TX, 100.0));
        run
    };
    let csv = Compared::of_runs(&[swept("a"), swept("b")], TERMS, 2000).csv();
    assert!(csv.contains("LGWR-LAT1 rows_per_tx=100,,commit_throughput_tps"), "{csv}");
}
