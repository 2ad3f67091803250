//! Tests over several nodes: total and per-node figures, speed-up, and what each node did. And what each agent did, if the jobs ran on
//! agents.

use std::collections::BTreeMap;

use loadline_analyze::stats::{self, Estimate, Interval};
use loadline_analyze::sweeps;
use loadline_model::format::{counted, number, whole};
use loadline_model::manifest::TargetInfo;
use loadline_model::record::{AgentFigures, MOST_START_SKEW_MS, NodeFigures};
use loadline_model::snapshot::counter;
use loadline_model::{TestRecord, column};
use minijinja::{Value, context};

use super::charts::set_aside;
use crate::RunData;
use crate::doc::{Block, Section, Table};
use crate::spec::TableSpec;
use crate::templates::{items, prose};
use crate::words::grouped;

/// Counters of a node in the table of nodes, with headings, units and what they are divided by.
const OF_NODE: [(&str, &str, &str, f64); 10] = [
    (counter::COMMITS, "Counted", "commits/s", 1.0),
    (counter::REDO_BYTES, "Redo", "MiB/s", 1_048_576.0),
    (counter::REDO_SYNCS, "Log syncs", "1/s", 1.0),
    (counter::ROWS_READ, "Rows read", "1/s", 1.0),
    (counter::REPLICATED_BYTES, "Replicated", "MiB/s", 1_048_576.0),
    (counter::CERT_FAILURES, "Certification failures", "1/s", 1.0),
    (counter::APPLY_ABORTS, "Aborted by others' changes", "1/s", 1.0),
    (counter::FLOW_PAUSED_NS, "Paused by flow control", "%", 1e7),
    (counter::APPLY_QUEUE, "Queue", "transactions", 1.0),
    (counter::CLUSTER_SIZE, "Group size", "", 1.0),
];

/// A counter's growth per second, or the mean of what describes the moment.
fn of_node(node: &NodeFigures, name: &str) -> Option<f64> {
    node.per_s.get(name).or_else(|| node.gauges.get(name)).copied()
}

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
    let up = |g: &[&TestRecord]| stats::ratio(&estimate(g).filter(|_| g[0].nodes > 1)?, &base(g[0])?);
    let within = |value: f64, interval: Option<Interval>, shown: fn(f64) -> String| {
        let range = interval.map(|i| format!(" ({} to {})", shown(i.low.max(0.0)), shown(i.high)));
        shown(value) + &range.unwrap_or_default()
    };
    let two: fn(f64) -> String = |v| format!("{v:.2}");
    let name = |r: &TestRecord| match throughput(r).1 {
        "tps" => r.workload.clone(),
        unit => format!("{} ({unit})", r.workload),
    };
    TableSpec::<&[&TestRecord]>::new("figures", groups.iter().map(Vec::as_slice))
        .text("Workload", |g| name(g[0]))
        .once()
        .number("Nodes", "", |g| g[0].nodes)
        .number("Jobs", "", |g| g[0].jobs)
        .number("Throughput", "tps", |g| estimate(g).map(|e| within(e.mean, e.interval(), whole)))
        .number("Per node", "tps", |g| estimate(g).map(|e| whole(e.mean / f64::from(g[0].nodes.max(1)))))
        .number("Slowest node", "tps", |g| slowest(g).map(whole))
        .number("Speed-up", "", |g| up(g).map(|up| within(up.value, up.interval, two)))
        .number("Latency", "ms", |g| mean(g, column::COMMIT_LATENCY_MS).map(|v| format!("{v:.3}")))
        .number("Tried again", "", |g| mean(g, column::CONFLICTS).map(whole))
        .number("Errors", "", |g| mean(g, column::ERRORS).map(whole))
        .caption("Nodes and jobs")
        .tips("tips of nodes")
        .build()
}

fn each(records: &[&TestRecord]) -> Table {
    let nodes =
        records.iter().flat_map(|r| r.by_node().iter().zip(1_u32..).map(move |(node, number)| (*r, node, number)));
    let mut table = TableSpec::<(&TestRecord, &NodeFigures, u32)>::new("figures", nodes)
        .text("Test", |(r, ..)| format!("{} {}, {}", r.test, r.workload, counted(r.jobs as usize, "job")))
        .once()
        .number("Node", "", |(.., number)| number)
        .number("Jobs", "", |(_, node, _)| node.jobs)
        .number("Throughput", "tps", |(_, node, _)| whole(node.tps))
        .caption("What each node did, by the jobs' count and its own counters");
    for (name, title, unit, per) in OF_NODE {
        let shown = move |v: f64| if per > 1.0 { format!("{:.2}", v / per) } else { whole(v / per) };
        let any = records.iter().flat_map(|r| r.by_node()).any(|n| of_node(n, name).is_some_and(|v| v > 0.0));
        table = table.number(title, unit, move |(_, node, _)| of_node(node, name).map(shown)).when(any);
    }
    table.build()
}

pub(crate) fn processes(runs: &[RunData]) -> Section {
    let records = runs.iter().flat_map(|run| &run.records);
    let table = of_agents(records.flat_map(|r| r.by_agent().iter().map(move |agent| (r, agent))));
    let mut blocks = Vec::new();
    if !table.rows.is_empty() {
        blocks.push(Block::para(prose("agents", context! { most_skew_ms => MOST_START_SKEW_MS })));
        blocks.push(Block::Table(table));
    }
    Section::evidence("agents", "Agents", blocks)
}

fn of_agents<'a>(rows: impl Iterator<Item = (&'a TestRecord, &'a AgentFigures)>) -> Table {
    let shown = |value: Option<f64>, digits: usize| value.map(|v| number(v, digits));
    let ms = move |ns: Option<u64>| shown(ns.map(|ns| ns as f64 / 1e6), 3);
    // An agent that failed has counted nothing.
    let counted = |agent: &AgentFigures, n: String| agent.tps.map(|_| n);
    TableSpec::new("figures", rows)
        .number("Test", "", |(r, _)| r.test)
        .once()
        .text("Agent", |(_, agent)| &agent.name)
        .text("Machine", |(_, agent)| &agent.host)
        .number("Jobs", "", |(_, agent)| agent.jobs)
        .number("Throughput", "tps", |(_, agent)| agent.tps.map(whole))
        .number("Time p50", "ms", move |(_, agent)| ms(agent.transaction_time_ns_p50))
        .number("Time p99", "ms", move |(_, agent)| ms(agent.transaction_time_ns_p99))
        .number("Errors", "", move |(_, agent)| counted(agent, agent.errors.to_string()))
        .number("Late starts", "", move |(_, agent)| counted(agent, agent.late_starts.to_string()))
        .number("CPU", "%", move |(_, agent)| shown(agent.client_cpu_pct, 0))
        .number("Machine CPU", "%", move |(_, agent)| shown(agent.machine_cpu_pct, 0))
        .number("Network", "%", move |(_, agent)| shown(agent.network.as_ref().and_then(|link| link.pct), 0))
        .number("Skew", "ms", move |(_, agent)| shown(agent.start_skew_ms, 3))
        .text("Failed", |(_, agent)| agent.failed.clone().unwrap_or_default())
        .tips("tips of agents")
        .build()
}
