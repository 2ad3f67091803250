//! Time of jobs between transactions, and figures of each population: think times, new sessions, parts that differ.

use loadline_model::format::counted;
use loadline_model::record::{KindFigures, PopulationFigures};
use loadline_model::{TestRecord, column};
use minijinja::{Value, context};

use super::profiles;
use crate::RunData;
use crate::doc::{Block, Row, Section, Table};
use crate::spec::TableSpec;
use crate::templates::prose;

pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs
        && let Some(table) = table(&run.records)
    {
        blocks.push(Block::Table(table));
        blocks.extend(profiles::charts(run));
        blocks.push(Block::para(prose("load", ())));
    }
    Section::new("load", "Load of the jobs", blocks)
}

/// A row for each test whose load is more than jobs in a closed loop or at a rate, and one for each of its parts; `None` without any.
pub(crate) fn table<'a>(records: impl IntoIterator<Item = &'a TestRecord>) -> Option<Table> {
    let special = |r: &&'a TestRecord| {
        let load = r.load();
        let has_more = load.reconnect_every.is_some() || load.objective.is_some() || load.keys.is_some();
        r.is_usable() && (load.thinks() || load.is_mixed() || has_more || !r.kinds().is_empty())
    };
    shown(records.into_iter().filter(special))
}

/// Throughput and times of a test and of each kind of its transactions, with their chart; nothing if all are of one.
pub(crate) fn with_kinds(r: &TestRecord, caption: &str) -> Option<Block> {
    let table = if !r.kinds().is_empty() { shown(std::iter::once(r)) } else { None };
    let table = table.map(|table| Block::Table(Table { caption: caption.to_owned(), ..table }));
    Block::beside(profiles::chart(r), table)
}

fn shown<'a>(tests: impl Iterator<Item = &'a TestRecord>) -> Option<Table> {
    let lines: Vec<Value> = tests.flat_map(|r| std::iter::once(of_test(r)).chain(parts(r))).collect();
    TableSpec::<&Value>::new("figures", &lines)
        .columns("table of the load of jobs", Clone::clone)
        .lines(|line| Row { first: line.get_attr("is_test").is_ok_and(|of| of.is_true()), ..Row::default() })
        .caption("Load of the jobs")
        .if_rows()
}

fn of_test(r: &TestRecord) -> Value {
    let load = r.load();
    let said = match load.is_mixed() {
        true => format!("{}{}", counted(load.populations.len(), "population"), load.sessions_and_keys()),
        false => load.words(),
    };
    let [times, response] =
        [column::TRANSACTION_TIMES, column::RESPONSE_TIMES].map(|of| [of.mean, of.p50, of.p99].map(|c| r.figure(c)));
    context! {
        is_test => true, f => r.figures, times, response,
        name => format!("{} {}", r.test, r.workload),
        load => format!("{}: {said}", counted(r.jobs as usize, "job")),
        tps => r.figure(column::COMMIT_THROUGHPUT_TPS), p95 => (),
    }
}

/// Populations of a test, and kinds of its transactions.
fn parts(r: &TestRecord) -> impl Iterator<Item = Value> {
    let unknown = || context! { is_test => false, f => (), response => (), name => (), p95 => () };
    let population = move |p: &PopulationFigures| {
        let load = p.population.words();
        context! { load, tps => p.tps, times => p.transaction_ns, response => p.response_ns, ..unknown() }
    };
    let kind = move |k: &KindFigures| {
        let load = format!("{} (weight {})", k.name, k.weight);
        context! { load, tps => k.tps, times => k.transaction_ns, p95 => k.p95_ns, ..unknown() }
    };
    r.populations().iter().map(population).chain(r.kinds().iter().map(kind))
}
