//! A run with workloads of all eight groups, their figures and histograms made up.

use std::collections::BTreeMap;

use loadline_model::manifest::TableLoad;
use loadline_model::plan::{PlannedWorkload, SkippedWorkload};
use loadline_model::{Check, Driver, Latencies, TestRecord};
use loadline_report::RunData;

use super::{manifest, map, record};

/// Code, group, first KPI, its value with one job, mean transaction time with one job in ms, other KPIs with
/// their values (they stay the same).
type Shape = (&'static str, &'static str, &'static str, f64, f64, &'static [(&'static str, f64)]);

const SHAPES: [Shape; 14] = [
    ("SRV-QUERY1", "server", "queries_per_s", 21_400.0, 0.0467, &[("cache_hit_pct", 99.998)]),
    ("SRV-SCAN", "server", "data_mib_per_s", 1_940.0, 66.2, &[("rows_per_s", 15_300_000.0), ("cache_hit_pct", 99.97)]),
    (
        "STO-READ",
        "storage",
        "block_reads_per_s",
        2_640.0,
        0.379,
        &[("read_time_us_mean", 375.0), ("read_time_us_p99", 1_180.0), ("reads_within_512us_pct", 90.2)],
    ),
    ("STO-WRITE", "storage", "physical_written_mib_per_s", 118.0, 2_100.0, &[("rows_per_s", 940_000.0)]),
    ("STO-RANDOM", "storage", "io_per_s", 6_200.0, 0.61, &[("buffer_wait_pct", 4.5)]),
    ("LGWR-LAT1", "log-writer", "commit_throughput_tps", 2_000.0, 0.5, &[("redo_mib_per_s", 2.9)]),
    (
        "DBWR-CKPT",
        "database-writer",
        "checkpoint_tps",
        1_210.0,
        0.55,
        &[("calm_tps", 1_800.0), ("checkpoint_time_ns_p99", 14_300_000.0), ("calm_time_ns_p99", 1_900_000.0)],
    ),
    ("DBL-11", "data-load", "rows_per_s", 4_100.0, 0.48, &[("sql_service_time_s", 0.000_412)]),
    ("DBL-22", "data-load", "rows_per_s", 612_000.0, 16.3, &[("data_mib_per_s", 74.0)]),
    ("DA-AGG", "data-analytics", "rows_per_s", 7_900_000.0, 126.0, &[("data_mib_per_s", 812.0)]),
    ("DA-PARALLEL", "data-analytics", "rows_per_s", 7_800_000.0, 128.0, &[("speed_up", 1.0)]),
    ("TP-LIGHT", "transaction-processing", "commit_throughput_tps", 1_900.0, 0.52, &[]),
    ("TP-REPORT", "transaction-processing", "queries_per_s", 3_100.0, 0.32, &[("rows_per_s", 1_550_000.0)]),
    ("PLS-PRIME", "procedural-code", "mops_per_s", 18.2, 54.9, &[("mops_per_s_per_job", 18.2)]),
];
const LATENCIES: [&str; 2] = ["commit_latency_ms", "transaction_time_ns_p99"];

/// One platform, everything measured but what was skipped; STO-WRITE has nothing but invalid tests.
pub(crate) fn all_groups(platform: &str, id: &str, speed: f64) -> RunData {
    let mut m = manifest(platform, id);
    m.plan.workloads = SHAPES
        .iter()
        .map(|shape| shape.0)
        .chain(["TP-HEAVY"])
        .map(|code| PlannedWorkload {
            code: code.to_owned(),
            driver: Driver::Database,
            driver_reason: String::new(),
            parameters: BTreeMap::new(),
            forced: None,
        })
        .collect();
    let skip = |code: &str, reason: &str| SkippedWorkload { code: code.to_owned(), reason: reason.to_owned() };
    let direct = "it needs reads that pass by the page cache, which only root can make here";
    m.plan.skipped =
        vec![skip("STO-SCAN", direct), skip("STO-READ-ASYNC", direct), skip("DBL-STREAM", "it needs --rate")];
    m.data_set = vec![TableLoad {
        table: "data_rows".to_owned(),
        rows: 1_048_576,
        rows_loaded: 1_048_576,
        bytes_loaded: 104_857_600,
        load_s: 1.6,
        finish_s: 0.4,
        loaders: 2,
        path: "COPY, binary".to_owned(),
        fingerprint: "1f3a9c0d2b4e6f80".to_owned(),
        version: 1,
    }];
    let mut records: Vec<TestRecord> = Vec::new();
    let mut histograms = BTreeMap::new();
    for shape in &SHAPES {
        let swept: &[(u32, &str, u32)] = match shape.0 {
            "DBL-11" => {
                &[(1, "rows_per_tx", 1), (1, "rows_per_tx", 2), (1, "rows_per_tx", 10), (1, "rows_per_tx", 100)]
            }
            "DA-PARALLEL" => &[(1, "threads", 1), (1, "threads", 2), (1, "threads", 4)],
            "DBL-22" => &[(1, "", 0)],
            _ => &[],
        };
        let over_jobs: &[u32] = if swept.is_empty() || shape.0 == "DBL-11" { &[1, 2, 4, 8] } else { &[] };
        let places = swept.iter().copied().chain(over_jobs.iter().map(|jobs| (*jobs, "", 0)));
        for (jobs, column, value) in places {
            let test = records.len() as u32 + 1;
            let r = made(&m, test, shape, (jobs, column, value), speed);
            if ["storage", "log-writer"].contains(&shape.1) {
                let (fast, kind) = if shape.1 == "storage" { (250_000.0, "read") } else { (420_000.0, "commit") };
                let spread = waits(test, fast * f64::from(jobs).powf(0.3) / speed);
                histograms.insert(test, vec![(kind.to_owned(), spread)]);
            }
            records.push(r);
        }
    }
    // One in an open loop.
    for r in records.iter_mut().filter(|r| r.workload == "DBL-22") {
        r.set("rate_tps", 20.0);
    }
    RunData { manifest: m, records, series: BTreeMap::new(), histograms, warnings: Vec::new() }
}

fn made(
    m: &loadline_model::Manifest,
    test: u32,
    (code, group, kpi, base, ms, others): &Shape,
    (jobs, column, value): (u32, &str, u32),
    speed: f64,
) -> TestRecord {
    let growth = speed * f64::from(jobs).powf(0.7) * f64::from(value.max(1)).powf(0.35);
    let (rate, ms) = (base * growth, ms * f64::from(jobs).powf(0.3) * f64::from(value.max(1)).powf(0.65) / speed);
    let mut r = record(m, test, code, jobs, f64::from(jobs) * 1e3 / ms, 1.5);
    r.group = (*group).to_owned();
    r.kpis = std::iter::once(*kpi).chain(others.iter().map(|o| o.0)).map(str::to_owned).collect();
    r.kpis.extend(
        LATENCIES.iter().filter(|id| r.kpis.iter().all(|k| k != *id)).map(|id| (*id).to_owned()).collect::<Vec<_>>(),
    );
    for (id, value) in *others {
        r.set(id, *value);
    }
    r.set(kpi, rate);
    r.set("commit_latency_ms", ms);
    r.set("tx_per_s", f64::from(jobs) * 1e3 / ms);
    r.set("transaction_time_ns_mean", ms * 1e6);
    r.set("cpu_busy_pct", (9.0 * f64::from(jobs)).min(97.0));
    if *group != "log-writer" {
        for id in ["log_file_sync_ms", "redo_writes_per_s", "redo_sync_writes_per_s"] {
            r.figures.remove(id);
        }
        if !["data-load", "transaction-processing", "database-writer"].contains(group) {
            r.figures.retain(|id, _| !["redo_mib_per_s", "redo_kib_per_tx"].contains(&id.as_str()));
        }
    }
    if !column.is_empty() {
        r.swept = Some(column.to_owned());
        r.parameters = map(&[("swept", i64::from(value))]);
        r.set(column, f64::from(value));
        if column == "threads" {
            r.set("speed_up", f64::from(value).powf(0.35));
        }
    }
    if !["log-writer", "data-load", "transaction-processing"].contains(group) {
        let event = if *group == "storage" { "IO:DataFileRead" } else { "CPU" };
        r.waits.sessions = map(&[(event, u64::from(jobs) * 270)]);
    }
    match *group {
        "storage" => {
            r.data_source = Some(if *code == "STO-WRITE" { "cached" } else { "device" }.to_owned());
            r.set("block_bytes", 8192.0);
            if *code == "STO-READ" {
                r.set("read_wait_pct", 53.0);
            }
            r.set("device_util_pct", 71.0);
            r.leave_out("device_read_share_pct", "the device under the data files is not known");
            r.leave_out("physical_writes_per_s", "PostgreSQL 15 does not count writes by kind, only 16 and later do");
        }
        "data-load" => {
            r.set("threads", 1.0);
            r.set("redo_syncs", 3.0);
            r.leave_out("redo_write_time_us", "track_wal_io_timing is off");
            r.leave_out("redo_sync_time_us", "track_wal_io_timing is off");
        }
        _ => {}
    }
    if *code == "STO-WRITE" {
        let why = "the device took 3 % of what the database wrote: the figure is the page cache's (see --allow-cached)";
        r.add_check(Check::require("device", false, why.to_owned()));
    }
    if *code == "TP-LIGHT" && jobs == 8 {
        let why = "money does not add up: 12 accounts are off by 1,200";
        r.add_check(Check::require("consistency", false, why.to_owned()));
    }
    r
}

/// Latencies around `typical` ns with a tail, the same each time.
fn waits(seed: u32, typical: f64) -> Latencies {
    let mut state = u64::from(seed) * 77 + 5;
    let mut all = Latencies::new();
    for _ in 0..5_000 {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / 2_147_483_648.0
        };
        let around = typical * (0.4 + 0.9 * (next() + next()) / 2.0);
        let stalled = if next() < 0.02 { 4.0 + 30.0 * next() } else { 1.0 };
        all.record((around * stalled) as u64);
    }
    all
}
