//! The closed model: jobs go round between the CPUs and the log.
//!
//! A job's cycle (Little's law: `R = N / X` at N jobs and X tps) has two parts:
//!
//! - outside the log `Z = z0 + z1·X`: sessions that share CPUs slow each other down;
//! - log file sync `S = s0 + s1·U / (1 − U)`, where `U = X·τ` is the share of its capacity `1/τ` that the log is used: the wait
//!   of a queue (Lazowska et al., Quantitative System Performance, 1984, chapters 5 and 6).
//!
//! The forecast is the X at which `X·(Z + S) = N`. For a given τ everything else is linear: coefficients ≥ 0 by least squares of
//! differences of R and of S, both relative to R and with the same weight. Without log file sync, those of R alone.
//!
//! A few points say little about τ. Workloads of a platform share its log, which takes a time per commit and per KiB:
//! `τ ≈ t_commit + KiB · t_KiB`. Each τ is drawn to that by a penalty `strength · ln²(τ / (t_commit + KiB · t_KiB))` (partial
//! pooling: Gelman and Hill, Data Analysis Using Regression and Multilevel Models, 2007, chapter 12). The strength is the ratio of
//! the variance of the noise to that of τ around the line; cross-validation chooses it.

use super::linear::{Row, descend, inverse, lowest, non_negative};
use super::series::Point;

/// Strengths of the pooling between which cross-validation chooses: with a noise of 1 %, τ is within 100 %, 10 % and 1 % of it. Without
/// any pooling, forecasts of made-up platforms are worse, also of those whose logs are no line.
pub(crate) const STRENGTHS: [f64; 3] = [1e-4, 1e-2, 1.0];

/// `R(X) = fixed + slope·X + wait·U / (1 − U)`, `U = X·tau`: Z + S. Times in s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Closed {
    fixed: f64,
    slope: f64,
    wait: f64,
    tau: f64,
}

impl Closed {
    fn cycle_s(&self, tps: f64) -> f64 {
        let used = tps * self.tau;
        self.fixed + self.slope * tps + self.wait * used / (1.0 - used)
    }

    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        // Each part of the cycle alone bounds throughput; one at least is not 0.
        let queue = if self.wait > 0.0 { 1.0 / self.tau } else { f64::MAX };
        let end = [queue, jobs / self.fixed, (jobs / self.slope).sqrt()].into_iter().fold(f64::MAX, f64::min);
        inverse(end, jobs, |tps| tps * self.cycle_s(tps))
    }

    /// The best fit to `points` at the given `tau`, and the sum of its squared relative differences.
    fn at(points: &[Point], tau: f64) -> Option<(Closed, f64)> {
        let synced = points.iter().all(|p| p.sync_s().is_some());
        let rows = points.iter().flat_map(|p| {
            let (cycle, used) = (p.cycle_s(), p.tps * tau);
            let of = |z0: f64, z1: f64, s0: f64| [z0, z1, s0, used / (1.0 - used)].map(|v| v / cycle);
            if synced {
                let sync = p.sync_s().unwrap_or_default();
                vec![(of(1.0, p.tps, 1.0), 1.0), (of(0.0, 0.0, 1.0), sync / cycle)]
            } else {
                // z0 and s0 are then one.
                vec![(of(1.0, p.tps, 0.0), 1.0)]
            }
        });
        let ([z0, slope, s0, wait], off) = non_negative(&rows.collect::<Vec<Row<4>>>())?;
        Some((Closed { fixed: z0 + s0, slope, wait, tau }, off))
    }
}

/// What it costs that the log is used by `used` at the highest throughput: a weak prior, with which the log odds of that are within
/// 3 of even at a noise of 0.3 %. Else a last point 0.1 % too low is explained by a log that is full right there.
fn unusual(used: f64) -> f64 {
    1e-5 * ((used / (1.0 - used)).ln() / 3.0).powi(2)
}

/// How well each τ fits a series.
struct Profile<'p> {
    points: &'p [Point],
    /// Highest throughput, tps.
    most: f64,
    /// ln τ and the sum of squares, with [`unusual`].
    costs: Vec<(f64, f64)>,
    /// Redo of a transaction, KiB.
    redo: Option<f64>,
}

impl<'p> Profile<'p> {
    fn of(points: &'p [Point]) -> Option<Profile<'p>> {
        if points.len() < 3 {
            return None;
        }
        let most = points.iter().map(|p| p.tps).fold(0.0, f64::max);
        // Use of the log at the highest throughput: 0.7 % to 99.9 %, in even steps of its odds.
        let used = (0..=80).map(|n| 1.0 / (1.0 + (5.0 - 0.15 * f64::from(n)).exp()));
        let costs =
            used.filter_map(|u| Some(((u / most).ln(), Closed::at(points, u / most)?.1 + unusual(u)))).collect();
        let redo: Vec<f64> = points.iter().filter_map(|p| p.redo_kib).collect();
        Some(Profile { points, most, costs, redo: crate::stats::mean(&redo) })
    }

    /// The lowest cost when τ is drawn to `pooled` (ln), as (ln τ, cost); between the profile's τ its costs are a straight line.
    fn drawn(&self, strength: f64, pooled: f64) -> (f64, f64) {
        let least = self.costs.windows(2).filter_map(|pair| {
            let [(a, at_a), (b, at_b)] = pair else { return None };
            let slope = (at_b - at_a) / (b - a);
            let tau = if strength > 0.0 {
                (pooled - slope / (2.0 * strength)).clamp(*a, *b)
            } else if slope < 0.0 {
                *b
            } else {
                *a
            };
            Some((tau, at_a + slope * (tau - a) + strength * (tau - pooled).powi(2)))
        });
        least.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0.0, f64::INFINITY))
    }

    /// The best fit when τ is drawn to `pooled` (ln).
    fn fit(&self, strength: f64, pooled: Option<f64>) -> Option<Closed> {
        let (strength, pooled) = pooled.map_or((0.0, 0.0), |pooled| (strength, pooled));
        let (near, _) = self.drawn(strength, pooled);
        let below = self.costs.iter().rev().map(|c| c.0).find(|tau| *tau < near).unwrap_or(near);
        let above = self.costs.iter().map(|c| c.0).find(|tau| *tau > near).unwrap_or(near);
        let off = |tau: f64| {
            let fitted = Closed::at(self.points, tau.exp()).map_or(f64::INFINITY, |(_, off)| off);
            fitted + unusual(self.most * tau.exp()) + strength * (tau - pooled).powi(2)
        };
        let tau = lowest(below, above, off);
        Closed::at(self.points, tau.exp()).map(|(fit, _)| fit)
    }
}

/// The fits to the series of a platform, each with 3 points or more, when their τ are pooled with `strength`.
pub(crate) fn fit(series: &[&[Point]], strength: f64) -> Vec<Option<Closed>> {
    let profiles: Vec<Option<Profile<'_>>> = series.iter().map(|points| Profile::of(points)).collect();
    let shared: Vec<(&Profile<'_>, f64)> = profiles.iter().flatten().filter_map(|p| Some((p, p.redo?))).collect();
    let line = if strength > 0.0 && shared.len() > 1 { pooled(&shared, strength) } else { None };
    let of = |profile: &Profile<'_>| {
        let drawn_to = line.as_ref().and_then(|line| Some(line(profile.redo?)));
        profile.fit(strength, drawn_to)
    };
    profiles.iter().map(|p| p.as_ref().and_then(of)).collect()
}

/// ln τ as a function of a transaction's redo: the line `t_commit + KiB · t_KiB`, both ≥ 0, that costs all series the least.
fn pooled(series: &[(&Profile<'_>, f64)], strength: f64) -> Option<Box<dyn Fn(f64) -> f64>> {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (least, most) = range(&mut series.iter().map(|(_, redo)| *redo));
    let (low, high) = range(&mut series.iter().flat_map(|(p, _)| p.costs.iter().map(|c| c.0)));
    if !(low < high && least > 0.0) {
        return None;
    }
    // The line by its values (ln) at the least and the most redo: it rises, and its value at no redo is not below 0.
    let steepest = (most / least).ln();
    let at = move |[a, b]: [f64; 2], redo: f64| {
        let b = b.clamp(a, a + steepest);
        let share = if most > least { (redo - least) / (most - least) } else { 0.0 };
        (a.exp() + share * (b.exp() - a.exp())).ln()
    };
    let cost = |line: [f64; 2]| series.iter().map(|(p, redo)| p.drawn(strength, at(line, *redo)).1).sum::<f64>();
    const STEPS: u32 = 16;
    let step = (high - low) / f64::from(STEPS);
    let grid = (0..=STEPS).flat_map(|i| (0..=STEPS).map(move |j| [i, j].map(|n| low + f64::from(n) * step)));
    let start = grid.map(|line| (line, cost(line))).min_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let (line, _) = descend(start, step, cost);
    Some(Box::new(move |redo| at(line, redo)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(truth: Closed, redo: f64) -> Vec<Point> {
        let point = |jobs: f64| {
            let tps = truth.tps(jobs);
            let used = tps * truth.tau;
            // An eighth of the fixed time is in the log.
            let sync_ms = (truth.fixed / 8.0 + truth.wait * used / (1.0 - used)) * 1e3;
            Point { jobs, tps, sync_ms: Some(sync_ms), redo_kib: Some(redo), ..Point::default() }
        };
        [2.0, 8.0, 16.0, 24.0, 32.0].map(point).to_vec()
    }

    #[test]
    fn a_closed_model_is_found_from_its_own_points() {
        let truth = Closed { fixed: 6e-4, slope: 4e-9, wait: 6e-5, tau: 1.6e-5 };
        let points = sweep(truth, 25.0);
        for (n, p) in points.iter().enumerate() {
            let cycle = truth.cycle_s(p.tps);
            assert!((cycle * p.tps / p.jobs - 1.0).abs() < 1e-9, "{n}: {cycle}");
        }
        let without: Vec<Point> = points.iter().map(|p| Point { sync_ms: None, ..*p }).collect();
        for points in [&points, &without] {
            let found = fit(&[points], 0.0)[0].unwrap();
            // The prior draws τ a little, and forecasts hardly.
            assert!((found.tau / truth.tau - 1.0).abs() < 0.05, "{found:?}");
            assert!((found.tps(64.0) / truth.tps(64.0) - 1.0).abs() < 0.01, "{found:?}");
            assert!(found.tps(1e6) <= 1.0 / found.tau);
        }
        // Each part alone.
        let none = Closed { fixed: 0.0, slope: 0.0, wait: 0.0, tau: 1e-4 };
        assert!((Closed { fixed: 1e-3, ..none }.tps(7.0) / 7000.0 - 1.0).abs() < 1e-9);
        assert!((Closed { slope: 1e-6, ..none }.tps(4.0) / 2000.0 - 1.0).abs() < 1e-9);
        assert!((Closed { wait: 1e-4, ..none }.tps(1.0) / 6180.3 - 1.0).abs() < 1e-4);
        assert_eq!(fit(&[&points[..2]], 0.0), [None]);
    }

    #[test]
    fn pooling_brings_what_a_series_cannot_know() {
        // The second series has three points at low load: alone it knows nothing of the log's capacity.
        let truth = |fixed: f64, tau: f64| Closed { fixed, slope: 0.0, wait: 1e-4, tau };
        let models =
            [(25.0, 6e-4), (100.0, 1e-3), (400.0, 8e-3)].map(|(kib, fixed)| (kib, truth(fixed, 2e-6 + kib * 6e-7)));
        let [full, small, other] = models.map(|(redo, model)| sweep(model, redo));
        let noisy =
            small[..3].iter().zip([1.01, 0.985, 1.0]).map(|(p, by)| Point { sync_ms: p.sync_ms.map(|s| s * by), ..*p });
        let noisy: Vec<Point> = noisy.collect();
        let error = |strength| (fit(&[&full, &noisy, &other], strength)[1].unwrap().tau / models[1].1.tau).ln().abs();
        assert!(error(1.0) < error(0.0) / 2.0, "{} {}", error(1.0), error(0.0));
    }
}
