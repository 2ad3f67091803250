//! The model that a series is forecast with, and its forecasts of throughput.

use serde::Serialize;

use super::choose::{Judged, Residual, growth, judged};
use super::interpolation;
use super::interval::{BETWEEN, BEYOND, Estimate, half_width};
use super::model::{Curve, Kind, contended};
use super::series::{Point, Series};

/// A model that misses the last points by more on average when it forecasts them, scaled to twice the jobs, is none for that series.
const NO_FORECAST: f64 = 0.25;
/// A curve that misses the last measured point by more when it is fitted to it does not follow the series: its regime changed.
const NO_FIT: f64 = 0.15;

/// A series with the model it is forecast with.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The series.
    pub series: Series,
    /// What forecasts beyond the measured jobs come from.
    pub kind: Kind,
    /// Mean absolute error, in percent, of forecasts of the platform's last points from those before, by how many; `None` if there
    /// are too few points to tell.
    pub cross_validated: Option<CrossValidated>,
    /// Why there is no forecast beyond the measured jobs.
    pub refused: Option<String>,
    pub(crate) curve: Option<Curve>,
    /// The best curve of each other kind, with its merit: error of the chosen one over its own in cross-validation.
    rivals: Vec<(Kind, Curve, f64)>,
    /// Half-widths in logarithms: per unit of growth beyond the points, between them, and where more jobs make each of them faster.
    pub(crate) beyond: f64,
    between: f64,
    waking: f64,
}

/// What cross-validation showed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CrossValidated {
    /// Mean absolute error, percent.
    pub mean_abs_error_pct: f64,
    /// Number of forecasts.
    pub forecasts: usize,
}

impl Fitted {
    /// Throughput at `jobs` with its 90 % interval, and what it comes from; `None` beyond the measured jobs if that is refused.
    #[must_use]
    pub fn tps(&self, jobs: f64) -> Option<(Estimate, Kind)> {
        if !jobs.is_finite() || jobs <= 0.0 {
            return None;
        }
        let (first, last) = (self.series.points.first()?, self.series.points.last()?);
        if jobs <= last.jobs {
            let below = if jobs < first.jobs { self.beyond * growth((first.jobs / jobs).ln()) } else { 0.0 };
            let tps = interpolation::tps(&self.series.points, jobs)?;
            let waking = contended(&self.series.points).first().is_some_and(|p| jobs < p.jobs);
            let half = if waking { self.waking.max(self.between) } else { self.between };
            return Some((Estimate::around(tps, half.hypot(below)), Kind::Interpolation));
        }
        Some((self.modelled(jobs)?, self.kind)).filter(|_| self.refused.is_none())
    }

    /// What the model says, also if it is refused. The interval includes how far the other models are from it, by their merit, and
    /// stays within what a closed loop allows: more jobs make none faster (Lazowska et al., chapter 5), unless the last ones measured
    /// did, and then no more than those; nor, as far as is known, does throughput fall faster than jobs rise.
    pub(crate) fn modelled(&self, jobs: f64) -> Option<Estimate> {
        let last = self.series.points.last()?;
        let value = self.curve?.tps(jobs);
        let apart = |(_, rival, merit): &(Kind, Curve, f64)| merit * (rival.tps(jobs) / value).ln();
        let spread = self.rivals.iter().map(apart).filter(|a| a.is_finite()).map(|a| a * a).sum::<f64>().sqrt();
        // What is measured there will be as noisy as the points between.
        let half = (self.beyond * growth((jobs / last.jobs).ln())).hypot(self.between).hypot(spread);
        let e = Estimate::around(value, half);
        let before = self.series.points.iter().rev().nth(1).unwrap_or(last);
        let rises = (last.tps / before.tps).ln() / (last.jobs / before.jobs).ln();
        let [least, most] = [-1.0, rises.max(1.0)].map(|power| last.tps * (jobs / last.jobs).powf(power));
        // Nor, beyond noise, do transactions find more CPU than there is.
        let most = most.min(self.curve?.full);
        let (least, most) = (least.min(value) * (-self.between).exp(), most.max(value) * self.between.exp());
        let e = Estimate { value, low: e.low.max(least), high: e.high.min(most) };
        (value.is_finite() && value > 0.0).then_some(e)
    }

    /// The throughput that each kind of model says, with the pooling or fit that is best for the platform.
    pub(crate) fn by_model(&self, jobs: f64) -> Vec<(Kind, f64)> {
        let rivals = self.rivals.iter().map(|(kind, curve, _)| (*kind, curve.tps(jobs)));
        self.curve.iter().map(|curve| (self.kind, curve.tps(jobs))).chain(rivals).collect()
    }

    /// The most jobs measured.
    #[must_use]
    pub fn measured_to(&self) -> f64 {
        self.series.points.last().map_or(0.0, |p| p.jobs)
    }
}

/// Fits all series of a table. Those of one platform share their model and the cost of its log; the intervals come from the errors
/// in the whole table.
#[must_use]
pub fn fit(table: &[Series]) -> Vec<Fitted> {
    let between = |points: fn(&[Point]) -> &[Point]| {
        let errors = table.iter().flat_map(|s| interpolation::errors(points(&s.points)));
        half_width(&errors.map(f64::abs).collect::<Vec<_>>(), BETWEEN)
    };
    let (waking, between) = (between(|all| all), between(contended));
    let mut platforms: Vec<&str> = table.iter().map(|s| s.platform.as_str()).collect();
    platforms.sort_unstable();
    platforms.dedup();
    let mut errors: Vec<f64> = Vec::new();
    let mut fitted: Vec<(usize, Fitted)> = Vec::new();
    for platform in platforms {
        let own: Vec<(usize, &Series)> = table.iter().enumerate().filter(|(_, s)| s.platform == platform).collect();
        let points: Vec<&[Point]> = own.iter().map(|(_, s)| s.points.as_slice()).collect();
        let judged = judged(&points);
        let curves: Vec<Vec<Option<Curve>>> = judged.iter().map(|j| j.model.fit(&points)).collect();
        errors.extend(judged.first().into_iter().flat_map(Judged::scaled));
        for (place, (at, series)) in own.iter().enumerate() {
            let candidates = judged.iter().zip(&curves).filter_map(|(j, curves)| Some((j, (*curves.get(place)?)?)));
            fitted.push((*at, of(series, place, candidates)));
        }
    }
    let beyond = half_width(&errors, BEYOND);
    fitted.sort_by_key(|(at, _)| *at);
    fitted.into_iter().map(|(_, fitted)| Fitted { beyond, between, waking, ..fitted }).collect()
}

/// The best of `candidates` that follows the series at `place` of its platform; without one the best, refused.
fn of<'j>(series: &Series, place: usize, candidates: impl Iterator<Item = (&'j Judged, Curve)>) -> Fitted {
    let candidates: Vec<(&Judged, Curve, Option<String>)> =
        candidates.map(|(j, curve)| (j, curve, why_not(place, j, curve))).collect();
    let best = candidates.iter().find(|(_, _, why)| why.is_none()).or(candidates.first());
    let cross_validated = best.and_then(|(j, _, _)| {
        let errors: Vec<f64> = j.residuals.iter().map(|r| (r.error.exp() - 1.0).abs() * 100.0).collect();
        Some(CrossValidated { mean_abs_error_pct: crate::stats::mean(&errors)?, forecasts: errors.len() })
    });
    let points = series.points.len();
    let too_few = || {
        format!(
            "{points} {} no forecast: measure at least 3 job counts",
            if points == 1 { "point makes" } else { "points make" }
        )
    };
    Fitted {
        series: series.clone(),
        kind: best.map_or(Kind::Closed, |(j, _, _)| j.model.kind),
        cross_validated,
        refused: best.map_or_else(|| Some(too_few()), |(_, _, why)| why.clone()),
        curve: best.map(|(_, curve, _)| *curve),
        rivals: best.map_or_else(Vec::new, |(chosen, _, _)| rivals(chosen, &candidates)),
        beyond: 0.0,
        between: 0.0,
        waking: 0.0,
    }
}

/// The first curve of each kind but that of `chosen`.
fn rivals(chosen: &Judged, candidates: &[(&Judged, Curve, Option<String>)]) -> Vec<(Kind, Curve, f64)> {
    let mut seen = vec![chosen.model.kind];
    let mut rivals = Vec::new();
    for (judged, curve, _) in candidates {
        if seen.contains(&judged.model.kind) {
            continue;
        }
        seen.push(judged.model.kind);
        // Without cross-validation all are as good.
        let merit = chosen.score().zip(judged.score()).map_or(1.0, |(own, other)| (own / other).min(1.0));
        rivals.push((judged.model.kind, *curve, if merit.is_finite() { merit } else { 1.0 }));
    }
    rivals
}

/// Why a model does not follow a series.
fn why_not(place: usize, judged: &Judged, curve: Curve) -> Option<String> {
    let own: Vec<f64> = judged.residuals.iter().filter(|r| r.series == place).map(Residual::scaled).collect();
    // Where no point could be left out, only how well those that were fitted are followed tells a law from chance.
    let off = if own.is_empty() { curve.off } else { curve.misses.abs() };
    let missed = crate::stats::mean(&own).unwrap_or(0.0) * growth(std::f64::consts::LN_2);
    if off.is_nan() || off > NO_FIT {
        return Some(format!(
            "regime change: no model follows the measured points (the best misses {} by {:.0} %)",
            if own.is_empty() { "one of them" } else { "the last one" },
            off * 100.0
        ));
    }
    (missed > NO_FORECAST).then(|| {
        format!(
            "regime change, or too much noise: no model forecasts the last points from those before (the best would miss twice the jobs by {:.0} %)",
            missed * 100.0
        )
    })
}
