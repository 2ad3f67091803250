//! The utilisation law: CPU busy rises by the same for each transaction, and ends at 100 %.

use super::linear::Line;
use super::series::Point;

/// Largest mean distance of points from their law, in percent of all CPUs.
const OFF_PCT: f64 = 5.0;
/// Fewest points that can be off a line.
const FEWEST: usize = 3;

/// The utilisation law of `points`: CPU busy in percent over tps; where none holds, the line nearest to all. `None` for fewer than
/// two points with CPU figures.
pub(crate) fn utilisation(points: &[Point]) -> Option<Line> {
    let known = known(points);
    law(&known).or_else(|| Line::of(&known))
}

/// The throughput at which the CPUs are full, by the utilisation law (asymptotic bounds: Lazowska et al., chapter 5). `None` where
/// the law does not hold: CPU is known of fewer than 3 points, they are off it, more than the law allows was measured, or most of
/// the CPU is used without transactions, such as by others, who may make way.
pub(crate) fn full_cpu_tps(points: &[Point]) -> Option<f64> {
    /// Least part of the measured throughput that the law must allow: what goes beyond is noise.
    const ALLOWED: f64 = 0.9;
    let known = known(points);
    let law = law(&known).filter(|_| known.len() >= FEWEST)?;
    let most = points.iter().map(|p| p.tps).fold(0.0, f64::max);
    // Where a line through the last points begins is no sign of others: the first points may be below it.
    let without = known.iter().map(|(_, cpu)| *cpu).fold(law.a, f64::min);
    let full = (100.0 - law.a) / law.b;
    let holds = law.at(most) >= 2.0 * without && full.is_finite() && full >= most * ALLOWED;
    holds.then(|| full.max(most))
}

/// Throughput and CPU busy of the points that have both.
fn known(points: &[Point]) -> Vec<(f64, f64)> {
    points.iter().filter_map(|p| Some((p.tps, p.cpu_pct?))).collect()
}

/// The line that all points obey, or else the last three, if CPU clearly rises along them: commits that share a log write share its
/// CPU time, so that a transaction costs less with more jobs.
fn law(known: &[(f64, f64)]) -> Option<Line> {
    let obeyed = |law: &Line, points: &[(f64, f64)]| {
        let off: Vec<f64> = points.iter().map(|(tps, cpu)| (law.at(*tps) - cpu).abs()).collect();
        crate::stats::mean(&off).is_some_and(|off| off <= OFF_PCT)
    };
    if let Some(whole) = Line::of(known).filter(|whole| obeyed(whole, known)) {
        return Some(whole);
    }
    let end = known.get(known.len().checked_sub(FEWEST)?..)?;
    let rises = end.last()?.1 - end.first()?.1 > 2.0 * OFF_PCT;
    Line::of(end).filter(|law| rises && obeyed(law, end))
}
