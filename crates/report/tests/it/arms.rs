//! Runs of two arms, and two runs compared.

use loadline_analyze::paired::simulated;
use loadline_model::manifest::{TargetInfo, VariantFound};
use loadline_model::variant::{InPair, Letter};
use loadline_model::{Check, CheckId, Outcome, TestRecord, column};
use loadline_report::{Compared, Format, RunData, Terms};
use serde_json::json;

use crate::common::*;

/// Windows of `pairs` pairs in turns, B being `ratio` times as fast; levels vary by `spread`.
fn windows(pairs: u32, ratio: f64, spread: f64) -> Vec<TestRecord> {
    simulated::windows(pairs, |test, arm| {
        let tps = if arm == Letter::A { 1000.0 } else { 1000.0 * ratio };
        let noise = 1.0 + spread * (f64::from(test * 7919 % 101) / 50.0 - 1.0);
        let latency_ms = 1000.0 / tps / noise;
        vec![
            (column::COMMIT_THROUGHPUT_TPS, tps * noise),
            (column::COMMIT_LATENCY_MS, latency_ms),
            (column::REDO_MIB_PER_S, tps * noise / 700.0),
        ]
    })
}

/// A run of arms on two targets.
fn run(records: Vec<TestRecord>, pairs: u32, precision: Option<f64>) -> RunData {
    let arm = |label: &str, target: &str, why: &str| {
        let workloads = json!([{"code": "LGWR-LAT1", "driver": "client", "driver_reason": why}]);
        json!({"label": label, "target": target, "workloads": workloads})
    };
    let variants = [
        arm("A: one", "postgres://bench@db1/bench", "no procedures in one"),
        arm("B: other", "mysql://bench@db2/bench", "no procedures in other"),
    ];
    let looks = if precision.is_some() { vec![6, pairs] } else { vec![pairs] };
    let paired = json!({"variants": variants, "pairs": pairs, "precision": precision, "looks": looks, "margin": 0.02,
        "seed": 1});
    let mut m = patched(&manifest("x", "run-1"), json!({"plan": {"paired": paired}}));
    let other = json!({"product": "Other", "version": "9.9", "url": "mysql://bench@db2/bench",
        "settings": {"fsync": "off"}, "notes": ["a note on the other"]});
    m.variants = [m.target.clone(), patched(&TargetInfo::default(), other)]
        .map(|target| VariantFound { target, doctor: Vec::new() })
        .to_vec();
    made(m, records)
}

/// Answer of a run of arms on `records`.
fn said(records: Vec<TestRecord>, pairs: u32, precision: Option<f64>) -> String {
    Compared::of_arms(&run(records, pairs, precision)).unwrap().text(100)
}

#[test]
fn each_arm_is_shown_as_it_was_found() {
    let rows = |run: RunData| {
        let of = ["| Product |", "| Version |", "| fsync |", "| Workloads |", "- B: other: "];
        let report = text(&[run], Format::Markdown);
        let lines = report.lines().filter(|line| of.iter().any(|start| line.starts_with(start)));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut old = run(windows(6, 1.2, 0.0), 6, None);
    insta::assert_snapshot!("arms_as_found", rows(old.clone()));
    // A run of an older version knows nothing of arm B: nothing of A's is said of it.
    old.manifest.variants = Vec::new();
    assert_says(&rows(old), &["| Product | PostgreSQL | unknown product |"]);
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
        ("wal_compression", [25.0, 25.1], [0.0, 0.0], ["wal_compression changed nothing", "!what is read fits"]),
        ("wal_compression", [25.0, 20.0], [0.0, 0.0], ["!changed nothing", "!what is read fits"]),
        ("shared_buffers", [25.0, 25.0], [0.0, 1.0], ["!changed nothing", "what is read fits shared_buffers of both"]),
        ("shared_buffers", [25.0, 25.0], [900.0, 1.0], ["!changed nothing", "!what is read fits"]),
        ("work_mem", [25.0, 25.0], [0.0, 0.0], ["!changed nothing", "!what is read fits"]),
    ] {
        let mut records = windows(6, 1.0, 0.1);
        for r in &mut records {
            let arm = r.arm().unwrap().index();
            r.set(column::REDO_KIB_PER_TX, redo[arm]);
            r.set(column::BLOCK_READS_PER_S, reads[arm]);
        }
        let mut run = run(records, 6, None);
        run.manifest.plan.paired.as_mut().unwrap().variants[1].settings.insert(name.to_owned(), "on".to_owned());
        assert_says(&words(&Compared::of_arms(&run).unwrap().text(100)), &wanted);
    }
}

#[test]
fn what_fell_into_one_arm_and_what_was_judged_together_is_said() {
    let mut records = windows(6, 1.0, 0.1);
    for r in &mut records {
        let of_b = json!({"redo_kib_per_tx": 7.65, "checkpoints": 1, "autovacuum_share_pct": 30,
            "disturbed_by": "CPU steal 8 %", "forced": "its commits do not wait"});
        *r = patched(r, if r.arm() == Some(Letter::B) { of_b } else { json!({"redo_kib_per_tx": 1}) });
    }
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
    let paired = run.manifest.plan.paired.as_mut().unwrap();
    let third = patched(&paired.variants[0], json!({"label": "C: third"}));
    paired.variants.push(third);
    run.manifest.variants.push(run.manifest.variants[0].clone());
    let compared = Compared::of_arms(&run).unwrap();
    let csv = compared.csv();
    let rows = csv.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let main: Vec<_> = rows.filter(|row| row[2] == "commit_throughput_tps").map(|row| (row[8], row[11])).collect();
    assert_eq!(main, [("faster", "B"), ("slower", "C")], "{csv}");
    assert_says(&words(&compared.text(100)), &["B, LGWR-LAT1 with 1 job: B is faster", "C is slower"]);
    assert_says(&text(&[run], Format::Markdown), &["C: third"]);
}

/// A stored run of one workload, whose tests had these throughputs and limits, and `more`.
fn stored(id: &str, tps: &[f64], limits: &[f64], more: &serde_json::Value) -> RunData {
    let test = |(number, (tps, tps_limit)): (u32, (&f64, &f64))| {
        let limit = json!({"of": "", "jobs": 1, "tps": tps_limit, "samples": [], "source": "run"});
        let of_all = json!({"test": number, "repetition": number, "run": id, "group": "log-writer",
            "kpis": ["commit_throughput_tps"], "commit_throughput_tps": tps, "redo_kib_per_tx": 1.5, "limit": limit});
        patched(&patched(&TestRecord::blank("LGWR-LAT1"), of_all), more.clone())
    };
    made(manifest(id, id), (1..).zip(tps.iter().zip(limits)).map(test).collect())
}

/// Such a run with two tests.
fn twice(id: &str, more: &serde_json::Value) -> RunData {
    stored(id, &[1000.0, 1010.0], &[2000.0; 2], more)
}

const TERMS: Terms = Terms { margin: 0.02, across_drivers: false, unequal: false };

fn compared(a: RunData, b: RunData) -> Compared {
    Compared::new(&[a, b], TERMS).unwrap()
}

#[test]
fn the_machine_of_two_runs_is_compared_with_as_many_measurements_as_there_are() {
    let of = |id, tps: [f64; 3], limits: [f64; 3]| stored(id, &tps, &limits, &json!({}));
    let a = of("a", [1000.0, 1010.0, 990.0], [2000.0, 2020.0, 1980.0]);
    let [b, noisy] = [[1380.0, 1400.0, 1360.0], [700.0, 4000.0, 2000.0]].map(|l| of("b", [700.0, 707.0, 693.0], l));
    insta::assert_snapshot!("two_runs", compared(a.clone(), b).text(100));
    assert_says(&words(&compared(a, noisy).text(100)), &["not shown to have been faster or slower"]);
}

#[test]
fn single_tests_have_the_interval_of_their_windows_and_it_is_marked() {
    for (pct, with_interval, slower) in [(Some(3.0), 1, 1), (Some(50.0), 1, 0), (None, 0, 0)] {
        let of = |id, tps| stored(id, &[tps], &[2000.0], &json!({"within_window_pct": pct}));
        let compared = compared(of("a", 1000.0), of("b", 800.0));
        assert_eq!((compared.counts()[1], compared.slower_by(0.03).len()), (with_interval, slower), "{pct:?}");
        assert_eq!(words(&compared.text(100)).contains("course of a single window"), with_interval > 0, "{pct:?}");
        let page = compared.html();
        assert!(page.contains("B/A of the main figures"), "{pct:?}: no chart");
        assert_eq!(page.matches("class=\"wh\"").count(), with_interval, "{pct:?}: the interval is drawn");
    }
    // Two repetitions tell more than the course of a window.
    let twice = |tps: [f64; 2]| stored("x", &tps, &[2000.0; 2], &json!({"within_window_pct": 0.1}));
    assert!(compared(twice([500.0, 1500.0]), twice([400.0, 1200.0])).slower_by(0.03).is_empty());
}

#[test]
fn unequal_work_is_compared_if_told_and_marked() {
    let mark = "not the same work (--unequal): different parameters: rows is 1";
    for (others, unequal, counts, marked) in
        [(2, false, [0, 0, 1], false), (2, true, [1, 1, 0], true), (1, true, [1, 1, 0], false)]
    {
        let runs = [("a", 1, 10), ("b", others, 40)].map(|(run, rows, sessions)| {
            let waits = json!({"samples": 10, "sessions": {"IO:Sync": sessions}});
            twice(run, &json!({"parameters": {"rows": rows}, "waits": waits}))
        });
        let compared = Compared::new(&runs, Terms { unequal, ..TERMS }).unwrap();
        assert_eq!(compared.counts(), counts, "{others}, {unequal}");
        assert_eq!(words(&compared.text(100)).contains(mark), marked, "{}", compared.text(100));
        let has_waits = words(&compared.text(100)).contains("What the sessions waited for");
        assert_eq!(has_waits, counts[0] > 0, "{}", compared.text(100));
    }
}

#[test]
fn waits_of_disturbed_tests_do_not_count_beside_those_of_valid_ones() {
    let with = |run: &str, sessions: u32| {
        let mut run = twice(run, &json!({"waits": {"samples": 10, "sessions": {"IO:Sync": sessions}}}));
        let mut more = TestRecord { test: 3, repetition: 3, ..run.records[0].clone() };
        more.waits.sessions.insert("IO:Sync".to_owned(), 1000);
        more.add_check(failed(CheckId::OtherCpu, "busy"));
        run.records.push(more);
        run
    };
    // One session on 1000 and 1010 tps, and four.
    assert_says(&words(&compared(with("a", 10), with("b", 40)).text(100)), &["IO:Sync 995.0 µs 3.98 ms"]);
}

#[test]
fn the_price_of_a_proxy_is_that_of_valid_pairs() {
    let mut records = windows(8, 1.0, 0.0);
    for r in &mut records {
        r.set(column::COMMIT_LATENCY_MS, if r.arm() == Some(Letter::B) { 1.2 } else { 1.0 });
    }
    records[0].add_check(failed(CheckId::Errors, "errors"));
    records[1].set(column::COMMIT_LATENCY_MS, 50.0);
    let mut run = run(records, 8, None);
    run.manifest.plan.paired.as_mut().unwrap().variants[1].via = Some("postgres://proxy".to_owned());
    let wanted = ["changes by +0.200 ms with 1 job", "| LGWR-LAT1 | 1 | 1.000 | 1.200 | 0.200 (0.200 to 0.200) |"];
    assert_says(&words(&text(&[run], Format::Markdown)), &wanted);
}

#[test]
fn of_an_open_loop_the_response_time_is_the_main_figure() {
    let at_rate = |run: &str, response_ms: f64| {
        let mut run = stored(run, &[100.0, 100.1, 99.9], &[2000.0; 3], &json!({"rate_tps": 100}));
        for (r, more) in run.records.iter_mut().zip([1.0, 1.01, 0.99]) {
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
        let mut run = twice(run, &json!({}));
        run.records.push(TestRecord { test: 3, jobs: more, repetition: 1, ..run.records[0].clone() });
        run
    };
    let both = compared(with("a", 4), with("b", 8));
    assert_eq!(both.counts(), [1, 1, 2], "{}", both.text(100));
    insta::assert_snapshot!("one_sided_csv", both.csv());
    // A main figure that one of both lacks is said, and no other takes its place.
    let [a, mut b] = ["a", "b"].map(|run| twice(run, &json!({"commit_latency_ms": 1})));
    b.records.iter_mut().for_each(|r| r.leave_out(column::COMMIT_THROUGHPUT_TPS, "not counted"));
    assert_eq!(compared(a, b).counts(), [0, 0, 1]);
    // A swept value is no number of jobs.
    let [a, b] = ["a", "b"].map(|run| twice(run, &json!({"swept": "rows_per_tx", "rows_per_tx": 100})));
    assert_says(&compared(a, b).csv(), &["LGWR-LAT1 rows_per_tx=100,,commit_throughput_tps"]);
}
