//! Latency, redo rate, CPU and 99th percentile that go with a throughput; and forecasts read the other way round: the jobs at which
//! an objective breaks, and those that a throughput needs.

use super::fitted::{Estimate, Fitted, between};
use super::laws::{Kind, utilisation};
use super::points::Point;

/// How far beyond the measured jobs an answer is looked for, as a multiple of them.
pub const FARTHEST: f64 = 8.0;

loadline_model::named! {
    /// A figure that can be forecast.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
}

/// A figure of a series: what a law says of jobs and throughput, times what the measured points are over that law. So at them it is
/// what was measured. The laws are sums of the same terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct FigureLaw {
    fixed: f64,
    per_tps: f64,
    per_cycle_s: f64,
    least: f64,
    /// Jobs and measured / law.
    ratios: Vec<(f64, f64)>,
}

impl FigureLaw {
    /// `None` if the points lack the figure. Without measured latency, it is the whole cycle.
    pub(crate) fn of(figure: Figure, points: &[Point]) -> Option<FigureLaw> {
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

    fn at(&self, jobs: f64, tps: f64) -> f64 {
        let law = (self.fixed + self.per_tps * tps + self.per_cycle_s * jobs / tps).max(self.least);
        law * between(&self.ratios, jobs).unwrap_or(1.0)
    }
}

/// What is asked of a forecast: a number of jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Question {
    /// The first at which throughput is this or more, tps.
    Reaches(f64),
    /// The first at which a time or a share is above this, in the unit of the figure: an objective breaks there. It is looked for from
    /// where the figure is lowest in the measured range, because few jobs may be slow while the machine wakes up.
    Exceeds(Figure, f64),
}

impl Question {
    /// The figure that it is about.
    #[must_use]
    pub fn figure(self) -> Figure {
        match self {
            Question::Reaches(_) => Figure::Tps,
            Question::Exceeds(figure, _) => figure,
        }
    }

    fn is_met(self, value: f64) -> bool {
        match self {
            // To the precision of the solution.
            Question::Reaches(tps) => value >= tps * (1.0 - 1e-9),
            Question::Exceeds(_, limit) => value > limit,
        }
    }
}

/// A number of jobs and its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jobs {
    /// Jobs, by the forecast itself; `None` if it does not get there in the range looked at.
    pub at: Option<f64>,
    /// Jobs by the end of the interval that gets there first.
    pub earliest: Option<f64>,
    /// Jobs by the end that gets there last.
    pub latest: Option<f64>,
    /// Start of the range looked at. An objective that breaks there already holds nowhere.
    pub looked_from: f64,
    /// End of the range looked at: [`FARTHEST`] times the measured jobs, or those if forecasts beyond are refused.
    pub looked_to: f64,
}

impl Fitted {
    /// `figure` at `jobs` with its 90 % interval, and what its throughput comes from. `None` beyond the measured jobs if that is
    /// refused, and if the series lacks the figure.
    #[must_use]
    pub fn figure(&self, figure: Figure, jobs: f64) -> Option<(Estimate, Kind)> {
        let (tps, kind) = self.tps(jobs)?;
        let law = self.figures.get(&figure)?;
        let most = if figure == Figure::CpuPct { 100.0 } else { f64::INFINITY };
        Some((tps.map(|tps| law.at(jobs, tps).min(most)), kind))
    }

    /// The answer to `question`; `None` if the series lacks the figure.
    #[must_use]
    pub fn ask(&self, question: Question) -> Option<Jobs> {
        let figure = |jobs: f64| Some((jobs, self.figure(question.figure(), jobs)?.0));
        let looked_to = self.measured_to() * if self.refused.is_some() { 1.0 } else { FARTHEST };
        // Every number of jobs up to 1,000, then a thousandth at a time.
        let jobs = std::iter::successors(Some(1.0), |jobs: &f64| Some((jobs + 1.0).max((jobs * 1.001).floor())));
        let all: Vec<(f64, Estimate)> = jobs.take_while(|jobs| *jobs <= looked_to).map_while(figure).collect();
        let measured = all.iter().filter(|(jobs, _)| *jobs <= self.measured_to());
        let looked_from = match question {
            Question::Reaches(_) => all.first()?.0,
            Question::Exceeds(..) => measured.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?.0,
        };
        let first = |end: fn(&Estimate) -> f64| {
            let there = |(jobs, e): &&(f64, Estimate)| *jobs >= looked_from && question.is_met(end(e));
            all.iter().find(there).map(|(jobs, _)| *jobs)
        };
        // Higher values get there first.
        Some(Jobs {
            at: first(|e| e.value),
            earliest: first(|e| e.high),
            latest: first(|e| e.low),
            looked_from,
            looked_to,
        })
    }
}
