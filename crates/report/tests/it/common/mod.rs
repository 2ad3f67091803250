//! Runs made by hand: two platforms, two workloads, an invalid test, missing figures, an error.

#![allow(dead_code, clippy::unwrap_used)]

mod groups;
#[path = "../../../../analyze/tests/it/common/made.rs"]
mod made;

pub(crate) use groups::all_groups;
pub(crate) use made::{patched, scanned, tests};

use loadline_model::limits::SizePoint;
use loadline_model::plan::SkippedWorkload;
use loadline_model::{Check, CheckId, Column, Detail, Manifest, Outcome, Series, TestRecord, column};
use loadline_report::{Format, Options, OverTime, RunData, SCRIPT, end_page, render};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) fn with(runs: &[RunData], format: Format, options: &Options) -> String {
    String::from_utf8(render(runs, format, options).unwrap()).unwrap()
}

pub(crate) fn text(runs: &[RunData], format: Format) -> String {
    with(runs, format, &Options::default())
}

pub(crate) fn json(runs: &[RunData]) -> Value {
    serde_json::from_str(&text(runs, Format::Json)).unwrap()
}

/// `page` without the one script that it may have.
pub(crate) fn unscripted(page: &str) -> String {
    page.replacen(&format!("<script>{SCRIPT}</script>"), "", 1)
}

/// `text` without escapes, on one line.
pub(crate) fn words(text: &str) -> String {
    text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text at the end of `run`, on one line.
pub(crate) fn end(run: &RunData) -> String {
    words(&end_page(run, Some(120)))
}

/// The sections of a Markdown report, without the marks of the first heading.
pub(crate) fn sections(runs: &[RunData], titles: &[&str]) -> String {
    let markdown = text(runs, Format::Markdown);
    let section = |title: &&str| {
        let from = markdown.find(&format!("## {title}\n")).unwrap();
        markdown[from + 3..].split("\n## ").next().unwrap()
    };
    titles.iter().map(section).collect::<Vec<_>>().join("\n## ")
}

/// That `text` has each of the `wanted` parts, but no part after `!`.
pub(crate) fn assert_says(text: &str, wanted: &[&str]) {
    for part in wanted {
        let unwanted = part.strip_prefix('!').filter(|part| !part.starts_with(' '));
        assert_eq!(text.contains(unwanted.unwrap_or(part)), unwanted.is_none(), "'{part}': {text}");
    }
}

pub(crate) fn failed(id: CheckId, why: &str) -> Check {
    Check::new(id, Outcome::Failed, why)
}

pub(crate) fn change(run: &mut RunData, code: &str, patch: &Value) {
    tests_of(run, code).into_iter().for_each(|r| *r = patched(r, patch.clone()));
}

pub(crate) fn tests_of<'a>(run: &'a mut RunData, code: &str) -> Vec<&'a mut TestRecord> {
    run.records.iter_mut().filter(|r| r.workload == code).collect()
}

fn base<T: DeserializeOwned>(name: &str) -> T {
    let mut base: Value = serde_json::from_str(include_str!("../base.json")).unwrap();
    serde_json::from_value(base[name].take()).unwrap()
}

pub(crate) fn manifest(platform: &str, run: &str) -> Manifest {
    let mut m: Manifest = base("manifest");
    platform.clone_into(&mut m.plan.platform);
    Manifest { run: run.to_owned(), ..m }
}

pub(crate) fn made(m: Manifest, records: Vec<TestRecord>) -> RunData {
    RunData::new(m, records, Vec::new())
}

/// A valid test with plausible figures at `tps`.
pub(crate) fn record(m: &Manifest, test: u32, workload: &str, jobs: u32, tps: f64, kib: f64) -> TestRecord {
    let (platform, run, workload) = (m.plan.platform.clone(), m.run.clone(), workload.to_owned());
    let mut r = TestRecord { platform, run, test, workload, jobs, ..base("test") };
    let mut scale = |columns: &[&Column], factor: f64| {
        for column in columns {
            r.set(column, r.figure(column).unwrap() * factor);
        }
    };
    scale(&[column::COMMIT_THROUGHPUT_TPS, column::REDO_WRITES_PER_S, column::REDO_SYNC_WRITES_PER_S], tps / 1e3);
    let times = [column::COMMIT_LATENCY_MS, column::LOG_FILE_SYNC_MS, column::COMMIT_TIME_NS_P50];
    let tails = [column::COMMIT_TIME_NS_P99, column::COMMIT_TIME_NS_MAX];
    let transactions = [column::TRANSACTION_TIME_NS_P50, column::TRANSACTION_TIME_NS_P99];
    [&times[..], &tails, &transactions].into_iter().for_each(|columns| scale(columns, f64::from(jobs) / tps * 1e3));
    r.set(column::REDO_MIB_PER_S, tps * kib / 1024.0);
    r.set(column::REDO_KIB_PER_TX, kib);
    r.waits.sessions.values_mut().for_each(|n| *n *= u64::from(jobs));
    r
}

/// One run. Workloads differ enough that their charts differ.
pub(crate) fn run(platform: &str, id: &str, speed: f64) -> RunData {
    let m = manifest(platform, id);
    let mut records = Vec::new();
    for (workload, base, kib) in [("LGWR-LAT1", 2_000.0, 1.53), ("LGWR-THR", 90.0, 481.2)] {
        for (jobs, gain) in [(1, 1.0), (2, 1.8), (4, 2.9)] {
            let test = records.len() as u32 + 1;
            records.push(record(&m, test, workload, jobs, base * gain * speed, kib));
        }
    }
    let over_time = records
        .iter()
        .map(|r| {
            let tps = r.figure(column::COMMIT_THROUGHPUT_TPS).unwrap();
            let wave = |t: i32| tps * (1.0 + 0.04 * (f64::from(t) * 1.7 + f64::from(r.test)).sin());
            let rows = (-2..30).map(|t| vec![Some(f64::from(t)), Some(wave(t))]).collect();
            let columns = vec!["t_s".to_owned(), "commit_throughput_tps".to_owned()];
            (r.test, OverTime::from_series(&Series { columns, rows }).unwrap())
        })
        .collect();
    RunData { records, over_time, ..made(m, Vec::new()) }
}

/// `record` with a limit of the mean of `samples`, tps, beside it.
pub(crate) fn limit(record: &mut TestRecord, name: &str, of: &str, samples: [f64; 2]) {
    let (tps, redo) = ((samples[0] + samples[1]) / 2.0, record.figure(column::REDO_KIB_PER_TX).map(|kib| kib * 1024.0));
    let limit = json!({"name": name, "of": of, "jobs": record.jobs, "redo_bytes_per_tx": redo, "tps": tps,
        "samples": samples, "source": "run"});
    let share = record.figure(column::COMMIT_THROUGHPUT_TPS).unwrap() / tps * 100.0;
    let absent = json!({"limit_share_pct": null});
    *record = patched(record, json!({"limit": limit, "limit_tps": tps, "limit_share_pct": share, "absent": absent}));
}

/// Two platforms; the second has an invalid test with errors and skipped a workload.
pub(crate) fn two_platforms() -> Vec<RunData> {
    let mut b = run("nvme", "20250304-050607-nvme", 2.6);
    b.manifest.plan.skipped.push(SkippedWorkload {
        code: "LGWR-LAT125".to_owned(),
        reason: "it needs 3 GiB of free space, and there are 2".to_owned(),
    });
    b.manifest.target.settings.insert("wal_buffers".to_owned(), "64MB".to_owned());
    for r in &mut b.records {
        let tps = r.figure(column::COMMIT_THROUGHPUT_TPS).unwrap() * (1.2 + 0.01 * f64::from(r.test));
        let of = "reference log writer (fdatasync) in /var/lib/postgresql/15/main/pg_wal";
        limit(r, "log writer", of, [tps * 0.99, tps * 1.01]);
    }
    let bad = &mut b.records[5];
    let why = "the jobs counted 20,358 commits, the database 20,101: more than 1 % apart";
    bad.add_check(failed(CheckId::CommitsWindow, why));
    bad.set(column::ERRORS, 3.0);
    bad.error_texts.insert("40001: could not serialize access".to_owned(), 3);
    bad.notes.push("a checkpoint began in the window".into());
    vec![run("sata ssd", "20250304-040506-sata", 1.0), b]
}

/// Evenly spread numbers from 0 to 1.
fn spread(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / 2_147_483_648.0
    }
}

/// A scan of commit time over redo as test `test`: 0 to 6 MiB in 64 KiB steps, 12 commits each. A flush at each multiple
/// of `flush_at` leaves the rest to the commit; without `flush_at` the commit flushes everything.
pub(crate) fn scan(m: &Manifest, test: u32, flush_at: Option<f64>, ns_per_mib: f64) -> TestRecord {
    let mut r = record(m, test, "LGWR-SIZE", 1, 400.0, 3_072.0);
    let mut noise = spread(u64::from(test) + 40);
    let size = |i: u32| {
        let redo_bytes = f64::from(i) * 65_536.0;
        let left = flush_at.map_or(redo_bytes, |at| (redo_bytes + 4096.0) % at);
        let ideal = 250_000.0 + ns_per_mib * left / 1_048_576.0;
        // One commit in 20 meets a stall.
        let mut time = || ideal * (0.9 + 0.2 * noise()) * if noise() < 0.05 { 4.0 } else { 1.0 };
        let commit_ns: Vec<u64> = (0..12).map(|_| time() as u64).collect();
        SizePoint { idle_s: 0.0, redo_bytes, write_ns: vec![(redo_bytes * 0.8) as u64; commit_ns.len()], commit_ns }
    };
    r.details.push(Detail::Sizes((0..=96).map(size).collect()));
    r
}

/// Two platforms whose scans differ: a sawtooth that a setting explains, and a straight line.
pub(crate) fn two_scans() -> Vec<RunData> {
    let one = |platform: &str, id: &str, flush_at, ns_per_mib| {
        let mut run = run(platform, id, 1.0);
        run.records.truncate(3);
        run.manifest.target.settings.insert("wal_writer_flush_after".to_owned(), "1MB".to_owned());
        let scan = scan(&run.manifest, 4, flush_at, ns_per_mib);
        run.records.push(scan);
        run
    };
    vec![one("disk", "run-disk", Some(1_048_576.0), 1_100_000.0), one("flash", "run-flash", None, 300_000.0)]
}
