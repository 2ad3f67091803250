//! Histories of a figure: where did its level change, by how much, and how sure is that? Start with [`judge`].
//!
//! - [`steps`]: the places where the level changed, by permutation;
//! - [`level`]: the levels before and after, and their ratio with its interval.
//!
//! Series are judged together: a series has a change if its p value is among those that Benjamini and Hochberg find, so at
//! most 5 % of the series said to have changed are expected not to have. If R of m have, each test within those, and each
//! interval, has the error R/m × 5 % (Benjamini and Bogomolov, Journal of the Royal Statistical Society B 76 (2014) 297).
//!
//! docs/statistics.md says it in plain words, with simulated false alarms and power.

mod level;
mod steps;

use std::ops::Range;

use crate::paired::discovery::discoveries;
use crate::stats::Interval;

use steps::{LEAST, Test, settled};

/// Least runs of a series that is judged.
pub const LEAST_RUNS: usize = 2 * LEAST;

/// A change of the level.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first run at the new level.
    pub at: usize,
    /// Level before, in the unit of the figure.
    pub before: f64,
    /// Level after.
    pub after: f64,
    /// `after / before`.
    pub ratio: f64,
    /// Its interval; `None` if the runs are too few for one at the confidence of the family.
    pub interval: Option<Interval>,
    /// Share of random orders of the runs with as large a change.
    pub p: f64,
}

/// Series that were judged together.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The changes of each, in order; `None` if it is shorter than [`LEAST_RUNS`] or has a value that is not positive and finite.
    pub changes: Vec<Option<Vec<Change>>>,
    /// Number of series that could be judged.
    pub judged: usize,
    /// Error of each test and interval.
    pub level: f64,
}

/// Judges series of figures, each in the order of time, with an expected share `error` of false ones (0.05) among the series
/// that are said to have changed.
#[must_use]
pub fn judge(series: &[Vec<f64>], error: f64) -> Judged {
    let logs: Vec<Option<Vec<f64>>> = series.iter().map(|s| logs(s)).collect();
    let settled: Vec<_> = logs.iter().map(|logs| Some(settled(logs.as_ref()?, error))).collect();
    let p: Vec<f64> = settled.iter().flatten().map(|(_, test)| test.as_ref().map_or(1.0, |t| t.p)).collect();
    let level = error * discoveries(&p, error).max(1) as f64 / p.len().max(1) as f64;
    let both = logs.iter().zip(settled);
    let changes = both.map(|(logs, settled)| Some(changes(logs.as_ref()?, settled?, level))).collect();
    Judged { changes, judged: p.len(), level }
}

fn logs(figures: &[f64]) -> Option<Vec<f64>> {
    let usable = figures.len() >= LEAST_RUNS && figures.iter().all(|f| f.is_finite() && *f > 0.0);
    usable.then(|| figures.iter().map(|f| f.ln()).collect())
}

fn changes(logs: &[f64], (range, test): (Range<usize>, Option<Test>), level: f64) -> Vec<Change> {
    let part = logs.get(range.clone()).unwrap_or_default();
    let steps = steps::steps(part, test, level);
    let bounds: Vec<usize> = steps.iter().map(|(at, _)| *at).chain([part.len()]).collect();
    let mut start = 0;
    let mut changes = Vec::new();
    for ((at, p), end) in steps.iter().zip(bounds.iter().skip(1)) {
        let (Some(a), Some(b)) = (part.get(start..*at), part.get(*at..*end)) else { continue };
        if let (Some(before), Some(after), Some((ratio, interval))) =
            (level::level(a), level::level(b), level::ratio(a, b, level))
        {
            changes.push(Change { at: range.start + at, before, after, ratio, interval, p: *p });
        }
        start = *at;
    }
    changes
}

#[cfg(test)]
mod tests;
