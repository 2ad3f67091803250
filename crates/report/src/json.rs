//! The JSON report: manifests and records as stored, and a computed summary.

use std::collections::BTreeMap;

use loadline_analyze::{Bound, Comparison, LoadLine, Saturation, Shape, Sweep, bound_of_sweep};
use loadline_model::{Manifest, TestRecord, Validity};
use serde::Serialize;
use serde_json::Value;

use crate::content::{Waits, kept_tests, waits_of};
use crate::platform_run::{PlatformRun, Scan, apart, comparisons, sides};
use crate::{ReportError, RunData};

/// Version of the layout below.
const REPORT_SCHEMA: u32 = 3;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    runs: Vec<Run<'a>>,
    summary: Summary<'a>,
}

#[derive(Serialize)]
struct Run<'a> {
    label: &'a str,
    manifest: &'a Manifest,
    tests: Vec<Test<'a>>,
    warnings: &'a [String],
    /// In Markdown, by workload; of the whole run under the empty name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    notes: &'a BTreeMap<String, String>,
}

/// A test as it is stored, and what its checks say of it.
#[derive(Serialize)]
#[serde(untagged)]
enum Test<'a> {
    Measured {
        validity: Validity,
        tries: u32,
        #[serde(flatten)]
        record: &'a TestRecord,
    },
    /// Its `valid` is null.
    Imported(Value),
}

impl<'a> Test<'a> {
    fn of(record: &'a TestRecord) -> Result<Test<'a>, ReportError> {
        if let Some(validity) = record.validity() {
            return Ok(Test::Measured { validity, tries: record.tries, record });
        }
        let mut value = serde_json::to_value(record)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("valid".to_owned(), Value::Null);
        }
        Ok(Test::Imported(value))
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    tests: usize,
    valid: usize,
    disturbed: usize,
    refused: usize,
    /// Tests of other tools, which are none of these.
    #[serde(skip_serializing_if = "is_zero")]
    imported: usize,
    /// Tests that are valid only by an option: see [`TestRecord::kept_by`].
    kept_by_option: usize,
    sweeps: Vec<SweepSummary<'a>>,
    scans: Vec<ScanSummary<'a>>,
    comparisons: Vec<Comparison>,
    waits: Vec<Waits<'a>>,
}

#[derive(Serialize)]
struct SweepSummary<'a> {
    label: &'a str,
    #[serde(flatten)]
    sweep: &'a Sweep,
    peak_jobs: Option<u32>,
    peak_throughput_tps: Option<f64>,
    /// Jobs, or value of the swept column (`over`), at the peak.
    peak_at: Option<u32>,
    /// The peak, in the unit of column `rate`.
    peak_rate: Option<f64>,
    saturation: Saturation,
    load_line: LoadLine,
    bound: Option<Bound>,
}

/// A scan of commit time over redo; its points are `sizes` of the test.
#[derive(Serialize)]
struct ScanSummary<'a> {
    label: &'a str,
    workload: &'a str,
    test: u32,
    validity: Option<Validity>,
    result: Option<&'a Shape>,
    cause: Option<&'a str>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The object, indented, with a final line break.
pub(crate) fn render(runs: &[RunData], across_drivers: bool) -> Result<String, ReportError> {
    let apart = apart(runs);
    let runs = apart.as_deref().unwrap_or(runs);
    let sides = sides(runs);
    let records = || runs.iter().flat_map(|r| &r.records);
    let count = |of: Option<Validity>| records().filter(|r| r.validity() == of).count();
    let report = Report {
        schema: REPORT_SCHEMA,
        runs: sides
            .iter()
            .map(|s| {
                Ok(Run {
                    label: &s.label,
                    manifest: &s.run.manifest,
                    tests: s.run.records.iter().map(Test::of).collect::<Result<_, _>>()?,
                    warnings: &s.run.warnings,
                    notes: &s.run.notes,
                })
            })
            .collect::<Result<_, ReportError>>()?,
        summary: Summary {
            tests: records().count(),
            valid: count(Some(Validity::Valid)),
            disturbed: count(Some(Validity::Disturbed)),
            refused: count(Some(Validity::Refused)),
            imported: count(None),
            kept_by_option: kept_tests(records()).map_or(0, |(n, _)| n),
            sweeps: sides.iter().flat_map(|s| s.sweeps.iter().map(|sweep| sweep_summary(s, sweep))).collect(),
            scans: sides.iter().flat_map(|s| s.scans.iter().map(|scan| scan_summary(s, scan))).collect(),
            comparisons: comparisons(&sides, across_drivers),
            waits: sides.iter().flat_map(waits_of).collect(),
        },
    };
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    Ok(text)
}

fn sweep_summary<'a>(side: &'a PlatformRun<'a>, sweep: &'a Sweep) -> SweepSummary<'a> {
    let peak = sweep.peak();
    SweepSummary {
        label: &side.label,
        sweep,
        peak_jobs: peak.map(|p| p.jobs),
        peak_throughput_tps: peak.and_then(|p| p.throughput()).map(|t| t.mean),
        peak_at: peak.map(|p| p.at),
        peak_rate: peak.and_then(|p| sweep.rate_at(p)).map(|r| r.mean),
        saturation: sweep.saturation(),
        load_line: sweep.load_line(side.run.manifest.plan.latency_objective_ns),
        bound: bound_of_sweep(sweep, &side.run.records),
    }
}

fn scan_summary<'a>(side: &'a PlatformRun<'a>, scan: &'a Scan<'a>) -> ScanSummary<'a> {
    ScanSummary {
        label: &side.label,
        workload: &scan.record.workload,
        test: scan.record.test,
        validity: scan.record.validity(),
        result: scan.shape.as_ref(),
        cause: scan.cause.as_deref(),
    }
}
