//! A run with workloads of all eight groups, their figures and histograms made up.

use std::collections::BTreeMap;

use loadline_analyze::waits::Counts;
use loadline_model::column::{self, column};
use loadline_model::{CheckId, Column, Detail, Latencies, Manifest, TestRecord};
use loadline_report::RunData;
use serde_json::json;

use super::{failed, manifest, patched, record, spread};

/// Code, group, first KPI, its value with one job, mean transaction time with one job in ms, other KPIs with their
/// (constant) values.
const SHAPES: &str = "\
SRV-QUERY1 server queries_per_s 21400 0.0467 cache_hit_pct=99.998
SRV-SCAN server data_mib_per_s 1940 66.2 rows_per_s=15300000 cache_hit_pct=99.97
STO-READ storage block_reads_per_s 2640 0.379 read_time_us_mean=375 read_time_us_p99=1180 reads_within_512us_pct=90.2
STO-WRITE storage physical_written_mib_per_s 118 2100 rows_per_s=940000
STO-RANDOM storage io_per_s 6200 0.61 buffer_wait_pct=4.5
LGWR-LAT1 log-writer commit_throughput_tps 2000 0.5 redo_mib_per_s=2.9
DBWR-CKPT database-writer checkpoint_tps 1210 0.55 calm_tps=1800 checkpoint_time_ns_p99=14300000 calm_time_ns_p99=1900000
DBL-11 data-load rows_per_s 4100 0.48 sql_service_time_s=0.000412
DBL-22 data-load rows_per_s 612000 16.3 data_mib_per_s=74
DA-AGG data-analytics rows_per_s 7900000 126 data_mib_per_s=812
DA-PARALLEL data-analytics rows_per_s 7800000 128 speed_up=1
TP-LIGHT transaction-processing commit_throughput_tps 1900 0.52
TP-REPORT transaction-processing queries_per_s 3100 0.32 rows_per_s=1550000
PLS-PRIME procedural-code mops_per_s 18.2 54.9 mops_per_s_per_job=18.2";

struct Shape {
    code: &'static str,
    group: &'static str,
    kpi: &'static Column,
    base: f64,
    ms: f64,
    others: Vec<(&'static Column, f64)>,
}

fn shapes() -> impl Iterator<Item = Shape> {
    SHAPES.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let &[code, group, kpi, base, ms, ref others @ ..] = words.as_slice() else { panic!("{line}") };
        let [base, ms] = [base, ms].map(|number| number.parse().unwrap());
        let other = |text: &&str| text.split_once('=').map(|(id, v)| (column(id).unwrap(), v.parse().unwrap()));
        Shape { code, group, kpi: column(kpi).unwrap(), base, ms, others: others.iter().filter_map(other).collect() }
    })
}

const LATENCIES: [&Column; 2] = [column::COMMIT_LATENCY_MS, column::TRANSACTION_TIME_NS_P99];

/// One platform with all workloads measured except the skipped ones; STO-WRITE has only invalid tests.
pub(crate) fn all_groups(platform: &str, id: &str, speed: f64) -> RunData {
    let codes = shapes().map(|shape| shape.code).chain(["TP-HEAVY"]);
    let workloads: Vec<_> = codes.map(|code| json!({"code": code, "driver": "database"})).collect();
    let direct = "it needs reads that pass by the page cache, which only root can make here";
    let skipped = [("STO-SCAN", direct), ("STO-READ-ASYNC", direct), ("DBL-STREAM", "it needs --rate")]
        .map(|(code, reason)| json!({"code": code, "reason": reason}));
    let loaded = json!({"table": "data_rows", "rows": 1_048_576, "rows_loaded": 1_048_576, "bytes_loaded": 104_857_600,
        "load_s": 1.6, "finish_s": 0.4, "loaders": 2, "path": "COPY, binary", "fingerprint": "1f3a9c0d2b4e6f80",
        "version": 1});
    let plan = json!({"workloads": workloads, "skipped": skipped});
    let m = patched(&manifest(platform, id), json!({"plan": plan, "data_set": [loaded]}));
    let mut records: Vec<TestRecord> = Vec::new();
    let mut histograms = BTreeMap::new();
    for shape in &shapes().collect::<Vec<_>>() {
        let over = |column: &'static Column, values: &[u32]| values.iter().map(|n| (1, Some(column), *n)).collect();
        let swept: Vec<(u32, Option<&'static Column>, u32)> = match shape.code {
            "DBL-11" => over(column::ROWS_PER_TX, &[1, 2, 10, 100]),
            "DA-PARALLEL" => over(column::THREADS, &[1, 2, 4]),
            "DBL-22" => vec![(1, None, 0)],
            _ => Vec::new(),
        };
        let over_jobs: &[u32] = if swept.is_empty() || shape.code == "DBL-11" { &[1, 2, 4, 8] } else { &[] };
        let places = swept.iter().copied().chain(over_jobs.iter().map(|jobs| (*jobs, None, 0)));
        for (jobs, column, value) in places {
            let test = records.len() as u32 + 1;
            let r = made(&m, test, shape, (jobs, column, value), speed);
            if ["storage", "log-writer"].contains(&shape.group) {
                let (fast, kind) = if shape.group == "storage" { (250_000.0, "read") } else { (420_000.0, "commit") };
                let spread = waits(test, fast * f64::from(jobs).powf(0.3) / speed);
                histograms.insert(test, vec![(kind.to_owned(), spread)]);
            }
            records.push(r);
        }
    }
    // A workload in an open loop.
    for r in records.iter_mut().filter(|r| r.workload == "DBL-22") {
        r.set(column::RATE_TPS, 20.0);
    }
    RunData { histograms, ..super::made(m, records) }
}

fn made(
    m: &Manifest,
    test: u32,
    Shape { code, group, kpi, base, ms, others }: &Shape,
    (jobs, column, value): (u32, Option<&'static Column>, u32),
    speed: f64,
) -> TestRecord {
    let growth = speed * f64::from(jobs).powf(0.7) * f64::from(value.max(1)).powf(0.35);
    let (rate, ms) = (base * growth, ms * f64::from(jobs).powf(0.3) * f64::from(value.max(1)).powf(0.65) / speed);
    let tps = f64::from(jobs) * 1e3 / ms;
    let mut r = record(m, test, code, jobs, tps, 1.5);
    for kpi in std::iter::once(*kpi).chain(others.iter().map(|o| o.0)).chain(LATENCIES) {
        if !r.kpis.iter().any(|k| k == kpi.id) {
            r.kpis.push(kpi.id.to_owned());
        }
    }
    let busy = (9.0 * f64::from(jobs)).min(97.0);
    let times = [(column::COMMIT_LATENCY_MS, ms), (column::TRANSACTION_TIME_NS_MEAN, ms * 1e6)];
    let rates = [(*kpi, rate), (column::TX_PER_S, tps), (column::CPU_BUSY_PCT, busy)];
    others.iter().chain(&rates).chain(&times).for_each(|(column, value)| r.set(column, *value));
    let log = ["log_file_sync_ms", "redo_writes_per_s", "redo_sync_writes_per_s", "redo_mib_per_s", "redo_kib_per_tx"];
    let not = match *group {
        "log-writer" => &log[..0],
        "data-load" | "transaction-processing" | "database-writer" => &log[..3],
        _ => &log[..],
    };
    for id in not {
        r.figures.remove(*id);
    }
    if let Some(column) = column {
        r.details.push(Detail::Swept(column.id.to_owned()));
        r.parameters = [("swept".to_owned(), i64::from(value))].into();
        r.set(column, f64::from(value));
        if column == column::THREADS {
            r.set(column::SPEED_UP, f64::from(value).powf(0.35));
        }
    }
    if !["log-writer", "data-load", "transaction-processing"].contains(group) {
        let event = if *group == "storage" { "IO:DataFileRead" } else { "CPU" };
        r.waits.sessions = [(event.to_owned(), u64::from(jobs) * 270)].into();
    }
    let (cached, read) = (*code == "STO-WRITE", *code == "STO-READ");
    let mut r = patched(
        &r,
        match *group {
            "storage" => json!({"data_source": if cached { "cached" } else { "device" }, "block_bytes": 8192,
            "read_wait_pct": read.then_some(53), "device_util_pct": 71, "absent": {
                "device_read_share_pct": "the device under the data files is not known",
                "physical_writes_per_s": "PostgreSQL 15 does not count writes by kind, only 16 and later do"}}),
            "data-load" => json!({"threads": 1, "redo_syncs": 3, "absent": {
            "redo_write_time_us": "track_wal_io_timing is off", "redo_sync_time_us": "track_wal_io_timing is off"}}),
            _ => json!({}),
        },
    );
    r.group = (*group).to_owned();
    if cached {
        let why = "the device took 3 % of what the database wrote: the figure is the page cache's (see --allow-cached)";
        r.add_check(failed(CheckId::DataSource, why));
    }
    if *code == "TP-LIGHT" && jobs == 8 {
        r.add_check(failed(CheckId::Consistency, "money does not add up: 12 accounts are off by 1,200"));
    }
    r
}

/// Latencies around `typical` ns with a tail; deterministic.
fn waits(seed: u32, typical: f64) -> Counts {
    let mut next = spread(u64::from(seed) * 77 + 5);
    let mut all = Latencies::new();
    for _ in 0..5_000 {
        let around = typical * (0.4 + 0.9 * (next() + next()) / 2.0);
        let stalled = if next() < 0.02 { 4.0 + 30.0 * next() } else { 1.0 };
        all.record((around * stalled) as u64);
    }
    Counts::from_latencies(&all)
}
