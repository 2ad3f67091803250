//! Latency histograms by power-of-two buckets, for workloads that wait for storage or the log.

use loadline_analyze::Point;
use loadline_analyze::waits::{Bucket, buckets, label};
use loadline_model::format::{ABSENT, number};
use loadline_model::{Latencies, TestRecord};
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

/// The tables and the bar chart of `workload`; empty if its group has none, or no histogram is stored.
pub(crate) fn of_workload(sides: &[Side<'_>], group: &str, workload: &str) -> Vec<Block> {
    let Some((_, kinds)) = KINDS.iter().find(|(g, _)| *g == group) else { return Vec::new() };
    let sweeps = || {
        sides.iter().enumerate().flat_map(|(i, side)| {
            side.sweeps.iter().filter(|s| s.workload == workload).map(move |sweep| (i, side, sweep))
        })
    };
    let stored =
        |kind: &str| sweeps().any(|(_, side, sweep)| sweep.points.iter().any(|p| merged(side.run, p, kind).is_some()));
    let Some((kind, heading)) = kinds.iter().find(|(kind, _)| stored(kind)) else { return Vec::new() };
    // Where a transaction is one read of a block, its time is that of the read.
    let one_read = |r: &TestRecord| r.workload == workload && r.figure("read_time_us_p99").is_some();
    let reads = group == "storage" && sides.iter().any(|s| s.run.records.iter().any(one_read));
    let heading = if reads { "Read times" } else { heading };
    let mut blocks = Vec::new();
    let mut drawn = Vec::new();
    for (colour, side, sweep) in sweeps() {
        let columns: Vec<Column> = sweep
            .points
            .iter()
            .filter_map(|p| {
                let title = place(&sweep.over, p.at);
                Some(Column { title, buckets: buckets(&merged(side.run, p, kind)?) })
            })
            .collect();
        let caption = format!("{} – {}: {}", side.label, name(sweep, &side.sweeps), heading.to_lowercase());
        blocks.extend(columns.chunks(ABREAST).map(|c| Block::Table(table(&caption, c))));
        let peak = sweep.peak().and_then(|p| Some((p, buckets(&merged(side.run, p, kind)?))));
        drawn.extend(peak.map(|(p, b)| (format!("{} at {}", side.label, place(&sweep.over, p.at)), colour, b)));
    }
    let title = format!("{workload}: {} at the peak", heading.to_lowercase());
    let chart = chart(&title, &drawn).map(|svg| Block::Charts { charts: vec![Chart { title, svg }], per_row: 2 });
    chart.into_iter().chain(blocks).collect()
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
            let buckets = merged(side.run, point, kind).map(|l| buckets(&l));
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
fn merged(run: &RunData, point: &Point, kind: &str) -> Option<Latencies> {
    let mut all = Latencies::new();
    for stored in point.tests.iter().filter_map(|t| run.histograms.get(t)) {
        stored.iter().filter(|(k, _)| k == kind).for_each(|(_, l)| all.merge(l));
    }
    (all.count() > 0).then_some(all)
}

fn table(caption: &str, columns: &[Column]) -> Table {
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
