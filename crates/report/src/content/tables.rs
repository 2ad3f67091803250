//! A section for each component group: charts, test tables by platform and workload, as in published studies, and for workloads that wait for
//! storage or the log histograms of latencies by powers of two.

use loadline_analyze::kpi::LATENCY;
use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::column::{self, *};
use loadline_model::disturbance::judged;
use loadline_model::format::number;
use loadline_model::{Column, Table as Columns, TestRecord};
use minijinja::context;
use serde_json::{Value, json};

use super::qualified::figure;
use super::{charts, qualified};
use crate::RunData;
use crate::bars::Bars;
use crate::doc::{Block, Cell, Chart, Head, Row, Section, Table};
use crate::platform_run::{PlatformRun, group_title, groups, workloads_of};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, grouped, is_numeric, name, place, swept_title, title_of};

/// The group whose tables keep columns without figures: they have the layout of published studies.
const ALL_COLUMNS_GROUP: &str = "log-writer";

/// A section for each component group; test tables have the columns `chosen`, or the group's by default.
pub(crate) fn sections(sides: &[PlatformRun<'_>], chosen: Option<&[&'static Column]>) -> Vec<Section> {
    let mut all: Vec<Section> = groups(sides.iter()).iter().map(|group| section(sides, group, chosen)).collect();
    let pages = sides.iter().any(|side| !side.run.pages.is_empty());
    // Said once: where the first of them are.
    let mut explain = |is_explained: fn(&Block) -> bool, text: Block| {
        if let Some(first) = all.iter_mut().find(|section| section.blocks.iter().any(is_explained)) {
            first.blocks.push(text);
        }
    };
    explain(|block| matches!(block, Block::Charts { .. }), Block::Legend { text: prose("charts", context! { pages }) });
    explain(|block| matches!(block, Block::Beside { .. }), Block::para(prose("waits", ())));
    all
}

fn section(sides: &[PlatformRun<'_>], group: &str, chosen: Option<&[&'static Column]>) -> Section {
    let mut blocks = Vec::new();
    // When printed, a workload starts a new page if its tables do not fit on the current one.
    let mut on_page = 0;
    for workload in workloads_of(sides, group) {
        let mut of_tests = of_workload(sides, &workload, chosen);
        let page = on_page > 0 && on_page + of_tests.len() > 2;
        on_page = if page { of_tests.len() } else { on_page + of_tests.len() };
        blocks.push(Block::Heading { text: workload.clone(), page });
        for side in sides {
            let notes = side.run.notes.get(&workload);
            blocks.extend(notes.map(|markdown| Block::Notes { markdown: markdown.clone() }));
        }
        blocks.extend(charts::of_workload(sides, &workload));
        blocks.append(&mut of_tests);
        blocks.extend(histograms(sides, group, &workload));
    }
    let id = TABLES.iter().find(|t| t.group == group).map_or("other", |t| t.group);
    Section { group: true, ..Section::new(id, group_title(group), blocks) }
}

fn of_workload(sides: &[PlatformRun<'_>], workload: &str, chosen: Option<&[&'static Column]>) -> Vec<Block> {
    let mut tables = Vec::new();
    for side in sides {
        let of_workload: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == workload).collect();
        let columns = chosen.map_or_else(|| default_columns(&of_workload), <[_]>::to_vec);
        tables.extend(Block::table(tests(side, workload, &of_workload, &columns)));
        for sweep in side.sweeps.iter().filter(|s| s.workload == workload) {
            tables.extend(means(side, sweep).map(Block::Table));
        }
    }
    tables
}

/// Default columns of `records`' group, without run and workload, which the caption names, and outside [`ALL_COLUMNS_GROUP`] without those
/// in which no test has a figure: the evidence says why.
fn default_columns(records: &[&TestRecord]) -> Vec<&'static Column> {
    let group = records.first().map_or("", |r| r.group.as_str());
    let mut out: Vec<&'static Column> = Columns::for_group(group)
        .shown()
        .into_iter()
        .filter(|c| ![column::RUN, column::WORKLOAD].contains(c))
        .collect();
    if group != ALL_COLUMNS_GROUP {
        out.retain(|c| records.iter().any(|r| !matches!(c.cell(r), column::Cell::Absent)));
    }
    let mut add = |column: &'static Column, behind: &Column| {
        if !out.contains(&column) {
            let at = out.iter().position(|c| *c == behind).map_or(0, |p| p + 1);
            out.insert(at, column);
        }
    };
    if records.iter().any(|r| r.repetition > 1) {
        add(column::REPETITION, column::TEST);
    }
    if records.iter().any(|r| records.first().is_some_and(|f| f.driver != r.driver)) {
        add(column::DRIVER, column::TEST);
    }
    for over in records.iter().filter_map(|r| column(r.swept()?)) {
        add(over, column::JOBS);
    }
    out
}

fn tests(side: &PlatformRun<'_>, workload: &str, records: &[&TestRecord], columns: &[&'static Column]) -> Table {
    let drivers = distinct(records.iter().map(|r| r.driver));
    let driver = if let [driver] = drivers[..] { format!(", {driver} driver") } else { String::new() };
    let mut table = TableSpec::<&TestRecord>::new("figures", records.iter().copied());
    for column in columns {
        table = table.column(Head::for_column(column), |r| cell(r, column));
    }
    let mut table = table
        .lines(|r| Row { invalid: !r.is_usable(), remark: remark(r), link: link(side, r), ..Row::default() })
        .caption(format!("{} – {workload}", side.label))
        .sub(format!("run {}{driver}", side.run.manifest.run))
        .build();
    // A line separates sweeps.
    for (row, pair) in table.rows.iter_mut().skip(1).zip(records.windows(2)) {
        row.first = pair[0].swept() != pair[1].swept() && row.remark.is_empty();
    }
    table
}

fn link(side: &PlatformRun<'_>, record: &TestRecord) -> String {
    let has_page = side.run.pages.contains(&record.test);
    if has_page { format!("test-{}.html", record.test) } else { String::new() }
}

fn remark(record: &TestRecord) -> String {
    let judged = (!record.valid).then(|| judged(record));
    let noted: Vec<String> = qualified::noted_sentences(std::slice::from_ref(record)).collect();
    let (noticed, forced) = (&record.disturbed_by, record.forced.to_string());
    prose("remark-of-test", context! { test => record.test, judged, noticed, forced, noted })
}

fn cell(record: &TestRecord, column: &Column) -> Cell {
    let absent = matches!(column.cell(record), column::Cell::Absent) && is_numeric(column);
    // Records of older versions (without KPIs) always had a reason.
    let none = if record.kpis.is_empty() { "the record gives no reason" } else { "this workload has no such figure" };
    let reason = || record.why_absent(column).unwrap_or(none);
    Cell::from(column.shown(record)).noted(absent.then(reason), &column.heading())
}

fn means(side: &PlatformRun<'_>, sweep: &Sweep) -> Option<Table> {
    const LOG: [&Column; 6] = [
        COMMIT_THROUGHPUT_TPS, COMMIT_LATENCY_MS, REDO_MIB_PER_S, LOG_FILE_SYNC_MS, COMMIT_TIME_NS_P50,
        COMMIT_TIME_NS_P99,
    ];
    const TIMES: [&Column; 3] = [TRANSACTION_TIME_NS_MEAN, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99];
    if !sweep.points.iter().any(|p| p.tests.len() > 1) {
        return None;
    }
    let log = sweep.kpis.is_empty() || sweep.group == ALL_COLUMNS_GROUP;
    let own = sweep.kpis.iter().filter_map(|id| column(id)).filter(|c| !log && *c != LATENCY);
    let columns: Vec<&'static Column> = distinct(own.chain(if log { LOG.iter() } else { TIMES.iter() }.copied()));
    // Nobody has checked those of other tools.
    let counted = if side.run.published.is_some() { "Tests" } else { "Valid tests" };
    let mut table = TableSpec::<&SweepPoint>::new("figures", sweep.points.iter().filter(|p| !p.tests.is_empty()))
        .text(&swept_title(&sweep.over), |p| place(&sweep.over, p.at))
        .number(counted, "", |p| Cell::from(p.tests.len()).noted(qualified::kept_by(p), ""));
    for column in columns {
        let head = Head { title: title_of(column, log).to_owned(), ..Head::for_column(column) };
        table = table.column(head, |p| figure(&side.run.records, p, column));
    }
    let table = table
        .caption(format!("{} – {}: means over repetitions", side.label, name(sweep, &side.sweeps)))
        .sub(format!("{}, ± 95 % confidence interval", counted.to_lowercase()));
    Some(table.build())
}

/// Latency kinds of each group, the preferred one first, with headings.
const LATENCY_KINDS: [(&str, &[(&str, &str)]); 2] = [
    ("storage", &[("read", "Read times"), ("transaction", "Transaction times")]),
    ("log-writer", &[("commit", "Commit times"), ("transaction", "Transaction times")]),
];
/// Points per table; each takes three columns.
const POINTS_PER_TABLE: usize = 4;

type Times = (String, Vec<Bucket>);

/// Tables and bar charts of `workload` by kind of latency, and the sweeps without a histogram.
fn histograms(sides: &[PlatformRun<'_>], group: &str, workload: &str) -> Vec<Block> {
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
                tables.extend(
                    times.chunks(POINTS_PER_TABLE).map(|c| (heading, Block::Table(histogram_table(&caption, c)))),
                );
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
        out.extend(Block::beside(histogram_chart(&title, &bars), of_heading.into_iter().map(|(_, table)| table)));
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
pub(crate) fn all_histograms(side: &PlatformRun<'_>) -> Vec<Value> {
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

pub(crate) fn histogram(title: &str, drawn: &[Times]) -> Option<Block> {
    let bars: Vec<(String, usize, Vec<Bucket>)> =
        drawn.iter().enumerate().map(|(colour, (name, buckets))| (name.clone(), colour, buckets.clone())).collect();
    Block::beside(histogram_chart(title, &bars), [Block::Table(histogram_table(title, drawn))])
}

fn histogram_table(caption: &str, all: &[Times]) -> Table {
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

fn histogram_chart(title: &str, drawn: &[(String, usize, Vec<Bucket>)]) -> Option<Chart> {
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
