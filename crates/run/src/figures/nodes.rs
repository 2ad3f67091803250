//! Figures of each node of a cluster, and whether each job was where it should be.

use std::collections::BTreeMap;

use loadline_analyze::stats;
use loadline_load::{JobResult, Measured, Request};
use loadline_model::record::NodeFigures;
use loadline_model::snapshot::counter;
use loadline_model::{CheckId, Outcome, Snapshot, column};

use super::MIB;
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, not_made, passed};

/// Jobs of a node, and its counters in two snapshots.
type OfNode<'a> = (Vec<&'a JobResult>, [&'a BTreeMap<String, f64>; 2]);

/// The jobs that are meant to be on each node, and its counters in two snapshots; none if these are not of the same several nodes.
fn nodes<'a>(request: &Request, jobs: &'a [JobResult], [open, close]: [&'a Snapshot; 2]) -> Vec<OfNode<'a>> {
    let n = open.nodes.len();
    if n < 2 || close.nodes.len() != n {
        return Vec::new();
    }
    let on = |node: usize| {
        let here = jobs.iter().zip(0..).filter(move |(_, job)| request.work.node(*job, n) == node);
        here.map(|(result, _)| result).collect()
    };
    open.nodes.iter().zip(&close.nodes).enumerate().map(|(node, (a, b))| (on(node), [a, b])).collect()
}

/// The figures of the nodes, if the snapshots have counters of several.
pub(crate) fn of_each(e: &Evidence<'_>) -> Vec<NodeFigures> {
    let measured = e.measured;
    let Ok(counters) = &e.counters else { return Vec::new() };
    let nodes = nodes(e.request, &measured.jobs, [counters.open, counters.close]).into_iter().enumerate();
    nodes
        .map(|(node, (jobs, [open, close]))| {
            let gauge = |name: &str| counter::GAUGES.contains(&name);
            let neutral = open.iter().filter(|(name, _)| name.starts_with("loadline.") && !gauge(name));
            let per_s = neutral.filter_map(|(name, was)| {
                let grown = close.get(name)? - was;
                (grown >= 0.0).then(|| (name.clone(), grown / counters.seconds.max(1e-9)))
            });
            NodeFigures {
                jobs: jobs.len() as u32,
                tps: loadline_load::tps(jobs, &measured.schedule),
                per_s: per_s.collect(),
                gauges: gauges(measured, node),
            }
        })
        .collect()
}

fn readings(measured: &Measured) -> impl Iterator<Item = &Snapshot> {
    let inside = measured.schedule.open_ns..=measured.schedule.close_ns;
    measured.collected.points.iter().filter_map(|p| p.snapshot.as_ref()).filter(move |s| inside.contains(&s.at_ns))
}

/// How far the standbys that are nodes of the target were behind, at most.
pub(crate) fn behind(e: &Evidence<'_>, out: &mut Test) {
    if e.request.target.facts().read_only_nodes > 0 {
        let most = |name| readings(e.measured).filter_map(|s| s.counters.get(name)).copied().reduce(f64::max);
        let (bytes, ns) = (most(counter::REPLICA_BEHIND_BYTES), most(counter::REPLICA_BEHIND_NS));
        const NO: &str = "the primary does not say how far its standbys are (the role needs pg_monitor)";
        out.set_or_absent(column::REPLICA_BEHIND_MIB, bytes.map(|bytes| bytes / MIB), NO);
        out.set_or_absent(column::REPLICA_BEHIND_MS, ns.map(|ns| ns / 1e6), NO);
    }
}

/// Means of what describes the moment, over the readings of the window.
fn gauges(measured: &Measured, node: usize) -> BTreeMap<String, f64> {
    let readings: Vec<_> = readings(measured).filter_map(|s| s.nodes.get(node)).collect();
    let mean = |name: &&str| {
        let values: Vec<f64> = readings.iter().filter_map(|node| node.get(*name)).copied().collect();
        Some(((*name).to_owned(), stats::mean(&values)?))
    };
    counter::GAUGES.iter().filter_map(mean).collect()
}

/// Commits and syncs of a node between the snapshots of window start and window end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeCommits {
    /// Number of the node, from 1; `None`: the database as a whole.
    pub(crate) node: Option<usize>,
    pub(crate) jobs: usize,
    /// Transactions that began there and that both the jobs and the node counted.
    pub(crate) commits: f64,
    pub(crate) syncs: f64,
}

/// Commits and syncs of each node that has jobs; empty if there are not several nodes, or one of them does not count it.
pub(crate) fn commits(e: &Evidence<'_>) -> Vec<NodeCommits> {
    let Ok(counters) = &e.counters else { return Vec::new() };
    let nodes = nodes(e.request, &e.measured.jobs, [counters.open, counters.close]).into_iter().zip(1..);
    let with_jobs = nodes.filter(|((jobs, _), _)| !jobs.is_empty());
    let of_node = |((jobs, [open, close]), node): (OfNode<'_>, usize)| {
        let grown = |name| Some(close.get(name)? - open.get(name)?);
        let done: u64 = jobs.iter().map(|job| job.completed).sum();
        let commits = grown(counter::COMMITS)?.min(done as f64);
        Some(NodeCommits { node: Some(node), jobs: jobs.len(), commits, syncs: grown(counter::REDO_SYNCS)? })
    };
    with_jobs.map(of_node).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Nodes that were lost in the test make it one of fewer nodes.
pub(crate) fn lost(names: &[String]) -> Option<Verdict> {
    let why = "its throughput is that of fewer nodes for a part of it";
    (!names.is_empty()).then(|| failed(format!("{} lost in the test: {why}", are(names))))
}

pub(crate) fn members(e: &Evidence<'_>, test: &mut Test) {
    test.check(CheckId::Cluster, membership(e.measured));
}

/// Each node of a cluster must have been a member of it in all snapshots of the test, beside the same others.
fn membership(measured: &Measured) -> Option<Verdict> {
    let of_one = |s: &Snapshot| if s.nodes.is_empty() { vec![s.counters.clone()] } else { s.nodes.clone() };
    let all: Vec<_> = measured.snapshots().map(|(_, snapshot)| of_one(snapshot)).collect();
    let (first, later) = all.split_first()?;
    let value = |nodes: &[BTreeMap<String, f64>], node: usize, name: &str| nodes.get(node)?.get(name).copied();
    let size = |nodes: &[BTreeMap<String, f64>], node| value(nodes, node, counter::CLUSTER_SIZE);
    let before = (0..first.len()).filter_map(|node| size(first, node)).reduce(f64::max)?;
    let change = |node: usize| {
        let view = |nodes: &[BTreeMap<String, f64>]| value(nodes, node, counter::CLUSTER_VIEW);
        let what = match later.iter().map(|nodes| size(nodes, node).unwrap_or_default()).fold(before, f64::min) {
            least if least <= 0.0 => format!("left the cluster of {before}"),
            least if least < before => format!("counted {before} members and then {least}"),
            _ if later.iter().any(|nodes| view(nodes) != view(first)) => "saw a member leave or join".to_owned(),
            _ => return None,
        };
        Some(format!("node {} {what}", node + 1))
    };
    let changes: Vec<String> = (0..first.len()).filter_map(change).collect();
    if changes.is_empty() {
        return Some(passed(format!("each node counted {before} members of the cluster throughout")));
    }
    let why = "for a part of the test its throughput is that of fewer nodes, or of none";
    Some(failed(format!("{}: {why}", changes.join("; "))))
}

/// Whether no node left or joined a cluster, or there is none.
pub(crate) fn has_same_members(measured: &Measured) -> bool {
    membership(measured).is_none_or(|check| check.outcome == Outcome::Passed)
}

/// COMMITs of `jobs` that failed and that the database counts all the same.
pub(crate) fn failed_commits<'j>(request: &Request, jobs: impl IntoIterator<Item = &'j JobResult>) -> f64 {
    if !request.target.facts().counts_failed_commits {
        return 0.0;
    }
    jobs.into_iter().map(|job| job.failed_commits).sum::<u64>() as f64
}

/// Those between the snapshots of window start and window end, and how far that may be off: jobs in the database say only at the end of
/// a transaction how often it was tried.
pub(crate) fn failed_in_window(e: &Evidence<'_>) -> [f64; 2] {
    if !e.request.target.facts().counts_failed_commits {
        return [0.0; 2];
    }
    match e.grown(counter::FAILED_COMMITS) {
        Some(window) => [window, 0.02 * window],
        None => [e.merged().failed_commits as f64, failed_commits(e.request, &e.measured.jobs)],
    }
}

/// How far the commits of so many jobs, by their own count, may be from the database's from before the first until after the last: the
/// outcome of transactions that failed or were cancelled at the end is unknown, and background workers commit too.
pub(crate) fn allowed_commits(jobs: usize, errors: u64, ours: f64) -> f64 {
    jobs as f64 + errors as f64 + (ours * 0.005).max(20.0)
}

/// Each node must have counted the commits of the jobs that were meant to be on it, from before the first until after the last.
pub(crate) fn commits_of_each(request: &Request, measured: &Measured) -> Option<Verdict> {
    let (before, after) = (measured.before.as_ref().ok()?, measured.after.as_ref().ok()?);
    let nodes = nodes(request, &measured.jobs, [before, after]);
    if nodes.is_empty() {
        return None;
    }
    let (mut said, mut counts) = (Vec::new(), Vec::new());
    for ((jobs, [open, close]), node) in nodes.into_iter().zip(1..) {
        let Some((was, is)) = open.get(counter::COMMITS).zip(close.get(counter::COMMITS)) else {
            return Some(not_made("the nodes do not count their own commits"));
        };
        let ours: u64 = jobs.iter().map(|job| job.total).sum();
        let errors: u64 = jobs.iter().map(|job| job.errors_total).sum();
        let (ours, counted) = (ours as f64, is - was - failed_commits(request, jobs.iter().copied()));
        let allowed = allowed_commits(jobs.len(), errors, ours);
        // Of a node without jobs there is nothing to count, unless some went there.
        if !jobs.is_empty() || counted > allowed {
            counts.push(([ours, counted], allowed));
        }
        said.push(format!("node {node}: {ours} and {counted}"));
    }
    let detail = format!("commits of the jobs on each node, and those that it counted: {}", said.join("; "));
    Some(Verdict::compare(&counts, detail))
}

/// `a was`, `a and b were`.
pub(crate) fn are(names: &[String]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "was" } else { "were" })
}
