//! A quantile of the commit times of each size, and the search for teeth in them over periods and phases.
//!
//! For a frequency f (teeth per step), the sizes are sorted by u = frac(f·x). A sawtooth that falls between the k-th and the next is
//! u + [rank < k], up to a constant. So the fits of all phases follow from running sums over that order, without a grid of phases.

use loadline_model::limits::SizePoint;

use super::MIN_SAMPLES;
use crate::linear::{Model, dot, square};
use crate::stats::{POSSIBLE, median, quantile};

/// Quantiles of each size's commit times that may be fitted.
const QUANTILES: [f64; 3] = [0.5, 0.25, 0.1];

#[derive(Debug)]
pub(super) struct Data {
    /// Sizes in steps from the smallest, rising.
    pub(super) steps: Vec<f64>,
    /// The quantile of each size, ns; those far off a robust line are clipped.
    pub(super) times: Vec<f64>,
    /// The quantile: 0.5, unless a lower one differs less than half as much from size to size, as a share of its level. On a shared
    /// device most commits may meet a stall, which lower quantiles do not.
    pub(super) quantile: f64,
    first_bytes: f64,
    pub(super) step_bytes: f64,
}

pub(super) fn usable(points: &[SizePoint]) -> Vec<&SizePoint> {
    let is_usable =
        |p: &&SizePoint| p.redo_bytes.is_finite() && p.redo_bytes.abs() < 1e18 && p.commit_ns.len() >= MIN_SAMPLES;
    let mut usable: Vec<&SizePoint> = points.iter().filter(is_usable).collect();
    usable.sort_by(|a, b| a.redo_bytes.total_cmp(&b.redo_bytes));
    usable
}

impl Data {
    /// `None` if the sizes do not differ.
    pub(super) fn new(usable: &[&SizePoint]) -> Option<Data> {
        let first_bytes = usable.first()?.redo_bytes;
        let gaps = usable.windows(2).filter_map(|w| Some(w.last()?.redo_bytes - w.first()?.redo_bytes));
        let step_bytes = median(&gaps.filter(|gap| *gap > 0.0).collect::<Vec<_>>())?;
        let steps: Vec<f64> = usable.iter().map(|p| (p.redo_bytes - first_bytes) / step_bytes).collect();
        let at = |q: f64| -> Vec<f64> {
            let time = |p: &&SizePoint| quantile(&p.commit_ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>(), q);
            usable.iter().filter_map(time).collect()
        };
        let all = QUANTILES.map(|q| (roughness(&at(q)), q));
        let (least, lower) = all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let [(of_medians, middle), ..] = all;
        let q = if of_medians > 2.0 * least { lower } else { middle };
        let times = at(q);
        let (a, b) = robust_line(&steps, &times)?;
        let off: Vec<f64> = steps.iter().zip(&times).map(|(x, y)| y - a - b * x).collect();
        let distances: Vec<f64> = off.iter().map(|r| r.abs()).collect();
        // A normal distribution's standard deviation is 1.4826 times its median absolute deviation.
        let far = Some(4.0 * 1.4826 * median(&distances)?).filter(|far| *far > 0.0).unwrap_or(f64::INFINITY);
        let times = steps.iter().zip(&off).map(|(x, off)| a + b * x + off.max(-far).min(far)).collect();
        Some(Data { steps, times, quantile: q, first_bytes, step_bytes })
    }

    pub(super) fn bytes(&self, step: f64) -> f64 {
        self.first_bytes + self.step_bytes * step
    }
}

/// How much neighbours differ, as a share of their level.
fn roughness(times: &[f64]) -> f64 {
    let apart: Vec<f64> = times.iter().zip(times.iter().skip(1)).map(|(a, b)| (b - a).abs()).collect();
    median(&apart).zip(median(times)).map_or(f64::INFINITY, |(apart, level)| apart / level.max(1.0))
}

/// Most sizes whose slopes to all others are looked at.
const MOST_PAIRED: usize = 400;

/// Intercept and slope by the Theil–Sen estimator: the median of the slopes between pairs of sizes.
fn robust_line(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let all: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let some = all.iter().step_by(all.len().div_ceil(MOST_PAIRED));
    let pairs = some.flat_map(|a| all.iter().filter(|b| b.0 > a.0).map(move |b| (b.1 - a.1) / (b.0 - a.0)));
    let slope = median(&pairs.collect::<Vec<_>>())?;
    Some((median(&all.iter().map(|(x, y)| y - slope * x).collect::<Vec<_>>())?, slope))
}

/// Largest gap between two values of u that is a rounding error.
const NO_GAP: f64 = 1e-9;
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    pub(super) frequency: f64,
    /// frac(f·x) at which it falls.
    pub(super) phase: f64,
    /// Share of the squared residual that it explains, 0…1.
    pub(super) share: f64,
}

/// Sawteeth of some rising frequencies beside a model.
#[derive(Debug)]
pub(super) struct Search(Vec<Table>);

impl Search {
    pub(super) fn over(frequencies: impl Iterator<Item = f64>, model: &Model, x: &[f64]) -> Search {
        Search(frequencies.map(|f| Table::new(model, x, f)).collect())
    }

    /// The best rising sawtooth of each frequency.
    fn fits(&self, residual: &[f64]) -> impl Iterator<Item = Fit> {
        let all = square(residual);
        self.0.iter().map(move |table| table.fit(residual, all))
    }

    /// The best of all; `None` if no rising one fits.
    pub(super) fn best(&self, residual: &[f64]) -> Option<Fit> {
        self.fits(residual).filter(|fit| fit.share > 0.0).max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// The sawtooth in the middle of the possible periods, and the shortest and longest of these, in steps.
    pub(super) fn possible(&self, residual: &[f64]) -> Option<(Fit, [f64; 2])> {
        // A perfect fit would make the logarithm infinite.
        let left = |fit: &Fit| (1.0 - fit.share).max(1e-9).ln() * residual.len() as f64;
        let least = left(&self.best(residual)?);
        let possible: Vec<Fit> = self.fits(residual).filter(|fit| left(fit) - least <= POSSIBLE).collect();
        let (slow, fast) = (possible.first()?.frequency, possible.last()?.frequency);
        let off = |fit: &&Fit| (fit.frequency - (slow + fast) / 2.0).abs();
        Some((*possible.iter().min_by(|a, b| off(a).total_cmp(&off(b)))?, [1.0 / fast, 1.0 / slow]))
    }
}

/// Sums of one frequency that do not depend on the times.
#[derive(Debug)]
struct Table {
    frequency: f64,
    /// frac(f·x) by size.
    u: Vec<f64>,
    /// By rank: index of the size, the gap in u before it, and 1 / square of what the model leaves of a fall there (0 if none).
    falls: Vec<(usize, f64, f64)>,
}

impl Table {
    fn new(model: &Model, x: &[f64], frequency: f64) -> Table {
        let u: Vec<f64> = x.iter().map(|x| (x * frequency).rem_euclid(1.0)).collect();
        let mut order: Vec<(f64, usize)> = u.iter().copied().zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut norm = square(&u);
        let mut on: Vec<f64> = model.0.iter().map(|column| dot(column, &u)).collect();
        let mut before = order.last().map_or(0.0, |(u, _)| u - 1.0);
        let mut falls = Vec::with_capacity(order.len());
        for (u, size) in order {
            let left = norm - square(&on);
            let fits = u - before > NO_GAP && left > 1e-9 * norm;
            falls.push((size, u - before, if fits { 1.0 / left } else { 0.0 }));
            before = u;
            norm += 2.0 * u + 1.0;
            on.iter_mut().zip(&model.0).for_each(|(on, column)| *on += column.get(size).copied().unwrap_or(0.0));
        }
        Table { frequency, u, falls }
    }

    /// The best of all phases for a residual whose square is `all`.
    fn fit(&self, residual: &[f64], all: f64) -> Fit {
        let mut on = dot(&self.u, residual);
        let (mut most, mut at) = (0.0, (0, 0.0));
        for (size, gap, inverse) in &self.falls {
            let explained = on.max(0.0).powi(2) * inverse;
            if explained > most {
                (most, at) = (explained, (*size, *gap));
            }
            on += residual.get(*size).copied().unwrap_or(0.0);
        }
        // It falls in the middle of the gap.
        let phase = self.u.get(at.0).map_or(0.0, |u| (u - at.1 / 2.0).rem_euclid(1.0));
        Fit { frequency: self.frequency, phase, share: most / all }
    }
}
