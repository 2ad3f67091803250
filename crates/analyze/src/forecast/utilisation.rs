//! The utilisation law: CPU busy rises by the same for each transaction, and ends at 100 %.

use super::linear::Line;
use super::series::Point;

/// The utilisation law of `points`: CPU busy in percent over tps. `None` for fewer than two points with it.
pub(crate) fn utilisation(points: &[Point]) -> Option<Line> {
    Line::of(&points.iter().filter_map(|p| Some((p.tps, p.cpu_pct?))).collect::<Vec<_>>())
}

/// The throughput at which the CPUs are full, by the utilisation law (asymptotic bounds: Lazowska et al., chapter 5). `None` where
/// the law does not hold: CPU is known of fewer than 3 points, they are off it, more than the law allows was measured, or most of
/// the CPU is used without transactions, such as by others, who may make way.
pub(crate) fn full_cpu_tps(points: &[Point]) -> Option<f64> {
    /// Largest mean distance of the points from the law, in percent of all CPUs.
    const OFF_PCT: f64 = 5.0;
    /// Least part of the measured throughput that the law must allow: what goes beyond is noise.
    const ALLOWED: f64 = 0.9;
    let law = utilisation(points)?;
    let off: Vec<f64> = points.iter().filter_map(|p| Some((law.at(p.tps) - p.cpu_pct?).abs())).collect();
    let most = points.iter().map(|p| p.tps).fold(0.0, f64::max);
    let full = (100.0 - law.a) / law.b;
    let holds = off.len() >= 3
        && crate::stats::mean(&off)? <= OFF_PCT
        && law.b * most >= law.a
        && full.is_finite()
        && full >= most * ALLOWED;
    holds.then(|| full.max(most))
}
