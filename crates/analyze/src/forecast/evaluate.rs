//! Errors that a forecast would have had: the upper half of each series held out, and forecast from the lower half.

use super::fitted::{Estimate, Fitted, fit};
use super::laws::FEWEST;
use super::points::{Point, Series};
use crate::stats::mean;

/// A held-out point and its forecast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    pub point: Point,
    /// Forecast throughput, tps.
    pub forecast: Estimate,
}

impl HeldOut {
    /// Error with its sign, percent of the measured.
    pub fn error_pct(&self) -> f64 {
        (self.forecast.value / self.point.tps - 1.0) * 100.0
    }

    /// Half the width of the interval, percent of the measured.
    pub fn half_width_pct(&self) -> f64 {
        (self.forecast.high - self.forecast.low) / 2.0 / self.point.tps * 100.0
    }
}

/// A series of which the upper half was forecast.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// Lower half with the model used.
    pub fitted: Fitted,
    /// Held-out points; if the forecast is refused, those of the model that would have been used.
    pub held_out: Vec<HeldOut>,
}

/// Summary of held-out points, percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overall {
    pub held_out: usize,
    pub mean_abs_error_pct: f64,
    /// Share of them that the intervals hold.
    pub coverage_pct: f64,
    /// Mean half-width of the intervals.
    pub half_width_pct: f64,
}

/// Holds out the upper half of each series of `table` that has 4 points or more, fits the rest, and compares. Of an odd number of points
/// the lower half is the larger; it has at least 3. No held-out point takes part in a fit, in the choice of a model, or in an interval.
pub fn evaluate(table: &[Series]) -> Vec<Evaluated> {
    let half = |s: &Series| {
        let (lower, upper) = s.points.split_at_checked(s.points.len().div_ceil(2).max(FEWEST))?;
        (!upper.is_empty()).then(|| (Series { points: lower.to_vec(), ..s.clone() }, upper.to_vec()))
    };
    let (lower, upper): (Vec<Series>, Vec<Vec<Point>>) = table.iter().filter_map(half).unzip();
    let evaluated = |(fitted, upper): (Fitted, Vec<Point>)| {
        let held_out = |p: &Point| Some(HeldOut { point: *p, forecast: fitted.modelled(p.jobs)? });
        Evaluated { held_out: upper.iter().filter_map(held_out).collect(), fitted }
    };
    fit(&lower).into_iter().zip(upper).map(evaluated).collect()
}

/// Summary of the held-out points of `series`; `None` without one.
pub fn overall<'e>(series: impl IntoIterator<Item = &'e Evaluated>) -> Option<Overall> {
    let all: Vec<HeldOut> = series.into_iter().flat_map(|s| s.held_out.iter().copied()).collect();
    let over = |figure: fn(&HeldOut) -> f64| mean(&all.iter().map(figure).collect::<Vec<_>>());
    let held = |h: &HeldOut| f64::from((h.forecast.low..=h.forecast.high).contains(&h.point.tps)) * 100.0;
    let (mean_abs_error_pct, coverage_pct) = (over(|h| h.error_pct().abs())?, over(held)?);
    let half_width_pct = over(HeldOut::half_width_pct)?;
    Some(Overall { held_out: all.len(), mean_abs_error_pct, coverage_pct, half_width_pct })
}
