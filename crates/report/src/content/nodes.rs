//! Tests over several nodes: total and per-node figures, speed-up, and what each node did.

use std::collections::BTreeMap;

use loadline_analyze::stats::{self, Estimate, Interval};
use loadline_model::format::{counted, whole};
use loadline_model::record::NodeFigures;
use loadline_model::snapshot::counter;
use loadline_model::{TestRecord, column};

use crate::RunData;
use crate::doc::{Block, Cell, Head, Row, Section, Table};

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

/// The section of one run over several nodes.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs {
        let records = over_jobs(run);
        if let Some(table) = table(run) {
            blocks.push(Block::List { items: peaks(&records).into_iter().chain(paused(&records)).collect() });
            blocks.push(Block::Table(table));
            blocks.push(Block::para(note(run)));
            blocks.extend(each(&records).map(|table| Block::Details {
                summary: "What each node did".to_owned(),
                blocks: vec![Block::Table(table)],
            }));
        }
    }
    Section::of("nodes", "Tests over nodes", blocks)
}

/// A row for each workload, number of nodes and jobs; `None` if all tests were of one node.
pub(crate) fn table(run: &RunData) -> Option<Table> {
    let records = over_jobs(run);
    records.iter().any(|r| r.nodes > 1).then(|| scaling(&records))
}

/// The valid tests of a sweep over nodes: those of a single job are none.
fn over_jobs(run: &RunData) -> Vec<&TestRecord> {
    let of_jobs = |r: &&TestRecord| r.valid && r.arm.is_none() && r.swept.is_none();
    run.records.iter().filter(of_jobs).collect()
}

/// The column of a workload's throughput, and its unit: loads are of rows.
fn throughput(r: &TestRecord) -> (&'static column::Column, &'static str) {
    let of_rows = r.kpis.iter().any(|id| id == column::ROWS_PER_S.id);
    if of_rows { (column::ROWS_PER_S, "rows/s") } else { (column::COMMIT_THROUGHPUT_TPS, "tps") }
}

/// Mean and spread of the throughput over repetitions.
fn estimate(tests: &[&TestRecord]) -> Option<Estimate> {
    let (column, _) = throughput(tests.first()?);
    Estimate::of(&tests.iter().filter_map(|r| r.figure(column)).collect::<Vec<f64>>())
}

/// The least over the nodes of the mean over repetitions of what the jobs of a node did, in the unit of the throughput.
fn slowest(tests: &[&TestRecord]) -> Option<f64> {
    let nodes = tests.iter().map(|r| r.by_node.len()).max()?;
    let of_node = |node: usize| {
        let values = tests.iter().filter_map(|r| {
            let here = r.by_node.get(node).filter(|n| n.jobs > 0)?;
            let per_tx =
                r.figure(throughput(r).0)? / r.figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0)?;
            Some(here.tps * per_tx)
        });
        stats::mean(&values.collect::<Vec<f64>>())
    };
    (0..nodes).filter_map(of_node).reduce(f64::min)
}

/// Mean of a figure over repetitions.
fn mean(tests: &[&TestRecord], column: &column::Column) -> Option<f64> {
    let values: Vec<f64> = tests.iter().filter_map(|r| r.figure(column)).collect();
    stats::mean(&values)
}

/// What the numbers of nodes are of.
fn note(run: &RunData) -> String {
    let target = &run.manifest.target;
    let here = if target.local {
        " They share this machine's CPUs and devices, so the speed-up is about the software."
    } else {
        ""
    };
    format!(
        "All {} nodes run in every test; the number of nodes is of those that have jobs, and the others receive what these write.{here} \
         A speed-up needs a test on one node with as many jobs as each node has.",
        target.nodes
    )
}

/// The highest throughput of each workload on each number of nodes, against that of the fewest.
fn peaks(records: &[&TestRecord]) -> Vec<String> {
    let mut workloads: Vec<&str> = Vec::new();
    for r in records {
        if !workloads.contains(&r.workload.as_str()) {
            workloads.push(&r.workload);
        }
    }
    let mut out = Vec::new();
    for workload in workloads {
        let mut best: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
        for group in groups(records).iter().filter(|g| g[0].workload == workload) {
            if let Some(Estimate { mean: tps, .. }) = estimate(group) {
                let best = best.entry(group[0].nodes).or_insert((tps, group[0].jobs));
                if tps > best.0 {
                    *best = (tps, group[0].jobs);
                }
            }
        }
        let Some((fewest, (base, at))) = best.pop_first().filter(|(_, (base, _))| *base > 0.0) else { continue };
        let unit = records.iter().find(|r| r.workload == workload).map_or("", |r| throughput(r).1);
        let first = format!(
            "{workload}: {} {unit} at most on {} ({})",
            whole(base),
            counted(fewest as usize, "node"),
            counted(at as usize, "job")
        );
        let others = best.iter().map(|(nodes, (tps, jobs))| {
            let (on, jobs) = (counted(*nodes as usize, "node"), counted(*jobs as usize, "job"));
            format!("{} on {on} ({jobs}), {:.2} times as many", whole(*tps), tps / base)
        });
        out.push(std::iter::once(first).chain(others).collect::<Vec<_>>().join("; ") + ".");
    }
    out
}

/// Least share of the time that flow control paused a node to be said, %.
const PAUSED: f64 = 1.0;

/// The node that flow control paused longest: it then waited for one that was slow to apply, so the slowest node bounds all.
fn paused(records: &[&TestRecord]) -> Option<String> {
    let nodes = records.iter().flat_map(|r| (1..).zip(&r.by_node).map(move |(number, node)| (*r, number, node)));
    let share =
        |(r, number, node): (_, usize, &NodeFigures)| Some((node.per_s.get(counter::FLOW_PAUSED_NS)? / 1e7, r, number));
    let (pct, r, number): (f64, &TestRecord, usize) = nodes.filter_map(share).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (pct >= PAUSED).then(|| {
        format!(
            "Flow control paused node {number} for {pct:.0} % of the time in test {} ({}, {}): a node could not apply as fast as the \
             others wrote, and all waited for it.",
            r.test,
            r.workload,
            counted(r.jobs as usize, "job")
        )
    })
}

/// The valid tests of each workload, number of nodes and jobs.
fn groups<'a>(records: &[&'a TestRecord]) -> Vec<Vec<&'a TestRecord>> {
    let mut groups: Vec<Vec<&TestRecord>> = Vec::new();
    for r in records {
        let same = |g: &&mut Vec<&TestRecord>| {
            let first = g[0];
            (&first.workload, first.driver, first.nodes, first.jobs, &first.parameters)
                == (&r.workload, r.driver, r.nodes, r.jobs, &r.parameters)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(r),
            None => groups.push(vec![r]),
        }
    }
    groups
}

fn scaling(records: &[&TestRecord]) -> Table {
    let mut groups = groups(records);
    groups.sort_by(|a, b| {
        let key = |g: &[&TestRecord]| (g[0].workload.clone(), g[0].nodes, g[0].jobs, g[0].test);
        key(a).cmp(&key(b))
    });
    // Of one node with as many jobs as each node has here.
    let base = |g: &[&TestRecord]| {
        let like = |o: &&Vec<&TestRecord>| {
            let (a, b) = (o[0], g[0]);
            a.workload == b.workload
                && a.driver == b.driver
                && a.nodes == 1
                && a.jobs * b.nodes == b.jobs
                && a.parameters == b.parameters
        };
        groups.iter().find(like).and_then(|one| estimate(one))
    };
    let absent = || "–".to_owned();
    let mut last = String::new();
    let mut rows = Vec::new();
    for g in &groups {
        let r = g[0];
        let first = last != r.workload;
        last.clone_from(&r.workload);
        let (total, latency) = (estimate(g), mean(g, column::COMMIT_LATENCY_MS));
        let up = total.zip(base(g)).filter(|_| r.nodes > 1).and_then(|(total, one)| stats::ratio(&total, &one));
        let (_, unit) = throughput(r);
        let name = if unit == "tps" { r.workload.clone() } else { format!("{} ({unit})", r.workload) };
        let within = |interval: Option<Interval>, shown: fn(f64) -> String| {
            interval.map_or_else(String::new, |i| format!(" ({} to {})", shown(i.low.max(0.0)), shown(i.high)))
        };
        let two = |v: f64| format!("{v:.2}");
        let cells = vec![
            Cell::from(if first { name } else { String::new() }),
            Cell::from(r.nodes.to_string()),
            Cell::from(r.jobs.to_string()),
            Cell::from(total.map_or_else(absent, |e| format!("{}{}", whole(e.mean), within(e.interval(), whole)))),
            Cell::from(total.map_or_else(absent, |e| whole(e.mean / f64::from(r.nodes.max(1))))),
            Cell::from(slowest(g).map_or_else(absent, whole)),
            Cell::from(up.map_or_else(absent, |up| format!("{}{}", two(up.value), within(up.interval, two)))),
            Cell::from(latency.map_or_else(absent, |v| format!("{v:.3}"))),
            Cell::from(mean(g, column::CONFLICTS).map_or_else(absent, whole)),
            Cell::from(mean(g, column::ERRORS).map_or_else(absent, whole)),
        ];
        rows.push(Row { cells, first, ..Row::default() });
    }
    let head = vec![
        Head::text("Workload"),
        Head::number("Nodes", ""),
        Head::number("Jobs", "").tip("All nodes together; they are spread over the nodes in turn"),
        Head::number("Throughput", "tps").tip(
            "All nodes together, of loads in rows per second; with repetitions their mean and its interval of 95 %",
        ),
        Head::number("Per node", "tps"),
        Head::number("Slowest node", "tps").tip("Mean over the repetitions of the node with the least"),
        Head::number("Speed-up", "").tip("Against one node with as many jobs as each node has here; interval of 95 %"),
        Head::number("Latency", "ms"),
        Head::number("Tried again", "")
            .tip("Transactions that lost against another one, were rolled back and tried again: no throughput"),
        Head::number("Errors", ""),
    ];
    Table { caption: "Nodes and jobs".to_owned(), ..Table::of("figures", head, rows) }
}

/// A row for each node of each test.
fn each(records: &[&TestRecord]) -> Option<Table> {
    let shown: Vec<_> = OF_NODE
        .iter()
        .filter(|(name, ..)| records.iter().flat_map(|r| &r.by_node).any(|n| of_node(n, name).is_some_and(|v| v > 0.0)))
        .collect();
    let mut rows = Vec::new();
    for r in records {
        for (number, node) in r.by_node.iter().enumerate() {
            let first = number == 0;
            let jobs = counted(r.jobs as usize, "job");
            let mut cells = vec![
                Cell::from(if first { format!("{} {}, {jobs}", r.test, r.workload) } else { String::new() }),
                Cell::from((number + 1).to_string()),
                Cell::from(node.jobs.to_string()),
                Cell::from(whole(node.tps)),
            ];
            for (name, _, _, per) in &shown {
                let value = of_node(node, name).map_or_else(
                    || "–".to_owned(),
                    |v| {
                        let value = v / per;
                        if *per > 1.0 { format!("{value:.2}") } else { whole(value) }
                    },
                );
                cells.push(Cell::from(value));
            }
            rows.push(Row { cells, first, ..Row::default() });
        }
    }
    let mut head =
        vec![Head::text("Test"), Head::number("Node", ""), Head::number("Jobs", ""), Head::number("Throughput", "tps")];
    head.extend(shown.iter().map(|(_, title, unit, _)| Head::number(title, unit)));
    let caption = "What each node did, by the jobs' count and its own counters".to_owned();
    (!rows.is_empty()).then(|| Table { caption, ..Table::of("figures", head, rows) })
}
