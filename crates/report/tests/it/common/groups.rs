//! A run with workloads of all eight groups, their figures and histograms made up.

use std::collections::BTreeMap;

use loadline_analyze::waits::Counts;
use loadline_model::column::{self, column};
use loadline_model::group::distinct;
use loadline_model::{CheckId, Column, Detail, Latencies, Manifest, TestRecord};
use loadline_report::RunData;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{failed, manifest, patched, record, spread};

#[derive(Deserialize)]
struct Data {
    manifest: Value,
    groups: BTreeMap<String, Group>,
    shapes: Vec<Shape>,
}

#[derive(Deserialize)]
struct Group {
    /// Figures of the log that its tests lack.
    without: Vec<String>,
    /// Event that its sessions wait for, if not as in `base.json`.
    wait: Option<String>,
    #[serde(default)]
    patch: Map<String, Value>,
}

#[derive(Deserialize)]
struct Shape {
    code: String,
    group: String,
    /// First KPI, with its value and the mean transaction time in ms with one job.
    kpi: String,
    base: f64,
    ms: f64,
    /// Other KPIs with their (constant) values.
    others: Vec<(String, f64)>,
    #[serde(default)]
    patch: Map<String, Value>,
}

const LATENCIES: [&Column; 2] = [column::COMMIT_LATENCY_MS, column::TRANSACTION_TIME_NS_P99];

/// One platform with all workloads measured except the skipped ones; STO-WRITE has only invalid tests.
pub(crate) fn all_groups(platform: &str, id: &str, speed: f64) -> RunData {
    let data: Data = serde_json::from_str(include_str!("../groups.json")).unwrap();
    let codes = data.shapes.iter().map(|shape| shape.code.as_str()).chain(["TP-HEAVY"]);
    let workloads: Vec<_> = codes.map(|code| json!({"code": code, "driver": "database"})).collect();
    let m = patched(&patched(&manifest(platform, id), data.manifest), json!({"plan": {"workloads": workloads}}));
    let mut records: Vec<TestRecord> = Vec::new();
    let mut histograms = BTreeMap::new();
    for shape in &data.shapes {
        let over = |column: &'static Column, values: &[u32]| values.iter().map(|n| (1, Some(column), *n)).collect();
        let swept: Vec<(u32, Option<&'static Column>, u32)> = match shape.code.as_str() {
            "DBL-11" => over(column::ROWS_PER_TX, &[1, 2, 10, 100]),
            "DA-PARALLEL" => over(column::THREADS, &[1, 2, 4]),
            "DBL-22" => vec![(1, None, 0)],
            _ => Vec::new(),
        };
        let over_jobs: &[u32] = if swept.is_empty() || shape.code == "DBL-11" { &[1, 2, 4, 8] } else { &[] };
        let places = swept.iter().copied().chain(over_jobs.iter().map(|jobs| (*jobs, None, 0)));
        for (jobs, column, value) in places {
            let test = records.len() as u32 + 1;
            let r = made(&m, test, (shape, &data.groups[&shape.group]), (jobs, column, value), speed);
            if ["storage", "log-writer"].contains(&shape.group.as_str()) {
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
    (Shape { code, group, kpi, base, ms, others, patch }, of): (&Shape, &Group),
    (jobs, swept, value): (u32, Option<&'static Column>, u32),
    speed: f64,
) -> TestRecord {
    let growth = speed * f64::from(jobs).powf(0.7) * f64::from(value.max(1)).powf(0.35);
    let (rate, ms) = (base * growth, ms * f64::from(jobs).powf(0.3) * f64::from(value.max(1)).powf(0.65) / speed);
    let tps = f64::from(jobs) * 1e3 / ms;
    let mut r = record(m, test, code, jobs, tps, 1.5);
    let others: Vec<(&Column, f64)> = others.iter().map(|(id, v)| (column(id).unwrap(), *v)).collect();
    let kpi = column(kpi).unwrap();
    let own = std::iter::once(kpi).chain(others.iter().map(|of| of.0)).chain(LATENCIES).map(|kpi| kpi.id.to_owned());
    r.kpis = distinct(std::mem::take(&mut r.kpis).into_iter().chain(own));
    let busy = (9.0 * f64::from(jobs)).min(97.0);
    let times = [(column::COMMIT_LATENCY_MS, ms), (column::TRANSACTION_TIME_NS_MEAN, ms * 1e6)];
    let rates = [(kpi, rate), (column::TX_PER_S, tps), (column::CPU_BUSY_PCT, busy)];
    others.iter().chain(&rates).chain(&times).for_each(|(column, value)| r.set(column, *value));
    r.figures.retain(|id, _| !of.without.contains(id));
    if let Some(column) = swept {
        r.details.push(Detail::Swept(column.id.to_owned()));
        r.parameters = [("swept".to_owned(), i64::from(value))].into();
        r.set(column, f64::from(value));
        if column == column::THREADS {
            r.set(column::SPEED_UP, f64::from(value).powf(0.35));
        }
    }
    if let Some(event) = &of.wait {
        r.waits.sessions = [(event.clone(), u64::from(jobs) * 270)].into();
    }
    let mut r = patched(&patched(&r, Value::Object(of.patch.clone())), Value::Object(patch.clone()));
    r.group.clone_from(group);
    if code == "STO-WRITE" {
        let why = "the device took 3 % of what the database wrote: the figure is the page cache's (see --allow-cached)";
        r.add_check(failed(CheckId::DataSource, why));
    }
    if code == "TP-LIGHT" && jobs == 8 {
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
