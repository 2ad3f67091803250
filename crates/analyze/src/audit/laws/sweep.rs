//! Throughput beyond its peak.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::Reading;
use crate::audit::sheet::Series;

/// Rows of a series with what they are swept over, rising.
pub(super) fn rising(context: &Context<'_>, series: &Series, swept: &'static str) -> Vec<(usize, f64)> {
    let mut rows: Vec<(usize, f64)> = series
        .rows
        .iter()
        .filter_map(|r| Some((*r, context.value(swept, *r)?)))
        .filter(|(_, jobs)| *jobs > 0.0)
        .collect();
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    rows
}

pub(super) fn saturation(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept() != Some("jobs") {
        return;
    }
    for series in &context.series {
        let mut peak: Option<(f64, f64)> = None;
        for (row, jobs) in rising(context, series, "jobs") {
            let Some(tps) = context.interval("tps", row, Reading::Loose) else { continue };
            let Some((most, at)) = peak.filter(|(most, _)| *most > tps.low) else {
                peak = Some((tps.at, jobs));
                continue;
            };
            if jobs > at && tps.high < most * 0.995 && findings.wants("falling-throughput", Severity::Info) {
                let text = format!(
                    "throughput falls: {} at {} jobs was its peak; beyond it the platform is saturated",
                    shown(most, 5),
                    shown(at, 4)
                );
                let columns = ["jobs", "tps"];
                findings.push(context.about_row(
                    "falling-throughput",
                    Severity::Info,
                    row,
                    &columns,
                    "tps",
                    Some(most),
                    text,
                ));
            }
        }
    }
}
