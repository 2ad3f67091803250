//! What each agent did: a run whose jobs ran on agents.

use loadline_model::TestRecord;
use loadline_model::format::{number, whole};
use loadline_model::record::{AgentFigures, MOST_START_SKEW_MS};
use minijinja::context;

use crate::RunData;
use crate::doc::{Block, Section, Table};
use crate::spec::TableSpec;
use crate::templates::prose;

/// The section of runs over agents; empty without any.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let records = runs.iter().flat_map(|run| &run.records);
    let table = table(records.flat_map(|r| r.by_agent.iter().map(move |agent| (r, agent))));
    let mut blocks = Vec::new();
    if !table.rows.is_empty() {
        blocks.push(Block::para(prose("agents", context! { most_skew_ms => MOST_START_SKEW_MS })));
        blocks.push(Block::Table(table));
    }
    Section::evidence("agents", "Agents", blocks)
}

fn table<'a>(rows: impl Iterator<Item = (&'a TestRecord, &'a AgentFigures)>) -> Table {
    let shown = |value: Option<f64>, digits: usize| value.map(|v| number(v, digits));
    let ms = move |ns: Option<u64>| shown(ns.map(|ns| ns as f64 / 1e6), 3);
    // An agent that failed has counted nothing.
    let counted = |agent: &AgentFigures, n: String| agent.tps.map(|_| n);
    TableSpec::of("figures", rows)
        .number("Test", "", |(r, _)| r.test)
        .once()
        .text("Agent", |(_, agent)| &agent.name)
        .text("Machine", |(_, agent)| &agent.host)
        .number("Jobs", "", |(_, agent)| agent.jobs)
        .number("Throughput", "tps", |(_, agent)| agent.tps.map(whole))
        .number("Time p50", "ms", move |(_, agent)| ms(agent.transaction_time_ns_p50))
        .tip("Median of the transaction times")
        .number("Time p99", "ms", move |(_, agent)| ms(agent.transaction_time_ns_p99))
        .tip("99th percentile of the transaction times")
        .number("Errors", "", move |(_, agent)| counted(agent, agent.errors.to_string()))
        .number("Late starts", "", move |(_, agent)| counted(agent, agent.late_starts.to_string()))
        .tip("Jobs that began after the window did")
        .number("CPU", "%", move |(_, agent)| shown(agent.client_cpu_pct, 0))
        .tip("CPU time of the agent, as a share of its machine")
        .number("Machine CPU", "%", move |(_, agent)| shown(agent.machine_cpu_pct, 0))
        .tip("CPU time of its machine that was used, by whomever")
        .number("Network", "%", move |(_, agent)| shown(agent.network.as_ref().and_then(|link| link.pct), 0))
        .tip("The busiest link of its machine, as a share of the link's speed")
        .number("Skew", "ms", move |(_, agent)| shown(agent.start_skew_ms, 3))
        .tip("Upper bound of the distance of its window from the common one")
        .text("Failed", |(_, agent)| agent.failed.clone().unwrap_or_default())
        .build()
}
