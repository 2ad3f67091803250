//! Sweeps: the tests of one workload over rising job counts or another parameter, with peak and load line.

use std::collections::BTreeMap;

use loadline_model::disturbance::why_not_valid;
use loadline_model::record::WorkloadFacts;
use loadline_model::{Column, Driver, JobLoad, TestRecord, column};
use serde::Serialize;

use crate::kept::{Caveats, SetAside};
use crate::kpi::{LATENCY, RESPONSE, THROUGHPUT, of_throughput, rate_of, time_in_checkpoint};
use crate::stats::Estimate;

/// The column that sweeps go over by default.
pub const JOBS: &str = "jobs";

/// All tests of the same work on one platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    pub platform: String,
    /// Run id. Tests of two runs are never pooled.
    pub run: String,
    pub workload: String,
    pub group: String,
    pub driver: Driver,
    pub nodes: u32,
    #[serde(flatten)]
    pub load: JobLoad,
    /// Workload parameters with the same value in all tests.
    pub parameters: BTreeMap<String, i64>,
    /// Id of the swept column: [`JOBS`] or another parameter.
    pub over: String,
    /// Ids of the workload's KPIs, the most important first; empty in records of older versions.
    pub kpis: Vec<String>,
    #[serde(skip)]
    pub facts: Option<WorkloadFacts>,
    /// Column that defines peak and load line: the first KPI if it is a rate, else the throughput.
    pub rate: &'static Column,
    /// One point per job count (or swept value), rising.
    pub points: Vec<SweepPoint>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepPoint {
    pub jobs: u32,
    pub at: u32,
    /// Numbers of the tests that count for the figures: valid ones, or if there are none, disturbed ones.
    pub tests: Vec<u32>,
    #[serde(flatten)]
    pub kept: Caveats,
    /// Usable tests that are not pooled into the figures, as others of the point are better.
    pub set_aside: Vec<SetAside>,
    /// Figures by column id: means over `tests`; columns that end in `_max` hold the maximum. A percentile is the mean
    /// of the repetitions' percentiles, not a percentile of the pooled transactions.
    pub figures: BTreeMap<String, Estimate>,
    /// Refused tests. They are shown, but not part of the figures.
    pub refused: Vec<RefusedTest>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefusedTest {
    pub test: u32,
    pub reason: String,
    /// Figures as measured, by column id.
    pub figures: BTreeMap<String, f64>,
}

impl SweepPoint {
    pub fn counts(&self) -> [usize; 2] {
        let pooled = if self.kept.disturbed.is_none() { self.tests.len() } else { 0 };
        let aside = self.set_aside.iter().filter(|test| test.kept.disturbed.is_none()).count();
        [pooled + aside, self.tests.len() + self.set_aside.len() + self.refused.len()]
    }

    /// The figure of `column`; `None` if no test that counts has it.
    pub fn figure(&self, column: &Column) -> Option<&Estimate> {
        self.figures.get(column.id)
    }

    /// Half width of the interval of `column`, as a share, from the course of a single window; only what follows from throughput has one.
    pub fn within_window(&self, column: &Column) -> Option<f64> {
        self.figure(column).filter(|e| e.n == 1 && of_throughput(column))?;
        Some(self.figure(column::WITHIN_WINDOW_PCT)?.mean / 100.0)
    }

    pub fn throughput(&self) -> Option<&Estimate> {
        self.figure(THROUGHPUT)
    }

    /// Mean latency, ms: response time in an open loop, else transaction time.
    pub fn latency_ms(&self) -> Option<f64> {
        self.figure(RESPONSE).map(|e| e.mean / 1e6).or_else(|| self.figure(LATENCY).map(|e| e.mean))
    }

    /// Columns of its latencies: mean, median and 99th percentile, from the intended start on in an open loop.
    pub fn latencies(&self) -> [&'static Column; 3] {
        match self.figure(RESPONSE) {
            Some(_) => [RESPONSE, column::RESPONSE_TIME_NS_P50, column::RESPONSE_TIME_NS_P99],
            None => [LATENCY, column::TRANSACTION_TIME_NS_P50, column::TRANSACTION_TIME_NS_P99],
        }
    }
}

/// Smallest growth of throughput for twice the jobs that counts as rising, as a share; less for fewer jobs. The automatic sweep,
/// which doubles them, uses the same rule.
pub const FLAT: f64 = 0.05;

/// Whether throughput stopped growing within the points measured. Fields named for jobs hold values of the swept parameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// The highest job count gave no more throughput, or hardly more (see [`FLAT`]).
    Saturated { peak_jobs: u32 },
    /// The peak is the last point that counts ([`Sweep::beyond`] has later ones): more jobs may give more.
    Rising { jobs: u32, previous_jobs: u32, growth_pct: f64 },
    /// The load sets the throughput: see [`JobLoad::rate_tps`].
    RateGiven,
    /// Fewer than two job counts have a valid throughput.
    Unknown,
}

/// Why a point has no part in the key figures of its sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotKey {
    /// All its tests are refused.
    Refused,
    /// Others disturbed its tests, and other points have valid ones.
    Disturbed,
    /// No test of it has the figure of [`Sweep::rate`].
    NoRate,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "basis")]
pub enum LoadLine {
    /// The highest job count whose mean latency meets the objective.
    Objective {
        jobs: u32,
        /// Throughput there, in the unit of [`Sweep::rate`].
        throughput: f64,
        latency_ms: f64,
        objective_ms: f64,
        /// It is the highest job count measured: the load line may lie higher.
        at_least: bool,
        /// Lower job counts that missed the objective.
        missed_below: Vec<u32>,
    },
    /// No job count meets the objective.
    NoneMeets {
        objective_ms: f64,
        lowest_latency_ms: f64,
        jobs: u32,
    },
    /// No objective was given: the point of highest power (throughput / latency).
    Power {
        jobs: u32,
        /// Throughput there, in the unit of [`Sweep::rate`].
        throughput: f64,
        latency_ms: f64,
        /// It is the highest job count measured: power may rise further.
        at_least: bool,
    },
    Unknown {
        why: &'static str,
    },
}

impl Sweep {
    pub fn over_jobs(&self) -> bool {
        self.over == JOBS
    }

    /// Whether it has response times: its tests are of an open loop.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.points.iter().any(|point| point.figure(RESPONSE).is_some())
    }

    pub fn rate_at<'a>(&self, point: &'a SweepPoint) -> Option<&'a Estimate> {
        point.figure(self.rate)
    }

    /// The point of highest throughput; the lower one if two are equal.
    pub fn peak(&self) -> Option<&SweepPoint> {
        let rates = self.key_points().filter_map(|p| Some((p, self.rate_at(p)?.mean)));
        rates.rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(point, _)| point)
    }

    /// The points that key figures are of: those of valid tests, or where no point has any, those of disturbed ones.
    pub fn key_points(&self) -> impl DoubleEndedIterator<Item = &SweepPoint> {
        let is_valid = |p: &SweepPoint| p.kept.disturbed.is_none() && self.rate_at(p).is_some();
        let any = self.points.iter().any(is_valid);
        self.points.iter().filter(move |p| !any || p.kept.disturbed.is_none())
    }

    /// The points above the last one with key figures, which were measured and do not count, and why.
    pub fn beyond(&self) -> impl Iterator<Item = (u32, NotKey)> {
        let highest = self.key_points().filter(|p| self.rate_at(p).is_some()).map(|p| p.at).max().unwrap_or(0);
        self.points.iter().filter(move |p| p.at > highest).map(|p| {
            let why = match (p.tests.is_empty(), self.rate_at(p)) {
                (true, _) => NotKey::Refused,
                (false, Some(_)) => NotKey::Disturbed,
                (false, None) => NotKey::NoRate,
            };
            (p.at, why)
        })
    }

    /// The point with so many jobs, or this swept value.
    pub fn at(&self, at: u32) -> Option<&SweepPoint> {
        self.points.iter().find(|p| p.at == at)
    }

    pub fn saturation(&self) -> Saturation {
        let valid: Vec<(u32, f64)> = self.key_points().filter_map(|p| Some((p.at, self.rate_at(p)?.mean))).collect();
        let (Some(peak), [.., (previous_jobs, before), (jobs, last)]) = (self.peak(), valid.as_slice()) else {
            return Saturation::Unknown;
        };
        if self.load.rate_tps.is_some() {
            return Saturation::RateGiven;
        }
        let best_before = valid[..valid.len() - 1].iter().map(|(_, tps)| *tps).fold(0.0, f64::max);
        let doublings = (f64::from(*jobs) / f64::from(*previous_jobs).max(1.0)).log2();
        if peak.at != *jobs || *last <= best_before * (1.0 + FLAT).powf(doublings) {
            return Saturation::Saturated { peak_jobs: peak.at };
        }
        let growth_pct = if *before > 0.0 { (last / before - 1.0) * 100.0 } else { f64::INFINITY };
        Saturation::Rising { jobs: *jobs, previous_jobs: *previous_jobs, growth_pct }
    }

    /// The load line, for a latency objective in ns if there is one. It needs two job counts and a closed loop.
    pub fn load_line(&self, objective_ns: Option<u64>) -> LoadLine {
        if let Some(why) = self.no_load_line() {
            return LoadLine::Unknown { why };
        }
        let valid: Vec<(u32, f64, f64)> = self
            .key_points()
            .filter_map(|p| Some((p.jobs, self.rate_at(p)?.mean, p.latency_ms()?)))
            .filter(|(_, tps, ms)| *tps > 0.0 && *ms > 0.0)
            .collect();
        let highest = valid.last().map_or(0, |v| v.0);
        if let Some(ns) = objective_ns {
            return objective_line(&valid, ns as f64 / 1e6, highest);
        }
        let most_power = valid.iter().max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)));
        let Some(&(jobs, throughput, latency_ms)) = most_power else { return LoadLine::Unknown { why: ONE_COUNT } };
        LoadLine::Power { jobs, throughput, latency_ms, at_least: jobs == highest }
    }

    fn no_load_line(&self) -> Option<&'static str> {
        let both =
            |p: &&SweepPoint| self.rate_at(p).is_some_and(|r| r.mean > 0.0) && p.latency_ms().is_some_and(|l| l > 0.0);
        let load = &self.load;
        let reasons = [
            (!self.over_jobs(), "the sweep was over work, not over load"),
            (
                load.objective.is_some(),
                "each test has the highest rate that was found for it, so the sweep was not over load",
            ),
            (load.rate_tps.is_some(), "the rate was given, so the sweep was not over load"),
            (load.is_mixed(), "the jobs are a mix of populations, so the sweep was not over load"),
            (
                time_in_checkpoint(self.rate).is_some(),
                "the rate covers only part of the window, for which there is no mean latency",
            ),
            (self.points.iter().filter(both).count() < 2, ONE_COUNT),
        ];
        reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
    }
}

const ONE_COUNT: &str = "fewer than two valid job counts";

fn objective_line(valid: &[(u32, f64, f64)], objective_ms: f64, highest: u32) -> LoadLine {
    let meets = |v: &&(u32, f64, f64)| v.2 <= objective_ms;
    if let Some(&(jobs, throughput, latency_ms)) = valid.iter().rfind(meets) {
        let missed_below = valid.iter().filter(|v| v.0 < jobs && !meets(v)).map(|v| v.0).collect();
        let at_least = jobs == highest;
        return LoadLine::Objective { jobs, throughput, latency_ms, objective_ms, at_least, missed_below };
    }
    let fastest = valid.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    let Some(&(jobs, _, lowest_latency_ms)) = fastest else { return LoadLine::Unknown { why: ONE_COUNT } };
    LoadLine::NoneMeets { objective_ms, lowest_latency_ms, jobs }
}

/// Groups `records` into sweeps of equal work, in order of first appearance. Scans of sizes are left out.
pub fn sweeps(records: &[TestRecord]) -> Vec<Sweep> {
    let mut groups: Vec<Vec<&TestRecord>> = Vec::new();
    for record in records.iter().filter(|r| r.sizes().is_empty()) {
        match groups.iter_mut().find(|g| g.first().is_some_and(|first| same_work(first, record))) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups.iter().filter_map(|g| sweep_of(g)).collect()
}

fn same_work(a: &TestRecord, b: &TestRecord) -> bool {
    (&a.platform, &a.run, &a.workload, a.driver, a.nodes, a.swept(), a.load())
        == (&b.platform, &b.run, &b.workload, b.driver, b.nodes, b.swept(), b.load())
        && match a.swept() {
            None => a.parameters == b.parameters,
            // The swept parameter is the only difference; its name may differ from the column's.
            Some(_) => a.jobs == b.jobs && differing(&a.parameters, &b.parameters) <= 1,
        }
}

fn differing(a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>) -> usize {
    let changed = a.iter().filter(|(name, value)| b.get(*name) != Some(value)).count();
    changed + b.keys().filter(|name| !a.contains_key(*name)).count()
}

/// The jobs or swept value of a test; 0 if the record lacks it.
pub fn swept_value(record: &TestRecord) -> u32 {
    let Some(column) = record.swept() else { return record.jobs };
    let parameter = || record.parameters.get(column).map(|v| *v as f64);
    // Rows, workers and sizes are whole numbers; the cast saturates.
    record.figures.get(column).copied().or_else(parameter).map_or(0, |v| v.round() as u32)
}

fn sweep_of(group: &[&TestRecord]) -> Option<Sweep> {
    let first = group.first()?;
    let mut by_value: BTreeMap<u32, Vec<&TestRecord>> = BTreeMap::new();
    for record in group {
        by_value.entry(swept_value(record)).or_default().push(record);
    }
    let common = first.parameters.iter().filter(|(k, v)| group.iter().all(|r| r.parameters.get(*k) == Some(v)));
    Some(Sweep {
        platform: first.platform.clone(),
        run: first.run.clone(),
        workload: first.workload.clone(),
        group: first.group.clone(),
        driver: first.driver,
        nodes: first.nodes,
        load: first.load(),
        parameters: common.map(|(k, v)| (k.clone(), *v)).collect(),
        over: first.swept().unwrap_or(JOBS).to_owned(),
        kpis: first.kpis.clone(),
        facts: first.facts(),
        rate: rate_of(group),
        points: by_value.into_iter().map(|(at, tests)| point_of(at, &tests)).collect(),
    })
}

fn refused(r: &&TestRecord) -> RefusedTest {
    RefusedTest { test: r.test, reason: why_not_valid(r).to_owned(), figures: r.figures.clone() }
}

fn point_of(at: u32, tests: &[&TestRecord]) -> SweepPoint {
    let usable = || tests.iter().copied().filter(|r| r.is_usable());
    let caveats = |r: &TestRecord| Caveats::of_tests(&[r]);
    let best = usable().map(caveats).min_by_key(Caveats::rank).unwrap_or_default();
    let (pooled, aside): (Vec<&TestRecord>, Vec<&TestRecord>) = usable().partition(|r| best.pools_with(&caveats(r)));
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (id, value) in pooled.iter().flat_map(|record| &record.figures) {
        values.entry(id).or_default().push(*value);
    }
    let estimate = |id: &str, seen: &[f64]| {
        if id.ends_with("_max") {
            let max = seen.iter().copied().filter(|v| v.is_finite()).reduce(f64::max)?;
            return Some(Estimate { mean: max, n: seen.len(), sd: None });
        }
        Estimate::from_values(seen)
    };
    SweepPoint {
        jobs: tests.first().map_or(0, |r| r.jobs),
        at,
        tests: pooled.iter().map(|r| r.test).collect(),
        kept: Caveats::of_tests(&pooled),
        set_aside: aside.into_iter().map(SetAside::from_record).collect(),
        figures: values.iter().filter_map(|(id, v)| Some(((*id).to_owned(), estimate(id, v)?))).collect(),
        refused: tests.iter().filter(|r| !r.is_usable()).map(refused).collect(),
    }
}
