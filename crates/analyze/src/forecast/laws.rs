//! The two laws that a sweep is forecast with, the throughput at which the CPUs are full, and the figures that go with a throughput.
//!
//! The closed model: N jobs go round between CPUs and log. A cycle takes `R = N / X` (Little's law): outside the log `Z = z0 + z1·X`,
//! and the log file sync `S = s0 + s1·U / (1 − U)`, where `U = X·τ` is the share of its capacity that the log is used. For a given τ
//! all else is linear: coefficients ≥ 0 by least squares of differences of R and of S, both relative to R; without log file sync,
//! those of R alone. All workloads of a platform write the same log: `τ = t_commit + KiB·t_KiB` is one line.
//!
//! The Universal Scalability Law: `N / X = a + b(N − 1) + c·N(N − 1)`. docs/forecast.md has the sources of both.

use super::Point;
use crate::linear::{Model, dot, square};

loadline_model::named! {
    /// Source of a figure.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        /// Interpolation between measured points.
        Interpolation: "interpolation", "interpolation";
        /// Jobs that go round between CPUs and log.
        Closed: "closed", "closed model";
        Usl: "usl", "Universal Scalability Law";
    }
    /// Id in CSV and JSON.
    pub fn id;
    /// Name in text.
    pub fn title;
}

/// A fitted law. Times in s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Law {
    /// `R(X) = fixed + slope·X + wait·U / (1 − U)`, `U = X·tau`: Z + S.
    Closed { fixed: f64, slope: f64, wait: f64, tau: f64 },
    /// `R(N) = a + b(N − 1) + c·N(N − 1)`.
    Usl([f64; 3]),
}

impl Law {
    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        match *self {
            Law::Closed { fixed, slope, wait, tau } => {
                let cycle_s = |tps: f64| fixed + slope * tps + wait * tps * tau / (1.0 - tps * tau);
                // Each part of the cycle alone bounds throughput; one at least is not 0.
                let queue = if wait > 0.0 { 1.0 / tau } else { f64::MAX };
                let end = [queue, jobs / fixed, (jobs / slope).sqrt()].into_iter().fold(f64::MAX, f64::min);
                inverse(end, jobs, |tps| tps * cycle_s(tps))
            }
            Law::Usl([a, b, c]) => jobs / (a + b * (jobs - 1.0) + c * jobs * (jobs - 1.0)),
        }
    }
}

/// A law with what bounds it, through the last point that it was fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Curve {
    law: Law,
    /// Throughput with full CPUs, which no law knows of; infinite where it is unknown.
    pub(crate) full: f64,
    last_jobs: f64,
    /// ln(law / measured) at the last point.
    pub(crate) misses: f64,
    /// The largest |ln(law / measured)| of the points.
    pub(crate) off: f64,
}

impl Curve {
    fn through(law: Law, points: &[Point]) -> Option<Curve> {
        let last = points.last()?;
        let full = full_cpu_tps(points).unwrap_or(f64::INFINITY);
        let miss = |p: &Point| (law.tps(p.jobs).min(full) / p.tps).ln();
        let off = points.iter().map(|p| miss(p).abs()).max_by(f64::total_cmp)?;
        Some(Curve { law, full, last_jobs: last.jobs, misses: miss(last), off })
    }

    /// Carries the law's error at the last point on; it fades as that point's share of the jobs.
    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        let carried = self.misses * (self.last_jobs / jobs).min(1.0);
        (self.law.tps(jobs).min(self.full) * (-carried).exp()).min(self.full)
    }
}

/// The curves of `kind` for the series of a platform; `None` where there are too few points.
pub(crate) fn curves(kind: Kind, platform: &[&[Point]]) -> Vec<Option<Curve>> {
    let platform: Vec<&[Point]> = platform.iter().map(|points| contended(points)).collect();
    let laws = if kind == Kind::Closed { closed(&platform) } else { platform.iter().map(|p| usl(p)).collect() };
    laws.into_iter().zip(platform).map(|(law, points)| Curve::through(law?, points)).collect()
}

pub(crate) const FEWEST: usize = 3;

/// The points from the one with the shortest cycle on, [`FEWEST`] at least. Where more jobs make each of them faster (processors
/// that wake up, a machine that others use as well), no law of contention holds, and such points would bend its curve.
fn contended(points: &[Point]) -> &[Point] {
    let shortest = points.iter().enumerate().min_by(|(_, a), (_, b)| a.cycle_s().total_cmp(&b.cycle_s()));
    let start = shortest.map_or(0, |(at, _)| at).min(points.len().saturating_sub(FEWEST));
    points.get(start..).unwrap_or(points)
}

/// Two points have no bend.
pub(crate) fn usl(points: &[Point]) -> Option<Law> {
    let bend = if points.len() < FEWEST { 0.0 } else { 1.0 };
    let row = |p: &Point| ([1.0, p.jobs - 1.0, bend * p.jobs * (p.jobs - 1.0)].map(|v| v / p.cycle_s()), 1.0);
    let (law, _) = non_negative(&points.iter().map(row).collect::<Vec<Row<3>>>())?;
    (points.len() > 1).then_some(Law::Usl(law))
}

/// The closed models of a platform: series with known redo share what a KiB of it costs, each of the others has its own τ.
pub(crate) fn closed(platform: &[&[Point]]) -> Vec<Option<Law>> {
    let redo = |points: &[Point]| crate::stats::mean(&points.iter().filter_map(|p| p.redo_kib).collect::<Vec<_>>());
    let enough = |points: &&[Point]| points.len() >= FEWEST;
    let shared = platform.iter().copied().filter(enough).filter_map(|points| Some((points, redo(points)?)));
    let per_kib = log_time(&shared.collect::<Vec<_>>());
    let law = |points: &[Point]| {
        let tau = match redo(points) {
            Some(kib) => per_kib? * kib,
            None => log_time(&[(points, 1.0)])?,
        };
        closed_at(points, tau).map(|(law, _)| law)
    };
    platform.iter().map(|points| if enough(points) { law(points) } else { None }).collect()
}

/// τ over the redo of a transaction, KiB: the one with which the series, each with its redo, fit best.
fn log_time(series: &[(&[Point], f64)]) -> Option<f64> {
    /// Use of the log at the highest throughput, at least.
    const IDLE: f64 = 0.007;
    let most_tps = |points: &[Point]| points.iter().map(|p| p.tps).fold(0.0, f64::max);
    // Squared relative differences of the best fit, and a weak prior, with which the log odds of the use of the log at the highest
    // throughput are within 3 of even at a noise of 0.3 %: without it, a last point that is a thousandth too low is explained by a log
    // that is full right there.
    let misfit = |points: &[Point], tau: f64| {
        let used = most_tps(points) * tau;
        let fit = if used < 1.0 { closed_at(points, tau) } else { None };
        fit.map_or(f64::INFINITY, |(_, off)| off + 1e-5 * ((used / (1.0 - used)).ln() / 3.0).powi(2))
    };
    let cost = |per_kib: f64| -> f64 { series.iter().map(|(points, kib)| misfit(points, per_kib * kib)).sum() };
    let full = 1.0 / series.iter().map(|(points, kib)| most_tps(points) * kib).fold(0.0, f64::max);
    // The best of a grid by its logarithm, and of ever finer ones around it.
    let (mut best, mut step) = ((full * IDLE.sqrt(), f64::INFINITY), -IDLE.ln() / 32.0);
    for reach in std::iter::once(16).chain([2; 10]) {
        let grid = (-reach..=reach).map(|n| best.0 * (f64::from(n) * step).exp());
        best = grid.map(|per_kib| (per_kib, cost(per_kib))).min_by(|a, b| a.1.total_cmp(&b.1))?;
        step /= 2.0;
    }
    best.1.is_finite().then_some(best.0)
}

/// The best closed model with `tau`, and the sum of its squared relative differences.
fn closed_at(points: &[Point], tau: f64) -> Option<(Law, f64)> {
    let synced = points.iter().all(|p| p.sync_s().is_some());
    let mut rows: Vec<Row<4>> = Vec::new();
    for p in points {
        let (cycle, used) = (p.cycle_s(), p.tps * tau);
        let row = |z0: f64, z1: f64, s0: f64| [z0, z1, s0, used / (1.0 - used)].map(|v| v / cycle);
        // Without sync, z0 and s0 are one.
        rows.push((row(1.0, p.tps, if synced { 1.0 } else { 0.0 }), 1.0));
        let sync = if synced { p.sync_s() } else { None };
        rows.extend(sync.map(|sync| (row(0.0, 0.0, 1.0), sync / cycle)));
    }
    let ([z0, slope, s0, wait], off) = non_negative(&rows)?;
    Some((Law::Closed { fixed: z0 + s0, slope, wait, tau }, off))
}

/// CPU busy in percent over tps, by the utilisation law `U = u0 + X·D`: u0 and D, both ≥ 0.
fn utilisation(points: &[Point]) -> Option<[f64; 2]> {
    let rows: Vec<Row<2>> = points
        .iter()
        .filter_map(|p| Some(([1.0, p.tps].map(|v| v / p.cpu_pct.unwrap_or(1.0)), p.cpu_pct.map(|_| 1.0)?)))
        .collect();
    (rows.len() > 1).then(|| non_negative(&rows)).flatten().map(|(line, _)| line)
}

/// The throughput at which the CPUs are full (asymptotic bounds: Lazowska et al., chapter 5). `None` where the law does not hold:
/// CPU is known of fewer than 3 points, they are on average more than 5 % of the CPUs off it, a tenth more than it allows was
/// measured, or most of the CPU is used without transactions, such as by others, who may make way.
fn full_cpu_tps(points: &[Point]) -> Option<f64> {
    let [idle, each] = utilisation(points)?;
    let off: Vec<f64> = points.iter().filter_map(|p| Some((idle + each * p.tps - p.cpu_pct?).abs())).collect();
    let most = points.iter().map(|p| p.tps).fold(0.0, f64::max);
    let full = (100.0 - idle) / each;
    let holds = off.len() >= FEWEST && crate::stats::mean(&off)? <= 5.0 && each * most >= idle;
    (holds && full.is_finite() && full >= 0.9 * most).then(|| full.max(most))
}

/// One equation: the coefficients' factors, and the value.
type Row<const P: usize> = ([f64; P], f64);

/// The coefficients ≥ 0 with the least sum of squared differences over `rows`, and that sum. Exact: tries each set of them with the
/// others 0 (Lawson and Hanson, Solving Least Squares Problems, chapter 23, by enumeration, as P ≤ 4).
fn non_negative<const P: usize>(rows: &[Row<P>]) -> Option<([f64; P], f64)> {
    (1..1_usize << P).rev().filter_map(|set| solution(rows, set)).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The least squares over the coefficients in the bits of `set`; `None` if one is negative or they are not determined.
fn solution<const P: usize>(rows: &[Row<P>], set: usize) -> Option<([f64; P], f64)> {
    let used: Vec<usize> = (0..P).filter(|i| set >> i & 1 == 1).collect();
    let column = |i: &usize| rows.iter().map(|(a, _)| a[*i]).collect::<Vec<f64>>();
    let columns: Vec<Vec<f64>> = used.iter().map(column).collect();
    let mut model = Model::default();
    if !columns.iter().all(|column| model.add(column)) {
        return None;
    }
    let (mut found, mut left) = ([0.0; P], rows.iter().map(|(_, y)| *y).collect::<Vec<f64>>());
    // The last column alone explains its orthonormal one; without it, so does the one before.
    for ((i, column), own) in used.iter().zip(&columns).zip(&model.0).rev() {
        found[*i] = dot(own, &left) / dot(own, column);
        left.iter_mut().zip(column).for_each(|(v, c)| *v -= found[*i] * c);
    }
    let squares = square(&left);
    (squares.is_finite() && found.iter().all(|c| *c >= 0.0)).then_some((found, squares))
}

/// The `x` in 0…`end` at which the rising function `f` is `value`.
pub(crate) fn inverse(end: f64, value: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, end);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if f(middle) < value { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

loadline_model::named! {
    /// A figure that can be forecast.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Figure {
        Tps: "commit_throughput_tps", "tps";
        LatencyMs: "commit_latency_ms", "latency [ms]";
        P99Ms: "transaction_time_ms_p99", "p99 [ms]";
        RedoMibPerS: "redo_mib_per_s", "redo [MiB/s]";
        CpuPct: "cpu_busy_pct", "CPU [%]";
    }
    /// Id of its column.
    pub fn id;
    /// Name and unit for tables.
    pub fn title;
}

impl Figure {
    pub fn measured(self, p: &Point) -> Option<f64> {
        match self {
            Figure::Tps => Some(p.tps),
            Figure::LatencyMs => p.latency_ms,
            Figure::P99Ms => p.p99_ms,
            Figure::RedoMibPerS => p.redo_kib.map(|kib| kib * p.tps / 1024.0),
            Figure::CpuPct => p.cpu_pct,
        }
    }
}

/// A figure of a series: what a law says of jobs and throughput, times what the measured points are over that law. So at them it is
/// what was measured. The laws are sums of the same terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct FigureLaw {
    fixed: f64,
    per_tps: f64,
    per_cycle_s: f64,
    least: f64,
    ratios: Vec<(f64, f64)>,
}

impl FigureLaw {
    /// `None` if the points lack the figure. Without measured latency, it is the whole cycle.
    pub(crate) fn fitted(figure: Figure, points: &[Point]) -> Option<FigureLaw> {
        let law = match figure {
            Figure::Tps | Figure::RedoMibPerS => FigureLaw { per_tps: 1.0, ..FigureLaw::default() },
            // The interactive response time law N = X·(R + away) (Lazowska et al., chapter 3): the time away, between two
            // transactions of a job, was measured, or is what the points have beside their latency.
            Figure::LatencyMs | Figure::P99Ms => {
                let away = |p: &Point| p.away_ms.or(Some(p.cycle_s() * 1e3 - p.latency_ms?));
                let away = crate::stats::median(&points.iter().filter_map(away).collect::<Vec<_>>()).unwrap_or(0.0);
                // Transactions are no faster than the fastest that were measured, but for noise.
                let least = points.iter().filter_map(|p| p.latency_ms).min_by(f64::total_cmp).unwrap_or(0.0) / 2.0;
                FigureLaw { fixed: -away.max(0.0), per_cycle_s: 1e3, least, ..FigureLaw::default() }
            }
            Figure::CpuPct => {
                let [fixed, per_tps] = utilisation(points)?;
                FigureLaw { fixed, per_tps, ..FigureLaw::default() }
            }
        };
        let ratio = |p: &Point| Some((p.jobs, figure.measured(p)? / law.at(p.jobs, p.tps)));
        let usable = |(_, ratio): &(f64, f64)| ratio.is_finite() && *ratio > 0.0;
        let mut ratios: Vec<(f64, f64)> = points.iter().filter_map(ratio).filter(usable).collect();
        if ratios.is_empty() && figure == Figure::LatencyMs {
            ratios.push((1.0, 1.0));
        }
        (!ratios.is_empty()).then_some(FigureLaw { ratios, ..law })
    }

    /// By how much each ratio is off the one before, in logarithms, per unit of `growth` of the jobs.
    pub(crate) fn drifts(&self, growth: fn(f64) -> f64) -> Vec<f64> {
        let off = |w: &[(f64, f64)]| (w[1].1 / w[0].1).ln() / growth(w[1].0 / w[0].0);
        self.ratios.windows(2).map(off).filter(|off| off.is_finite()).collect()
    }

    pub(crate) fn at(&self, jobs: f64, tps: f64) -> f64 {
        let law = (self.fixed + self.per_tps * tps + self.per_cycle_s * jobs / tps).max(self.least);
        law * between(&self.ratios, jobs).unwrap_or(1.0)
    }
}

/// The value at `jobs` on straight lines through `known` ones; outside of them as at the nearest.
pub(crate) fn between(known: &[(f64, f64)], jobs: f64) -> Option<f64> {
    let after = known.partition_point(|(at, _)| *at < jobs);
    let last = known.last()?.1;
    let Some((to, y)) = known.get(after) else { return Some(last) };
    let Some((from, x)) = after.checked_sub(1).and_then(|before| known.get(before)) else { return Some(*y) };
    Some(x + (y - x) * (jobs - from) / (to - from))
}
