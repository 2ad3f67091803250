//! Tests over several nodes: total and per-node figures, speed-up, and what each node did. And what each agent did, if the jobs ran on
//! agents.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analyze::stats::{self, Estimate};
use loadline_analyze::sweeps;
use loadline_model::format::counted;
use loadline_model::manifest::TargetInfo;
use loadline_model::record::{AgentFigures, MOST_START_SKEW_MS, NodeFigures};
use loadline_model::snapshot::counter;
use loadline_model::{TestRecord, column};
use minijinja::{Value, context};

use super::charts::set_aside;
use crate::RunData;
use crate::doc::{Block, Section, Table};
use crate::spec::TableSpec;
use crate::templates::{items, prose, stored};
use crate::words::grouped;

pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs {
        let records = over_jobs(run);
        if let Some(table) = table(run) {
            let paused: Vec<_> = paused(&records).into_iter().collect();
            blocks.push(Block::List { items: items("nodes-say", context! { peaks => peaks(run), paused }) });
            blocks.push(Block::Table(table));
            let TargetInfo { nodes, local, .. } = run.manifest.target;
            blocks.push(Block::para(prose("nodes", context! { nodes, local })));
            let each = Block::table(each(&records));
            blocks.extend(each.map(|table| Block::details("What each node did", vec![table])));
        }
    }
    Section::new("nodes", "Tests over nodes", blocks)
}

/// A row for each workload, number of nodes and jobs; `None` if all tests were of one node.
pub(crate) fn table(run: &RunData) -> Option<Table> {
    over_jobs(run).iter().any(|r| r.nodes > 1).then(|| scaling(run))
}

/// The tests of a sweep over nodes that are not refused: those of a single job are none.
fn over_jobs(run: &RunData) -> Vec<&TestRecord> {
    let of_jobs = |r: &&TestRecord| r.is_usable() && r.variant.is_none() && r.swept().is_none();
    run.records.iter().filter(of_jobs).collect()
}

/// The column of a workload's throughput, and its unit: loads are of rows.
fn throughput(r: &TestRecord) -> (&'static column::Column, &'static str) {
    let of_rows = r.kpis.iter().any(|id| id == column::ROWS_PER_S.id);
    if of_rows { (column::ROWS_PER_S, "rows/s") } else { (column::COMMIT_THROUGHPUT_TPS, "tps") }
}

fn estimate(tests: &[&TestRecord]) -> Option<Estimate> {
    let (column, _) = throughput(tests.first()?);
    Estimate::from_values(&tests.iter().filter_map(|r| r.figure(column)).collect::<Vec<f64>>())
}

/// The least over the nodes of the mean over repetitions of what the jobs of a node did, in the unit of the throughput.
fn slowest(tests: &[&TestRecord]) -> Option<f64> {
    let nodes = tests.iter().map(|r| r.by_node().len()).max()?;
    let of_node = |node: usize| {
        let values = tests.iter().filter_map(|r| {
            let here = r.by_node().get(node).filter(|n| n.jobs > 0)?;
            let per_tx =
                r.figure(throughput(r).0)? / r.figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0)?;
            Some(here.tps * per_tx)
        });
        stats::mean(&values.collect::<Vec<f64>>())
    };
    (0..nodes).filter_map(of_node).reduce(f64::min)
}

fn mean(tests: &[&TestRecord], column: &column::Column) -> Option<f64> {
    let values: Vec<f64> = tests.iter().filter_map(|r| r.figure(column)).collect();
    stats::mean(&values)
}

/// The highest throughput of each workload on each number of nodes, against that of the fewest.
fn peaks(run: &RunData) -> Vec<Value> {
    let mut out = Vec::new();
    for (workload, groups) in grouped(groups(run), |group| group[0].workload.as_str()) {
        let mut best: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
        for (group, tps) in groups.iter().filter_map(|group| Some((group[0], estimate(group)?.mean))) {
            let best = best.entry(group.nodes).or_insert((tps, group.jobs));
            if tps > best.0 {
                *best = (tps, group.jobs);
            }
        }
        let base = best.first_key_value().map_or(0.0, |(_, (tps, _))| *tps);
        if base > 0.0 {
            let best: Vec<_> = best.iter().map(|(nodes, (tps, jobs))| (nodes, jobs, tps, tps / base)).collect();
            out.push(context! { workload, unit => throughput(groups[0][0]).1, best });
        }
    }
    out
}

/// Least share of the time that flow control paused a node to be said, %.
const PAUSED: f64 = 1.0;

/// The node that flow control paused longest: it then waited for one that was slow to apply, so the slowest node bounds all.
fn paused<'a>(records: &[&'a TestRecord]) -> Option<(f64, u32, &'a str, u32, usize)> {
    let nodes = records.iter().flat_map(|r| (1..).zip(r.by_node()).map(move |(number, node)| (*r, number, node)));
    let paused = nodes.filter_map(|(r, number, node): (&'a TestRecord, usize, &NodeFigures)| {
        let pct = node.per_s.get(counter::FLOW_PAUSED_NS)? / 1e7;
        Some((pct, r.test, r.workload.as_str(), r.jobs, number))
    });
    paused.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(pct, ..)| *pct >= PAUSED)
}

/// The tests of each workload, number of nodes and jobs, without those that are set aside.
fn groups<'a>(run: &'a RunData) -> Vec<Vec<&'a TestRecord>> {
    let aside = set_aside(&sweeps(&run.records));
    let counting = over_jobs(run).into_iter().filter(|r| !aside.contains(&r.test));
    let same = |r: &&'a TestRecord| (&r.workload, r.driver, r.nodes, r.jobs, &r.parameters);
    grouped(counting, same).into_iter().map(|(_, group)| group).collect()
}

fn scaling(run: &RunData) -> Table {
    let mut groups = groups(run);
    groups.sort_by_key(|g| (g[0].workload.clone(), g[0].nodes, g[0].jobs, g[0].test));
    // Of one node with as many jobs as each node has here.
    let base = |b: &TestRecord| {
        let like = |a: &TestRecord| {
            (&a.workload, a.driver, a.nodes, a.jobs * b.nodes, &a.parameters)
                == (&b.workload, b.driver, 1, b.jobs, &b.parameters)
        };
        groups.iter().find(|one| like(one[0])).and_then(|one| estimate(one))
    };
    let row = |g: &[&TestRecord]| {
        let all = estimate(g);
        let per_node = all.map(|e| e.mean / f64::from(g[0].nodes.max(1)));
        let up = if g[0].nodes > 1 { all.zip(base(g[0])) } else { None };
        let up = up.and_then(|(e, base)| stats::ratio(&e, &base));
        let of = |column| mean(g, column);
        let [latency, conflicts, errors] = [column::COMMIT_LATENCY_MS, column::CONFLICTS, column::ERRORS].map(of);
        context! {
            workload => g[0].workload, unit => throughput(g[0]).1, nodes => g[0].nodes, jobs => g[0].jobs, all,
            within => all.and_then(|e| e.interval()), per_node, slowest => slowest(g), up, latency, conflicts, errors,
        }
    };
    let table = TableSpec::new("figures", groups.iter().map(Vec::as_slice)).columns("table of nodes and jobs", row);
    table.caption("Nodes and jobs").build()
}

fn each(records: &[&TestRecord]) -> Table {
    let nodes =
        records.iter().flat_map(|r| r.by_node().iter().zip(1_u32..).map(move |(node, number)| (*r, node, number)));
    let all = records.iter().flat_map(|r| r.by_node()).flat_map(|node| node.per_s.iter().chain(&node.gauges));
    let seen: BTreeSet<&String> = all.filter(|(_, n)| **n > 0.0).map(|(name, _)| name).collect();
    let row = |(r, node, number): (&TestRecord, &NodeFigures, u32)| {
        let test = format!("{} {}, {}", r.test, r.workload, counted(r.jobs as usize, "job"));
        context! { test, number, node => stored(node), seen }
    };
    let table = TableSpec::new("figures", nodes).columns("table of what each node did", row);
    table.caption("What each node did, by the jobs' count and its own counters").build()
}

pub(crate) fn processes(runs: &[RunData]) -> Section {
    let records = runs.iter().flat_map(|run| &run.records);
    let agents = records.flat_map(|r| r.by_agent().iter().map(move |agent| (r.test, agent)));
    let table = TableSpec::<(u32, &AgentFigures)>::new("figures", agents)
        .columns("table of agents", |(test, agent)| context! { test, of => stored(agent) })
        .if_rows();
    let explained = || Block::para(prose("agents", context! { most_skew_ms => MOST_START_SKEW_MS }));
    let blocks = table.map_or_else(Vec::new, |table| vec![explained(), Block::Table(table)]);
    Section::evidence("agents", "Agents", blocks)
}
