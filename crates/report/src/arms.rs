//! Runs of two arms: each arm as a platform, and what its pairs show as text and for scripts.

use loadline_model::arms::ArmName;

use crate::RunData;
use crate::content::{arms, ratios};
use crate::text::{table, wrapped};

/// A row per workload, number of jobs and figure, with the ratio B/A; only the header for a run without arms.
#[must_use]
pub fn arms_csv(run: &RunData) -> String {
    ratios::csv(&arms::of(run).map_or_else(Vec::new, |of| of.rows()))
}

/// What the pairs of a run of two arms show, for people, for a terminal `width` characters wide; empty for a run without arms.
#[must_use]
pub fn arms_text(run: &RunData, width: usize) -> String {
    let Some(of) = arms::of(run) else { return String::new() };
    let mut out = String::new();
    for arm in run.manifest.plan.arms.iter().flat_map(|arms| ArmName::ALL.map(|name| &arms.get(name).label)) {
        out.push_str(&wrapped(arm, "", width));
    }
    table(&mut out, &ratios::table(&of.rows(), "Pairs"), width);
    out.push('\n');
    for sentence in of.sentences() {
        out.push_str(&wrapped(&sentence, "", width));
    }
    out
}

/// Number of workloads and job counts without a valid pair.
#[must_use]
pub fn arms_refused(run: &RunData) -> usize {
    arms::of(run).map_or(0, |of| of.refused())
}
