//! Latency, redo rate, CPU and 99th percentile that go with a throughput; and forecasts read the other way round: the jobs at which
//! an objective breaks, and those that a throughput needs.

use serde::Serialize;

use super::fitted::{Estimate, Fitted, between};
use super::laws::{Kind, utilisation};
use super::points::Point;

/// How far beyond the measured jobs an answer is looked for, as a multiple of them.
pub const FARTHEST: f64 = 8.0;

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

impl Figure {
    /// The measured figure of a point.
    #[must_use]
    pub fn measured(self, p: &Point) -> Option<f64> {
        match self {
            Figure::Tps => Some(p.tps),
            Figure::LatencyMs => p.latency_ms,
            Figure::P99Ms => p.p99_ms,
            Figure::RedoMibPerS => p.redo_kib.map(|kib| kib * p.tps / 1024.0),
            Figure::CpuPct => p.cpu_pct,
        }
    }

    /// The law that gives the figure from jobs and throughput, but for a factor.
    fn law(self, points: &[Point]) -> Option<Box<dyn Fn(f64, f64) -> f64>> {
        Some(match self {
            Figure::Tps | Figure::RedoMibPerS => Box::new(|_, tps| tps),
            Figure::LatencyMs | Figure::P99Ms => {
                // The interactive response time law N = X·(R + away) (Lazowska et al., chapter 3): the time away, between two
                // transactions of a job, was measured, or is what the points have beside their latency.
                let away = |p: &Point| p.away_ms.or(Some(p.cycle_s() * 1e3 - p.latency_ms?));
                let away = crate::stats::median(&points.iter().filter_map(away).collect::<Vec<_>>()).unwrap_or(0.0);
                // Transactions are no faster than the fastest that were measured, but for noise.
                let least = points.iter().filter_map(|p| p.latency_ms).min_by(f64::total_cmp).unwrap_or(0.0) / 2.0;
                Box::new(move |jobs, tps| (jobs / tps * 1e3 - away.max(0.0)).max(least))
            }
            Figure::CpuPct => {
                let [idle, each] = utilisation(points)?;
                Box::new(move |_, tps| idle + each * tps)
            }
        })
    }
}

/// A number of jobs and its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Jobs {
    /// Jobs, by the forecast itself; `None` if it does not get there in the range looked at.
    pub at: Option<f64>,
    /// Jobs by the end of the interval that gets there first.
    pub earliest: Option<f64>,
    /// Jobs by the end that gets there last.
    pub latest: Option<f64>,
    /// End of the range looked at: [`FARTHEST`] times the measured jobs, or those if forecasts beyond are refused.
    pub looked_to: f64,
}

impl Fitted {
    /// `figure` at `jobs` with its 90 % interval, and what its throughput comes from. `None` beyond the measured jobs if that is
    /// refused, and if the series lacks the figure.
    ///
    /// It is what a law says of the throughput, times what the measured points are over that law: at them it is what was measured.
    #[must_use]
    pub fn figure(&self, figure: Figure, jobs: f64) -> Option<(Estimate, Kind)> {
        let (tps, kind) = self.tps(jobs)?;
        let points = &self.series.points;
        let law = figure.law(points)?;
        let ratio = |p: &Point| Some(figure.measured(p)? / law(p.jobs, p.tps)).filter(|r| r.is_finite() && *r > 0.0);
        let ratio = match between(points, jobs, ratio) {
            // Without measured latency, it is the whole cycle.
            None if figure == Figure::LatencyMs => 1.0,
            ratio => ratio?,
        };
        let most = if figure == Figure::CpuPct { 100.0 } else { f64::INFINITY };
        Some((tps.map(|tps| (law(jobs, tps) * ratio).min(most)), kind))
    }

    /// The first number of jobs at which `figure` is above `limit`: a time or a share that is an objective breaks there. It is
    /// looked for from where the figure is lowest in the measured range, because few jobs may be slow while the machine wakes up.
    /// If it is above there already, the objective does not hold anywhere. `None` if the series lacks the figure.
    #[must_use]
    pub fn breaks(&self, figure: Figure, limit: f64) -> Option<Jobs> {
        let value = |jobs: f64| Some((jobs, self.figure(figure, jobs)?.0.value));
        let measured = self.looked_at().take_while(|jobs| *jobs <= self.measured_to()).filter_map(value);
        let (lowest, _) = measured.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1.0, 0.0));
        self.first(figure, lowest, |value| value > limit)
    }

    /// Whether `figure` keeps `limit` at `jobs`.
    #[must_use]
    pub fn holds(&self, figure: Figure, limit: f64, jobs: f64) -> bool {
        self.figure(figure, jobs).is_some_and(|(e, _)| e.value <= limit)
    }

    /// The first number of jobs at which throughput is `tps` or more.
    #[must_use]
    pub fn needs(&self, tps: f64) -> Option<Jobs> {
        // To the precision of the solution.
        self.first(Figure::Tps, 1.0, |value| value >= tps * (1.0 - 1e-9))
    }

    fn looked_to(&self) -> f64 {
        self.measured_to() * if self.refused.is_some() { 1.0 } else { FARTHEST }
    }

    /// Every number of jobs up to 1,000, then a thousandth at a time.
    fn looked_at(&self) -> impl Iterator<Item = f64> + use<> {
        let end = self.looked_to();
        std::iter::successors(Some(1.0), |jobs: &f64| Some((jobs + 1.0).max((jobs * 1.001).floor())))
            .take_while(move |jobs| *jobs <= end)
    }

    fn first(&self, figure: Figure, from: f64, there: impl Fn(f64) -> bool) -> Option<Jobs> {
        self.figure(figure, self.measured_to())?;
        let mut found = Jobs { at: None, earliest: None, latest: None, looked_to: self.looked_to() };
        for jobs in self.looked_at().skip_while(|jobs| *jobs < from) {
            let (e, _) = self.figure(figure, jobs)?;
            // Higher values get there first.
            for (at, value) in [(&mut found.earliest, e.high), (&mut found.at, e.value), (&mut found.latest, e.low)] {
                *at = at.or(there(value).then_some(jobs));
            }
            if found.latest.is_some() {
                break;
            }
        }
        Some(found)
    }
}
