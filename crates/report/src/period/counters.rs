//! All counters of the database that moved, under its own names, by what they are about.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::Snapshot;
use loadline_model::activity::Unit;
use loadline_model::format::ABSENT;
use loadline_model::snapshot::counter;

use super::Period;
use super::words::{each, heads, row, shown};
use crate::doc::{Block, Head, Row, Section, Table};

/// Subjects of counters, by a part of their names: anchor, heading and parts of each line; the first that fits counts, or else the last.
/// The line of gauges has the parts of names of values that rise and fall: their growth is no rate.
const SUBJECTS: &str = include_str!("counters.txt");

/// Whether `name` has one of `parts`.
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
    let table = |rows| Block::table(Table::of("figures narrow", head.clone(), rows));
    let section =
        |([id, title, _], rows): (&[&'static str; 3], _)| Section::of(id, *title, table(rows).into_iter().collect());
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
    Some(Row::of(std::iter::once(name.to_owned()).chain(cells).chain(ratio)))
}
