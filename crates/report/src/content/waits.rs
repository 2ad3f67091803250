//! Latency histograms by power-of-two buckets, for workloads that wait for storage or the log.

use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::column;
use loadline_model::format::{ABSENT, number};
use serde::Serialize;

use crate::RunData;
use crate::doc::{Block, Chart, Head, Row, Table};
use crate::platform_run::PlatformRun;
use crate::svg_bars::{Bars, bars};
use crate::words::{name, place};

/// Latency kinds of each group, the preferred one first, with headings.
const LATENCY_KINDS: [(&str, &[(&str, &str)]); 2] = [
    ("storage", &[("read", "Read times"), ("transaction", "Transaction times")]),
    ("log-writer", &[("commit", "Commit times"), ("transaction", "Transaction times")]),
];
/// Points per table; each takes three columns.
const POINTS_PER_TABLE: usize = 4;

/// Explains the tables, once per section.
pub(crate) const LEGEND: &str = "Times by powers of two of a microsecond (1 ms is 1,024 µs, 1 s is 1,024 ms), as in the wait histograms of databases: \
     the number above the previous row's bound up to this row's, its share, and the share of all up to the bound. \
     Repetitions are added up; invalid tests are left out. The bars are the shares at the peak.";

/// One point of a sweep, its repetitions added up.
struct PointHistogram {
    title: String,
    buckets: Vec<Bucket>,
}

/// Tables and chart of one kind of latency.
struct HistogramSection {
    heading: &'static str,
    blocks: Vec<Block>,
    drawn: Vec<(String, usize, Vec<Bucket>)>,
}

/// Tables and bar charts of `workload` by kind of latency; empty if its group or runs have no histograms. Sweeps without
/// one are listed.
pub(crate) fn of_workload(sides: &[PlatformRun<'_>], group: &str, workload: &str) -> Vec<Block> {
    let Some((_, kinds)) = LATENCY_KINDS.iter().find(|(g, _)| *g == group) else { return Vec::new() };
    let mut parts: Vec<HistogramSection> = Vec::new();
    let mut without = Vec::new();
    for (colour, side) in sides.iter().enumerate() {
        for sweep in side.sweeps.iter().filter(|s| s.workload == workload) {
            let of = format!("{} – {}", side.label, name(sweep, &side.sweeps));
            let mut columns: Vec<(&'static str, PointHistogram)> = Vec::new();
            for point in &sweep.points {
                let Some((heading, latencies)) = times(side.run, group, kinds, point) else { continue };
                let buckets = latencies.buckets();
                if sweep.peak().is_some_and(|p| p.at == point.at) {
                    let bars = (format!("{} at {}", side.label, place(&sweep.over, point.at)), colour, buckets.clone());
                    part(&mut parts, heading).drawn.push(bars);
                }
                columns.push((heading, PointHistogram { title: place(&sweep.over, point.at), buckets }));
            }
            if columns.is_empty() {
                without.push(format!("{of}: {}", why_none(side.run, sweep)));
            }
            for heading in headings(&columns) {
                let own: Vec<&PointHistogram> = columns.iter().filter(|(h, _)| *h == heading).map(|(_, c)| c).collect();
                let caption = format!("{of}: {}", heading.to_lowercase());
                let tables = own.chunks(POINTS_PER_TABLE).map(|c| Block::Table(table(&caption, c)));
                part(&mut parts, heading).blocks.extend(tables);
            }
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let mut out: Vec<Block> = Vec::new();
    for HistogramSection { heading, blocks, drawn } in parts {
        let title = format!("{workload}: {} at the peak", heading.to_lowercase());
        let chart = chart(&title, &drawn).map(|svg| Block::Charts { charts: vec![Chart { svg }], per_row: 2 });
        out.extend(chart.into_iter().chain(blocks));
    }
    if !without.is_empty() {
        out.push(Block::para(format!("Without a histogram: {}.", without.join("; "))));
    }
    out
}

fn part<'a>(parts: &'a mut Vec<HistogramSection>, heading: &'static str) -> &'a mut HistogramSection {
    let at = parts.iter().position(|p| p.heading == heading).unwrap_or(parts.len());
    if at == parts.len() {
        parts.push(HistogramSection { heading, blocks: Vec::new(), drawn: Vec::new() });
    }
    &mut parts[at]
}

fn headings(columns: &[(&'static str, PointHistogram)]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::new();
    for (heading, _) in columns {
        if !out.contains(heading) {
            out.push(heading);
        }
    }
    out
}

/// The preferred latencies that are stored for `point`, with their heading.
fn times(
    run: &RunData,
    group: &str,
    kinds: &[(&str, &'static str)],
    point: &SweepPoint,
) -> Option<(&'static str, Counts)> {
    let (kind, heading, latencies) =
        kinds.iter().find_map(|(kind, heading)| Some((*kind, *heading, merged(run, point, kind)?)))?;
    // If each transaction is one block read, its time is that of the read.
    let of_point = || run.records.iter().filter(|r| point.tests.contains(&r.test));
    let one_read = group == "storage" && of_point().all(|r| r.figure(column::READ_TIME_US_P99).is_some());
    Some((if kind == "transaction" && one_read { "Read times" } else { heading }, latencies))
}

/// Why a sweep has no histogram.
fn why_none(run: &RunData, sweep: &Sweep) -> &'static str {
    let valid = || sweep.points.iter().flat_map(|p| &p.tests);
    if valid().next().is_none() {
        "it has no valid test"
    } else if valid().any(|t| run.histograms.contains_key(t)) {
        "the stored ones are empty"
    } else {
        "the run stores none"
    }
}

/// A point's histogram in the JSON report.
#[derive(Debug, Serialize)]
pub(crate) struct Waits<'a> {
    label: &'a str,
    workload: &'a str,
    /// Kind of latency: `commit`, `transaction`, `read`.
    kind: &'a str,
    /// Id of the swept column, and the point's jobs or swept value.
    over: &'a str,
    at: u32,
    /// Buckets with bounds of 2^`power` µs.
    buckets: Vec<Bucket>,
}

/// All stored histograms of `side` in the kinds of its groups, one per point and kind.
pub(crate) fn all<'a>(side: &'a PlatformRun<'a>) -> Vec<Waits<'a>> {
    let mut out = Vec::new();
    for sweep in &side.sweeps {
        let kinds = LATENCY_KINDS.iter().find(|(group, _)| *group == sweep.group).map_or(&[][..], |(_, kinds)| kinds);
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

/// Sum of the histograms of `kind` of a point's valid tests; `None` if empty.
fn merged(run: &RunData, point: &SweepPoint, kind: &str) -> Option<Counts> {
    let mut all = Counts::default();
    for stored in point.tests.iter().filter_map(|t| run.histograms.get(t)) {
        stored.iter().filter(|(k, _)| k == kind).for_each(|(_, l)| all.merge(l));
    }
    (all.count() > 0).then_some(all)
}

/// A chart and a table of one kind of times, with a name for each histogram.
pub(crate) fn histogram(title: &str, drawn: Vec<(String, Vec<Bucket>)>) -> Vec<Block> {
    let bars: Vec<(String, usize, Vec<Bucket>)> =
        drawn.iter().enumerate().map(|(colour, (name, buckets))| (name.clone(), colour, buckets.clone())).collect();
    let columns: Vec<PointHistogram> =
        drawn.into_iter().map(|(title, buckets)| PointHistogram { title, buckets }).collect();
    let chart = chart(title, &bars).map(|svg| Block::Charts { charts: vec![Chart { svg }], per_row: 2 });
    let table = table(title, &columns.iter().collect::<Vec<_>>());
    chart.into_iter().chain([Block::Table(table)]).collect()
}

fn table(caption: &str, columns: &[&PointHistogram]) -> Table {
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
            // Outside the buckets the cumulative share is 0 or 100 %.
            None if c.buckets.first().is_some_and(|b| power < b.power) => ["0", "0.00", "0.00"].map(str::to_owned),
            None if c.buckets.is_empty() => [ABSENT; 3].map(str::to_owned),
            None => ["0", "0.00", "100.00"].map(str::to_owned),
        });
        Row::of(std::iter::once(label(power)).chain(cells))
    });
    Table { caption: caption.to_owned(), ..Table::of("figures waits", head, rows) }
}

/// Two decimals; a small share is not shown as 0.
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
