//! All counters of the database that moved, under its own names, by what they are about; and the load profile: what was done per second and
//! per transaction.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::activity::Unit;
use loadline_model::column::column;
use loadline_model::format::ABSENT;
use loadline_model::snapshot::{LEAST_IO_NS, counter};
use loadline_model::{Column, Snapshot};

use super::{Period, each, ratio, shown, side_by_side};
use crate::doc::{Block, Head, Section, Table};
use crate::spec::TableSpec;
use crate::templates::parts;
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
    let parts = |line: &'static str| line.splitn(3, ": ").collect::<Vec<_>>().try_into().ok();
    let lines: Vec<[&'static str; 3]> = SUBJECTS.lines().filter_map(parts).collect();
    let Some(([_, _, gauges], subjects)) = lines.split_first() else { return Vec::new() };
    let mut moved: Vec<Vec<Moved<'_>>> = vec![Vec::new(); subjects.len()];
    for counter in names.into_iter().filter(own) {
        let lower = counter.to_lowercase();
        let unit = (!is_about(&lower, gauges)).then(|| unit(&lower));
        let has_moved = |p: &Period| match (unit, &p.counters) {
            (Some(_), _) => p.per_second(counter).is_some_and(|n| n > 0.0),
            (None, Some((open, close, _))) => {
                [open, close].iter().any(|s| s.counters.get(counter).is_some_and(|n| *n != 0.0))
            }
            (None, None) => false,
        };
        if periods.iter().any(has_moved) {
            let about = subjects.iter().position(|[.., parts]| is_about(&lower, parts)).unwrap_or(subjects.len() - 1);
            moved[about].push((counter, unit));
        }
    }
    let section = |([id, title, _], rows): (&[&'static str; 3], Vec<Moved<'_>>)| {
        Section::new(id, *title, Block::table(table(periods, rows)).into_iter().collect())
    };
    subjects.iter().zip(moved).map(section).collect()
}

/// A counter and its unit; `None` of a value that rises and falls.
type Moved<'a> = (&'a String, Option<Unit>);

fn table(periods: &[Period], rows: Vec<Moved<'_>>) -> Table {
    let heads = [
        Head::number("total", "").tip("Of a value that rises and falls: at the start → at the end, at each node."),
        Head::number("per second", ""),
        Head::number("per transaction", ""),
    ];
    let cells = |(name, unit): Moved<'_>, at: usize| {
        let period = &periods[at];
        let Some(unit) = unit else { return [gauge(name, period), String::new(), String::new()] };
        let rate = period.per_second(name);
        [period.grown(name), rate, each(rate, period.tps())].map(|n| shown(n, unit))
    };
    let compared = |(name, unit): Moved<'_>| {
        unit.map_or_else(String::new, |_| ratio(periods[0].per_second(name), periods[1].per_second(name)))
    };
    let table = TableSpec::<Moved<'_>>::new("figures narrow", rows).text("Counter", |(name, _)| name);
    side_by_side(table, periods, (heads, cells), ("rates per second", compared))
}

/// A value at the start and at the end.
fn gauge(name: &str, period: &Period) -> String {
    let of = |counters: &BTreeMap<String, f64>| shown(counters.get(name).copied(), Unit::Count);
    // The sum over nodes is no value of any of them.
    let at = |snapshot: &Snapshot| match &snapshot.nodes[..] {
        [] => of(&snapshot.counters),
        nodes => nodes.iter().map(of).collect::<Vec<_>>().join(", "),
    };
    period.counters.as_ref().map_or(ABSENT.to_owned(), |(open, close, _)| format!("{} → {}", at(open), at(close)))
}

/// A line: title, counter, id of the column of the same figure of a test, and of a time the counter of its operations.
type Line = [String; 4];

/// Unit of one of loadline's counters, which hold times in ns.
fn unit_of(name: &str) -> Unit {
    match name.rsplit('_').next() {
        Some("bytes") => Unit::Bytes,
        Some("ns") => Unit::Ms,
        _ => Unit::Count,
    }
}

fn per_second(period: &Period, [_, name, id, operations]: &Line) -> Option<f64> {
    debug_assert!(id.is_empty() || column(id).is_some(), "there is no column '{id}'");
    let per = |column: &Column| if column.unit == "MiB/s" { 1_048_576.0 } else { 1.0 };
    let of_test = column(id).and_then(|column| period.figure(column).map(|n| n * per(column)));
    // A time too short for its operations was not measured, or not of all.
    let of = period.per_second(operations);
    let timed = |n: &f64| of.is_none_or(|times| *n >= times * LEAST_IO_NS);
    let counted = || period.per_second(name).filter(timed);
    of_test.or_else(|| counted().map(|n| if unit_of(name) == Unit::Ms { n / 1e6 } else { n }))
}

/// A title, the unit, and the rate of each period.
type Rates = (String, Unit, Vec<Option<f64>>);

pub(super) fn profile(periods: &[Period]) -> Vec<Block> {
    let tps: Vec<Option<f64>> = periods.iter().map(Period::tps).collect();
    let is_known = |(.., rates): &Rates| rates.iter().any(Option::is_some);
    let of_line = |of: Line| -> Rates {
        let rates = periods.iter().map(|p| per_second(p, &of)).collect();
        let [title, name, ..] = of;
        (title, unit_of(&name), rates)
    };
    let lines = parts("lines of the load profile", ()).into_iter();
    let (mut rows, without): (Vec<Rates>, Vec<Rates>) = lines.map(of_line).partition(is_known);
    let transactions = ("Transactions".to_owned(), Unit::Count, tps.clone());
    if is_known(&transactions) {
        rows.insert(0, transactions);
    }
    let heads = ["per second", "per transaction"].map(|title| Head::number(title, ""));
    let cells = |(_, unit, rates): &Rates, at: usize| [rates[at], each(rates[at], tps[at])].map(|n| shown(n, *unit));
    let table = TableSpec::<&Rates>::new("figures narrow", &rows).text("", |(title, ..)| title);
    let compared = |(.., rates): &Rates| ratio(rates[0], rates[1]);
    let table = side_by_side(table, periods, (heads, cells), ("rates per second", compared));
    let mut blocks: Vec<Block> = Block::table(table).into_iter().collect();
    let without: Vec<String> = without.iter().map(|(title, ..)| lower(title)).collect();
    if !blocks.is_empty() && !without.is_empty() {
        blocks.push(Block::para(format!("Not counted by this database, or not at this time: {}.", without.join(", "))));
    }
    blocks
}
