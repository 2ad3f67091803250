//! The JSON report: manifests and records as stored, and a computed summary.

use std::collections::BTreeMap;

use loadline_analyze::{Sweep, bound_of_sweep};
use loadline_model::facts::{Fact, facts};
use loadline_model::{Manifest, TestRecord, Validity};
use serde::Serialize;
use serde_json::{Value, json};

use crate::content::{self, kept_tests, waits_of};
use crate::platform_run::{PlatformRun, Scan, by_variant, comparisons, sides};
use crate::{Options, ReportError, RunData};

/// Version of the layout below.
const REPORT_SCHEMA: u32 = 3;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    runs: Vec<Run<'a>>,
    summary: Value,
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
    facts: Vec<Fact>,
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
    /// A test whose `valid` is null.
    Imported(Value),
}

impl<'a> Test<'a> {
    fn new(record: &'a TestRecord) -> Result<Test<'a>, ReportError> {
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

/// The object, indented, with a final line break.
pub(crate) fn render(runs: &[RunData], options: &Options) -> Result<String, ReportError> {
    let load_study = content::load_study::listing(runs).objects();
    let prices = options.prices.as_ref().map(|prices| prices.listing(runs, options.across_drivers).objects());
    let by_variant = by_variant(runs);
    let runs = by_variant.as_deref().unwrap_or(runs);
    let sides = sides(runs);
    let records = || runs.iter().flat_map(|r| &r.records);
    let count = |of: Option<Validity>| records().filter(|r| r.validity() == of).count();
    let of_sweeps = sides.iter().flat_map(|s| s.sweeps.iter().map(|sweep| sweep_summary(s, sweep)));
    let report = Report {
        schema: REPORT_SCHEMA,
        runs: sides
            .iter()
            .map(|s| {
                Ok(Run {
                    label: &s.label,
                    manifest: &s.run.manifest,
                    tests: s.run.records.iter().map(Test::new).collect::<Result<_, _>>()?,
                    warnings: &s.run.warnings,
                    notes: &s.run.notes,
                    facts: facts(&s.run.manifest),
                })
            })
            .collect::<Result<_, ReportError>>()?,
        summary: json!({
            "tests": records().count(),
            "valid": count(Some(Validity::Valid)),
            "disturbed": count(Some(Validity::Disturbed)),
            "refused": count(Some(Validity::Refused)),
            // Tests of other tools, which are none of these.
            "imported": count(None),
            // Tests that are valid only by an option: see [`TestRecord::kept_by`].
            "kept_by_option": kept_tests(records()).map_or(0, |(n, _)| n),
            "sweeps": of_sweeps.collect::<Result<Vec<Value>, ReportError>>()?,
            "scans": sides.iter().flat_map(|s| s.scans.iter().map(|scan| scan_summary(s, scan))).collect::<Vec<_>>(),
            "comparisons": serde_json::to_value(comparisons(&sides, options.across_drivers))?,
            "load_study": load_study,
            "prices": prices,
            "waits": sides.iter().flat_map(waits_of).collect::<Vec<_>>(),
        }),
    };
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    Ok(text)
}

/// A sweep with its peak, in the unit of column `rate`, at `peak_at` jobs or at this value of the swept column `over`.
fn sweep_summary(side: &PlatformRun<'_>, sweep: &Sweep) -> Result<Value, ReportError> {
    let peak = sweep.peak();
    let mut summary = json!({
        "label": side.label,
        "peak_jobs": peak.map(|p| p.jobs),
        "peak_throughput_tps": peak.and_then(|p| p.throughput()).map(|t| t.mean),
        "peak_at": peak.map(|p| p.at),
        "peak_rate": peak.and_then(|p| sweep.rate_at(p)).map(|r| r.mean),
        "saturation": sweep.saturation(),
        "load_line": sweep.load_line(side.run.manifest.plan.latency_objective_ns()),
        "bound": bound_of_sweep(sweep, &side.run.records),
    });
    if let (Some(all), Value::Object(own)) = (summary.as_object_mut(), serde_json::to_value(sweep)?) {
        all.extend(own);
    }
    Ok(summary)
}

/// A scan of commit time over redo; its points are `sizes` of the test.
fn scan_summary(side: &PlatformRun<'_>, Scan { record: r, shape, cause }: &Scan<'_>) -> Value {
    let (workload, validity) = (&r.workload, r.validity());
    json!({ "label": side.label, "workload": workload, "test": r.test, "validity": validity, "result": shape, "cause": cause })
}
