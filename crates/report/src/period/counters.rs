//! All counters of the database that moved, under its own names, by what they are about.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::Snapshot;
use loadline_model::activity::Unit;
use loadline_model::format::ABSENT;
use loadline_model::snapshot::counter;

use super::Period;
use super::words::{each, heads, row, shown};
use crate::doc::{Block, Head, Row, Section, Table};

/// What a counter is about, by a part of its name: the first that fits.
const ABOUT: [(&str, &str, &[&str]); 7] = [
    (
        "counters-checkpoints",
        "Checkpoints and block writers",
        &[
            "checkpoint", "bgwriter", "buffers_", "flush", "dblwr", "pages_written", "pages_dirty", "pages_flushed",
            "lsn_last",
        ],
    ),
    ("counters-vacuum", "Vacuum and purge", &["vacuum", "purge", "history", "undo"]),
    ("counters-locks", "Locks and conflicts", &["lock_", "locks", "deadlock", "conflict", "latch", "enqueue"]),
    ("counters-log", "Log writer", &["wal", "redo", "log", "lsn", "binlog", "xlog"]),
    ("counters-cache", "Cache", &["blks_", "buffer_pool", "cache", "hit", "evict"]),
    ("counters-io", "I/O", &["data_read", "data_writ", "read", "write", "extend", "fsync", "temp_", "physical"]),
    ("counters-rows", "Transactions, sessions and rows", &[""]),
];

/// Parts of the names of values that rise and fall: their growth is no rate.
const GAUGES: [&str; 23] = [
    "pages_dirty", "pages_free", "pages_data", "pages_misc", "pages_total", "history_l", "undo_slots", "rseg_current",
    "active_transactions", "modified_age", "pending", "checkpoint_age", "bytes_dirty", "bytes_data", "recv_queue",
    "send_queue", "apply_window", "deps_distance", "cluster_size", "conf_id", "local_state", "replication.queue",
    "members_online",
];

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
    let about = |name: &str| ABOUT.iter().position(|(.., parts)| parts.iter().any(|part| name.contains(part)));
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); ABOUT.len()];
    for counter in names.into_iter().filter(own) {
        let lower = counter.to_lowercase();
        let row = match GAUGES.iter().any(|part| lower.contains(part)) {
            true => gauge(counter, periods),
            false => growth(counter, unit(&lower), periods),
        };
        if let Some((at, row)) = about(&lower).zip(row) {
            rows[at].push(row);
        }
    }
    let columns = [
        Head::number("total", "").tip("Of a value that rises and falls: at the start → at the end, at each node."),
        Head::number("per second", ""),
        Head::number("per transaction", ""),
    ];
    let head = heads("Counter", periods, &columns, "rates per second");
    let table = |rows| Block::table(Table::of("figures narrow", head.clone(), rows));
    ABOUT
        .iter()
        .zip(rows)
        .map(|((id, title, _), rows)| Section::of(id, *title, table(rows).into_iter().collect()))
        .collect()
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
    Some(Row::of(std::iter::once(name.to_owned()).chain(cells).chain(ratio)))
}
