//! Histories: the figures of equal work over many runs of a platform, the newest run deciding what is equal.

use std::collections::BTreeMap;

use loadline_model::{Column, Driver, column};

use super::setup::Setup;
use super::work::WorkComparison;
use super::{ComparedAt, Platform};
use crate::kpi::{LATENCY, Metric, RESPONSE, higher_is_better, metrics};
use crate::sweep::{JOBS, Sweep, sweeps};

/// A figure of equal work over runs.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Name of the platform.
    pub platform: String,
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

/// A sweep of a run.
#[derive(Clone, Copy)]
struct Member<'a> {
    /// Index of the run.
    run: usize,
    /// Name of its platform, which holds no version.
    name: &'a str,
    platform: &'a Platform<'a>,
    sweep: &'a Sweep,
}

/// The histories of `runs`, each with the name of its platform, in the order of time. `figures`: those asked for; `None` for the main
/// figure and the mean time. Tests of another setup (parameters, driver, rate, data) make a history of their own; tests whose work
/// turned out unequal to that of the newest run are left out.
#[must_use]
pub fn histories(runs: &[(String, Platform<'_>)], figures: Option<&[&'static Column]>) -> Vec<History> {
    let of_runs: Vec<Vec<Sweep>> = runs.iter().map(|(_, run)| sweeps(run.records)).collect();
    // Tests of the same setup, one sweep of each run at most, the newest run first.
    let mut groups: Vec<Vec<Member<'_>>> = Vec::new();
    for (run, ((name, platform), sweeps)) in runs.iter().zip(&of_runs).enumerate().rev() {
        for sweep in sweeps {
            let member = Member { run, name, platform, sweep };
            match groups.iter_mut().find(|group| member.is_of(group)) {
                Some(group) => group.push(member),
                None => groups.push(vec![member]),
            }
        }
    }
    // Platforms by name.
    groups.sort_by_key(|group| group.first().map(|newest| newest.name));
    let mut all = Vec::new();
    for group in &groups {
        let mut places: Vec<u32> = group.iter().flat_map(|m| m.sweep.points.iter().map(|p| p.at)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().for_each(|at| all.extend(at_place(group, at, figures)));
    }
    all
}

impl Member<'_> {
    fn key(&self) -> (&str, &str, &str, Driver, u32) {
        (self.name, &self.sweep.workload, &self.sweep.over, self.sweep.driver, self.sweep.nodes)
    }

    fn is_of(&self, group: &[Member<'_>]) -> bool {
        let Some(newest) = group.first() else { return true };
        newest.key() == self.key()
            && group.iter().all(|other| other.run != self.run)
            && Setup::of(newest.platform, newest.sweep, self.platform, self.sweep).refused().is_none()
    }
}

/// The histories of a group at `at` jobs, or that swept value.
fn at_place(group: &[Member<'_>], at: u32, figures: Option<&[&'static Column]>) -> Vec<History> {
    let members = || group.iter().filter_map(|member| Some((member, member.sweep.at(at)?)));
    let Some((newest, point)) = members().find(|(_, point)| !point.tests.is_empty()) else { return Vec::new() };
    let sweep = newest.sweep;
    let shown = figures.map_or_else(|| usual(sweep), |figures| figures.iter().map(|c| metric(c)).collect());
    let history = |(n, metric): (usize, &Metric)| History {
        platform: newest.name.to_owned(),
        workload: sweep.workload.clone(),
        driver: sweep.driver,
        parameters: sweep.parameters.clone(),
        swept: (sweep.over != JOBS).then(|| (sweep.over.clone(), at)),
        jobs: point.jobs,
        nodes: sweep.nodes,
        metric: *metric,
        main: n == 0,
        points: Vec::new(),
        left_out: Vec::new(),
    };
    let mut all: Vec<History> = shown.iter().enumerate().map(history).collect();
    let mut in_order: Vec<_> = members().collect();
    in_order.reverse();
    for (Member { run, platform, sweep: other, .. }, of_run) in in_order {
        let work = WorkComparison::of(&Setup::of(newest.platform, sweep, platform, other), shown.clone());
        let refused = work.row(ComparedAt::Jobs(at), point, of_run).refused;
        for history in &mut all {
            let column = history.metric.column;
            let figure = of_run.figure(column).map(|e| e.mean).filter(|f| f.is_finite() && *f > 0.0);
            match (&refused, figure) {
                (Some(why), _) => history.left_out.push((*run, why.clone())),
                (None, Some(figure)) => history.points.push((*run, figure)),
                (None, None) => history.left_out.push((*run, format!("no {} above 0", column.id))),
            }
        }
    }
    all.retain(|history| !history.points.is_empty());
    all
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
