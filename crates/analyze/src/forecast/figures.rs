//! Latency, redo rate, CPU and 99th percentile that go with a forecast throughput.

use serde::Serialize;

use super::fitted::Fitted;
use super::interval::{Estimate, Z_95};
use super::linear::{Row, non_negative};
use super::model::Kind;
use super::series::Point;

/// A figure that can be forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Throughput, tps.
    Tps,
    /// Mean transaction time, ms.
    LatencyMs,
    /// 99th percentile of the transaction time, ms.
    P99Ms,
    /// Redo, MiB/s.
    RedoMibPerS,
    /// CPU busy, percent.
    CpuPct,
}

impl Figure {
    /// All figures.
    pub const ALL: [Figure; 5] = [Figure::Tps, Figure::LatencyMs, Figure::P99Ms, Figure::RedoMibPerS, Figure::CpuPct];

    /// Id of its column.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Figure::Tps => "commit_throughput_tps",
            Figure::LatencyMs => "commit_latency_ms",
            Figure::P99Ms => "transaction_time_ms_p99",
            Figure::RedoMibPerS => "redo_mib_per_s",
            Figure::CpuPct => "cpu_busy_pct",
        }
    }

    /// Its name and unit for tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Figure::Tps => "tps",
            Figure::LatencyMs => "latency [ms]",
            Figure::P99Ms => "p99 [ms]",
            Figure::RedoMibPerS => "redo [MiB/s]",
            Figure::CpuPct => "CPU [%]",
        }
    }
}

impl Fitted {
    /// `figure` at `jobs` with its 90 % interval, and what its throughput comes from. `None` beyond the measured jobs if that is
    /// refused, and if the series lacks the figure.
    #[must_use]
    pub fn figure(&self, figure: Figure, jobs: f64) -> Option<(Estimate, Kind)> {
        let (tps, kind) = self.tps(jobs)?;
        let estimate = match figure {
            Figure::Tps => tps,
            Figure::LatencyMs => self.latency(tps, jobs),
            Figure::P99Ms => self.p99(tps, jobs)?,
            Figure::RedoMibPerS => {
                let (kib, half) = spread(self.series.points.iter().filter_map(|p| p.redo_kib))?;
                tps.map(|tps| tps * kib / 1024.0).widened(half)
            }
            Figure::CpuPct => self.cpu(tps)?,
        };
        Some((estimate, kind))
    }

    /// Mean transaction time: the interactive response time law `N = X·(R + away)` (Lazowska et al., chapter 3). The time away,
    /// between two transactions of a job, is what the measured points have beside their latency.
    fn latency(&self, tps: Estimate, jobs: f64) -> Estimate {
        let away = |p: &Point| Some(p.cycle_s() * 1e3 - p.latency_ms?).filter(|ms| *ms > 0.0);
        let away: Vec<f64> = self.series.points.iter().filter_map(away).collect();
        let away =
            if away.len() * 2 > self.series.points.len() { crate::stats::median(&away).unwrap_or(0.0) } else { 0.0 };
        // What is away cannot be most of a cycle that jobs spend in transactions.
        tps.map(|tps| (jobs / tps * 1e3 - away).max(jobs / tps * 100.0))
    }

    /// p99 = latency × ratio. The ratio is a line over the share of the highest measured throughput: tails grow with utilisation.
    fn p99(&self, tps: Estimate, jobs: f64) -> Option<Estimate> {
        let most = self.series.points.iter().map(|p| p.tps).fold(0.0, f64::max);
        let ratio = |p: &Point| Some((p.tps / most, p.p99_ms? / p.latency_ms.unwrap_or(p.cycle_s() * 1e3)));
        let ratios: Vec<(f64, f64)> = self.series.points.iter().filter_map(ratio).collect();
        let line = Line::of(&ratios)?;
        let ratio = |tps: f64| line.at(tps / most).max(1.0);
        let latency = self.latency(tps, jobs);
        let p99 = latency.map(|ms| ms * ratio(tps.value));
        Some(p99.widened(Z_95 * line.off))
    }

    /// CPU busy: the utilisation law `U = u0 + X·D` with the demand D of a transaction (Lazowska et al., chapter 3), at most 100 %.
    fn cpu(&self, tps: Estimate) -> Option<Estimate> {
        let points: Vec<(f64, f64)> = self.series.points.iter().filter_map(|p| Some((p.tps, p.cpu_pct?))).collect();
        let line = Line::of(&points)?;
        let cpu = tps.map(|tps| line.at(tps)).widened(Z_95 * line.off);
        Some(cpu.map(|pct| pct.min(100.0)))
    }
}

/// Mean of positive `values` and the half-width of their 90 % interval in logarithms.
fn spread(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.collect();
    let mean = crate::stats::mean(&values)?;
    Some((mean, Z_95 * crate::stats::sample_sd(&values).unwrap_or(0.0) / mean))
}

/// `y = a + b·x`, a and b ≥ 0, by relative least squares.
struct Line {
    a: f64,
    b: f64,
    /// Standard deviation of the points around it, relative.
    off: f64,
}

impl Line {
    /// `None` for fewer than two points.
    fn of(points: &[(f64, f64)]) -> Option<Line> {
        if points.len() < 2 {
            return None;
        }
        let rows: Vec<Row<2>> = points.iter().map(|(x, y)| ([1.0 / y, x / y], 1.0)).collect();
        let ([a, b], squares) = non_negative(&rows)?;
        Some(Line { a, b, off: (squares / (points.len() as f64 - 2.0).max(1.0)).sqrt() })
    }

    fn at(&self, x: f64) -> f64 {
        self.a + self.b * x
    }
}
