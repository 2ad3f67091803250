//! Histories: the figures of equal work over many runs of a platform, the newest run deciding what is equal.

use std::collections::BTreeMap;

use loadline_model::{Column, Driver, column};

use super::setup::Setup;
use super::work::WorkComparison;
use super::{ComparedAt, Platform};
use crate::kpi::{LATENCY, Metric, RESPONSE, higher_is_better, metrics};
use crate::sweep::{JOBS, Sweep, SweepPoint, sweeps};

/// A figure of equal work over runs.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Workload code.
    pub workload: String,
    /// Driver.
    pub driver: Driver,
    /// Parameters of the workload, without the swept one.
    pub parameters: BTreeMap<String, i64>,
    /// Column and value that was swept, if not jobs.
    pub swept: Option<(String, u32)>,
    /// Number of jobs.
    pub jobs: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// The figure.
    pub metric: Metric,
    /// Whether it is the first figure of its work.
    pub main: bool,
    /// Index of each run, and the mean of its valid tests in the column's unit: positive and finite.
    pub points: Vec<(usize, f64)>,
    /// Index of runs that measured it, but are left out, with the reason.
    pub left_out: Vec<(usize, String)>,
}

/// Tests of the same setup, one sweep of each run at most.
struct Group<'a> {
    /// By index of the run, the newest first.
    members: Vec<(usize, &'a Sweep)>,
}

/// The histories of `runs`, which are in the order of time. `figures`: those asked for; `None` for the main figure and the mean
/// time. Tests of another setup (parameters, driver, rate, data) make a history of their own; tests whose work turned out
/// unequal to that of the newest run are left out.
#[must_use]
pub fn histories(runs: &[Platform<'_>], figures: Option<&[&'static Column]>) -> Vec<History> {
    let of_runs: Vec<Vec<Sweep>> = runs.iter().map(|run| sweeps(run.records)).collect();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (index, sweep) in of_runs.iter().enumerate().rev().flat_map(|(n, all)| all.iter().map(move |s| (n, s))) {
        match groups.iter_mut().find(|group| group.takes(runs, index, sweep)) {
            Some(group) => group.members.push((index, sweep)),
            None => groups.push(Group { members: vec![(index, sweep)] }),
        }
    }
    groups.iter().flat_map(|group| group.histories(runs, figures)).collect()
}

impl Group<'_> {
    fn takes(&self, runs: &[Platform<'_>], index: usize, sweep: &Sweep) -> bool {
        let Some((newest, of_newest)) = self.members.first() else { return true };
        let (Some(a), Some(b)) = (runs.get(*newest), runs.get(index)) else { return false };
        let alike = of_newest.workload == sweep.workload
            && of_newest.over == sweep.over
            && of_newest.driver == sweep.driver
            && of_newest.nodes == sweep.nodes
            && self.members.iter().all(|(other, _)| *other != index);
        alike && Setup::of(a, of_newest, b, sweep).refused().is_none()
    }

    fn histories(&self, runs: &[Platform<'_>], figures: Option<&[&'static Column]>) -> Vec<History> {
        let mut places: Vec<u32> = self.members.iter().flat_map(|(_, s)| s.points.iter().map(|p| p.at)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().flat_map(|at| self.at(runs, at, figures)).collect()
    }

    /// The histories at `at` jobs, or that swept value.
    fn at(&self, runs: &[Platform<'_>], at: u32, figures: Option<&[&'static Column]>) -> Vec<History> {
        let members = || self.members.iter().filter_map(|(run, sweep)| Some((*run, *sweep, sweep.at(at)?)));
        let base = members().find(|(.., point)| !point.tests.is_empty());
        let Some((newest, sweep, point)) = base else { return Vec::new() };
        let shown = figures.map_or_else(|| usual(sweep), |figures| figures.iter().map(|c| metric(c)).collect());
        let over_jobs = sweep.over == JOBS;
        let history = |metric: Metric, main: bool| History {
            workload: sweep.workload.clone(),
            driver: sweep.driver,
            parameters: sweep.parameters.clone(),
            swept: (!over_jobs).then(|| (sweep.over.clone(), at)),
            jobs: point.jobs,
            nodes: sweep.nodes,
            metric,
            main,
            points: Vec::new(),
            left_out: Vec::new(),
        };
        let mut all: Vec<History> = shown.iter().enumerate().map(|(n, m)| history(*m, n == 0)).collect();
        let mut members: Vec<(usize, &Sweep, &SweepPoint)> = members().collect();
        members.sort_by_key(|(run, ..)| *run);
        for (run, other, of_run) in members {
            let (Some(a), Some(b)) = (runs.get(newest), runs.get(run)) else { continue };
            let work = WorkComparison::of(&Setup::of(a, sweep, b, other), shown.clone());
            let refused = work.row(ComparedAt::Jobs(at), point, of_run).refused;
            for history in &mut all {
                let column = history.metric.column;
                let figure = of_run.figure(column).map(|e| e.mean).filter(|f| f.is_finite() && *f > 0.0);
                match (&refused, figure) {
                    (Some(why), _) => history.left_out.push((run, why.clone())),
                    (None, Some(figure)) => history.points.push((run, figure)),
                    (None, None) => history.left_out.push((run, format!("no {} above 0", column.id))),
                }
            }
        }
        all.retain(|history| !history.points.is_empty());
        all
    }
}

/// The figures that are followed unless others are asked for: the main one, or the response time in an open loop, in which
/// throughput is given; and the mean time.
fn usual(sweep: &Sweep) -> Vec<Metric> {
    if sweep.load.rate_tps.is_some() {
        return vec![metric(RESPONSE)];
    }
    let all = metrics(&sweep.group, &sweep.kpis, false);
    let time = all.iter().find(|m| [LATENCY, column::TRANSACTION_TIME_NS_MEAN].contains(&m.column));
    let mut usual: Vec<Metric> = all.first().into_iter().chain(time).copied().collect();
    usual.dedup();
    usual
}

fn metric(column: &'static Column) -> Metric {
    Metric { column, higher_is_better: higher_is_better(column) }
}
