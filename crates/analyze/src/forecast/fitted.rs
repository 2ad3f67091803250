//! The law that a series is forecast with, and its forecasts of throughput with their intervals.
//!
//! **Choice.** Fold f leaves out the last f points of each series of a platform, and forecasts them from those before (rolling
//! origin). The law with the smaller mean error is used, but the closed model, which has a mechanism, unless the other is better by
//! more than a standard error: few errors tell laws apart by chance.
//!
//! **Intervals.** Errors ln(forecast / measured) are divided by how errors grow with the distance ([`growth`]). With n of them, the
//! next one is within `t · √(Σe² / n)` with 90 %, t being Student's with n degrees of freedom. As n may be 0, two errors of a size that
//! is not unusual are added. docs/forecast.md has the sources.

use std::collections::BTreeMap;

use super::laws::{Curve, FEWEST, Figure, FigureLaw, Kind, between, curves};
use super::{Point, Series};
use crate::stats::{mean, sample_sd};

/// A law that misses the last points by more on average when it forecasts them, scaled to twice the jobs, is none for that series.
const NO_FORECAST: f64 = 0.25;
/// A curve that misses a measured point by more although it is fitted to it does not follow the series: its regime changed.
const NO_FIT: f64 = 0.15;
/// Error per unit of growth where none was seen yet: at twice the jobs 14 %.
const BEYOND: f64 = 0.15;
/// Error between points where none was seen yet: the noise of a careful test.
const BETWEEN: f64 = 0.03;
/// Number of such errors that are added to those seen.
const PRIOR: usize = 2;

/// How far beyond the measured jobs an answer is looked for, as a multiple of them.
const FARTHEST_ANSWER: f64 = 8.0;

/// A value with its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// `value` times and divided by e to the power of `half`.
    fn around(value: f64, half: f64) -> Estimate {
        Estimate { value, low: value * (-half).exp(), high: value * half.exp() }
    }

    /// Of a function of this one, rising or falling.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Estimate {
        let (a, b) = (f(self.low), f(self.high));
        Estimate { value: f(self.value), low: a.min(b), high: a.max(b) }
    }
}

/// Question to a forecast: the first number of jobs at which throughput reaches a limit, or a time or share exceeds it, from where that
/// is lowest in the measured range on, because few jobs may be slow while the machine wakes up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    pub figure: Figure,
    pub limit: f64,
}

/// A number of jobs and its 90 % interval, up to eight times the measured jobs, or these if forecasts beyond are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jobs {
    /// Jobs, by the forecast itself; `None` if it does not get there in the range looked at.
    pub at: Option<f64>,
    /// Jobs by the end of the interval that gets there first.
    pub earliest: Option<f64>,
    /// Jobs by the end that gets there last.
    pub latest: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct Fitted {
    pub series: Series,
    /// Source of forecasts beyond the measured jobs.
    pub kind: Kind,
    /// Whether there were points enough to check forecasts of the last ones from those before.
    pub checked: bool,
    /// By how much the law misses the points, percent, if it follows them too badly to forecast beyond the measured jobs: its distance
    /// from the last point, or the mean error of forecasts of the last points, scaled to twice the jobs.
    pub refused: Option<f64>,
    /// `None` of a single point.
    curve: Option<Curve>,
    /// Laws of the figures, each with the half-width of its ratio in logarithms, per unit of growth beyond the points.
    figures: BTreeMap<Figure, (FigureLaw, f64)>,
    /// Half-widths in logarithms: per unit of growth beyond the points, and between them.
    beyond: f64,
    between: f64,
}

impl Fitted {
    /// Throughput at `jobs` with its 90 % interval, and what it comes from; `None` beyond the measured jobs if that is refused.
    pub fn tps(&self, jobs: f64) -> Option<(Estimate, Kind)> {
        if !jobs.is_finite() || jobs <= 0.0 {
            return None;
        }
        if jobs > self.measured_to() {
            return if self.refused.is_none() { Some((self.modelled(jobs)?, self.kind)) } else { None };
        }
        let first = self.series.points.first()?;
        let below = if jobs < first.jobs { self.beyond * growth(first.jobs / jobs) } else { 0.0 };
        let tps = jobs / between(&cycles(&self.series.points), jobs)?;
        Some((Estimate::around(tps, self.between.hypot(below)), Kind::Interpolation))
    }

    /// `figure`, likewise; `None` also if the series lacks it.
    pub fn figure(&self, figure: Figure, jobs: f64) -> Option<(Estimate, Kind)> {
        let (tps, kind) = self.tps(jobs)?;
        let (law, drift) = self.figures.get(&figure)?;
        let most = if figure == Figure::CpuPct { 100.0 } else { f64::INFINITY };
        let e = tps.map(|tps| law.at(jobs, tps));
        let half = drift * growth((jobs / self.measured_to()).max(1.0));
        let e = Estimate { low: e.low * (-half).exp(), high: e.high * half.exp(), ..e };
        Some((e.map(|value| value.min(most)), kind))
    }

    /// Value of the law, also if it is refused. Beyond noise, no transactions find more CPU than there is.
    pub(crate) fn modelled(&self, jobs: f64) -> Option<Estimate> {
        let curve = self.curve?;
        // What is measured there will be as noisy as the points between.
        let half = (self.beyond * growth(jobs / self.measured_to())).hypot(self.between);
        let e = Estimate::around(curve.tps(jobs), half);
        let e = Estimate { high: e.high.min(curve.full.max(e.value) * self.between.exp()), ..e };
        (e.value.is_finite() && e.value > 0.0).then_some(e)
    }

    pub fn measured_to(&self) -> f64 {
        self.series.points.last().map_or(0.0, |p| p.jobs)
    }

    /// Jobs up to which answers are looked for.
    pub fn looked_to(&self) -> f64 {
        self.measured_to() * if self.refused.is_some() { 1.0 } else { FARTHEST_ANSWER }
    }

    pub fn ask(&self, question: Question) -> Option<Jobs> {
        let Question { figure, limit } = question;
        let looked_to = self.looked_to();
        // Every number of jobs up to 1,000, then a thousandth at a time.
        let jobs = std::iter::successors(Some(1.0), |jobs: &f64| Some((jobs + 1.0).max((jobs * 1.001).floor())));
        let jobs = jobs.take_while(|jobs| *jobs <= looked_to);
        let mut all: Vec<(f64, Estimate)> = jobs.map_while(|n| Some((n, self.figure(figure, n)?.0))).collect();
        if figure != Figure::Tps {
            let measured = all.iter().take_while(|(jobs, _)| *jobs <= self.measured_to()).enumerate();
            all.drain(..measured.min_by(|(_, a), (_, b)| a.1.value.total_cmp(&b.1.value))?.0);
        }
        all.first()?;
        // Throughput to the precision of the solution.
        let is_met = |value: f64| if figure == Figure::Tps { value >= limit * (1.0 - 1e-9) } else { value > limit };
        let first = |end: fn(&Estimate) -> f64| all.iter().find(|(_, e)| is_met(end(e))).map(|(jobs, _)| *jobs);
        // Higher values get there first.
        Some(Jobs { at: first(|e| e.value), earliest: first(|e| e.high), latest: first(|e| e.low) })
    }
}

fn cycles(points: &[Point]) -> Vec<(f64, f64)> {
    points.iter().map(|p| (p.jobs, p.cycle_s())).collect()
}

/// How errors grow with the `share` of jobs over those measured: with d = ln share the slope's error as d, the bend's as d².
fn growth(share: f64) -> f64 {
    let distance = share.ln();
    distance * (1.0 + distance / 2.0)
}

/// A law with what its forecasts of the last points of a platform's series were off by.
struct Judged {
    kind: Kind,
    /// Place of the series, and size of the error per unit of growth.
    residuals: Vec<(usize, f64)>,
    curves: Vec<Option<Curve>>,
}

impl Judged {
    fn scaled(&self) -> Vec<f64> {
        self.residuals.iter().map(|(_, error)| *error).collect()
    }

    /// By how much the law misses the series at `place`, if that is too much, percent.
    fn refusal(&self, place: usize, curve: &Curve) -> Option<f64> {
        let own: Vec<f64> = self.residuals.iter().filter(|(of, _)| *of == place).map(|(_, error)| *error).collect();
        // Where no point could be left out, only how well those that were fitted are followed tells a law from chance.
        let off = if own.is_empty() { curve.off } else { curve.misses.abs() };
        let missed = mean(&own).unwrap_or(0.0) * growth(2.0);
        let unfit = off.is_nan() || off > NO_FIT;
        (unfit || missed > NO_FORECAST).then_some(if unfit { off } else { missed } * 100.0)
    }
}

/// Errors of forecasts of the last points of a platform's series from those before: of each up to half of its points, [`FEWEST`]
/// being left to fit. So a fold never sees what it forecasts, nor any later point.
fn residuals(kind: Kind, platform: &[&[Point]]) -> Vec<(usize, f64)> {
    /// More folds than that say little new.
    const MOST_FOLDS: usize = 12;
    /// Farthest point that a fold forecasts, in multiples of the jobs it was fitted to.
    const FARTHEST: f64 = 4.0;
    let most_left_out = |points: &[Point]| (points.len() / 2).min(points.len().saturating_sub(FEWEST));
    let folds = platform.iter().map(|points| most_left_out(points)).max().unwrap_or(0);
    let mut out = Vec::new();
    for fold in 1..=folds.min(MOST_FOLDS) {
        let kept = platform.iter().map(|points| &points[..points.len() - fold.min(most_left_out(points))]);
        let kept: Vec<&[Point]> = kept.collect();
        for (place, (curve, points)) in curves(kind, &kept).into_iter().zip(platform).enumerate() {
            let (Some(curve), Some(last)) = (curve, kept[place].last()) else { continue };
            let left_out = points.iter().skip(kept[place].len()).filter(|p| p.jobs <= last.jobs * FARTHEST);
            let error = |p: &Point| (curve.tps(p.jobs) / p.tps).ln().abs() / growth(p.jobs / last.jobs);
            out.extend(left_out.map(|p| (place, error(p))));
        }
    }
    out
}

/// The half-width that the next error stays within with 90 %, from `errors` on the same scale, `usual` where there are few.
fn half_width(errors: &[f64], usual: f64) -> f64 {
    /// 0.95 quantiles of Student's t for 2 to 20 degrees of freedom, then that for 20.
    const T_95: [f64; 19] = [
        2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740,
        1.734, 1.729, 1.725,
    ];
    let squares = errors.iter().map(|e| e * e).sum::<f64>() + PRIOR as f64 * usual.powi(2);
    T_95[errors.len().min(T_95.len() - 1)] * (squares / (errors.len() + PRIOR) as f64).sqrt()
}

/// Fits all series of a table. Those of a platform share their law and the cost of its log; intervals come from errors in all of it.
pub fn fit(table: &[Series]) -> Vec<Fitted> {
    let mut platforms: BTreeMap<&str, Vec<&[Point]>> = BTreeMap::new();
    table.iter().for_each(|series| platforms.entry(&series.platform).or_default().push(&series.points));
    let laws: BTreeMap<&str, [Judged; 2]> = platforms.iter().map(|(name, all)| (*name, laws(all))).collect();
    let errors: Vec<f64> = laws.values().flat_map(|[used, _]| used.scaled()).collect();
    // Inner points, each interpolated from its neighbours: at twice the gaps there are.
    let inner = table.iter().flat_map(|s| s.points.windows(3)).filter_map(|w| match w {
        [a, b, c] => Some((between(&cycles(&[*a, *c]), b.jobs)? / b.cycle_s()).ln()),
        _ => None,
    });
    let (beyond, between) = (half_width(&errors, BEYOND), half_width(&inner.collect::<Vec<f64>>(), BETWEEN));
    let one = |(at, series): (usize, &Series)| {
        let place = table.iter().take(at).filter(|before| before.platform == series.platform).count();
        Some(one(series, place, laws.get(series.platform.as_str())?, [beyond, between]))
    };
    table.iter().enumerate().filter_map(one).collect()
}

/// Both laws of a platform, the one to use first.
fn laws(platform: &[&[Point]]) -> [Judged; 2] {
    let [closed, usl] = [Kind::Closed, Kind::Usl].map(|kind| Judged {
        kind,
        residuals: residuals(kind, platform),
        curves: curves(kind, platform),
    });
    let errors = usl.scaled();
    let error = sample_sd(&errors).map_or(f64::INFINITY, |sd| sd / (errors.len() as f64).sqrt());
    let mean = |errors: &[f64]| mean(errors).unwrap_or(f64::INFINITY);
    if mean(&errors) + error < mean(&closed.scaled()) { [usl, closed] } else { [closed, usl] }
}

/// The series at `place` of its platform with the first of `laws` that follows it; without one with the first, refused.
fn one(series: &Series, place: usize, laws: &[Judged; 2], [beyond, between]: [f64; 2]) -> Fitted {
    let fits = || laws.iter().filter_map(|law| Some((law, (*law.curves.get(place)?)?)));
    let used = fits().find(|(law, curve)| law.refusal(place, curve).is_none()).or_else(|| fits().next());
    let points = &series.points;
    Fitted {
        series: series.clone(),
        kind: used.map_or(Kind::Closed, |(law, _)| law.kind),
        checked: used.is_some_and(|(law, _)| !law.residuals.is_empty()),
        // A single point has no law.
        refused: used.map_or(Some(f64::INFINITY), |(law, curve)| law.refusal(place, &curve)),
        curve: used.map(|(_, curve)| curve),
        figures: Figure::ALL
            .into_iter()
            .filter_map(|figure| {
                let law = FigureLaw::fitted(figure, points)?;
                let drift = half_width(&law.drifts(growth), BETWEEN);
                Some((figure, (law, drift)))
            })
            .collect(),
        beyond,
        between,
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    pub point: Point,
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
