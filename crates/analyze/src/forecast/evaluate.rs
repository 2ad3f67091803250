//! What a forecast would have been off by: the upper half of each series held out, and forecast from the lower half.

use std::collections::BTreeMap;

use serde::Serialize;

use super::fitted::{Estimate, Fitted, Refusal, fit};
use super::models::{FEWEST, Kind};
use super::series::{Point, Series};

/// A held-out point and its forecast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeldOut {
    /// Jobs.
    pub jobs: f64,
    /// Measured throughput, tps.
    pub measured: f64,
    /// Forecast throughput, tps.
    pub forecast: Estimate,
}

impl HeldOut {
    /// Absolute error, percent of the measured.
    #[must_use]
    pub fn error_pct(&self) -> f64 {
        off_pct(self.forecast.value, self.measured)
    }

    /// Whether the interval holds the measured value.
    #[must_use]
    pub fn covered(&self) -> bool {
        (self.forecast.low..=self.forecast.high).contains(&self.measured)
    }

    /// Half the width of the interval, percent of the measured.
    #[must_use]
    pub fn half_width_pct(&self) -> f64 {
        (self.forecast.high - self.forecast.low) / 2.0 / self.measured * 100.0
    }
}

/// A series of which the upper half was forecast.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluated {
    /// Its lower half, to which the model was fitted.
    pub series: Series,
    /// The model used.
    pub kind: Kind,
    /// Held-out points; if the forecast is refused, those of the model that would have been used.
    pub held_out: Vec<HeldOut>,
    /// Why the forecast is refused.
    pub refused: Option<Refusal>,
    /// Sum of absolute errors, percent, and number of held-out points by model.
    #[serde(skip)]
    by_model: BTreeMap<Kind, (f64, usize)>,
}

/// All series of a table.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Series that have enough points.
    pub series: Vec<Evaluated>,
    /// Names of those that have too few: 4 are needed.
    pub too_short: Vec<String>,
}

/// Holds out the upper half of each series, fits the rest, and compares. Of an odd number of points the lower half is the larger;
/// it has at least 3. No held-out point takes part in a fit, in the choice of a model, or in an interval.
#[must_use]
pub fn evaluate(table: &[Series]) -> Evaluation {
    let (long, short): (Vec<&Series>, Vec<&Series>) = table.iter().partition(|s| s.points.len() > FEWEST);
    let lower_half = |s: &Series| s.points.len().div_ceil(2).max(FEWEST);
    let lower = |s: &&Series| Series { points: s.points.iter().take(lower_half(s)).copied().collect(), ..(*s).clone() };
    let fitted = fit(&long.iter().map(lower).collect::<Vec<_>>());
    let upper = long.iter().map(|s| s.points.get(lower_half(s)..).unwrap_or_default());
    let series = fitted.iter().zip(upper).map(|(fitted, upper)| evaluated(fitted, upper)).collect();
    Evaluation { series, too_short: short.iter().map(|s| s.name()).collect() }
}

fn evaluated(fitted: &Fitted, upper: &[Point]) -> Evaluated {
    let mut by_model: BTreeMap<Kind, (f64, usize)> = BTreeMap::new();
    for (point, (kind, tps)) in upper.iter().flat_map(|p| fitted.by_kind(p.jobs).map(move |law| (p, law))) {
        let at = by_model.entry(kind).or_default();
        *at = (at.0 + off_pct(tps, point.tps), at.1 + 1);
    }
    let held_out = |p: &Point| Some(HeldOut { jobs: p.jobs, measured: p.tps, forecast: fitted.modelled(p.jobs)? });
    Evaluated {
        series: fitted.series.clone(),
        kind: fitted.kind,
        held_out: upper.iter().filter_map(held_out).collect(),
        refused: fitted.refused,
        by_model,
    }
}

fn off_pct(forecast: f64, measured: f64) -> f64 {
    (forecast / measured - 1.0).abs() * 100.0
}

impl Evaluated {
    /// Mean absolute error, percent.
    #[must_use]
    pub fn mean_abs_error_pct(&self) -> Option<f64> {
        crate::stats::mean(&self.held_out.iter().map(HeldOut::error_pct).collect::<Vec<_>>())
    }

    /// Share of the held-out points that the intervals hold, percent.
    #[must_use]
    pub fn coverage_pct(&self) -> Option<f64> {
        coverage(&self.held_out.iter().collect::<Vec<_>>())
    }
}

fn coverage(rows: &[&HeldOut]) -> Option<f64> {
    crate::stats::mean(&rows.iter().map(|r| if r.covered() { 100.0 } else { 0.0 }).collect::<Vec<_>>())
}

/// What all series show together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overall {
    /// Held-out points.
    pub held_out: usize,
    /// Mean absolute error over them, percent.
    pub mean_abs_error_pct: f64,
    /// Median over the series of their mean absolute errors, percent.
    pub median_series_pct: f64,
    /// Share of them that the intervals hold, percent.
    pub coverage_pct: f64,
    /// Mean half-width of the intervals, percent.
    pub half_width_pct: f64,
}

impl Evaluation {
    /// Over all series, with those refused or without.
    #[must_use]
    pub fn overall(&self, with_refused: bool) -> Option<Overall> {
        let series: Vec<&Evaluated> = self.series.iter().filter(|s| with_refused || s.refused.is_none()).collect();
        let rows: Vec<&HeldOut> = series.iter().flat_map(|s| &s.held_out).collect();
        let mean = |of: fn(&HeldOut) -> f64| crate::stats::mean(&rows.iter().map(|r| of(r)).collect::<Vec<_>>());
        let each: Vec<f64> = series.iter().filter_map(|s| s.mean_abs_error_pct()).collect();
        Some(Overall {
            held_out: rows.len(),
            mean_abs_error_pct: mean(HeldOut::error_pct)?,
            median_series_pct: crate::stats::median(&each)?,
            coverage_pct: coverage(&rows)?,
            half_width_pct: mean(HeldOut::half_width_pct)?,
        })
    }

    /// Number of series whose forecast is refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.series.iter().filter(|s| s.refused.is_some()).count()
    }

    /// Mean absolute error in percent over the held-out points of all series, refused ones as well, by model, with the number of
    /// points that it could forecast.
    #[must_use]
    pub fn models(&self) -> Vec<(Kind, f64, usize)> {
        let mut sums: BTreeMap<Kind, (f64, usize)> = BTreeMap::new();
        for (kind, (sum, count)) in self.series.iter().flat_map(|s| &s.by_model) {
            let at = sums.entry(*kind).or_default();
            *at = (at.0 + sum, at.1 + count);
        }
        sums.into_iter().map(|(kind, (sum, count))| (kind, sum / count as f64, count)).collect()
    }
}
