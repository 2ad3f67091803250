//! Latency histograms by power-of-two buckets, for workloads that wait for storage or the log.

use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Point, Sweep};
use loadline_model::column;
use loadline_model::format::{ABSENT, number};
use serde::Serialize;

use crate::RunData;
use crate::doc::{Block, Cell, Chart, Head, Row, Table};
use crate::side::Side;
use crate::svg_bars::{Bars, bars};
use crate::words::{name, place};

/// What a group's people wait for, the most telling kind of latency first, each with its heading.
const KINDS: [(&str, &[(&str, &str)]); 2] = [
    ("storage", &[("read", "Read times"), ("transaction", "Transaction times")]),
    ("log-writer", &[("commit", "Commit times"), ("transaction", "Transaction times")]),
];
/// Each test takes three columns; as many tests stand in one table.
const ABREAST: usize = 4;

/// What is said of the tables, once a section.
pub(crate) const LEGEND: &str = "Times by powers of two of a microsecond (1 ms is 1,024 µs, 1 s is 1,024 ms), as wait histograms of databases have \
     them: how many lie above the bound of the row before and up to this row's, their share, and the share of all up to \
     the bound. Repetitions are added up; invalid tests are left out. The bars are the shares at the peak.";

/// One point of a sweep, its repetitions added up.
struct Column {
    title: String,
    buckets: Vec<Bucket>,
}

/// What stands under one heading: each kind of time has its own tables and its own chart.
struct Part {
    heading: &'static str,
    blocks: Vec<Block>,
    drawn: Vec<(String, usize, Vec<Bucket>)>,
}

/// The tables and the bar charts of `workload`, by what the times are of; empty if its group has none, or no
/// side has a histogram. Where some have one, it is said which have none.
pub(crate) fn of_workload(sides: &[Side<'_>], group: &str, workload: &str) -> Vec<Block> {
    let Some((_, kinds)) = KINDS.iter().find(|(g, _)| *g == group) else { return Vec::new() };
    let mut parts: Vec<Part> = Vec::new();
    let mut without = Vec::new();
    for (colour, side) in sides.iter().enumerate() {
        for sweep in side.sweeps.iter().filter(|s| s.workload == workload) {
            let of = format!("{} – {}", side.label, name(sweep, &side.sweeps));
            let mut columns: Vec<(&'static str, Column)> = Vec::new();
            for point in &sweep.points {
                let Some((heading, latencies)) = times(side.run, group, kinds, point) else { continue };
                let buckets = latencies.buckets();
                if sweep.peak().is_some_and(|p| p.at == point.at) {
                    let bars = (format!("{} at {}", side.label, place(&sweep.over, point.at)), colour, buckets.clone());
                    part(&mut parts, heading).drawn.push(bars);
                }
                columns.push((heading, Column { title: place(&sweep.over, point.at), buckets }));
            }
            if columns.is_empty() {
                without.push(format!("{of}: {}", why_none(side.run, sweep)));
            }
            for heading in headings(&columns) {
                let own: Vec<&Column> = columns.iter().filter(|(h, _)| *h == heading).map(|(_, c)| c).collect();
                let caption = format!("{of}: {}", heading.to_lowercase());
                let tables = own.chunks(ABREAST).map(|c| Block::Table(table(&caption, c)));
                part(&mut parts, heading).blocks.extend(tables);
            }
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let mut out: Vec<Block> = Vec::new();
    for Part { heading, blocks, drawn } in parts {
        let title = format!("{workload}: {} at the peak", heading.to_lowercase());
        let chart = chart(&title, &drawn).map(|svg| Block::Charts { charts: vec![Chart { svg }], per_row: 2 });
        out.extend(chart.into_iter().chain(blocks));
    }
    if !without.is_empty() {
        out.push(Block::para(format!("Without a histogram: {}.", without.join("; "))));
    }
    out
}

fn part<'a>(parts: &'a mut Vec<Part>, heading: &'static str) -> &'a mut Part {
    let at = parts.iter().position(|p| p.heading == heading).unwrap_or(parts.len());
    if at == parts.len() {
        parts.push(Part { heading, blocks: Vec::new(), drawn: Vec::new() });
    }
    &mut parts[at]
}

fn headings(columns: &[(&'static str, Column)]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::new();
    for (heading, _) in columns {
        if !out.contains(heading) {
            out.push(heading);
        }
    }
    out
}

/// The most telling times that are stored of `point`, and what they are of.
fn times(run: &RunData, group: &str, kinds: &[(&str, &'static str)], point: &Point) -> Option<(&'static str, Counts)> {
    let (kind, heading, latencies) =
        kinds.iter().find_map(|(kind, heading)| Some((*kind, *heading, merged(run, point, kind)?)))?;
    // Where each transaction was one read of a block, its time is that of the read.
    let of_point = || run.records.iter().filter(|r| point.tests.contains(&r.test));
    let one_read = group == "storage" && of_point().all(|r| r.figure(column::READ_TIME_US_P99).is_some());
    Some((if kind == "transaction" && one_read { "Read times" } else { heading }, latencies))
}

/// Why a sweep has no histogram.
fn why_none(run: &RunData, sweep: &Sweep) -> &'static str {
    let fed = || sweep.points.iter().flat_map(|p| &p.tests);
    if fed().next().is_none() {
        "no test of it is valid"
    } else if fed().any(|t| run.histograms.contains_key(t)) {
        "those that are stored hold no time"
    } else {
        "none is stored with the run"
    }
}

/// A point's histogram as files hold it.
#[derive(Debug, Serialize)]
pub(crate) struct Waits<'a> {
    label: &'a str,
    workload: &'a str,
    /// What the times are of: `commit`, `transaction`, `read`.
    kind: &'a str,
    /// What was swept, and where the point stands.
    over: &'a str,
    at: u32,
    /// Bounds are 2 to the power, µs.
    buckets: Vec<Bucket>,
}

/// All histograms of `side` that groups look at, one a point, of every kind that is stored.
pub(crate) fn all<'a>(side: &'a Side<'a>) -> Vec<Waits<'a>> {
    let mut out = Vec::new();
    for sweep in &side.sweeps {
        let kinds = KINDS.iter().find(|(group, _)| *group == sweep.group).map_or(&[][..], |(_, kinds)| kinds);
        for (kind, point) in kinds.iter().flat_map(|(kind, _)| sweep.points.iter().map(move |p| (*kind, p))) {
            let buckets = merged(side.run, point, kind).map(|counts| counts.buckets());
            let of = |buckets| Waits {
                label: &side.label,
                workload: &sweep.workload,
                kind,
                over: &sweep.over,
                at: point.at,
                buckets,
            };
            out.extend(buckets.map(of));
        }
    }
    out
}

/// The histograms of kind `kind` of a point's valid tests, added up; `None` if none holds a latency.
fn merged(run: &RunData, point: &Point, kind: &str) -> Option<Counts> {
    let mut all = Counts::default();
    for stored in point.tests.iter().filter_map(|t| run.histograms.get(t)) {
        stored.iter().filter(|(k, _)| k == kind).for_each(|(_, l)| all.merge(l));
    }
    (all.count() > 0).then_some(all)
}

fn table(caption: &str, columns: &[&Column]) -> Table {
    let powers = || columns.iter().flat_map(|c| &c.buckets).map(|b| b.power);
    let (first, last) = (powers().min().unwrap_or(0), powers().max().unwrap_or(0));
    let mut head = vec![Head::text("Up to")];
    for c in columns {
        head.push(Head::number(&c.title, "waits"));
        head.push(Head::number("", "%"));
        head.push(Head::number("", "≤ %").tip("Share of all up to the bound."));
    }
    let rows = (first..=last).map(|power| {
        let cells = columns.iter().flat_map(|c| match c.buckets.iter().find(|b| b.power == power) {
            Some(b) => [number(b.count as f64, 0), percent(b.share_pct), percent(b.up_to_pct)],
            // Before the first bucket nothing has come, after the last one all of it has.
            None if c.buckets.first().is_some_and(|b| power < b.power) => ["0", "0.00", "0.00"].map(str::to_owned),
            None if c.buckets.is_empty() => [ABSENT; 3].map(str::to_owned),
            None => ["0", "0.00", "100.00"].map(str::to_owned),
        });
        Row { cells: std::iter::once(label(power)).chain(cells).map(Cell::from).collect(), ..Row::default() }
    });
    Table { caption: caption.to_owned(), class: "figures waits", head, rows: rows.collect(), ..Table::default() }
}

/// Two decimals; what is not 0 does not look like it.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "< 0.01".to_owned() } else { number(share, 2) }
}

fn chart(title: &str, drawn: &[(String, usize, Vec<Bucket>)]) -> Option<String> {
    let powers = || drawn.iter().flat_map(|(.., b)| b).map(|b| b.power);
    let (first, last) = (powers().min()?, powers().max()?);
    let places: Vec<String> = (first..=last).map(label).collect();
    let all: Vec<Bars> = drawn
        .iter()
        .map(|(name, colour, buckets)| Bars {
            name: name.clone(),
            colour: *colour,
            heights: (first..=last)
                .map(|power| {
                    let b = buckets.iter().find(|b| b.power == power)?;
                    let tip = format!(
                        "{name}: {} up to {} ({} %; {} % up to there)",
                        number(b.count as f64, 0),
                        b.label(),
                        percent(b.share_pct),
                        percent(b.up_to_pct)
                    );
                    Some((b.share_pct, tip))
                })
                .collect(),
        })
        .collect();
    bars(title, &places, &all)
}
