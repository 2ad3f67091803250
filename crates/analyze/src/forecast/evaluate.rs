//! What a forecast would have been off by: the upper half of each series held out, and forecast from the lower half.

use serde::Serialize;

use super::fitted::{Estimate, Fitted, Refusal, fit, fit_by};
use super::laws::{FEWEST, Kind};
use super::points::{Point, Series};
use crate::stats::{mean, median};

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
        (self.forecast.value / self.measured - 1.0).abs() * 100.0
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
}

/// All series of a table.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// Series that have enough points.
    pub series: Vec<Evaluated>,
    /// Names of those that have too few: 4 are needed.
    pub too_short: Vec<String>,
    /// What each model used for all series is off by.
    pub models: Vec<Used>,
}

/// A model used for all series, refused ones as well.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Used {
    /// The model.
    pub model: Kind,
    /// Mean absolute error, percent.
    pub mean_abs_error_pct: f64,
    /// Held-out points that it could forecast.
    pub held_out: usize,
}

/// What held-out points show together.
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

/// Holds out the upper half of each of those series of `table` that are `wanted`, fits the rest of all, and compares. Of an odd
/// number of points the lower half is the larger; it has at least 3. No held-out point takes part in a fit, in the choice of a model,
/// or in an interval.
#[must_use]
pub fn evaluate(table: &[Series], wanted: impl Fn(&Series) -> bool) -> Evaluation {
    let (long, short): (Vec<&Series>, Vec<&Series>) = table.iter().partition(|s| s.points.len() > FEWEST);
    let halves = long.iter().map(|s| s.points.split_at(s.points.len().div_ceil(2).max(FEWEST)));
    let (lower, upper): (Vec<&[Point]>, Vec<&[Point]>) = halves.unzip();
    let lower = long.iter().zip(lower).map(|(s, points)| Series { points: points.to_vec(), ..(*s).clone() });
    let lower: Vec<Series> = lower.collect();
    let compared = |fitted: Vec<Fitted>| -> Vec<Evaluated> {
        let all = fitted.into_iter().zip(&upper).filter(|(fitted, _)| wanted(&fitted.series));
        all.map(|(fitted, upper)| evaluated(fitted, upper)).collect()
    };
    let used = |model: Kind| {
        let all = Overall::over(&compared(fit_by(&lower, &[model])))?;
        Some(Used { model, mean_abs_error_pct: all.mean_abs_error_pct, held_out: all.held_out })
    };
    Evaluation {
        series: compared(fit(&lower)),
        too_short: short.iter().map(|s| s.name()).collect(),
        models: [Kind::Closed, Kind::Usl].into_iter().filter_map(used).collect(),
    }
}

fn evaluated(fitted: Fitted, upper: &[Point]) -> Evaluated {
    let held_out = |p: &Point| Some(HeldOut { jobs: p.jobs, measured: p.tps, forecast: fitted.modelled(p.jobs)? });
    let held_out = upper.iter().filter_map(held_out).collect();
    Evaluated { held_out, kind: fitted.kind, refused: fitted.refused, series: fitted.series }
}

impl Overall {
    /// What the held-out points of `series` show; `None` without one.
    #[must_use]
    pub fn over<'e>(series: impl IntoIterator<Item = &'e Evaluated>) -> Option<Overall> {
        let (mut rows, mut each): (Vec<&HeldOut>, Vec<f64>) = (Vec::new(), Vec::new());
        for one in series {
            each.extend(mean(&one.held_out.iter().map(HeldOut::error_pct).collect::<Vec<_>>()));
            rows.extend(&one.held_out);
        }
        let mean_of = |figure: fn(&HeldOut) -> f64| mean(&rows.iter().map(|row| figure(row)).collect::<Vec<_>>());
        Some(Overall {
            held_out: rows.len(),
            mean_abs_error_pct: mean_of(HeldOut::error_pct)?,
            median_series_pct: median(&each)?,
            coverage_pct: mean_of(|row| if row.covered() { 100.0 } else { 0.0 })?,
            half_width_pct: mean_of(HeldOut::half_width_pct)?,
        })
    }
}

impl Evaluation {
    /// Over all series, with those refused or without.
    #[must_use]
    pub fn overall(&self, with_refused: bool) -> Option<Overall> {
        Overall::over(self.series.iter().filter(|s| with_refused || s.refused.is_none()))
    }

    /// Number of series whose forecast is refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.series.iter().filter(|s| s.refused.is_some()).count()
    }
}
