//! The page of histories: the changes first, then the rest in sentences.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analyze::paired::percent as confidence;
use loadline_analyze::trend::{Change, LEAST_RUNS};
use loadline_model::format::counted;

use super::{Series, Trended};
use crate::RunData;
use crate::columns::{scale, value};
use crate::compared::{differences, machine};
use crate::content::ratios::ratio;
use crate::content::{count, kept_tests, when};
use crate::doc::{Block, Chart, Document, Head, Row, Section, Table};
use crate::platform_run::sides;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::text::wrapped;
use crate::words::{cut, heading_of};

/// Characters of a line of what else changed.
const WIDTH: usize = 100;
/// Characters of a time without its zone.
const SECONDS: usize = 19;
/// Most charts of a page.
const MOST_CHARTS: usize = 24;
/// More points are dots that no line joins.
const MANY_POINTS: usize = 60;
/// Most points of a course, the newest.
const COURSE: usize = 24;
/// Most reasons for which runs were left out, and characters of each.
const REASONS: usize = 12;
const REASON: usize = 240;

pub(super) fn page(trended: &Trended<'_>) -> Document {
    let [series, judged] = trended.counts();
    let when = |run: Option<&RunData>| run.map_or_else(String::new, |run| when(&run.manifest.started_at));
    let mut blocks = Vec::new();
    let table = changes(trended);
    let changed = table.rows.len();
    if changed > 0 {
        blocks.push(Block::Table(table));
    }
    blocks.push(Block::List { items: sentences(trended) });
    let charts: Vec<Chart> = trended.series.iter().filter_map(|s| chart(trended, s)).take(MOST_CHARTS).collect();
    if !charts.is_empty() {
        blocks.push(Block::Charts { charts, per_row: 3 });
    }
    blocks.extend(between(trended).map(|text| Block::Code { text }));
    Document {
        title: "Trend".to_owned(),
        subtitle: format!(
            "{} from {} to {}, {}",
            counted(trended.runs.len(), "run"),
            when(trended.runs.first()),
            when(trended.runs.last()),
            count(series, "series", "series")
        ),
        verdict: format!("{judged} series are long enough to be judged; {}.", counted(changed, "change")),
        all_well: changed == 0 && series > 0 && judged == series,
        sections: vec![Section::of("trend", "Levels over time", blocks)],
        ..Document::default()
    }
}

/// The figure of a series over its runs, with the levels that were found.
fn chart(trended: &Trended<'_>, series: &Series) -> Option<Chart> {
    let history = &series.history;
    let column = history.metric.column;
    if history.points.len() < 2 {
        return None;
    }
    // The axis has the unit shown, which may differ from the stored one.
    let scale = scale(column);
    let point = |(at, (run, figure)): (usize, &(usize, f64))| {
        let run = trended.runs.get(*run).map_or("", |run| run.manifest.run.as_str());
        let tip = format!("{run}: {} {}", value(column, *figure), column.unit);
        ChartPoint { x: at as f64 + 1.0, y: figure * scale, bar: None, tip }
    };
    let points: Vec<ChartPoint> = history.points.iter().enumerate().map(point).collect();
    let mut fit = Vec::new();
    let mut from = 1.0;
    for change in series.changes() {
        let at = change.at as f64 + 0.5;
        fit.extend([(from, change.before * scale), (at, change.before * scale)]);
        from = at;
    }
    if let Some(newest) = series.changes().last() {
        fit.extend([(from, newest.after * scale), (points.len() as f64, newest.after * scale)]);
    }
    let line = ChartLine { points, fit, ..ChartLine::default() };
    let chart = svg::Chart {
        title: format!("{}: {}", trended.name(series), column.title),
        x_label: "runs, the oldest first".to_owned(),
        y_label: heading_of(column, false),
        lines: vec![line],
        markers: true,
        dots: history.points.len() > MANY_POINTS,
        whole_x: true,
        unnamed: true,
        width: 400.0,
        height: 230.0,
        ..svg::Chart::default()
    };
    chart.svg().map(|svg| Chart { svg })
}

fn changes(trended: &Trended<'_>) -> Table {
    let row = |series: &Series, change: &Change| {
        let column = series.history.metric.column;
        let date = |at: Option<usize>| {
            trended.run(series, at).map_or_else(String::new, |m| when(&m.started_at).chars().take(SECONDS).collect())
        };
        let interval = change.interval.map(|i| format!("{} – {}", ratio(i.low), ratio(i.high)));
        let cells = [
            trended.name(series),
            column.title.to_owned(),
            value(column, change.before),
            value(column, change.after),
            column.unit.to_owned(),
            ratio(change.ratio),
            interval.unwrap_or_else(|| "–".to_owned()),
            format!("{} → {}", date(change.at.checked_sub(1)), date(Some(change.at))),
            format!("{:.4}", change.p),
            course(series),
        ];
        Row::of(cells)
    };
    let rows = trended.series.iter().flat_map(|s| s.changes().iter().map(move |change| row(s, change)));
    let head = [
        Head::text("Workload"),
        Head::text("Figure"),
        Head::number("From", ""),
        Head::number("To", ""),
        Head::text("Unit"),
        Head::number("Ratio", ""),
        Head::number("Interval", ""),
        Head::text("Between the runs of (UTC)"),
        Head::number("p", ""),
        Head::text("Course"),
    ];
    Table { caption: "Changes of level".to_owned(), ..Table::of("figures", head, rows) }
}

/// The newest points of a series as bars, from its least to its largest figure.
fn course(series: &Series) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let points = &series.history.points;
    let shown = points.get(points.len().saturating_sub(COURSE)..).unwrap_or_default();
    let least = shown.iter().map(|(_, f)| *f).fold(f64::INFINITY, f64::min);
    let most = shown.iter().map(|(_, f)| *f).fold(0.0, f64::max);
    // The casts saturate.
    let bar = |f: f64| BARS.get(((f - least) / (most - least) * 7.0).round() as usize).copied().unwrap_or(BARS[7]);
    shown.iter().map(|(_, f)| bar(*f)).collect()
}

fn sentences(trended: &Trended<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let still = trended.series.iter().filter(|s| s.changes.as_ref().is_some_and(Vec::is_empty)).count();
    if still > 0 {
        out.push(format!("{} without a change of level.", count(still, "series", "series")));
    }
    let short: Vec<usize> =
        trended.series.iter().filter(|s| s.changes.is_none()).map(|s| s.history.points.len()).collect();
    if let (Some(least), Some(most)) = (short.iter().min(), short.iter().max()) {
        let have = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let series = count(short.len(), "series is", "series are");
        out.push(format!("{series} too short: {LEAST_RUNS} runs are needed, there are {have}."));
    }
    let judged = &trended.judged;
    if judged.judged > 1 {
        out.push(format!(
            "{} series judged together: at most 5 % of those said to have changed are expected not to have (Benjamini and \
             Hochberg); intervals of {} % to match.",
            judged.judged,
            confidence(1.0 - judged.level)
        ));
    }
    if let Some((tests, by)) = kept_tests(trended.runs.iter().flat_map(|run| &run.records)) {
        out.push(format!(
            "{} of these runs {} valid only by {by}.",
            counted(tests, "test"),
            if tests == 1 { "is" } else { "are" }
        ));
    }
    out.extend(left_out(trended));
    out
}

/// Why runs are in no point of a series, each reason once.
fn left_out(trended: &Trended<'_>) -> Vec<String> {
    let mut all: BTreeMap<(usize, &String), BTreeSet<String>> = BTreeMap::new();
    for series in &trended.series {
        for (run, why) in &series.history.left_out {
            all.entry((*run, why)).or_default().insert(trended.name(series));
        }
    }
    let run = |n: usize| trended.runs.get(n).map_or("", |run| run.manifest.run.as_str());
    let said = |((n, why), of): (&(usize, &String), &BTreeSet<String>)| {
        let of = of.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
        cut(&format!("left out: {} ({of}): {why}", run(*n)), REASON)
    };
    let more = all.len().saturating_sub(REASONS);
    let rest = (more > 0).then(|| format!("left out: {more} more; --format csv counts them by series"));
    all.iter().take(REASONS).map(said).chain(rest).collect()
}

/// What else changed between the runs of each change.
fn between(trended: &Trended<'_>) -> impl Iterator<Item = String> {
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    for series in &trended.series {
        let run = |at: usize| series.history.points.get(at).map(|(run, _)| *run);
        pairs.extend(series.changes().iter().filter_map(|c| Some([run(c.at.checked_sub(1)?)?, run(c.at)?])));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter().filter_map(|[a, b]| {
        let two = [trended.runs.get(a)?.clone(), trended.runs.get(b)?.clone()];
        let sides = sides(&two);
        let [from, to] = &two;
        let mut out = format!("From {} (A) to {} (B)\n", from.manifest.run, to.manifest.run);
        if let [a, b] = sides.as_slice() {
            machine::sentences(a, b).iter().for_each(|text| out.push_str(&wrapped(text, "", WIDTH)));
        }
        Some(out + &differences(&sides, WIDTH))
    })
}
