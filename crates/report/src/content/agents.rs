//! What each agent did: a run whose jobs ran on agents.

use loadline_model::TestRecord;
use loadline_model::format::{number, whole};
use loadline_model::record::{AgentFigures, MOST_START_SKEW_MS};

use crate::RunData;
use crate::doc::{Block, Cell, Head, Row, Section, Table};

/// The section of runs over agents; empty without any.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let records = || runs.iter().flat_map(|run| &run.records).filter(|r| !r.by_agent.is_empty());
    let mut blocks = Vec::new();
    if records().next().is_some() {
        blocks.push(Block::para(format!(
            "The jobs ran on agents, each on its own part of them. All started at one moment of their clocks, which were measured over \
             the hub before and after each test; the skew is the upper bound of the distance between the window of an agent and \
             the common one, and a test with more than {MOST_START_SKEW_MS} ms is invalid."
        )));
        blocks.push(Block::Table(table(records())));
    }
    Section { in_text: false, ..Section::of("agents", "Agents", blocks) }
}

fn table<'a>(records: impl Iterator<Item = &'a TestRecord>) -> Table {
    let rows = records.flat_map(|r| r.by_agent.iter().enumerate().map(move |(i, agent)| row(r, agent, i == 0)));
    let head = vec![
        Head::number("Test", ""),
        Head::text("Agent"),
        Head::text("Machine"),
        Head::number("Jobs", ""),
        Head::number("Throughput", "tps"),
        Head::number("Time p50", "ms").tip("Median of the transaction times"),
        Head::number("Time p99", "ms").tip("99th percentile of the transaction times"),
        Head::number("Errors", ""),
        Head::number("Late starts", "").tip("Jobs that began after the window did"),
        Head::number("CPU", "%").tip("CPU time of the agent, as a share of its machine"),
        Head::number("Machine CPU", "%").tip("CPU time of its machine that was used, by whomever"),
        Head::number("Network", "%").tip("The busiest link of its machine, as a share of the link's speed"),
        Head::number("Skew", "ms").tip("Upper bound of the distance of its window from the common one"),
        Head::text("Failed"),
    ];
    Table::of("figures", head, rows)
}

fn row(r: &TestRecord, agent: &AgentFigures, first: bool) -> Row {
    let shown = |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |v| number(v, digits));
    let ms = |ns: Option<u64>| shown(ns.map(|ns| ns as f64 / 1e6), 3);
    let counted = agent.tps.is_some();
    let only = |n: String| if counted { n } else { "–".to_owned() };
    let cells = vec![
        Cell::from(if first { r.test.to_string() } else { String::new() }),
        Cell::from(agent.name.clone()),
        Cell::from(agent.host.clone()),
        Cell::from(agent.jobs.to_string()),
        Cell::from(agent.tps.map_or_else(|| "–".to_owned(), whole)),
        Cell::from(ms(agent.transaction_time_ns_p50)),
        Cell::from(ms(agent.transaction_time_ns_p99)),
        Cell::from(only(agent.errors.to_string())),
        Cell::from(only(agent.late_starts.to_string())),
        Cell::from(shown(agent.client_cpu_pct, 0)),
        Cell::from(shown(agent.machine_cpu_pct, 0)),
        Cell::from(shown(agent.network.as_ref().and_then(|link| link.pct), 0)),
        Cell::from(shown(agent.start_skew_ms, 3)),
        Cell::from(agent.failed.clone().unwrap_or_default()),
    ];
    Row { cells, first, ..Row::default() }
}
