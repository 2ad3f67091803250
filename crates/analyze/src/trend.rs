//! Histories of a figure: where did its level change, by how much, and how sure is that? Start with [`judge`].
//!
//! - [`steps`]: the places where the level changed, by permutation;
//! - [`level`]: the levels before and after, and their ratio with its interval;
//! - [`ending`]: the last few runs, which cannot be told from single bad ones.
//!
//! Series are judged together: a series has a change if its p value is among those that Benjamini and Hochberg find, so at
//! most 5 % of the series said to have changed are expected not to have. If R of m have, each test within those, and each
//! interval, has the error R/m × 5 % (Benjamini and Bogomolov, Journal of the Royal Statistical Society B 76 (2014) 297).
//!
//! docs/statistics.md says it in plain words, with simulated false alarms and power.

mod ending;
mod level;
mod steps;

use std::ops::Range;

use crate::paired::discovery::discoveries;
use crate::stats::{Interval, normal_quantile};

pub use ending::Perhaps;
use steps::{LEAST, Test, near, possible, settled};

/// Least runs of a series that is judged.
pub const LEAST_RUNS: usize = 2 * LEAST;

/// A change of the level.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first run at the new level.
    pub at: usize,
    /// The earliest and the latest run that it could have been, at 95 %.
    pub possible: [usize; 2],
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

/// What a series shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trend {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Whether a straight line fits the series better than its levels: then it drifts, and no two runs are those between
    /// which it changed.
    pub gradual: bool,
    /// Whether the last runs may be the begin of another level.
    pub perhaps: Option<Perhaps>,
    /// If nothing changed: about the smallest change in the middle that such a series shows in four of five cases, 0.05 for
    /// 5 %; `None` for fewer than 12 runs.
    pub detectable: Option<f64>,
}

/// Series that were judged together.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What each shows; `None` if it is shorter than [`LEAST_RUNS`] or has a value that is not positive and finite.
    pub trends: Vec<Option<Trend>>,
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
    let trends = both.map(|(logs, settled)| Some(trend(logs.as_ref()?, settled?, level))).collect();
    Judged { trends, judged: p.len(), level }
}

fn logs(figures: &[f64]) -> Option<Vec<f64>> {
    let usable = figures.len() >= LEAST_RUNS && figures.iter().all(|f| f.is_finite() && *f > 0.0);
    usable.then(|| figures.iter().map(|f| f.ln()).collect())
}

fn trend(logs: &[f64], (range, test): (Range<usize>, Option<Test>), level: f64) -> Trend {
    let part = logs.get(range.clone()).unwrap_or_default();
    let steps = steps::steps(part, test.clone(), level);
    let bounds: Vec<usize> = steps.iter().map(|(at, _)| *at).chain([part.len()]).collect();
    let mut start = 0;
    let mut changes = Vec::new();
    for ((at, p), end) in steps.iter().zip(bounds.iter().skip(1)) {
        let (Some(a), Some(b)) = (part.get(start..*at), part.get(*at..*end)) else { continue };
        if let (Some(before), Some(after), Some((ratio, interval))) =
            (level::level(a), level::level(b), level::ratio(a, b, level))
        {
            let possible = possible(&[a, b].concat(), at - start).map(|place| range.start + start + place);
            changes.push(Change { at: range.start + at, possible, before, after, ratio, interval, p: *p });
        }
        start = *at;
    }
    let perhaps = ending::perhaps(logs, changes.last().map_or(0, |c| c.at), level);
    let detectable = if changes.is_empty() { detectable(part, test.as_ref(), level) } else { None };
    Trend { gradual: gradual(part, &bounds), changes, perhaps, detectable }
}

/// The smallest change in the middle of such a series that its test finds in four of five cases; `None` for a series so short
/// that too few ways to split it decide that.
fn detectable(logs: &[f64], test: Option<&Test>, level: f64) -> Option<f64> {
    let values = near(logs);
    let n = values.len() as f64;
    let sd = (values.iter().map(|v| v * v).sum::<f64>() / (n - 1.0)).sqrt();
    let critical = test.filter(|_| logs.len() >= 3 * LEAST)?.critical(level)?;
    // A mean of each half: standard error 2 sd / √n.
    let shift = 2.0 * sd / n.sqrt() * (critical.sqrt() + normal_quantile(0.2));
    Some(shift.exp_m1()).filter(|share| share.is_finite())
}

/// Whether a line fits better than levels that end at `bounds`, for what it takes to describe them (Schwarz, Annals of
/// Statistics 6 (1978) 461).
fn gradual(logs: &[f64], bounds: &[usize]) -> bool {
    let values = near(logs);
    let starts = [0].into_iter().chain(bounds.iter().copied());
    let levels = starts.zip(bounds).filter_map(|(start, end)| values.get(start..*end));
    let squares = |of: &[f64]| -> f64 {
        let mean = of.iter().sum::<f64>() / of.len().max(1) as f64;
        of.iter().map(|v| (v - mean).powi(2)).sum()
    };
    let of_levels: f64 = levels.map(squares).sum();
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let times = || (0..values.len()).map(|t| t as f64 - middle);
    let slope = times().zip(&values).map(|(t, v)| t * v).sum::<f64>() / times().map(|t| t * t).sum::<f64>();
    let of_line: f64 = times().zip(&values).map(|(t, v)| (v - slope * t).powi(2)).sum();
    // Schwarz's criterion: a line has 2 parameters, k levels have k and the k − 1 places between them.
    let n = values.len() as f64;
    let penalty = (2.0 * bounds.len() as f64 - 3.0) / n;
    bounds.len() > 1 && of_line < of_levels * n.powf(penalty)
}

#[cfg(test)]
mod tests;
