//! Histories: the figures of equal work over many runs of a platform, the newest run deciding what is equal.

use loadline_model::format::bytes;
use loadline_model::{Column, column};

use super::setup::{Setup, payload_words};
use super::{ComparedAt, Platform};
use crate::kpi::{LATENCY, RESPONSE, metrics, uses_data};
use crate::sweep::{Sweep, sweeps};

#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Name of the platform, which holds no version.
    pub platform: String,
    /// The work, as the newest run has it.
    pub sweep: Sweep,
    pub jobs: u32,
    /// That number, or the value of the swept column.
    pub at: u32,
    /// Parts of the work besides workload, parameters and driver.
    pub setup: String,
    pub metric: &'static Column,
    /// Whether it is the first figure of its work.
    pub main: bool,
    /// Label of each run, and the mean of its valid tests in the column's unit: positive and finite.
    pub points: Vec<(String, f64)>,
    /// Label of runs that measured it, but are left out, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Whether the newest run of the platform has a point.
    pub in_newest: bool,
}

struct Member<'a> {
    name: &'a str,
    platform: &'a Platform<'a>,
    sweep: Sweep,
}

/// The histories of `runs`, each with the name of its platform, in the order of time. `figures`: those asked for; `None` for the main
/// figure and the mean time. Tests of another setup (parameters, driver, rate, data) make a history of their own; tests whose work
/// turned out unequal to that of the newest run are left out.
pub fn histories(runs: &[(String, Platform<'_>)], figures: Option<&[&'static Column]>) -> Vec<History> {
    // Tests of the same setup, one sweep of each run at most, the newest run first.
    let mut groups: Vec<Vec<Member<'_>>> = Vec::new();
    for (name, platform) in runs.iter().rev() {
        for member in sweeps(platform.records).into_iter().map(|sweep| Member { name, platform, sweep }) {
            match groups.iter_mut().find(|group| member.is_of(group)) {
                Some(group) => group.push(member),
                None => groups.push(vec![member]),
            }
        }
    }
    groups.sort_by_key(|group| group.first().map(|newest| newest.name));
    let mut all = Vec::new();
    for group in &groups {
        let mut places: Vec<u32> = group.iter().flat_map(|m| m.sweep.points.iter().map(|p| p.at)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().for_each(|at| all.extend(at_place(group, at, figures)));
    }
    for history in &mut all {
        let newest = runs.iter().rfind(|(name, _)| *name == history.platform).map(|(_, run)| run.label);
        history.in_newest = history.points.last().map(|(run, _)| run.as_str()) == newest;
    }
    all
}

impl Member<'_> {
    fn is_of(&self, group: &[Member<'_>]) -> bool {
        let Some(newest) = group.first() else { return true };
        let (a, b) = (&newest.sweep, &self.sweep);
        newest.name == self.name
            && (&a.workload, &a.over, a.driver, a.nodes) == (&b.workload, &b.over, b.driver, b.nodes)
            && group.iter().all(|other| other.platform.label != self.platform.label)
            && Setup::new(newest.platform, a, self.platform, b).refused().is_none()
    }
}

/// The histories of a group at `at` jobs, or that swept value.
fn at_place(group: &[Member<'_>], at: u32, figures: Option<&[&'static Column]>) -> Vec<History> {
    let members = || group.iter().filter_map(|member| Some((member, member.sweep.at(at)?)));
    let Some((newest, point)) = members().find(|(_, point)| !point.tests.is_empty()) else { return Vec::new() };
    let sweep = &newest.sweep;
    let shown = figures.map_or_else(|| usual(sweep), <[_]>::to_vec);
    let data = newest.platform.data_bytes.map(|size| format!("{} of data", bytes(size as f64)));
    let data = if uses_data(&sweep.workload, sweep.facts) { data } else { None };
    let payload = newest.platform.payload.map(payload_words);
    let nodes = (sweep.nodes > 1).then(|| format!("{} nodes", sweep.nodes));
    let setup = [Some(sweep.load.words()), data, payload, nodes].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let history = |(n, metric): (usize, &&'static Column)| History {
        platform: newest.name.to_owned(),
        sweep: sweep.clone(),
        jobs: point.jobs,
        at,
        setup: setup.clone(),
        metric,
        main: n == 0,
        points: Vec::new(),
        left_out: Vec::new(),
        in_newest: false,
    };
    let mut all: Vec<History> = shown.iter().enumerate().map(history).collect();
    for (Member { platform, sweep: other, .. }, of_run) in members().collect::<Vec<_>>().into_iter().rev() {
        let setup = Setup::new(newest.platform, sweep, platform, other);
        // A change of level is said of the database: what others took of the machine would look like one.
        let disturbed = (!of_run.kept.disturbed.is_none()).then(|| of_run.kept.says()).flatten();
        let refused = setup.row(&shown, ComparedAt::Jobs(at), point, of_run).refused.or(disturbed);
        let run = || platform.label.to_owned();
        for history in &mut all {
            let column = history.metric;
            let figure = of_run.figure(column).map(|e| e.mean).filter(|f| f.is_finite() && *f > 0.0);
            match (&refused, figure) {
                (Some(why), _) => history.left_out.push((run(), why.clone())),
                (None, Some(figure)) => history.points.push((run(), figure)),
                (None, None) => history.left_out.push((run(), format!("no {} above 0", column.id))),
            }
        }
    }
    all.retain(|history| !history.points.is_empty());
    all
}

/// The figures that are followed unless others are asked for: the main one and the mean time, or in an open loop the response time.
fn usual(sweep: &Sweep) -> Vec<&'static Column> {
    if sweep.load.rate_tps.is_some() {
        return vec![RESPONSE];
    }
    let all = metrics(&sweep.group, &sweep.kpis, false);
    let time = all.iter().find(|m| [LATENCY, column::TRANSACTION_TIME_NS_MEAN].contains(m));
    let mut usual: Vec<&'static Column> = all.first().into_iter().chain(time).copied().collect();
    usual.dedup();
    usual
}
