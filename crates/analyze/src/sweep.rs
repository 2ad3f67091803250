//! Sweeps: the tests of one workload over rising job counts, or over another parameter of its work; their
//! peak and their load line.

use std::collections::BTreeMap;

use loadline_model::record::by_force;
use loadline_model::{Column, Driver, TestRecord, column};
use serde::Serialize;

use crate::kept::{Kind, SetAside, allows_cached, kept};
use crate::kpi::{LATENCY, RESPONSE, THROUGHPUT, in_checkpoint, rate_of};
use crate::stats::Estimate;

/// What sweeps go over if records do not say otherwise.
pub const JOBS: &str = "jobs";

/// All tests of the same work on one platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Platform name.
    pub platform: String,
    /// Run id. Two runs are never pooled, whatever their platforms are called.
    pub run: String,
    /// Workload code.
    pub workload: String,
    /// Group of the workload.
    pub group: String,
    /// Driver.
    pub driver: Driver,
    /// Rate that was asked for (open loop), tps.
    pub rate_tps: Option<f64>,
    /// Workload parameters in force, those that all tests have in common.
    pub parameters: BTreeMap<String, i64>,
    /// What was swept: [`JOBS`], or the column of another parameter.
    pub over: String,
    /// Ids of the workload's KPIs, the most important first; empty in records of older versions.
    pub kpis: Vec<String>,
    /// Column by which peak and load line are told: the first KPI where it is a rate, else the throughput.
    pub rate: &'static Column,
    /// One point a job count (or a value of what was swept), rising.
    pub points: Vec<Point>,
}

/// All tests of one job count, or of one value of what was swept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Number of jobs.
    pub jobs: u32,
    /// Where it stands in its sweep: its jobs, or the value of what was swept.
    pub at: u32,
    /// Numbers of the valid tests: only these feed the figures.
    pub tests: Vec<u32>,
    /// Where the blocks came from that these tests read (`device`, `lukewarm`, `cached`), if they say.
    pub data_source: Option<String>,
    /// What was refused and forced in these tests, if anything (see [`TestRecord::forced`]).
    pub forced: Option<String>,
    /// Valid tests of another source, or forced otherwise: they stay visible and feed nothing, as a mean of
    /// both kinds would be the figure of neither.
    pub set_aside: Vec<SetAside>,
    /// Figures by column id: means over the valid repetitions; columns that end in `_max` hold the
    /// largest value. A percentile is the mean of the repetitions' percentiles, each repetition
    /// counting as one observation; it is not a percentile of the pooled transactions.
    pub figures: BTreeMap<String, Estimate>,
    /// Tests that do not hold. They stay visible and feed nothing.
    pub invalid: Vec<InvalidTest>,
}

/// A test whose figures do not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InvalidTest {
    /// Number of the test.
    pub test: u32,
    /// What failed.
    pub reason: String,
    /// Its figures as measured, by column id.
    pub figures: BTreeMap<String, f64>,
}

impl Point {
    /// The figure of `column`; `None` if no valid test has it.
    #[must_use]
    pub fn figure(&self, column: &Column) -> Option<&Estimate> {
        self.figures.get(column.id)
    }

    /// Throughput, tps.
    #[must_use]
    pub fn throughput(&self) -> Option<&Estimate> {
        self.figure(THROUGHPUT)
    }

    /// Mean latency, ms: response time in an open loop, else transaction time.
    #[must_use]
    pub fn latency_ms(&self) -> Option<f64> {
        self.figure(RESPONSE).map(|e| e.mean / 1e6).or_else(|| self.figure(LATENCY).map(|e| e.mean))
    }

    /// What its tests are valid by, if not by themselves: `kept by --allow-cached: cached, not the device's
    /// figures`.
    #[must_use]
    pub fn kept(&self) -> Option<String> {
        kept(self.data_source.as_deref(), self.forced.as_deref())
    }

    /// Whether its figures were kept although they are not proved to be the device's.
    #[must_use]
    pub fn allowed_cached(&self) -> bool {
        allows_cached(self.forced.as_deref())
    }

    /// What was refused and forced in its tests.
    #[must_use]
    pub fn by_force(&self) -> Option<String> {
        by_force(self.forced.as_deref()?)
    }
}

/// Growth of throughput from which on a sweep counts as rising, as a share; the automatic sweep ends by
/// the same rule.
pub const FLAT: f64 = 0.05;

/// Whether throughput stopped growing within the points measured. In a sweep over something else than jobs
/// the fields named for jobs hold its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saturation {
    /// The last job counts measured gave no more throughput, or hardly more (see [`FLAT`]).
    Saturated {
        /// Jobs at the peak.
        peak_jobs: u32,
    },
    /// The peak is the last point measured: more jobs may give more.
    Rising {
        /// Highest job count measured.
        jobs: u32,
        /// Job count measured before it.
        previous_jobs: u32,
        /// Growth of throughput between the two, %.
        growth_pct: f64,
    },
    /// Fewer than two job counts have a valid throughput.
    Unknown,
}

/// Where the load line lies.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "basis")]
pub enum LoadLine {
    /// The highest job count whose mean latency meets the objective.
    Objective {
        /// Jobs there.
        jobs: u32,
        /// Throughput there, in the unit of [`Sweep::rate`].
        throughput: f64,
        /// Mean latency there, ms.
        latency_ms: f64,
        /// The objective, ms.
        objective_ms: f64,
        /// It is the highest job count measured: the load line may lie higher.
        at_least: bool,
        /// Lower job counts that missed the objective all the same.
        missed_below: Vec<u32>,
    },
    /// No job count meets the objective.
    NoneMeets {
        /// The objective, ms.
        objective_ms: f64,
        /// Lowest mean latency seen, ms.
        lowest_latency_ms: f64,
        /// Jobs there.
        jobs: u32,
    },
    /// No objective was given: the point of highest power (throughput / latency).
    Power {
        /// Jobs there.
        jobs: u32,
        /// Throughput there, in the unit of [`Sweep::rate`].
        throughput: f64,
        /// Mean latency there, ms.
        latency_ms: f64,
        /// It is the highest job count measured: power may rise further.
        at_least: bool,
    },
    /// There is none to be told.
    Unknown {
        /// Why.
        why: &'static str,
    },
}

impl Sweep {
    /// Whether it goes over jobs.
    #[must_use]
    pub fn over_jobs(&self) -> bool {
        self.over == JOBS
    }

    /// How much was done at `point`, in the unit of [`Sweep::rate`].
    #[must_use]
    pub fn rate_at<'a>(&self, point: &'a Point) -> Option<&'a Estimate> {
        point.figure(self.rate)
    }

    /// The point of highest throughput; the lower one if two are equal.
    #[must_use]
    pub fn peak(&self) -> Option<&Point> {
        let mut peak: Option<(&Point, f64)> = None;
        for (point, rate) in self.points.iter().filter_map(|p| Some((p, self.rate_at(p)?.mean))) {
            if peak.is_none_or(|(_, best)| rate > best) {
                peak = Some((point, rate));
            }
        }
        peak.map(|(point, _)| point)
    }

    /// The point at `at`: that many jobs, or that value of what was swept.
    #[must_use]
    pub fn at(&self, at: u32) -> Option<&Point> {
        self.points.iter().find(|p| p.at == at)
    }

    /// Whether throughput stopped growing.
    #[must_use]
    pub fn saturation(&self) -> Saturation {
        let valid: Vec<(u32, f64)> = self.points.iter().filter_map(|p| Some((p.at, self.rate_at(p)?.mean))).collect();
        let (Some(peak), [.., (previous_jobs, before), (jobs, last)]) = (self.peak(), valid.as_slice()) else {
            return Saturation::Unknown;
        };
        let best_before = valid[..valid.len() - 1].iter().map(|(_, tps)| *tps).fold(0.0, f64::max);
        if peak.at != *jobs || *last <= best_before * (1.0 + FLAT) {
            return Saturation::Saturated { peak_jobs: peak.at };
        }
        let growth_pct = if *before > 0.0 { (last / before - 1.0) * 100.0 } else { f64::INFINITY };
        Saturation::Rising { jobs: *jobs, previous_jobs: *previous_jobs, growth_pct }
    }

    /// The load line, for a latency objective in ns if there is one. It takes two job counts, as one tells
    /// nothing of what more load does, and work that comes as fast as it is done: a given rate is the load.
    #[must_use]
    pub fn load_line(&self, objective_ns: Option<u64>) -> LoadLine {
        if let Some(why) = self.no_load_line() {
            return LoadLine::Unknown { why };
        }
        let valid: Vec<(u32, f64, f64)> = self
            .points
            .iter()
            .filter_map(|p| Some((p.jobs, self.rate_at(p)?.mean, p.latency_ms()?)))
            .filter(|(_, tps, ms)| *tps > 0.0 && *ms > 0.0)
            .collect();
        let highest = valid.last().map_or(0, |v| v.0);
        match objective_ns {
            Some(ns) => objective_line(&valid, ns as f64 / 1e6, highest),
            None => valid.iter().max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2))).map_or(
                LoadLine::Unknown { why: ONE_COUNT },
                |&(jobs, throughput, latency_ms)| LoadLine::Power {
                    jobs,
                    throughput,
                    latency_ms,
                    at_least: jobs == highest,
                },
            ),
        }
    }

    /// Why no load line can be told, if that is so.
    fn no_load_line(&self) -> Option<&'static str> {
        if !self.over_jobs() {
            return Some("the work was swept, not the load");
        }
        if self.rate_tps.is_some() {
            return Some("the rate was given, so the load was not swept");
        }
        if in_checkpoint(self.rate) {
            return Some("the rate is a part of the window's, of which there is no mean latency");
        }
        let both =
            |p: &&Point| self.rate_at(p).is_some_and(|r| r.mean > 0.0) && p.latency_ms().is_some_and(|l| l > 0.0);
        (self.points.iter().filter(both).count() < 2).then_some(ONE_COUNT)
    }
}

/// Why there is no load line without a second point.
const ONE_COUNT: &str = "fewer than two valid job counts";

fn objective_line(valid: &[(u32, f64, f64)], objective_ms: f64, highest: u32) -> LoadLine {
    let meets = |v: &&(u32, f64, f64)| v.2 <= objective_ms;
    if let Some(&(jobs, throughput, latency_ms)) = valid.iter().rfind(meets) {
        let missed_below = valid.iter().filter(|v| v.0 < jobs && !meets(v)).map(|v| v.0).collect();
        let at_least = jobs == highest;
        return LoadLine::Objective { jobs, throughput, latency_ms, objective_ms, at_least, missed_below };
    }
    valid.iter().min_by(|a, b| a.2.total_cmp(&b.2)).map_or(LoadLine::Unknown { why: ONE_COUNT }, |v| {
        LoadLine::NoneMeets { objective_ms, lowest_latency_ms: v.2, jobs: v.0 }
    })
}

/// Groups `records` into sweeps of equal work, in the order in which they first appear. Scans of sizes
/// are left out: they are no points of a curve over jobs.
#[must_use]
pub fn sweeps(records: &[TestRecord]) -> Vec<Sweep> {
    let mut groups: Vec<Vec<&TestRecord>> = Vec::new();
    for record in records.iter().filter(|r| r.sizes.is_empty()) {
        match groups.iter_mut().find(|g| g.first().is_some_and(|first| same_work(first, record))) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups.iter().filter_map(|g| sweep_of(g)).collect()
}

fn same_work(a: &TestRecord, b: &TestRecord) -> bool {
    a.platform == b.platform
        && a.run == b.run
        && a.workload == b.workload
        && a.driver == b.driver
        && a.swept == b.swept
        && a.figure(column::RATE_TPS) == b.figure(column::RATE_TPS)
        && match a.swept {
            None => a.parameters == b.parameters,
            // The jobs stay the same, and one parameter is what was swept, whatever it is called.
            Some(_) => a.jobs == b.jobs && differing(&a.parameters, &b.parameters) <= 1,
        }
}

/// How many parameters have not the same value in both.
fn differing(a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>) -> usize {
    let changed = a.iter().filter(|(name, value)| b.get(*name) != Some(value)).count();
    changed + b.keys().filter(|name| !a.contains_key(*name)).count()
}

/// Where a test stands in its sweep: its jobs, or the value of what was swept; 0 for a record that lacks the
/// figure.
#[must_use]
pub fn standing(record: &TestRecord) -> u32 {
    let Some(column) = &record.swept else { return record.jobs };
    let parameter = || record.parameters.get(column).map(|v| *v as f64);
    // Rows, workers and sizes are whole numbers; the cast saturates.
    record.figures.get(column).copied().or_else(parameter).map_or(0, |v| v.round() as u32)
}

fn sweep_of(group: &[&TestRecord]) -> Option<Sweep> {
    let first = group.first()?;
    let mut by_place: BTreeMap<u32, Vec<&TestRecord>> = BTreeMap::new();
    for record in group {
        by_place.entry(standing(record)).or_default().push(record);
    }
    let common = first.parameters.iter().filter(|(k, v)| group.iter().all(|r| r.parameters.get(*k) == Some(v)));
    Some(Sweep {
        platform: first.platform.clone(),
        run: first.run.clone(),
        workload: first.workload.clone(),
        group: first.group.clone(),
        driver: first.driver,
        rate_tps: first.figure(column::RATE_TPS),
        parameters: common.map(|(k, v)| (k.clone(), *v)).collect(),
        over: first.swept.clone().unwrap_or_else(|| JOBS.to_owned()),
        kpis: first.kpis.clone(),
        rate: rate_of(group),
        points: by_place.into_iter().map(|(at, tests)| point_of(at, &tests)).collect(),
    })
}

fn point_of(at: u32, tests: &[&TestRecord]) -> Point {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let valid = || tests.iter().copied().filter(|r| r.valid);
    let kind = valid().map(Kind::of).min_by_key(Kind::rank).unwrap_or_default();
    let (fed, aside): (Vec<&TestRecord>, Vec<&TestRecord>) = valid().partition(|r| Kind::of(r) == kind);
    for record in &fed {
        for (id, value) in &record.figures {
            values.entry(id).or_default().push(*value);
        }
    }
    let estimate = |id: &str, seen: &[f64]| {
        if id.ends_with("_max") {
            let max = seen.iter().copied().filter(|v| v.is_finite()).reduce(f64::max)?;
            return Some(Estimate { mean: max, n: seen.len(), sd: None });
        }
        Estimate::of(seen)
    };
    Point {
        jobs: tests.first().map_or(0, |r| r.jobs),
        at,
        tests: fed.iter().map(|r| r.test).collect(),
        data_source: kind.data_source.map(str::to_owned),
        forced: kind.forced.map(str::to_owned),
        set_aside: aside.into_iter().map(SetAside::of).collect(),
        figures: values.iter().filter_map(|(id, v)| Some(((*id).to_owned(), estimate(id, v)?))).collect(),
        invalid: tests
            .iter()
            .filter(|r| !r.valid)
            .map(|r| InvalidTest {
                test: r.test,
                reason: r.invalid_reason.clone().unwrap_or_else(|| "the record gives no reason".to_owned()),
                figures: r.figures.clone(),
            })
            .collect(),
    }
}
