//! Histories for people: the changes first, then what may be one, then the rest in sentences.

use loadline_analyze::paired::percent as confidence;
use loadline_analyze::trend::{Change, LEAST_RUNS, Trend};
use loadline_model::Manifest;
use loadline_model::format::counted;

use super::{Series, Trended};
use crate::columns::{scale, value};
use crate::compared::{differences, machine};
use crate::content::ratios::{percent, ratio};
use crate::content::{count, kept_tests, when};
use crate::doc::{Block, Cell, Chart, Document, Head, Notes, Row, Section, Table};
use crate::platform_run::sides;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::text::{table, wrapped};
use crate::words::{cut, heading_of};

/// Length of a time to the minute, and to the second.
const MINUTES: usize = 16;
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

pub(super) fn render(trended: &Trended<'_>, width: usize) -> String {
    let mut out = String::new();
    let mut say = |text: &str| out.push_str(&wrapped(text, "", width));
    if let (Some(first), Some(last)) = (trended.runs.first(), trended.runs.last()) {
        let of = |run: &Manifest| when(&run.started_at);
        let runs = counted(trended.runs.len(), "run");
        say(&format!("{runs}, from {} to {}", of(&first.manifest), of(&last.manifest)));
    }
    if trended.series.iter().any(|s| s.trend.as_ref().is_some_and(|t| !t.changes.is_empty())) {
        table(&mut out, &changes(trended), width);
    }
    out.push('\n');
    for sentence in sentences(trended) {
        out.push_str(&wrapped(&sentence, "", width));
    }
    out.push_str(&between(trended, width));
    out
}

/// The same as a page.
pub(super) fn page(trended: &Trended<'_>, width: usize) -> Document {
    let [series, judged] = trended.counts();
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
    let between = between(trended, width);
    if !between.trim().is_empty() {
        blocks.push(Block::Code { text: between });
    }
    Document {
        title: "Trend".to_owned(),
        subtitle: format!("{}, {}", counted(trended.runs.len(), "run"), count(series, "series", "series")),
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
    let last = points.len() as f64;
    let mut fit = Vec::new();
    let mut from = 1.0;
    let changes = series.trend.iter().flat_map(|t| &t.changes);
    for change in changes.clone() {
        let at = change.at as f64 + 0.5;
        fit.extend([(from, change.before * scale), (at, change.before * scale)]);
        from = at;
    }
    if let Some(newest) = changes.last() {
        fit.extend([(from, newest.after * scale), (last, newest.after * scale)]);
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

/// Each series with its trend, if it is long enough.
fn judged<'a>(trended: &'a Trended<'_>) -> impl Iterator<Item = (&'a Series, &'a Trend)> {
    trended.series.iter().filter_map(|s| Some((s, s.trend.as_ref()?)))
}

fn changes(trended: &Trended<'_>) -> Table {
    let mut notes = Notes::default();
    // Seconds, if runs are of the same minute.
    let minutes = trended.runs.iter().map(|run| start(&run.manifest, MINUTES)).collect::<Vec<String>>();
    let digits = if minutes.windows(2).any(|two| two.first() == two.last()) { SECONDS } else { MINUTES };
    let date = |run: Option<&Manifest>| run.map_or_else(String::new, |m| start(m, digits));
    let mut row = |series: &Series, trend: &Trend, change: &Change| {
        let column = series.history.metric.column;
        let [before, after] = trended.between(series, change).map(date);
        let mut why = Vec::new();
        if change.possible != [change.at; 2] {
            let [first, last] = change.possible;
            let ends = [first.checked_sub(1), Some(last)].map(|at| date(trended.run(series, at)));
            why.push(format!("at 95 % the change is somewhere between {} and {}", ends[0], ends[1]));
        }
        if trend.gradual {
            why.push("a straight line fits as well: it may be a drift, which began at no single run".to_owned());
        }
        let mark = if why.is_empty() { String::new() } else { notes.mark(&why.join("; "), "") };
        let interval =
            change.interval.map_or_else(|| "–".to_owned(), |i| format!("{} – {}", ratio(i.low), ratio(i.high)));
        let cells = vec![
            Cell::from(trended.name(series)),
            Cell::from(column.title),
            Cell::from(value(column, change.before)),
            Cell::from(value(column, change.after)),
            Cell::from(column.unit),
            Cell::from(ratio(change.ratio)),
            Cell::from(interval),
            Cell { text: format!("{before} → {after}"), mark },
            Cell::from(format!("{:.4}", change.p)),
            Cell::from(course(series)),
        ];
        Row { cells, first: true, ..Row::default() }
    };
    let mut rows = Vec::new();
    for (series, trend) in judged(trended) {
        rows.extend(trend.changes.iter().map(|change| row(series, trend, change)));
    }
    let head = vec![
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
    Table { caption: "Changes of level".to_owned(), notes: notes.finish(), ..Table::of("figures", head, rows) }
}

/// The start of a run: the first `digits` characters of `2025-01-02 03:04:05 UTC`.
fn start(m: &Manifest, digits: usize) -> String {
    when(&m.started_at).chars().take(digits).collect()
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
    for (series, perhaps) in judged(trended).filter_map(|(s, t)| Some((s, t.perhaps?))) {
        let since = trended.run(series, Some(perhaps.since)).map_or("", |m| m.run.as_str());
        let more = perhaps.more.map_or_else(
            || "more than a dozen more runs like it would be needed".to_owned(),
            |n| format!("{} like those since would show it", counted(n, "more run")),
        );
        let title = series.history.metric.column.title;
        out.push(format!("? {}: {title} perhaps changed since {since}: {more}.", trended.name(series)));
    }
    let still: Vec<&Trend> = judged(trended).map(|(_, t)| t).filter(|t| t.changes.is_empty()).collect();
    if !still.is_empty() {
        let mut seen: Vec<f64> = still.iter().filter_map(|t| t.detectable).collect();
        seen.sort_by(f64::total_cmp);
        let seen = match seen.as_slice() {
            [] => String::new(),
            [one] => format!(
                " A change of about {} in its middle would have been seen in four of five such series.",
                percent(*one)
            ),
            [least, .., most] => format!(
                " In their middle, changes of about {} to {} would have been seen in four of five such series.",
                percent(*least),
                percent(*most)
            ),
        };
        out.push(format!("{} without a change of level.{seen}", count(still.len(), "series", "series")));
    }
    let short: Vec<usize> =
        trended.series.iter().filter(|s| s.trend.is_none()).map(|s| s.history.points.len()).collect();
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

/// Why points of runs are in no series, each reason once.
fn left_out(trended: &Trended<'_>) -> Vec<String> {
    let mut reasons: Vec<(usize, &str, Vec<String>)> = Vec::new();
    for series in &trended.series {
        for (run, why) in &series.history.left_out {
            let name = trended.name(series);
            match reasons.iter_mut().find(|(n, known, _)| n == run && known == why) {
                Some((.., names)) if names.contains(&name) => {}
                Some((.., names)) => names.push(name),
                None => reasons.push((*run, why, vec![name])),
            }
        }
    }
    let run = |n: &usize| trended.runs.get(*n).map_or("", |run| run.manifest.run.as_str());
    let said = |(n, why, names): &(usize, &str, Vec<String>)| {
        cut(&format!("left out: {} ({}): {why}", run(n), names.join("; ")), REASON)
    };
    let more = reasons.len().saturating_sub(REASONS);
    let rest =
        (more > 0).then(|| format!("left out: {more} more for such reasons; --format csv counts them by series"));
    reasons.iter().take(REASONS).map(said).chain(rest).collect()
}

/// What else changed between the runs of each change.
fn between(trended: &Trended<'_>, width: usize) -> String {
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    for (series, trend) in judged(trended) {
        let run = |at: usize| series.history.points.get(at).map(|(run, _)| *run);
        let ends = trend.changes.iter().filter_map(|c| Some([run(c.at.checked_sub(1)?)?, run(c.at)?]));
        pairs.extend(ends);
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut out = String::new();
    for [a, b] in pairs {
        let (Some(first), Some(second)) = (trended.runs.get(a), trended.runs.get(b)) else { continue };
        let two = [first.clone(), second.clone()];
        let sides = sides(&two);
        out.push('\n');
        let [from, to] = [first, second].map(|run| &run.manifest.run);
        out.push_str(&wrapped(&format!("From {from} (A) to {to} (B)"), "", width));
        if let [a, b] = sides.as_slice() {
            machine::sentences(a, b).iter().for_each(|text| out.push_str(&wrapped(text, "", width)));
        }
        out.push_str(&differences(&sides, width));
    }
    out
}
