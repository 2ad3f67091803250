//! Sizes and commit times of a scan, prepared for the fit: a quantile and its weight for each size.

use loadline_model::limits::SizePoint;

use super::MIN_SAMPLES;
use crate::stats::{median, quantile};

/// Quantiles of each size's commit times that may be fitted.
const QUANTILES: [f64; 3] = [0.5, 0.25, 0.1];

/// One quantile of the commit times by size, with its scatter.
#[derive(Debug)]
pub(super) struct ScanData {
    /// Sizes in steps from the smallest, rising.
    pub(super) steps: Vec<f64>,
    /// The quantile of each size, ns; those far off a robust line are clipped.
    pub(super) times: Vec<f64>,
    /// Scatter around that line by size, in any unit.
    pub(super) sigma: Vec<f64>,
    /// The quantile: 0.5, unless a lower one differs less than half as much from size to size, as a share of its level. On a shared
    /// device most commits may meet a stall, which lower quantiles do not.
    pub(super) quantile: f64,
    pub(super) first_bytes: f64,
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

impl ScanData {
    /// `None` if the sizes do not differ.
    pub(super) fn new(usable: &[&SizePoint]) -> Option<ScanData> {
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
        let sigma = scatter(&steps, &off);
        let in_sigma: Vec<f64> = off.iter().zip(&sigma).map(|(r, s)| (r / s).abs()).collect();
        // A normal distribution's standard deviation is 1.4826 times its median absolute deviation.
        let far = Some(4.0 * 1.4826 * median(&in_sigma)?).filter(|far| *far > 0.0).unwrap_or(f64::INFINITY);
        let each = steps.iter().zip(off.iter().zip(&sigma));
        let times = each.map(|(x, (off, s))| a + b * x + off.max(-far * s).min(far * s)).collect();
        Some(ScanData { steps, times, sigma, quantile: q, first_bytes, step_bytes })
    }

    /// Bytes halfway between size `index` and the one before it.
    pub(super) fn bytes_between(&self, index: usize) -> f64 {
        let at = |i: usize| self.steps.get(i).copied().unwrap_or(0.0);
        self.first_bytes + self.step_bytes * (at(index) + at(index.saturating_sub(1))) / 2.0
    }
}

/// How much neighbours differ, as a share of their level.
fn roughness(times: &[f64]) -> f64 {
    let apart: Vec<f64> = times.iter().zip(times.iter().skip(1)).map(|(a, b)| (b - a).abs()).collect();
    median(&apart).zip(median(times)).map_or(f64::INFINITY, |(apart, level)| apart / level.max(1.0))
}

/// Most sizes for slopes of all pairs. With more, each size is paired with the one half the range above.
const ALL_PAIRS: usize = 400;

/// Intercept and slope by the Theil–Sen estimator: the median of the slopes between pairs of sizes.
fn robust_line(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let all: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let slope = |a: &(f64, f64), b: &(f64, f64)| (b.0 > a.0).then(|| (b.1 - a.1) / (b.0 - a.0));
    let slopes: Vec<f64> = if all.len() <= ALL_PAIRS {
        all.iter().enumerate().flat_map(|(i, a)| all.iter().skip(i + 1).filter_map(move |b| slope(a, b))).collect()
    } else {
        all.iter().zip(all.iter().skip(all.len() / 2)).filter_map(|(a, b)| slope(a, b)).collect()
    };
    let b = median(&slopes)?;
    Some((median(&all.iter().map(|(x, y)| y - b * x).collect::<Vec<_>>())?, b))
}

/// Scatter of the times by size: a line through their clipped distances from the trend line, at least a quarter of
/// the mean distance.
fn scatter(x: &[f64], off: &[f64]) -> Vec<f64> {
    let distances: Vec<f64> = off.iter().map(|r| r.abs()).collect();
    let Some(middle) = median(&distances).filter(|middle| *middle > 0.0) else { return vec![1.0; x.len()] };
    let clipped: Vec<f64> = distances.iter().map(|d| d.min(5.0 * middle)).collect();
    let n = x.len() as f64;
    let (mx, md) = (x.iter().sum::<f64>() / n, clipped.iter().sum::<f64>() / n);
    let xx: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    let slope = x.iter().zip(&clipped).map(|(x, d)| (x - mx) * (d - md)).sum::<f64>() / xx;
    x.iter().map(|x| (md + slope * (x - mx)).max(md / 4.0)).collect()
}
