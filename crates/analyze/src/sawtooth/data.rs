//! Sizes and commit times of a scan, prepared for the fit: a quantile for each size.

use loadline_model::limits::SizePoint;

use super::MIN_SAMPLES;
use crate::stats::{median, quantile};

/// Quantiles of each size's commit times that may be fitted.
const QUANTILES: [f64; 3] = [0.5, 0.25, 0.1];

/// One quantile of the commit times by size.
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

/// The sizes that can be used, rising.
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
