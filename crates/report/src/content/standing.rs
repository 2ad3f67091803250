//! Where a run stands among published platforms, for each of its workloads.

use loadline_analyze::Sweep;
use loadline_analyze::compare::unequal_work;
use loadline_analyze::kpi::LATENCY;
use loadline_model::format::{ABSENT, counted, number};

use super::{count, kept, stop};
use crate::columns::value;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::platform_run::{PlatformRun, platform};
use crate::words::{name, place, unit};

/// The section; empty without published platforms. A brief one does not list what audits found.
pub(crate) fn section(sides: &[PlatformRun<'_>], brief: bool) -> Section {
    let mut blocks = Vec::new();
    if sides.iter().any(|side| is_reference(side)) {
        let mut notes = Notes::default();
        let rows = rows(sides, &mut notes);
        if !rows.is_empty() {
            let notes = notes.finish();
            blocks.push(Block::Table(Table { notes, ..Table::of("figures", head(), rows) }));
        }
        blocks.extend(without_company(sides));
        blocks.push(Block::para(
            "The highest throughput of each platform, the best first, and the shortest mean transaction time of its sweep. Published \
             figures are those that were printed: loadline did not make them, has no evidence for them, and the machines, versions \
             and durations differ. A place says what others have reached with the same work; what a factor between two runs is \
             worth, a comparison of measured runs says.",
        ));
        let listed = |block: &Block| !brief || !matches!(block, Block::Details { .. });
        blocks.extend(sides.iter().flat_map(published).filter(listed));
    }
    Section::of("standing", "Where the platform stands", blocks)
}

/// Whether the figures of `side` are published ones.
fn is_reference(side: &PlatformRun<'_>) -> bool {
    side.run.published.as_ref().is_some_and(|p| !p.imported)
}

fn head() -> Vec<Head> {
    vec![
        Head::text("Workload"),
        Head::number("Place", ""),
        Head::text("Platform"),
        Head::number("Peak", "").tip("Highest mean throughput of the sweep"),
        Head::text(""),
        Head::text("at"),
        Head::number("Latency", "ms").tip("Mean transaction time at the peak"),
        Head::number("Shortest", "ms").tip("Shortest mean transaction time of the sweep, whatever the load"),
        Head::number("Against best", "%").tip("Peak as a share of the highest peak"),
    ]
}

/// The sweeps of all platforms that are of a workload, each with its peak; the highest first.
fn ranked<'a>(sides: &'a [PlatformRun<'a>], like: &Sweep) -> Vec<(f64, &'a PlatformRun<'a>, &'a Sweep)> {
    let all = sides.iter().flat_map(|side| side.sweeps.iter().map(move |sweep| (side, sweep)));
    let same = all.filter(|(_, s)| (&s.workload, &s.over, s.rate) == (&like.workload, &like.over, like.rate));
    let mut found: Vec<_> = same
        .filter_map(|(side, s)| Some((s.rate_at(s.peak()?)?.mean, side, s)))
        .filter(|(peak, ..)| *peak > 0.0)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

/// Sweeps of the measured platforms, one for each workload.
fn measured<'a>(sides: &'a [PlatformRun<'a>]) -> Vec<&'a Sweep> {
    let mut out: Vec<&Sweep> = Vec::new();
    for sweep in sides.iter().filter(|s| s.run.published.is_none()).flat_map(|s| &s.sweeps) {
        if !out.iter().any(|known| (&known.workload, &known.over) == (&sweep.workload, &sweep.over)) {
            out.push(sweep);
        }
    }
    out
}

fn rows(sides: &[PlatformRun<'_>], notes: &mut Notes) -> Vec<Row> {
    let mut rows = Vec::new();
    for sweep in measured(sides) {
        let ranked = ranked(sides, sweep);
        if !ranked.iter().any(|(_, side, _)| is_reference(side)) {
            continue;
        }
        // Places are of those that do the measured platform's work.
        let own = ranked.iter().find(|(_, side, _)| side.run.published.is_none());
        let other = |side: &PlatformRun<'_>, s: &Sweep| {
            let (_, me, mine) = own?;
            unequal_work(&platform(me.run, &me.label), mine, &platform(side.run, &side.label), s)
        };
        let best = ranked.iter().find(|(_, side, s)| other(side, s).is_none()).map_or(0.0, |(peak, ..)| *peak);
        let alone = !ranked.iter().any(|(_, side, s)| is_reference(side) && other(side, s).is_none());
        let mut equal = 0;
        for (n, (peak, side, s)) in ranked.iter().enumerate() {
            let (place_text, share) = match other(side, s) {
                Some(why) => {
                    let absent = Cell { text: ABSENT.to_owned(), mark: notes.mark(&why, &sweep.workload) };
                    (absent.clone(), absent)
                }
                None if alone => (Cell::from(ABSENT), Cell::from(ABSENT)),
                None => {
                    equal += 1;
                    (Cell::from(equal.to_string()), Cell::from(number(100.0 * peak / best, 1)))
                }
            };
            let latency = |point: &loadline_analyze::SweepPoint| point.figure(LATENCY).map(|e| e.mean);
            let shortest = s.points.iter().filter_map(latency).reduce(f64::min);
            let ms = |v: Option<f64>| v.map_or(ABSENT.to_owned(), |v| number(v, 3));
            let cells = vec![
                Cell::from(if n == 0 { name(s, &side.sweeps) } else { String::new() }),
                place_text,
                Cell::from(side.label.as_str()),
                Cell { text: value(s.rate, *peak), mark: s.peak().map_or_else(String::new, |p| kept::mark(p, notes)) },
                Cell::from(unit(s.rate)),
                Cell::from(s.peak().map_or_else(String::new, |p| place(&s.over, p.at))),
                Cell::from(ms(s.peak().and_then(latency))),
                Cell::from(ms(shortest)),
                share,
            ];
            rows.push(Row { cells, first: n == 0, ..Row::default() });
        }
    }
    rows
}

/// Workloads of the run of which nothing is published.
fn without_company(sides: &[PlatformRun<'_>]) -> Option<Block> {
    let mut alone: Vec<&str> = Vec::new();
    for sweep in measured(sides) {
        let published = ranked(sides, sweep).iter().any(|(_, side, _)| is_reference(side));
        if !published && !alone.contains(&sweep.workload.as_str()) {
            alone.push(&sweep.workload);
        }
    }
    (!alone.is_empty()).then(|| Block::para(format!("None of these references has a figure of {}.", alone.join(", "))))
}

/// The source of a published platform, and what its audit found.
fn published(side: &PlatformRun<'_>) -> Vec<Block> {
    let Some(published) = side.run.published.as_ref().filter(|p| !p.imported) else { return Vec::new() };
    let tests = counted(side.run.records.len(), "test");
    let source = format!("{}: {tests}, {}.", side.label, stop(&published.source));
    audited(&side.label, source, &published.findings)
}

/// `source` with what an audit of the table of `label` found.
pub(super) fn audited(label: &str, source: String, findings: &[String]) -> Vec<Block> {
    let found = match findings.len() {
        0 => String::new(),
        n => {
            let errors = findings.iter().filter(|f| f.starts_with("error")).count();
            let of_them =
                if errors == 0 { String::new() } else { format!(" ({} among them)", counted(errors, "error")) };
            let kinds = count(n, "kind of finding", "kinds of findings");
            format!(" An audit of its table (`loadline audit`) has {kinds}{of_them}.")
        }
    };
    let list = (!findings.is_empty()).then(|| Block::Details {
        summary: format!("The audit of {label}"),
        blocks: vec![Block::List { items: findings.to_vec() }],
    });
    std::iter::once(Block::para(format!("{source}{found}"))).chain(list).collect()
}
