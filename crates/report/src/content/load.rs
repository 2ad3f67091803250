//! Time of jobs between transactions, and figures of each population: think times, new sessions, parts that differ.

use loadline_model::format::{counted, number, whole};
use loadline_model::record::{KindFigures, PopulationFigures};
use loadline_model::{Column, TestRecord, column};

use super::profiles;
use crate::RunData;
use crate::doc::{Block, Cell, Row, Section, Table};
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

/// A test, or a part of it: a population, or a kind of transaction.
struct Line<'a> {
    record: Option<&'a TestRecord>,
    name: String,
    load: String,
    tps: Option<f64>,
    /// Mean, median, 95th and 99th percentile.
    transaction_ns: [Option<f64>; 4],
    /// Median and 99th percentile.
    response_ns: [Option<f64>; 2],
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
    let lines: Vec<Line<'_>> = tests.flat_map(|r| std::iter::once(of_test(r)).chain(parts(r))).collect();
    let ms = |ns: Option<f64>| ns.map(|ns| number(ns / 1e6, 3));
    let figure = |line: &Line<'_>, column: &Column, shown: &dyn Fn(f64) -> String| match line.record {
        Some(r) => Cell::from(r.figure(column).map(shown)),
        None => Cell::from(""),
    };
    let of_ms = |line: &Line<'_>, column: &Column| figure(line, column, &|ns| number(ns / 1e6, 3));
    let pct = |line: &Line<'_>, column: &Column| figure(line, column, &|pct| number(pct, 1));
    TableSpec::<&Line<'_>>::new("figures", &lines)
        .text("Test", |line| &line.name)
        .text("Load", |line| &line.load)
        .number("Throughput", "tps", |line| line.tps.map(whole))
        .known("Highest rate", "tps", |line| {
            let found = line.record.filter(|r| r.figure(column::RATE_LOOKS).is_some());
            found.and_then(|r| r.figure(column::RATE_TPS)).map(|tps| number(tps, 1))
        })
        .known("from", "tps", |line| figure(line, column::RATE_LOW_TPS, &|tps| number(tps, 1)))
        .known("to", "tps", |line| figure(line, column::RATE_HIGH_TPS, &|tps| number(tps, 1)))
        .number("Transaction mean", "ms", |line| ms(line.transaction_ns[0]))
        .number("p50", "ms", |line| ms(line.transaction_ns[1]))
        .known("p95", "ms", |line| ms(line.transaction_ns[2]))
        .number("p99", "ms", |line| ms(line.transaction_ns[3]))
        .known("Response p50", "ms", |line| ms(line.response_ns[0]))
        .known("Response p99", "ms", |line| ms(line.response_ns[1]))
        .known("Think time", "ms", |line| figure(line, column::THINK_TIME_MS_MEAN, &|ms| number(ms, 3)))
        .known("Thinking", "%", |line| pct(line, column::THINKING_PCT))
        .known("New sessions", "1/s", |line| figure(line, column::CONNECTS_PER_S, &whole))
        .known("Connect mean", "ms", |line| of_ms(line, column::CONNECT_TIME_NS_MEAN))
        .known("Connect p50", "ms", |line| of_ms(line, column::CONNECT_TIME_NS_P50))
        .known("Connect p99", "ms", |line| of_ms(line, column::CONNECT_TIME_NS_P99))
        .known("Connecting", "%", |line| pct(line, column::CONNECTING_PCT))
        .dispensable(&[
            "Transaction mean", "p50", "p95", "Response p50", "Response p99", "Thinking", "Connect p50", "Connect p99",
            "Connecting",
        ])
        .lines(|line| Row { first: line.record.is_some(), ..Row::default() })
        .caption("Load of the jobs")
        .tips("tips of the load of jobs")
        .if_rows()
}

fn of_test(r: &TestRecord) -> Line<'_> {
    let load = r.load();
    let said = match load.is_mixed() {
        true => format!("{}{}", counted(load.populations.len(), "population"), load.sessions_and_keys()),
        false => load.words(),
    };
    let times = column::TRANSACTION_TIMES;
    let [mean, p50, p99] = [times.mean, times.p50, times.p99].map(|c| r.figure(c));
    Line {
        record: Some(r),
        name: format!("{} {}", r.test, r.workload),
        load: format!("{}: {said}", counted(r.jobs as usize, "job")),
        tps: r.figure(column::COMMIT_THROUGHPUT_TPS),
        transaction_ns: [mean, p50, None, p99],
        response_ns: [column::RESPONSE_TIME_NS_P50, column::RESPONSE_TIME_NS_P99].map(|c| r.figure(c)),
    }
}

fn parts(r: &TestRecord) -> impl Iterator<Item = Line<'_>> {
    let line = |load, tps, times: Option<[f64; 3]>, p95_ns, response_ns: Option<[f64; 3]>| Line {
        record: None,
        name: String::new(),
        load,
        tps: Some(tps),
        transaction_ns: [times.map(|of| of[0]), times.map(|of| of[1]), p95_ns, times.map(|of| of[2])],
        response_ns: [1, 2].map(|which| Some(response_ns?[which])),
    };
    let kind = move |k: &KindFigures| {
        line(format!("{} (weight {})", k.name, k.weight), k.tps, k.transaction_ns, k.p95_ns, None)
    };
    let population =
        move |p: &PopulationFigures| line(p.population.words(), p.tps, p.transaction_ns, None, p.response_ns);
    r.populations().iter().map(population).chain(r.kinds().iter().map(kind))
}
