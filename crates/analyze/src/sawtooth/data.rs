//! Sizes and commit times of a scan, prepared for the fit: quantiles, weights, bootstrap samples.

use loadline_model::Random;
use loadline_model::limits::SizePoint;

use super::MIN_SAMPLES;

/// Sizes in steps from the smallest, and the commit times of each.
#[derive(Debug)]
pub(super) struct ScanData {
    steps: Vec<f64>,
    samples: Vec<Vec<f64>>,
    first_bytes: f64,
    step_bytes: f64,
}

/// One quantile of the commit times by size, with its scatter.
#[derive(Debug)]
pub(super) struct Prepared {
    /// One per size, ns, clipped to `bounds`.
    pub(super) medians: Vec<f64>,
    /// The quantile that `medians` holds: 0.5, or lower if stalls hit too many commits.
    quantile: f64,
    /// Scatter around the line by size, in any unit.
    pub(super) sigma: Vec<f64>,
    /// Bounds of the medians, by size.
    bounds: Vec<(f64, f64)>,
}

impl ScanData {
    pub(super) fn of(points: &[SizePoint]) -> ScanData {
        let mut usable: Vec<&SizePoint> = points
            .iter()
            .filter(|p| p.redo_bytes.is_finite() && p.redo_bytes.abs() < 1e18 && p.commit_ns.len() >= MIN_SAMPLES)
            .collect();
        usable.sort_by(|a, b| a.redo_bytes.total_cmp(&b.redo_bytes));
        let first_bytes = usable.first().map_or(0.0, |p| p.redo_bytes);
        let mut gaps: Vec<f64> = usable
            .iter()
            .zip(usable.iter().skip(1))
            .map(|(a, b)| b.redo_bytes - a.redo_bytes)
            .filter(|g| *g > 0.0)
            .collect();
        let step_bytes = median(&mut gaps).unwrap_or(0.0);
        ScanData {
            steps: usable.iter().map(|p| (p.redo_bytes - first_bytes) / step_bytes).collect(),
            samples: usable.iter().map(|p| p.commit_ns.iter().map(|ns| *ns as f64).collect()).collect(),
            first_bytes,
            step_bytes,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Sizes in steps from the smallest, rising.
    pub(super) fn steps(&self) -> &[f64] {
        &self.steps
    }

    pub(super) fn first_bytes(&self) -> f64 {
        self.first_bytes
    }

    pub(super) fn step_bytes(&self) -> f64 {
        self.step_bytes
    }

    /// Bytes halfway between size `index` and the one before it.
    pub(super) fn bytes_between(&self, index: usize) -> f64 {
        let at = |i: usize| self.steps.get(i).copied().unwrap_or(0.0);
        self.first_bytes + self.step_bytes * (at(index) + at(index.saturating_sub(1))) / 2.0
    }

    /// Quantiles of resampled commit times (bootstrap), clipped to the bounds of `prepared`.
    pub(super) fn resampled(&self, prepared: &Prepared, rng: &mut Random) -> Vec<f64> {
        let mut drawn = Vec::new();
        let quantiles = self.samples.iter().map(|s| {
            drawn.clear();
            drawn.extend(s.iter().filter_map(|_| s.get(rng.below(s.len() as u64) as usize)));
            quantile(&mut drawn, prepared.quantile)
        });
        prepared.clipped(quantiles.collect())
    }

    /// Quantiles, weights and bounds; `None` if the sizes do not differ.
    pub(super) fn prepared(&self, q: f64) -> Option<Prepared> {
        if !(self.step_bytes > 0.0 && self.steps.iter().all(|s| s.is_finite())) {
            return None;
        }
        let medians: Vec<f64> = self.samples.iter().map(|s| quantile(&mut s.clone(), q)).collect();
        let (a, b) = robust_line(&self.steps, &medians)?;
        let off: Vec<f64> = self.steps.iter().zip(&medians).map(|(x, y)| y - a - b * x).collect();
        let sigma = scatter(&self.steps, &off);
        let mut in_sigma: Vec<f64> = off.iter().zip(&sigma).map(|(r, s)| (r / s).abs()).collect();
        // A normal distribution's standard deviation is 1.4826 times its median absolute deviation.
        let far = 4.0 * 1.4826 * median(&mut in_sigma)?;
        let far = if far > 0.0 { far } else { f64::INFINITY };
        let bounds: Vec<(f64, f64)> =
            self.steps.iter().zip(&sigma).map(|(x, s)| (a + b * x - far * s, a + b * x + far * s)).collect();
        let mut out = Prepared { medians: Vec::new(), quantile: q, sigma, bounds };
        out.medians = out.clipped(medians);
        Some(out)
    }
}

impl Prepared {
    /// `medians`, clipped to the bounds.
    fn clipped(&self, medians: Vec<f64>) -> Vec<f64> {
        medians.into_iter().zip(&self.bounds).map(|(m, (low, high))| m.max(*low).min(*high)).collect()
    }

    pub(super) fn mean(&self) -> f64 {
        self.medians.iter().sum::<f64>() / self.medians.len().max(1) as f64
    }

    /// Σ (median / σ)², the scale of the residuals.
    pub(super) fn weighted_square(&self) -> f64 {
        self.medians.iter().zip(&self.sigma).map(|(m, s)| (m / s).powi(2)).sum()
    }
}

/// Quantile `q` of `values`, interpolated; 0 if there are none. Sorts `values`.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = q * values.len().saturating_sub(1) as f64;
    let value = |i: f64| values.get(i as usize).copied().unwrap_or(0.0);
    let (below, above) = (value(at.floor()), value(at.ceil()));
    below + (above - below) * at.fract()
}

/// Median of `values`; `None` if there are none. Reorders `values`.
fn median(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    let (below, upper, _) = (n > 0).then(|| values.select_nth_unstable_by(n / 2, f64::total_cmp))?;
    let upper = *upper;
    if n % 2 == 1 {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some(lower + (upper - lower) / 2.0)
}

/// Most sizes for slopes of all pairs. With more, each size is paired with the one half the range above.
const ALL_PAIRS: usize = 400;

/// Intercept and slope by the Theil–Sen estimator: the median of the slopes between pairs of sizes.
fn robust_line(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let all: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let slope = |(a, b): (&(f64, f64), &(f64, f64))| (b.0 > a.0).then(|| (b.1 - a.1) / (b.0 - a.0));
    let mut slopes: Vec<f64> = if all.len() <= ALL_PAIRS {
        all.iter()
            .enumerate()
            .flat_map(|(i, a)| all.iter().skip(i + 1).map(move |b| (a, b)))
            .filter_map(slope)
            .collect()
    } else {
        all.iter().zip(all.iter().skip(all.len() / 2)).filter_map(slope).collect()
    };
    let b = median(&mut slopes)?;
    let mut rest: Vec<f64> = all.iter().map(|(x, y)| y - b * x).collect();
    Some((median(&mut rest)?, b))
}

/// Scatter of the medians by size: a line through their clipped distances from the trend line, at least a quarter of
/// the mean distance.
fn scatter(x: &[f64], off: &[f64]) -> Vec<f64> {
    let mut distances: Vec<f64> = off.iter().map(|r| r.abs()).collect();
    let middle = median(&mut distances).unwrap_or(0.0);
    if middle <= 0.0 {
        return vec![1.0; x.len()];
    }
    let clipped: Vec<f64> = off.iter().map(|r| r.abs().min(5.0 * middle)).collect();
    let n = x.len() as f64;
    let (mx, md) = (x.iter().sum::<f64>() / n, clipped.iter().sum::<f64>() / n);
    let (mut xx, mut xd) = (0.0, 0.0);
    for (x, d) in x.iter().zip(&clipped) {
        xx += (x - mx).powi(2);
        xd += (x - mx) * (d - md);
    }
    let slope = if xx > 0.0 { xd / xx } else { 0.0 };
    x.iter().map(|x| (md + slope * (x - mx)).max(md / 4.0)).collect()
}
