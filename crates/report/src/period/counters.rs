//! All counters of the database that moved, under its own names, by what they are about.

use loadline_model::activity::Unit;

use super::Period;
use super::load;
use super::words::of;
use crate::doc::{Block, Head, Row, Section, Table};

/// What a counter is about, by a part of its name: the first that fits.
const ABOUT: [(&str, &str, &[&str]); 7] = [
    (
        "counters-checkpoints",
        "Checkpoints and block writers",
        &["checkpoint", "bgwriter", "buffers_", "flush", "dblwr", "pages_written", "lsn_last"],
    ),
    ("counters-vacuum", "Vacuum and purge", &["vacuum", "purge", "history", "undo"]),
    ("counters-locks", "Locks and conflicts", &["lock_", "locks", "deadlock", "conflict", "latch", "enqueue"]),
    ("counters-log", "Log writer", &["wal", "redo", "log", "lsn", "binlog", "xlog"]),
    ("counters-cache", "Cache", &["blks_", "buffer_pool", "cache", "hit", "evict"]),
    ("counters-io", "I/O", &["data_read", "data_writ", "read", "write", "extend", "fsync", "temp_", "physical"]),
    ("counters-rows", "Transactions, sessions and rows", &[""]),
];

/// A section per subject; tables of periods side by side have a column each.
pub(super) fn sections(periods: &[Period]) -> Vec<Section> {
    let mut names: Vec<&String> =
        periods.iter().filter_map(|p| p.counters.as_ref()).flat_map(|(open, ..)| open.counters.keys()).collect();
    names.sort();
    names.dedup();
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); ABOUT.len()];
    let tps: Vec<Option<f64>> = periods.iter().map(Period::tps).collect();
    for counter in names.into_iter().filter(|n| !n.starts_with("loadline.")) {
        let lower = counter.to_lowercase();
        let rates: Vec<Option<f64>> = periods.iter().map(|p| p.per_second(counter)).collect();
        let moved = rates.iter().flatten().any(|n| *n > 0.0);
        let at = ABOUT.iter().position(|(.., parts)| parts.iter().any(|part| lower.contains(part)));
        if let (true, Some(rows), Some(row)) =
            (moved, at.and_then(|at| rows.get_mut(at)), load::row(counter, Unit::Count, &rates, &tps))
        {
            rows.push(row);
        }
    }
    let mut head = vec![Head::text("Counter")];
    for period in periods {
        head.push(Head::number(&of(period, periods, "per second"), ""));
        head.push(Head::number(&of(period, periods, "per transaction"), ""));
    }
    head.extend((periods.len() == 2).then(|| Head::number("B / A", "")));
    let of = |((id, title, _), rows): (&(&'static str, &str, &[&str]), Vec<Row>)| {
        let table = Table { class: "figures narrow", head: head.clone(), rows, ..Table::default() };
        let blocks = if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
        Section { id, title: (*title).to_owned(), in_text: false, group: false, blocks }
    };
    ABOUT.iter().zip(rows).map(of).collect()
}
