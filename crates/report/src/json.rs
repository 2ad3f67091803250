//! The JSON report: manifests and records as stored, and a computed summary.

use loadline_analyze::{Sweep, bound_of_sweep};
use loadline_model::facts::facts;
use loadline_model::{Json as _, TestRecord, Validity};
use serde_json::{Value, json};

use crate::content::{self, kept_tests, waits_of};
use crate::platform_run::{PlatformRun, Scan, by_variant, comparisons, sides};
use crate::templates::stored;
use crate::{Options, ReportError, RunData};

const REPORT_SCHEMA: u32 = 3;

/// A test as it is stored, and what its checks say of it; nothing is valid of an imported one.
fn test(record: &TestRecord) -> Result<Value, ReportError> {
    let mut test = record.to_json()?;
    match record.validity() {
        Some(validity) => (test["validity"], test["tries"]) = (json!(validity), json!(record.tries)),
        None => test["valid"] = Value::Null,
    }
    Ok(test)
}

/// A run as it is stored. Notes are in Markdown, by workload; of the whole run under the empty name.
fn run(side: &PlatformRun<'_>) -> Result<Value, ReportError> {
    let RunData { manifest, records, warnings, notes, .. } = side.run;
    let tests: Vec<Value> = records.iter().map(test).collect::<Result<_, _>>()?;
    let (facts, manifest) = (facts(manifest), manifest.to_json()?);
    let mut run =
        json!({ "label": side.label, "manifest": manifest, "tests": tests, "warnings": warnings, "facts": facts });
    if !notes.is_empty() {
        run["notes"] = json!(notes);
    }
    Ok(run)
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
    let report = json!({
        "schema": REPORT_SCHEMA,
        "runs": sides.iter().map(run).collect::<Result<Vec<_>, _>>()?,
        "summary": {
            "tests": records().count(),
            "valid": count(Some(Validity::Valid)),
            "disturbed": count(Some(Validity::Disturbed)),
            "refused": count(Some(Validity::Refused)),
            // Tests of other tools, which are none of these.
            "imported": count(None),
            // Tests that are valid only by an option: see [`TestRecord::kept_by`].
            "kept_by_option": kept_tests(records()).map_or(0, |(n, _)| n),
            "sweeps": of_sweeps.collect::<Vec<_>>(),
            "scans": sides.iter().flat_map(|s| s.scans.iter().map(|scan| scan_summary(s, scan))).collect::<Vec<_>>(),
            "comparisons": stored(&comparisons(&sides, options.across_drivers, false)),
            "load_study": load_study,
            "prices": prices,
            "waits": sides.iter().flat_map(waits_of).collect::<Vec<_>>(),
        },
    });
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

/// A sweep with its peak, in the unit of column `rate`, at `peak_at` jobs or at this value of the swept column `over`.
fn sweep_summary(side: &PlatformRun<'_>, sweep: &Sweep) -> Value {
    let (mut summary, peak) = (stored(sweep), sweep.peak());
    let more = json!({
        "label": side.label,
        "peak_jobs": peak.map(|p| p.jobs),
        "peak_throughput_tps": peak.and_then(|p| p.throughput()).map(|t| t.mean),
        "peak_at": peak.map(|p| p.at),
        "peak_rate": peak.and_then(|p| sweep.rate_at(p)).map(|r| r.mean),
        "saturation": sweep.saturation(),
        "load_line": sweep.load_line(side.run.manifest.plan.latency_objective_ns()),
        "bound": bound_of_sweep(sweep, &side.run.records),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut summary, more) {
        all.extend(more);
    }
    summary
}

/// A scan of commit time over redo; its points are `sizes` of the test.
fn scan_summary(side: &PlatformRun<'_>, Scan { record: r, shape, cause }: &Scan<'_>) -> Value {
    let (workload, validity) = (&r.workload, r.validity());
    json!({ "label": side.label, "workload": workload, "test": r.test, "validity": validity, "result": shape, "cause": cause })
}
