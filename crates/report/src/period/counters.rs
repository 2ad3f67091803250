//! All counters of the database that moved, under its own names, by what they are about; and the load profile: what was done per second and
//! per transaction.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::activity::Unit;
use loadline_model::format::ABSENT;
use loadline_model::snapshot::{LEAST_IO_NS, counter};
use loadline_model::{Column, Snapshot, column};

use super::Period;
use super::words::{each, heads, row, shown};
use crate::doc::{Block, Head, Row, Section, Table};
use crate::words::lower;

/// Subjects of counters, by a part of their names: anchor, heading and parts of each line; the first that fits counts, or else the last.
/// The line of gauges has the parts of names of values that rise and fall: their growth is no rate.
const SUBJECTS: &str = include_str!("counters.txt");

fn is_about(name: &str, parts: &str) -> bool {
    parts.split_whitespace().any(|part| name.contains(part))
}

/// Unit of a counter, by the end of its name: databases count times in milliseconds, V$OSSTAT in hundredths of a second.
fn unit(name: &str) -> Unit {
    match name {
        n if n.starts_with("v$osstat.") => Unit::Count,
        n if n.ends_with("_time") => Unit::Ms,
        n if n.ends_with("_bytes") => Unit::Bytes,
        _ => Unit::Count,
    }
}

/// A section per subject; tables of periods side by side have columns for each.
pub(super) fn sections(periods: &[Period]) -> Vec<Section> {
    let counted = periods.iter().filter_map(|p| p.counters.as_ref());
    let names: BTreeSet<&String> = counted.flat_map(|(open, ..)| open.counters.keys()).collect();
    let own = |name: &&String| !name.starts_with("loadline.") && !name.ends_with(counter::STATS_RESET);
    let lines: Vec<[&'static str; 3]> = SUBJECTS
        .lines()
        .filter_map(|line| {
            let (id, rest) = line.split_once(": ")?;
            let (title, parts) = rest.split_once(": ")?;
            Some([id, title, parts])
        })
        .collect();
    let Some(([_, _, gauges], subjects)) = lines.split_first() else { return Vec::new() };
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); subjects.len()];
    for counter in names.into_iter().filter(own) {
        let lower = counter.to_lowercase();
        let row = match is_about(&lower, gauges) {
            true => gauge(counter, periods),
            false => growth(counter, unit(&lower), periods),
        };
        let about = subjects.iter().position(|[.., parts]| is_about(&lower, parts)).unwrap_or(subjects.len() - 1);
        rows[about].extend(row);
    }
    let columns = [
        Head::number("total", "").tip("Of a value that rises and falls: at the start → at the end, at each node."),
        Head::number("per second", ""),
        Head::number("per transaction", ""),
    ];
    let head = heads("Counter", periods, &columns, "rates per second");
    let table = |rows| Block::table(Table::new("figures narrow", head.clone(), rows));
    let section =
        |([id, title, _], rows): (&[&'static str; 3], _)| Section::new(id, *title, table(rows).into_iter().collect());
    subjects.iter().zip(rows).map(section).collect()
}

/// A counter's growth; `None` if it did not move.
fn growth(counter: &str, unit: Unit, periods: &[Period]) -> Option<Row> {
    let rates: Vec<Option<f64>> = periods.iter().map(|p| p.per_second(counter)).collect();
    rates.iter().flatten().find(|n| **n > 0.0)?;
    let cells = periods
        .iter()
        .zip(&rates)
        .flat_map(|(period, rate)| [period.grown(counter), *rate, each(*rate, period.tps())].map(|n| shown(n, unit)));
    Some(row(counter, cells, &rates))
}

/// A value at the start and at the end; `None` if it is always 0.
fn gauge(name: &str, periods: &[Period]) -> Option<Row> {
    let snapshots = periods.iter().filter_map(|p| p.counters.as_ref()).flat_map(|(open, close, _)| [open, close]);
    snapshots.filter_map(|s| s.counters.get(name)).find(|n| **n != 0.0)?;
    let of = |counters: &BTreeMap<String, f64>| shown(counters.get(name).copied(), Unit::Count);
    // The sum over nodes is no value of any of them.
    let at = |snapshot: &Snapshot| match &snapshot.nodes[..] {
        [] => of(&snapshot.counters),
        nodes => nodes.iter().map(of).collect::<Vec<_>>().join(", "),
    };
    let cells = periods.iter().flat_map(|p| {
        let both = p.counters.as_ref().map(|(open, close, _)| format!("{} → {}", at(open), at(close)));
        [both.unwrap_or(ABSENT.to_owned()), String::new(), String::new()]
    });
    let ratio = (periods.len() == 2).then(String::new);
    Some(Row::new(std::iter::once(name.to_owned()).chain(cells).chain(ratio)))
}

const MIB: f64 = 1024.0 * 1024.0;

/// A line: title, counter, unit of the counter (times in ns), and the column of the same figure of a test, with its factor.
type Line = (&'static str, &'static str, Unit, Option<(&'static Column, f64)>);

/// Counters of the operations that a time is of.
const TIMED: [(&str, &str); 3] = [
    (counter::REDO_WRITE_NS, counter::REDO_WRITES),
    (counter::REDO_SYNC_NS, counter::REDO_SYNCS),
    (counter::READ_NS, counter::READ_CALLS),
];

const LINES: [Line; 20] = [
    ("Redo", counter::REDO_BYTES, Unit::Bytes, Some((column::REDO_MIB_PER_S, MIB))),
    ("Redo writes", counter::REDO_WRITES, Unit::Count, Some((column::REDO_WRITES_PER_S, 1.0))),
    ("Redo syncs", counter::REDO_SYNCS, Unit::Count, Some((column::REDO_SYNC_WRITES_PER_S, 1.0))),
    ("Rows read", counter::ROWS_READ, Unit::Count, None),
    ("Rows changed", counter::ROWS_CHANGED, Unit::Count, None),
    ("Blocks looked up in the cache", counter::BLOCK_GETS, Unit::Count, Some((column::BLOCK_GETS_PER_S, 1.0))),
    ("Blocks read into the cache", counter::BLOCK_READS, Unit::Count, Some((column::BLOCK_READS_PER_S, 1.0))),
    ("Read from data files", counter::READ_BYTES, Unit::Bytes, Some((column::READ_MIB_PER_S, MIB))),
    ("Read calls", counter::READ_CALLS, Unit::Count, None),
    ("Blocks written", counter::BLOCK_WRITES, Unit::Count, Some((column::PHYSICAL_WRITTEN_BLOCKS_PER_S, 1.0))),
    ("Written to data files", counter::WRITE_BYTES, Unit::Bytes, Some((column::PHYSICAL_WRITTEN_MIB_PER_S, MIB))),
    ("Write calls", counter::WRITE_CALLS, Unit::Count, Some((column::PHYSICAL_WRITES_PER_S, 1.0))),
    ("Checkpoints", counter::CHECKPOINTS, Unit::Count, None),
    ("Log switches", counter::LOG_SWITCHES, Unit::Count, None),
    ("Time in waits for the log", counter::LOG_WAIT_NS, Unit::Ms, None),
    ("Time in writes of the log", counter::REDO_WRITE_NS, Unit::Ms, None),
    ("Time in syncs of the log", counter::REDO_SYNC_NS, Unit::Ms, None),
    ("Time in reads of data files", counter::READ_NS, Unit::Ms, None),
    ("Time in waits for buffers", counter::BUFFER_WAIT_NS, Unit::Ms, None),
    ("Time in waits for locks", counter::LOCK_WAIT_NS, Unit::Ms, None),
];

fn per_second(period: &Period, (_, name, unit, column): &Line) -> Option<f64> {
    // A time too short for its operations was not measured, or not of all.
    let of = TIMED.iter().find(|(time, _)| time == name).and_then(|(_, times)| period.per_second(times));
    let timed = |n: &f64| of.is_none_or(|times| *n >= times * LEAST_IO_NS);
    let counted = || period.per_second(name).filter(timed).map(|n| if *unit == Unit::Ms { n / 1e6 } else { n });
    column.and_then(|(column, factor)| period.figure(column).map(|n| n * factor)).or_else(counted)
}

/// The load profile: what was done per second and per transaction.
pub(super) fn profile(periods: &[Period]) -> Vec<Block> {
    let mut rows: Vec<Row> = Vec::new();
    let tps: Vec<Option<f64>> = periods.iter().map(Period::tps).collect();
    rows.extend(line("Transactions", Unit::Count, &tps, &tps));
    let mut without = Vec::new();
    for of @ (title, _, unit, _) in &LINES {
        let rates: Vec<Option<f64>> = periods.iter().map(|p| per_second(p, of)).collect();
        match line(title, *unit, &rates, &tps) {
            Some(row) => rows.push(row),
            None => without.push(lower(title)),
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = ["per second", "per transaction"].map(|title| Head::number(title, ""));
    let head = heads("", periods, &columns, "rates per second");
    let mut blocks = vec![Block::Table(Table::new("figures narrow", head, rows))];
    if !without.is_empty() {
        blocks.push(Block::para(format!("Not counted by this database, or not at this time: {}.", without.join(", "))));
    }
    blocks
}

/// A row of rates; `None` if no period has one.
fn line(title: &str, unit: Unit, rates: &[Option<f64>], tps: &[Option<f64>]) -> Option<Row> {
    rates.iter().flatten().next()?;
    let cells = rates.iter().zip(tps).flat_map(|(rate, tps)| [*rate, each(*rate, *tps)].map(|n| shown(n, unit)));
    Some(row(title, cells, rates))
}
