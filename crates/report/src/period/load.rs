//! The load profile: what was done per second and per transaction.

use loadline_model::activity::Unit;
use loadline_model::snapshot::{LEAST_IO_NS, counter};
use loadline_model::{Column, column};

use super::Period;
use super::words::{each, heads, row, shown};
use crate::doc::{Block, Head, Row, Table};
use crate::words::lower;

const MIB: f64 = 1024.0 * 1024.0;

/// A line: title, counter, unit of the counter (times in ns), and the column of the same figure of a test, with its factor.
type Line = (&'static str, &'static str, Unit, Option<(&'static Column, f64)>);

/// Counters of the operations that a time is of.
const TIMED: [(&str, &str); 3] = [
    (counter::REDO_WRITE_NS, counter::REDO_WRITES),
    (counter::REDO_SYNC_NS, counter::REDO_SYNCS),
    (counter::READ_NS, counter::READ_CALLS),
];

const LINES: [Line; 19] = [
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

pub(super) fn blocks(periods: &[Period]) -> Vec<Block> {
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
    let mut blocks = vec![Block::Table(Table::of("figures narrow", head, rows))];
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
