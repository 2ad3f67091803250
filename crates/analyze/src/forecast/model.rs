//! The models, fitted to the series of a platform.

use serde::Serialize;

use super::classic::{CpuLine, LastTwo, Scalability};
use super::closed::{self, Closed};
use super::series::Point;
use super::utilisation::full_cpu_tps;

loadline_model::named! {
    /// A kind of model.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// Monotone interpolation between measured points.
        Interpolation: "interpolation", "interpolation";
        /// Jobs that go round between CPUs and log.
        Closed: "closed", "closed model";
        /// The Universal Scalability Law.
        Usl: "usl", "Universal Scalability Law";
        /// Amdahl's law.
        Amdahl: "amdahl", "Amdahl's law";
        /// A straight line through the last two points.
        LastTwo: "last_two", "line through the last two points";
        /// Jobs that meet only at the CPUs.
        CpuLine: "cpu_line", "CPU-bound line";
    }
    /// Its id in CSV and JSON.
    pub fn id;
    /// Its name in text.
    pub fn title;
}

/// A model that can be fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Model {
    pub(crate) kind: Kind,
    /// Strength of the pooling of a closed model.
    pub(crate) strength: f64,
}

/// All models, the preferred ones of equal merit first.
pub(crate) fn models() -> Vec<Model> {
    let closed = closed::STRENGTHS.iter().map(|strength| Model { kind: Kind::Closed, strength: *strength });
    let others = [Kind::Usl, Kind::Amdahl, Kind::LastTwo, Kind::CpuLine].map(|kind| Model { kind, strength: 0.0 });
    closed.chain(others).collect()
}

/// A fitted model: throughput by jobs, through the last point that it was fitted to.
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
    fn of(law: Law, points: &[Point]) -> Option<Curve> {
        let last = points.last()?;
        let full = full_cpu_tps(points).unwrap_or(f64::INFINITY);
        let miss = |p: &Point| (law.tps(p.jobs).min(full) / p.tps).ln();
        let off = points.iter().map(|p| miss(p).abs()).max_by(f64::total_cmp)?;
        Some(Curve { law, full, last_jobs: last.jobs, misses: miss(last), off })
    }

    /// What the law misses the last point by is carried on, and fades as that point's share of the jobs: near it the series goes on
    /// from where it was measured, far from it the law knows better.
    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        let carried = self.misses * (self.last_jobs / jobs).min(1.0);
        (self.law.tps(jobs).min(self.full) * (-carried).exp()).min(self.full)
    }
}

/// A model with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    Closed(Closed),
    Scalability(Scalability),
    LastTwo(LastTwo),
    CpuLine(CpuLine),
}

impl Law {
    fn tps(&self, jobs: f64) -> f64 {
        match self {
            Law::Closed(c) => c.tps(jobs),
            Law::Scalability(c) => c.tps(jobs),
            Law::LastTwo(c) => c.tps(jobs),
            Law::CpuLine(c) => c.tps(jobs),
        }
    }
}

/// Fewest points that a model is fitted to.
const FEWEST: usize = 3;

/// The points from the one with the shortest cycle on, [`FEWEST`] at least. Where more jobs make each of them faster (processors
/// that wake up, a machine that others use as well), no law of contention holds, and such points would bend its curve.
pub(crate) fn contended(points: &[Point]) -> &[Point] {
    let shortest = points.iter().enumerate().min_by(|(_, a), (_, b)| a.cycle_s().total_cmp(&b.cycle_s()));
    let start = shortest.map_or(0, |(at, _)| at).min(points.len().saturating_sub(FEWEST));
    points.get(start..).unwrap_or(points)
}

impl Model {
    /// Fits the series of a platform; `None` where points or figures are too few.
    pub(crate) fn fit(self, platform: &[&[Point]]) -> Vec<Option<Curve>> {
        let platform: Vec<&[Point]> = platform.iter().map(|points| contended(points)).collect();
        let platform = platform.as_slice();
        let each = |one: fn(&[Point]) -> Option<Law>| platform.iter().map(|points| one(points)).collect();
        let laws: Vec<Option<Law>> = match self.kind {
            Kind::Closed => closed::fit(platform, self.strength).into_iter().map(|c| c.map(Law::Closed)).collect(),
            Kind::Usl => each(|p| Scalability::usl(p).map(Law::Scalability)),
            Kind::Amdahl => each(|p| Scalability::amdahl(p).map(Law::Scalability)),
            Kind::LastTwo => each(|p| LastTwo::of(p).map(Law::LastTwo)),
            Kind::CpuLine => each(|p| CpuLine::of(p).map(Law::CpuLine)),
            Kind::Interpolation => Vec::new(),
        };
        laws.into_iter().zip(platform).map(|(law, points)| Curve::of(law?, points)).collect()
    }
}
