//! Latency, redo rate, CPU and 99th percentile that go with a throughput.

use super::laws::utilisation;
use super::points::Point;

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
