//! What jobs did between transactions, and what each population of them did: think times, new sessions, parts that differ.

use loadline_model::format::{ABSENT, counted, number, whole};
use loadline_model::{Column, JobLoad, TestRecord, column};

use crate::RunData;
use crate::doc::{Block, Cell, Head, Row, Section, Table};

/// The section of one run.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let mut blocks = Vec::new();
    if let [run] = runs
        && let Some(table) = table(run)
    {
        blocks.push(Block::Table(table));
        blocks.push(Block::para(
            "Neither thinking nor connecting is part of the transaction time. The time to connect is from the start of connecting until \
             the session is ready for its first transaction, statements prepared; the share of connecting also has the close of the old \
             session.",
        ));
    }
    Section::of("load", "Load of the jobs", blocks)
}

/// A row for each valid test whose jobs think, open new sessions or differ, or run several scripts, and one for each of these parts;
/// `None` without any.
pub(crate) fn table(run: &RunData) -> Option<Table> {
    let mut rows = Vec::new();
    for r in run.records.iter().filter(|r| r.valid) {
        let load = r.load();
        if !load.thinks() && !load.is_mixed() && load.reconnect_every.is_none() && r.kinds.is_empty() {
            continue;
        }
        rows.push(Row { cells: of_test(r, &load), first: true, ..Row::default() });
        let populations = r.populations.iter().map(|p| (p.population.words(), p.tps, p.transaction_ns, p.response_ns));
        let kinds =
            r.kinds.iter().map(|k| (format!("{} (weight {})", k.name, k.weight), k.tps, k.transaction_ns, None));
        rows.extend(populations.chain(kinds).map(|part| Row::of(of_part(part))));
    }
    let mut head = vec![
        Head::text("Test"),
        Head::text("Load"),
        Head::number("Throughput", "tps"),
        Head::number("Transaction mean", "ms"),
        Head::number("p50", "ms"),
        Head::number("p99", "ms"),
        Head::number("Response p50", "ms").tip("Open loop: from the intended start of a transaction"),
        Head::number("Response p99", "ms"),
        Head::number("Think time", "ms").tip("Time that jobs thought over the number of think times"),
        Head::number("Thinking", "%").tip("Share of the jobs' time"),
        Head::number("New sessions", "1/s"),
        Head::number("Connect mean", "ms"),
        Head::number("Connect p50", "ms"),
        Head::number("Connect p99", "ms"),
        Head::number("Connecting", "%").tip("Share of the jobs' time"),
    ];
    for index in (6..head.len()).rev() {
        if rows.iter().all(|r| r.cells.get(index).is_none_or(|c| c.text == ABSENT || c.text.is_empty())) {
            head.remove(index);
            rows.iter_mut().filter(|r| r.cells.len() > index).for_each(|r| drop(r.cells.remove(index)));
        }
    }
    (!rows.is_empty()).then(|| Table { caption: "Load of the jobs".to_owned(), ..Table::of("figures", head, rows) })
}

fn of_test(r: &TestRecord, load: &JobLoad) -> Vec<Cell> {
    let figure = |column: &Column, show: &dyn Fn(f64) -> String| {
        Cell::from(r.figure(column).map_or_else(|| ABSENT.to_owned(), show))
    };
    let ms = |column| figure(column, &|ns| number(ns / 1e6, 3));
    let said = if load.is_mixed() {
        let parts = counted(load.populations.len(), "population");
        format!("{}: {parts}{}", counted(r.jobs as usize, "job"), load.new_sessions())
    } else {
        format!("{}: {}", counted(r.jobs as usize, "job"), load.words())
    };
    vec![
        Cell::from(format!("{} {}", r.test, r.workload)),
        Cell::from(said),
        figure(column::COMMIT_THROUGHPUT_TPS, &whole),
        ms(column::TRANSACTION_TIME_NS_MEAN),
        ms(column::TRANSACTION_TIME_NS_P50),
        ms(column::TRANSACTION_TIME_NS_P99),
        ms(column::RESPONSE_TIME_NS_P50),
        ms(column::RESPONSE_TIME_NS_P99),
        figure(column::THINK_TIME_MS_MEAN, &|ms| number(ms, 3)),
        figure(column::THINKING_PCT, &|pct| number(pct, 1)),
        figure(column::CONNECTS_PER_S, &whole),
        ms(column::CONNECT_TIME_NS_MEAN),
        ms(column::CONNECT_TIME_NS_P50),
        ms(column::CONNECT_TIME_NS_P99),
        figure(column::CONNECTING_PCT, &|pct| number(pct, 1)),
    ]
}

/// Name, throughput, transaction and response times of a population, or of a kind of transaction.
type Part = (String, f64, Option<[f64; 3]>, Option<[f64; 3]>);

fn of_part((name, tps, transaction_ns, response_ns): Part) -> Vec<Cell> {
    let ms = |times: Option<[f64; 3]>, which: usize| {
        let ns = times.and_then(|t| t.get(which).copied());
        Cell::from(ns.map_or_else(|| ABSENT.to_owned(), |ns| number(ns / 1e6, 3)))
    };
    let mut cells = vec![Cell::from(String::new()), Cell::from(name), Cell::from(whole(tps))];
    cells.extend([0, 1, 2].map(|which| ms(transaction_ns, which)));
    cells.extend([1, 2].map(|which| ms(response_ns, which)));
    cells.extend((0..7).map(|_| Cell::from(String::new())));
    cells
}
