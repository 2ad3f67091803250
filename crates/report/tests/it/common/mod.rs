//! Runs made by hand: two platforms, two workloads, an invalid test, missing figures, an error.

#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod groups;

use std::collections::BTreeMap;

use loadline_model::limits::{LimitSource, SizePoint, TestLimit};
use loadline_model::machine::{Machine, Storage};
use loadline_model::manifest::{Calibration, Overhead, RunState, TargetInfo};
use loadline_model::plan::{PlannedWorkload, SkippedWorkload};
use loadline_model::snapshot::WaitProfile;
use loadline_model::{
    Check, CheckId, Driver, Finding, Jobs, Manifest, Outcome, Plan, Series, Severity, TestRecord, column,
};
use loadline_report::{Format, Options, OverTime, RunData, render};

fn map<V>(pairs: &[(&str, V)]) -> BTreeMap<String, V>
where
    V: Clone,
{
    pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect()
}

/// The report of `runs`.
pub(crate) fn text(runs: &[RunData], format: Format) -> String {
    String::from_utf8(render(runs, format, &Options::default()).unwrap()).unwrap()
}

/// `text` without escapes, on one line.
pub(crate) fn words(text: &str) -> String {
    text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The section `title` of a Markdown report, without its heading's marks.
pub(crate) fn section(markdown: &str, title: &str) -> String {
    let from = markdown.find(&format!("## {title}\n")).unwrap();
    markdown[from + 3..].split("\n## ").next().unwrap().to_owned()
}

pub(crate) fn manifest(platform: &str, run: &str) -> Manifest {
    let workloads = ["LGWR-LAT1", "LGWR-THR"].map(|code| PlannedWorkload::of(code, Driver::Database));
    Manifest {
        schema: 1,
        run: run.to_owned(),
        loadline_version: "0.1.0".to_owned(),
        started_at: "2025-03-04T05:06:07Z".to_owned(),
        command: ["loadline", "run", "--target", "postgres://bench@db1/bench?host=/tmp&port=5433"]
            .map(String::from)
            .into(),
        plan: Plan {
            target: "postgres://bench@db1/bench".to_owned(),
            platform: platform.to_owned(),
            workloads: workloads.into(),
            jobs: Jobs::List(vec![1, 2, 4]),
            duration_s: 30.0,
            warmup_s: 2.5,
            repeat: 1,
            size_bytes: 128 << 20,
            seed: 42,
            ..Plan::default()
        },
        target: TargetInfo {
            kind: "postgres".to_owned(),
            in_process: false,
            product: "PostgreSQL".to_owned(),
            version: "15.8 (Debian 15.8-0+deb12u1)".to_owned(),
            url: "postgres://bench@db1/bench".to_owned(),
            nodes: 1,
            local: true,
            host: None,
            memory_bytes: None,
            settings: map(&[("fsync", "on".to_owned()), ("wal_buffers", "16MB".to_owned())]),
            log_dir: Some("/var/lib/postgresql/15/main/pg_wal".to_owned()),
            data_dir: Some("/var/lib/postgresql/15/main".to_owned()),
            storage: map(&[(
                "log",
                Storage {
                    path: "/var/lib/postgresql/15/main/pg_wal".to_owned(),
                    mount_point: "/".to_owned(),
                    filesystem: "ext4".to_owned(),
                    mount_options: "rw,relatime".to_owned(),
                    source: "/dev/nvme0n1p2".to_owned(),
                    device: Some("nvme0n1".to_owned()),
                    device_facts: map(&[
                        ("model", "KXG60ZNV512G".to_owned()),
                        ("write_cache", "write back".to_owned()),
                    ]),
                    free_bytes: Some(123_456_789_012),
                },
            )]),
            notes: vec!["the server shares its machine with loadline".to_owned()],
        },
        doctor: vec![
            Finding::new("fsync", Severity::Ok, "fsync", "on", ""),
            Finding::new(
                "jit",
                Severity::Warning,
                "jit",
                "on",
                "It slows short statements; it is switched off for the jobs.",
            ),
        ],
        machine: Machine {
            host: "db1".to_owned(),
            cpu_model: "AMD EPYC 7543".to_owned(),
            cpus: 8,
            memory_bytes: 64 << 30,
            kernel: "6.1.0-25-amd64".to_owned(),
            os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            virtualisation: None,
        },
        overhead: Overhead {
            client_ns_per_tx: Some(812.0),
            client_absent: None,
            in_database_ns_per_tx: None,
            workload: Some("LGWR-LAT1".to_owned()),
        },
        calibration: map(&[(
            "LGWR-LAT1",
            Calibration {
                parameters: map(&[("payload_bytes", 1200)]),
                redo_bytes_per_tx: Some(1_571.0),
                nominal: Some([1024.0, 1536.0, 2048.0]),
                note: None,
            },
        )]),
        state: RunState::Complete,
        ..Manifest::default()
    }
}

/// A valid test with plausible figures at `tps`.
pub(crate) fn record(m: &Manifest, test: u32, workload: &str, jobs: u32, tps: f64, kib: f64) -> TestRecord {
    let mut r = TestRecord {
        platform: m.plan.platform.clone(),
        run: m.run.clone(),
        test,
        group: "log-writer".to_owned(),
        target: m.target.url.clone(),
        driver: Driver::Database,
        jobs,
        started_at: "2025-03-04T05:06:07Z".to_owned(),
        waits: WaitProfile {
            samples: 300,
            sessions: map(&[("IO:WALSync", u64::from(jobs) * 180), ("CPU", u64::from(jobs) * 90)]),
            others: None,
        },
        ..TestRecord::blank(workload)
    };
    let ms = f64::from(jobs) / tps * 1000.0;
    for (id, value) in [
        (column::CPU_BUSY_PCT, 12.0),
        (column::CPU_USER_PCT, 8.0),
        (column::CPU_SYS_PCT, 4.0),
        (column::CPU_IDLE_PCT, 80.0),
        (column::CPU_IOWAIT_PCT, 8.0),
        (column::COMMIT_THROUGHPUT_TPS, tps),
        (column::COMMIT_LATENCY_MS, ms),
        (column::REDO_WRITES_PER_S, tps * 0.9),
        (column::REDO_SYNC_WRITES_PER_S, tps * 0.8),
        (column::REDO_MIB_PER_S, tps * kib / 1024.0),
        (column::REDO_KIB_PER_TX, kib),
        (column::LOG_FILE_SYNC_MS, ms * 0.7),
        (column::ELAPSED_S, 30.0),
        (column::COMMIT_TIME_NS_P50, ms * 0.8e6),
        (column::COMMIT_TIME_NS_P99, ms * 2.4e6),
        (column::COMMIT_TIME_NS_MAX, ms * 9e6),
        (column::TRANSACTION_TIME_NS_P50, ms * 0.95e6),
        (column::TRANSACTION_TIME_NS_P99, ms * 2.6e6),
        (column::ERRORS, 0.0),
        (column::ROWS_PER_TX, 1.0),
        (column::STATEMENTS_PER_TX, 1.0),
    ] {
        r.set(id, value);
    }
    r.leave_out(column::REDO_BLOCKS_PER_S, "PostgreSQL 15 does not count WAL bytes written, only 18 and later do");
    r.leave_out(column::FLASH_CACHE_WRITE_PCT, "the database has no flash log");
    r.leave_out(column::LIMIT_SHARE_PCT, "the limit of the device was not measured");
    r.add_check(Check::require(
        CheckId::LittlesLaw,
        true,
        "jobs / tps is 1.00 of the transaction time, allowed 0.95 to 1.05".to_owned(),
    ));
    r.add_check(Check::new(CheckId::ClientCpu, Outcome::NotMade, "the driver runs in the database"));
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
            (r.test, OverTime::of(&Series { columns, rows }).unwrap())
        })
        .collect();
    RunData { records, over_time, ..RunData::new(m, Vec::new(), Vec::new()) }
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
        let tps = r.figure(column::COMMIT_THROUGHPUT_TPS).unwrap();
        let limit = tps * (1.2 + 0.01 * f64::from(r.test));
        r.limit = Some(TestLimit {
            name: "log writer".to_owned(),
            of: "reference log writer (fdatasync) in /var/lib/postgresql/15/main/pg_wal".to_owned(),
            jobs: r.jobs,
            redo_bytes_per_tx: Some(r.figure(column::REDO_KIB_PER_TX).unwrap() * 1024.0),
            tps: limit,
            samples: vec![limit * 0.99, limit * 1.01],
            source: LimitSource::Run,
        });
        r.set(column::LIMIT_TPS, limit);
        r.set(column::LIMIT_SHARE_PCT, tps / limit * 100.0);
    }
    let bad = &mut b.records[5];
    bad.add_check(Check::require(
        CheckId::CommitsWindow,
        false,
        "the jobs counted 20,358 commits, the database 20,101: more than 1 % apart".to_owned(),
    ));
    bad.set(column::ERRORS, 3.0);
    bad.error_texts.insert("40001: could not serialize access".to_owned(), 3);
    bad.notes.push("a checkpoint began in the window".to_owned());
    vec![run("sata ssd", "20250304-040506-sata", 1.0), b]
}

/// A scan of commit time over redo as test `test`: 0 to 6 MiB in 64 KiB steps, 12 commits each. A flush at each multiple
/// of `flush_at` leaves the rest to the commit; without `flush_at` the commit flushes everything.
pub(crate) fn scan(m: &Manifest, test: u32, flush_at: Option<f64>, ns_per_mib: f64) -> TestRecord {
    let mut r = record(m, test, "LGWR-SIZE", 1, 400.0, 3_072.0);
    let mut state = u64::from(test) + 40;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / 2_147_483_648.0
    };
    r.sizes = (0..=96)
        .map(|i| {
            let redo_bytes = f64::from(i) * 65_536.0;
            let left = flush_at.map_or(redo_bytes, |at| (redo_bytes + 4096.0) % at);
            let ideal = 250_000.0 + ns_per_mib * left / 1_048_576.0;
            // One commit in 20 meets a stall.
            let mut time = || ideal * (0.9 + 0.2 * noise()) * if noise() < 0.05 { 4.0 } else { 1.0 };
            let commit_ns: Vec<u64> = (0..12).map(|_| time() as u64).collect();
            SizePoint { redo_bytes, write_ns: vec![(redo_bytes * 0.8) as u64; commit_ns.len()], commit_ns }
        })
        .collect();
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
