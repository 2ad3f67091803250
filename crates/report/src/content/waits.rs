//! Latency histograms by power-of-two buckets, for workloads that wait for storage or the log.

use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::column;
use loadline_model::format::number;
use serde_json::{Value, json};

use crate::RunData;
use crate::bars::Bars;
use crate::doc::{Block, Chart, Head, Table};
use crate::platform_run::PlatformRun;
use crate::spec::TableSpec;
use crate::words::{grouped, name, place};

/// Latency kinds of each group, the preferred one first, with headings.
const LATENCY_KINDS: [(&str, &[(&str, &str)]); 2] = [
    ("storage", &[("read", "Read times"), ("transaction", "Transaction times")]),
    ("log-writer", &[("commit", "Commit times"), ("transaction", "Transaction times")]),
];
/// Points per table; each takes three columns.
const POINTS_PER_TABLE: usize = 4;

/// Times of one kind, with their name.
type Times = (String, Vec<Bucket>);

/// Tables and bar charts of `workload` by kind of latency; empty if its group or runs have no histograms. Sweeps without
/// one are listed.
pub(crate) fn of_workload(sides: &[PlatformRun<'_>], group: &str, workload: &str) -> Vec<Block> {
    let Some((_, kinds)) = LATENCY_KINDS.iter().find(|(g, _)| *g == group) else { return Vec::new() };
    // By heading: bars with their colours, and tables.
    let (mut drawn, mut tables, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for (colour, side) in sides.iter().enumerate() {
        for sweep in side.sweeps.iter().filter(|s| s.workload == workload) {
            let of = format!("{} – {}", side.label, name(sweep, &side.sweeps));
            let at = |p: &SweepPoint| {
                let (heading, counts) = times(side.run, group, kinds, p)?;
                Some((heading, p.at, (place(&sweep.over, p.at), counts.buckets())))
            };
            let points: Vec<(&str, u32, Times)> = sweep.points.iter().filter_map(at).collect();
            if points.is_empty() {
                without.push(format!("{of}: {}", why_none(side.run, sweep)));
            }
            let peak = points.iter().find(|(_, at, _)| sweep.peak().is_some_and(|p| p.at == *at));
            drawn.extend(peak.map(|(heading, _, (place, buckets))| {
                (*heading, (format!("{} at {place}", side.label), colour, buckets.clone()))
            }));
            for (heading, points) in grouped(points, |(heading, ..)| *heading) {
                let times: Vec<Times> = points.into_iter().map(|(.., times)| times).collect();
                let caption = format!("{of}: {}", heading.to_lowercase());
                tables.extend(times.chunks(POINTS_PER_TABLE).map(|c| (heading, Block::Table(table(&caption, c)))));
            }
        }
    }
    if tables.is_empty() {
        return Vec::new();
    }
    let mut out: Vec<Block> = Vec::new();
    for (heading, of_heading) in grouped(tables, |(heading, _)| *heading) {
        let title = format!("{workload}: {} at the peak", heading.to_lowercase());
        let bars: Vec<_> = drawn.iter().filter(|(of, _)| *of == heading).map(|(_, bars)| bars.clone()).collect();
        out.extend(Block::beside(chart(&title, &bars), of_heading.into_iter().map(|(_, table)| table)));
    }
    if !without.is_empty() {
        out.push(Block::para(format!("Without a histogram: {}.", without.join("; "))));
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

/// All stored histograms of `side` for the JSON report, in the kinds of its groups: one per point and kind (`commit`, `transaction`, `read`),
/// with the id of the swept column, the point's jobs or swept value, and buckets with bounds of 2^`power` µs.
pub(crate) fn all(side: &PlatformRun<'_>) -> Vec<Value> {
    let points = side.sweeps.iter().flat_map(|s| {
        let kinds = LATENCY_KINDS.iter().find(|(group, _)| *group == s.group).map_or(&[][..], |(_, kinds)| kinds);
        kinds.iter().flat_map(move |(kind, _)| s.points.iter().map(move |p| (s, p, *kind)))
    });
    let one = |(sweep, point, kind): (&Sweep, &SweepPoint, &str)| {
        let (label, workload, over) = (&side.label, &sweep.workload, &sweep.over);
        let buckets = merged(side.run, point, kind)?.buckets();
        Some(
            json!({ "label": label, "workload": workload, "kind": kind, "over": over, "at": point.at, "buckets": buckets }),
        )
    };
    points.filter_map(one).collect()
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
pub(crate) fn histogram(title: &str, drawn: &[Times]) -> Option<Block> {
    let bars: Vec<(String, usize, Vec<Bucket>)> =
        drawn.iter().enumerate().map(|(colour, (name, buckets))| (name.clone(), colour, buckets.clone())).collect();
    Block::beside(chart(title, &bars), [Block::Table(table(title, drawn))])
}

fn table(caption: &str, all: &[Times]) -> Table {
    let powers = || all.iter().flat_map(|(_, buckets)| buckets).map(|b| b.power);
    let (first, last) = (powers().min().unwrap_or(0), powers().max().unwrap_or(0));
    let mut table = TableSpec::<u32>::new("figures waits", first..=last).text("Up to", label).caption(caption);
    for (title, buckets) in all {
        let at = |power: u32| buckets.iter().find(|b| b.power == power);
        // Outside the buckets the cumulative share is 0 or 100 %.
        let beyond = |power: u32| if buckets[0].power > power { "0.00" } else { "100.00" };
        let known = |of: Option<String>, or: &str| of.or_else(|| buckets.first().map(|_| or.to_owned()));
        table = table
            .number(title, "waits", move |power| known(at(power).map(|b| number(b.count as f64, 0)), "0"))
            .number("", "%", move |power| known(at(power).map(|b| percent(b.share_pct)), "0.00"))
            .column(Head::number("", "≤ %").tip("Share of all up to the bound."), move |power| {
                known(at(power).map(|b| percent(b.up_to_pct)), beyond(power))
            });
    }
    table.build()
}

/// Two decimals; a small share is not shown as 0.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "< 0.01".to_owned() } else { number(share, 2) }
}

fn chart(title: &str, drawn: &[(String, usize, Vec<Bucket>)]) -> Option<Chart> {
    let powers = || drawn.iter().flat_map(|(.., b)| b).map(|b| b.power);
    let (first, last) = (powers().min()?, powers().max()?);
    let bar = |name: &str, buckets: &[Bucket], power: u32| {
        let b = buckets.iter().find(|b| b.power == power)?;
        let [share, up_to] = [b.share_pct, b.up_to_pct].map(percent);
        let tip =
            format!("{name}: {} up to {} ({share} %; {up_to} % up to there)", number(b.count as f64, 0), b.label());
        Some((b.share_pct, tip))
    };
    let bars = Bars {
        title: title.to_owned(),
        y_label: "Share [%]".to_owned(),
        places: (first..=last).map(label).collect(),
        parts: drawn.iter().map(|(name, colour, _)| (name.clone(), *colour)).collect(),
        heights: (first..=last)
            .map(|power| drawn.iter().map(|(name, _, buckets)| bar(name, buckets, power)).collect())
            .collect(),
        ..Bars::default()
    };
    bars.drawn()
}
