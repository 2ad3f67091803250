//! Which model is used: the one that would have forecast the last points of a platform's series best from the points before.

use super::model::{Curve, Kind, Model, models};
use super::series::Point;

/// Fewest points that are fitted when later ones are forecast.
pub(crate) const FEWEST: usize = 3;
/// Most folds; more points than that say little new.
const MOST_FOLDS: usize = 12;
/// Farthest point that a fold forecasts, in multiples of the jobs it was fitted to.
const FARTHEST: f64 = 4.0;

/// How well a fold forecast a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Residual {
    /// Place of its series in the platform.
    pub(crate) series: usize,
    /// ln of the point's jobs over the most that were fitted.
    pub(crate) distance: f64,
    /// ln(forecast / measured).
    pub(crate) error: f64,
}

impl Residual {
    /// Absolute error per [`growth`].
    pub(crate) fn scaled(&self) -> f64 {
        self.error.abs() / growth(self.distance)
    }
}

/// How errors grow with the distance `d` = ln(N / N measured): the slope's error as d, the bend's as d², as in a series of Taylor.
pub(crate) fn growth(distance: f64) -> f64 {
    distance * (1.0 + distance / 2.0)
}

/// A model with what its forecasts of the last points were off by.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) model: Model,
    pub(crate) residuals: Vec<Residual>,
}

impl Judged {
    /// Absolute errors per [`growth`].
    pub(crate) fn scaled(&self) -> Vec<f64> {
        self.residuals.iter().map(Residual::scaled).collect()
    }

    /// Their mean.
    pub(crate) fn score(&self) -> Option<f64> {
        crate::stats::mean(&self.scaled())
    }
}

/// All models, the best first. Fold f leaves out the last f points of each series, up to half of them, and keeps [`FEWEST`]; so a
/// fold never sees what it forecasts, nor any later point of the platform's series that are long enough (rolling origin: Tashman, International
/// Journal of Forecasting 16 (2000) 437). Without any fold, in the order of preference and without residuals.
pub(crate) fn judged<'p>(platform: &[&'p [Point]]) -> Vec<Judged> {
    let mut all: Vec<Judged> = models().into_iter().map(|model| Judged { model, residuals: Vec::new() }).collect();
    let most_left_out = |points: usize| (points / 2).min(points.saturating_sub(FEWEST));
    let folds = platform.iter().map(|points| most_left_out(points.len())).max().unwrap_or(0);
    for fold in (1..=folds).step_by(folds.div_ceil(MOST_FOLDS).max(1)) {
        let kept =
            |points: &&'p [Point]| points.get(..points.len() - fold.min(most_left_out(points.len()))).unwrap_or(points);
        let kept: Vec<&[Point]> = platform.iter().map(kept).collect();
        for judged in &mut all {
            let curves = judged.model.fit(&kept);
            for (series, ((points, kept), curve)) in platform.iter().zip(&kept).zip(curves).enumerate() {
                judged.residuals.extend(residuals(series, points, kept, curve));
            }
        }
    }
    // A model that cannot forecast what others can is no candidate.
    let most = all.iter().map(|j| j.residuals.len()).max().unwrap_or(0);
    all.retain(|j| j.residuals.len() == most);
    all.sort_by(|a, b| a.score().unwrap_or(0.0).total_cmp(&b.score().unwrap_or(0.0)));
    prefer_closed(&mut all);
    all
}

/// Brings the best closed model to the front unless another one's score is lower by more than a standard error of it (Breiman et
/// al., Classification and Regression Trees, 1984, section 3.4): few residuals tell models apart by chance, and the closed model is
/// the one that has a mechanism. A single residual has no standard error and shows nothing.
fn prefer_closed(all: &mut Vec<Judged>) {
    let Some(best) = all.first() else { return };
    let scaled = best.scaled();
    let error = crate::stats::sample_sd(&scaled).map_or(f64::INFINITY, |sd| sd / (scaled.len() as f64).sqrt());
    let enough = best.score().unwrap_or(0.0) + error;
    let near = |j: &Judged| j.model.kind == Kind::Closed && j.score().unwrap_or(0.0) <= enough;
    if let Some(at) = all.iter().position(near) {
        let closed = all.remove(at);
        all.insert(0, closed);
    }
}

fn residuals(series: usize, points: &[Point], kept: &[Point], curve: Option<Curve>) -> Vec<Residual> {
    let (Some(curve), Some(last)) = (curve, kept.last()) else { return Vec::new() };
    let left_out = points.get(kept.len()..).unwrap_or_default().iter().filter(|p| p.jobs <= last.jobs * FARTHEST);
    let of =
        |p: &Point| Residual { series, distance: (p.jobs / last.jobs).ln(), error: (curve.tps(p.jobs) / p.tps).ln() };
    left_out.map(of).filter(|r| r.error.is_finite()).collect()
}
