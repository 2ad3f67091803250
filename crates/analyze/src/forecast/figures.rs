//! Latency, redo rate, CPU and 99th percentile that go with a forecast throughput.

use serde::Serialize;

use super::fitted::Fitted;
use super::interpolation::cubic;
use super::interval::{Estimate, Z_95};
use super::linear::Line;
use super::model::Kind;
use super::series::Point;
use super::utilisation::utilisation;

loadline_model::named! {
    /// A figure that can be forecast.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Figure {
        /// Throughput, tps.
        Tps: "commit_throughput_tps", "tps";
        /// Mean transaction time, ms.
        LatencyMs: "commit_latency_ms", "latency [ms]";
        /// 99th percentile of the transaction time, ms.
        P99Ms: "transaction_time_ms_p99", "p99 [ms]";
        /// Redo, MiB/s.
        RedoMibPerS: "redo_mib_per_s", "redo [MiB/s]";
        /// CPU busy, percent.
        CpuPct: "cpu_busy_pct", "CPU [%]";
    }
    /// Id of its column.
    pub fn id;
    /// Its name and unit for tables.
    pub fn title;
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
                let kib = kib * self.off_law(jobs, |p| Some(p.redo_kib? / kib));
                tps.map(|tps| tps * kib / 1024.0).widened(half)
            }
            Figure::CpuPct => self.cpu(tps, jobs)?,
        };
        Some((estimate, kind))
    }

    /// What a figure is at `jobs` over what its law says, from that of the measured points: at them it is what was measured,
    /// between them it is interpolated, and beyond them the last one fades as in a forecast of throughput.
    fn off_law(&self, jobs: f64, of: impl Fn(&Point) -> Option<f64>) -> f64 {
        let known = |p: &Point| Some((p.jobs, of(p).filter(|ratio| ratio.is_finite() && *ratio > 0.0)?));
        let known: Vec<(f64, f64)> = self.series.points.iter().filter_map(known).collect();
        match (known.first(), known.last()) {
            (Some((first, ratio)), _) if jobs <= *first => *ratio,
            (_, Some((last, ratio))) if jobs >= *last => ratio.powf(last / jobs),
            _ => cubic(&known, jobs).unwrap_or(1.0),
        }
    }

    /// Mean transaction time: the interactive response time law `N = X·(R + away)` (Lazowska et al., chapter 3). The time away,
    /// between two transactions of a job, is the one that was measured, or else what the points have beside their latency.
    fn latency(&self, tps: Estimate, jobs: f64) -> Estimate {
        let known: Vec<f64> = self.series.points.iter().filter_map(|p| p.away_ms).collect();
        if let Some(away) = crate::stats::median(&known).filter(|_| known.len() == self.series.points.len()) {
            // Transactions are no faster than the fastest that were measured, but for noise.
            let least = self.series.points.iter().filter_map(|p| p.latency_ms).fold(f64::INFINITY, f64::min) / 2.0;
            let least = if least.is_finite() { least } else { 0.0 };
            let by_law = |cycle_s: f64| (cycle_s * 1e3 - away).max(least);
            let off = self.off_law(jobs, |p| Some(p.latency_ms? / by_law(p.cycle_s())));
            return tps.map(|tps| by_law(jobs / tps) * off);
        }
        let away = |p: &Point| Some(p.cycle_s() * 1e3 - p.latency_ms?).filter(|ms| *ms > 0.0);
        let away: Vec<f64> = self.series.points.iter().filter_map(away).collect();
        let away =
            if away.len() * 2 > self.series.points.len() { crate::stats::median(&away).unwrap_or(0.0) } else { 0.0 };
        // What is away cannot be most of a cycle that jobs spend in transactions.
        let by_law = |cycle_s: f64| (cycle_s * 1e3 - away).max(cycle_s * 100.0);
        let off = self.off_law(jobs, |p| Some(p.latency_ms? / by_law(p.cycle_s())));
        tps.map(|tps| by_law(jobs / tps) * off)
    }

    /// p99 = latency × ratio. The ratio is a line over the share of the highest measured throughput: tails grow with utilisation.
    fn p99(&self, tps: Estimate, jobs: f64) -> Option<Estimate> {
        let most = self.series.points.iter().map(|p| p.tps).fold(0.0, f64::max);
        let ratio = |p: &Point| Some((p.tps / most, p.p99_ms? / p.latency_ms.unwrap_or(p.cycle_s() * 1e3)));
        let ratios: Vec<(f64, f64)> = self.series.points.iter().filter_map(ratio).collect();
        let line = Line::of(&ratios)?;
        let off = self.off_law(jobs, |p| ratio(p).map(|(used, ratio)| ratio / line.at(used)));
        let ratio = (line.at(tps.value / most) * off).max(1.0);
        Some(self.latency(tps, jobs).map(|ms| ms * ratio).widened(Z_95 * line.off))
    }

    /// CPU busy: the utilisation law `U = u0 + X·D` with the demand D of a transaction (Lazowska et al., chapter 3), at most 100 %.
    fn cpu(&self, tps: Estimate, jobs: f64) -> Option<Estimate> {
        let line = utilisation(&self.series.points)?;
        // CPU per transaction beyond the last point is that of the last one: it does not fade, or CPU would fall where tps rises.
        let end = self.series.points.iter().rev().find(|p| p.cpu_pct.is_some()).map_or(jobs, |p| p.jobs);
        let off = self.off_law(jobs.min(end), |p| Some(p.cpu_pct? / line.at(p.tps)));
        let cpu = tps.map(|tps| line.at(tps) * off).widened(Z_95 * line.off);
        Some(cpu.map(|pct| pct.min(100.0)))
    }
}

/// Mean of positive `values` and the half-width of their 90 % interval in logarithms.
fn spread(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.collect();
    let mean = crate::stats::mean(&values)?;
    Some((mean, Z_95 * crate::stats::sample_sd(&values).unwrap_or(0.0) / mean))
}
