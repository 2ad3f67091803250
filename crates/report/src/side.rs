//! The platforms of a report: one a run, each with a name of its own.

use loadline_analyze::{Comparison, Platform, Sweep, compare, sweeps};

use crate::RunData;

/// One run as a platform.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    /// Unique name.
    pub(crate) label: String,
    /// The run.
    pub(crate) run: &'a RunData,
    /// Its sweeps.
    pub(crate) sweeps: Vec<Sweep>,
}

/// The platforms of `runs`. Where two are called the same, the run id tells them apart.
pub(crate) fn sides(runs: &[RunData]) -> Vec<Side<'_>> {
    let name = |run: &RunData| run.manifest.plan.platform.clone();
    let mut out: Vec<Side<'_>> = Vec::new();
    for run in runs {
        let mut label = name(run);
        if runs.iter().filter(|r| name(r) == label).count() > 1 {
            label = format!("{label} ({})", run.manifest.run);
        }
        let wanted = label.clone();
        let mut n = 2;
        while out.iter().any(|s| s.label == label) {
            label = format!("{wanted} #{n}");
            n += 1;
        }
        out.push(Side { label, run, sweeps: sweeps(&run.records) });
    }
    out
}

/// Every platform against the first.
pub(crate) fn comparisons(sides: &[Side<'_>]) -> Vec<Comparison> {
    let platforms: Vec<Platform<'_>> = sides
        .iter()
        .map(|s| Platform {
            label: &s.label,
            payload_compressibility: Some(s.run.manifest.plan.payload_compressibility),
            records: &s.run.records,
        })
        .collect();
    compare(&platforms)
}

/// Codes of all workloads, in the order in which they first appear.
pub(crate) fn workloads(sides: &[Side<'_>]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for sweep in sides.iter().flat_map(|s| &s.sweeps) {
        if !out.contains(&sweep.workload) {
            out.push(sweep.workload.clone());
        }
    }
    out
}
