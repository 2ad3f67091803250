//! Histories of stored runs: where a figure changed its level, and between which two runs.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analyze::Platform;
use loadline_analyze::compare::history::{History, histories};
use loadline_analyze::kpi::uses_data;
use loadline_analyze::paired::verdict::verdict_of;
use loadline_analyze::paired::{Verdict, percent as confidence};
use loadline_analyze::stats::Interval;
use loadline_analyze::trend::{Change, Judged, LEAST_RUNS, judge};
use loadline_model::Manifest;
use loadline_model::format::{bytes, counted};

use crate::columns::{scale, value};
use crate::compared::beyond;
use crate::content::ratios::ratio;
use crate::content::{count, kept_tests, when};
use crate::csv::{self, Named, number};
use crate::doc::{Block, Chart, Document, Head, Row, Section, Table};
use crate::platform_run::platform;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::words::{cut, heading_of};
use crate::{ReportError, RunData, columns, html, text};

/// Expected share of false ones among the series that are said to have changed.
const ERROR: f64 = 0.05;
/// Characters of a time without its zone.
const SECONDS: usize = 19;
/// Most charts of a page.
const MOST_CHARTS: usize = 24;
/// Most reasons for which runs were left out, and characters of each.
const REASONS: usize = 12;
const REASON: usize = 240;

/// What histories show.
#[derive(Debug)]
pub struct Trended<'a> {
    runs: &'a [RunData],
    series: Vec<Series>,
    judged: Judged,
}

/// A history and what it shows.
#[derive(Debug)]
struct Series {
    history: History,
    /// In order; `None` if it is too short.
    changes: Option<Vec<Change>>,
}

impl Series {
    fn changes(&self) -> &[Change] {
        self.changes.as_deref().unwrap_or_default()
    }

    fn verdict(&self) -> &'static str {
        match self.changes().last().map(|c| (c.ratio > 1.0) == self.history.metric.higher_is_better) {
            None if self.changes.is_none() => "too_short",
            None => "no_change",
            Some(true) => "faster",
            Some(false) => "slower",
        }
    }

    /// `rows=25 threads=2`.
    fn parameters(&self) -> String {
        self.history.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }
}

impl<'a> Trended<'a> {
    /// Of `runs` in the order of time, none of two arms. `figures`: ids of the columns to follow; `None` for the main figure and
    /// the mean time of each workload.
    ///
    /// # Errors
    /// An id that is no column.
    pub fn of(runs: &'a [RunData], figures: Option<&[String]>) -> Result<Trended<'a>, ReportError> {
        let figures = columns::chosen(figures)?;
        let named = |run: &'a RunData| (name(&run.manifest), platform(run, &run.manifest.run));
        let platforms: Vec<(String, Platform<'_>)> = runs.iter().map(named).collect();
        let histories = histories(&platforms, figures.as_deref());
        let figures = |h: &History| h.points.iter().map(|(_, figure)| *figure).collect();
        let mut judged = judge(&histories.iter().map(figures).collect::<Vec<Vec<f64>>>(), ERROR);
        let both = histories.into_iter().zip(std::mem::take(&mut judged.changes));
        Ok(Trended { runs, series: both.map(|(history, changes)| Series { history, changes }).collect(), judged })
    }

    /// Number of series, and of those that are long enough.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [self.series.len(), self.judged.judged]
    }

    /// Number of series of which the newest run of their platform has no figure.
    #[must_use]
    pub fn not_in_newest(&self) -> usize {
        let newest = |s: &Series| self.runs.iter().rposition(|run| name(&run.manifest) == s.history.platform);
        self.series.iter().filter(|s| s.history.points.last().map(|(run, _)| *run) != newest(s)).count()
    }

    /// Main figures whose newest level is shown to be slower by more than `share` (0.03: 3 %) than the one before, in words.
    #[must_use]
    pub fn slower_by(&self, share: f64) -> Vec<String> {
        let mut found = Vec::new();
        for s in self.series.iter().filter(|s| s.history.main) {
            let Some(change) = s.changes().last() else { continue };
            let metric = s.history.metric;
            let slower = verdict_of(change.interval, metric.higher_is_better, 0.0) == Verdict::Slower;
            if slower && change.interval.is_some_and(|i| beyond(i, share)) {
                let (title, ratio) = (metric.column.title, ratio(change.ratio));
                let [before, after] = [change.at.checked_sub(1), Some(change.at)].map(|at| self.id(s, at));
                found.push(format!("{}: {title} is {ratio} of what it was, from {before} to {after}", self.name(s)));
            }
        }
        found
    }

    /// As a page.
    #[must_use]
    pub fn html(&self) -> String {
        html::render(&self.page())
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(&self.page())
    }

    /// A row per series; the columns from `last_run_before` to `p` are of its newest change.
    #[must_use]
    pub fn csv(&self) -> String {
        fn newest(s: &Series) -> Option<&Change> {
            s.changes().last()
        }
        let figure = |s: &Series, figure: fn(&Change) -> f64| number(newest(s).map(figure));
        let end = |s: &Series, end: fn(Interval) -> f64| number(newest(s).and_then(|c| c.interval).map(end));
        let run = |s: &Series, at: fn(&Change) -> Option<usize>| self.id(s, newest(s).and_then(at)).to_owned();
        let columns: [Named<'_, &Series>; 21] = [
            ("platform", &|s| s.history.platform.clone()),
            ("workload", &|s| s.history.workload.clone()),
            ("parameters", &|s| s.parameters()),
            ("driver", &|s| s.history.driver.to_string()),
            ("swept", &|s| s.history.swept.as_ref().map_or_else(String::new, |(id, value)| format!("{id}={value}"))),
            ("jobs", &|s| s.history.jobs.to_string()),
            ("figure", &|s| s.history.metric.column.id.to_owned()),
            ("runs", &|s| s.history.points.len().to_string()),
            ("left_out", &|s| s.history.left_out.len().to_string()),
            ("verdict", &|s| s.verdict().to_owned()),
            ("change_points", &|s| s.changes().iter().map(|c| self.id(s, Some(c.at))).collect::<Vec<_>>().join(";")),
            ("last_run_before", &|s| run(s, |c| c.at.checked_sub(1))),
            ("first_run_after", &|s| run(s, |c| Some(c.at))),
            ("before", &|s| figure(s, |c| c.before)),
            ("after", &|s| figure(s, |c| c.after)),
            ("ratio", &|s| figure(s, |c| c.ratio)),
            ("low", &|s| end(s, |i| i.low)),
            ("high", &|s| end(s, |i| i.high)),
            ("p", &|s| figure(s, |c| c.p)),
            ("newest", &|s| number(s.history.points.last().map(|(_, figure)| *figure))),
            ("setup", &|s| self.setup(s).join("; ")),
        ];
        csv::table(&columns, &self.series)
    }

    /// The run of the point `at` of `series`.
    fn run(&self, series: &Series, at: Option<usize>) -> Option<&Manifest> {
        let (run, _) = series.history.points.get(at?)?;
        self.runs.get(*run).map(|run| &run.manifest)
    }

    /// The id of that run; empty without one.
    fn id(&self, series: &Series, at: Option<usize>) -> &str {
        self.run(series, at).map_or("", |m| &m.run)
    }

    /// What besides workload, parameters and driver makes the work of `series`, as planned.
    fn setup(&self, series: &Series) -> Vec<String> {
        let Some(plan) = self.run(series, Some(0)).map(|m| &m.plan) else { return Vec::new() };
        let data = uses_data(&series.history.workload).then(|| format!("{} of data", bytes(plan.size_bytes as f64)));
        let payload = format!("{:.0} % compressible", plan.payload_compressibility * 100.0);
        let nodes = (series.history.nodes > 1).then(|| format!("{} nodes", series.history.nodes));
        [plan.load.words()].into_iter().chain(data).chain([payload]).chain(nodes).collect()
    }

    /// The workload of `series`, with what distinguishes it from other series of that.
    fn name(&self, series: &Series) -> String {
        let parts = |s: &Series| {
            let own = [s.parameters(), format!("{} driver", s.history.driver), s.history.platform.clone()];
            own.into_iter().chain(self.setup(s)).collect::<Vec<String>>()
        };
        let of_workload = self.series.iter().filter(|s| s.history.workload == series.history.workload);
        let others: Vec<Vec<String>> = of_workload.map(parts).collect();
        let differs = |part: &String| !part.is_empty() && others.iter().any(|other| !other.contains(part));
        let swept = series.history.swept.iter().map(|(id, value)| format!("{value} {}", crate::words::swept(id)));
        let jobs = counted(series.history.jobs as usize, "job");
        let parts = parts(series).into_iter().filter(differs).chain(swept).chain([jobs]);
        parts.fold(series.history.workload.clone(), |name, part| format!("{name}, {part}"))
    }

    fn page(&self) -> Document {
        let [series, judged] = self.counts();
        let when = |run: Option<&RunData>| run.map_or_else(String::new, |run| when(&run.manifest.started_at));
        let table = self.table();
        let changed = table.rows.len();
        let mut blocks = Vec::new();
        if changed > 0 {
            blocks.push(Block::Table(table));
        }
        blocks.push(Block::List { items: self.sentences() });
        let charts: Vec<Chart> = self.series.iter().filter_map(|s| self.chart(s)).take(MOST_CHARTS).collect();
        if !charts.is_empty() {
            blocks.push(Block::Charts { charts, per_row: 3 });
        }
        Document {
            title: "Trend".to_owned(),
            subtitle: format!(
                "{} from {} to {}, {}",
                counted(self.runs.len(), "run"),
                when(self.runs.first()),
                when(self.runs.last()),
                count(series, "series", "series")
            ),
            verdict: format!("{judged} series are long enough to be judged; {}.", counted(changed, "change")),
            all_well: changed == 0 && series > 0 && judged == series,
            sections: vec![Section::of("trend", "Levels over time", blocks)],
            ..Document::default()
        }
    }

    /// The figure of a series over its runs, with the levels that were found.
    fn chart(&self, series: &Series) -> Option<Chart> {
        let History { points, metric, .. } = &series.history;
        // The axis has the unit shown, which may differ from the stored one.
        let scale = scale(metric.column);
        let point = |(at, (_, figure)): (usize, &(usize, f64))| {
            let tip =
                format!("{}: {} {}", self.id(series, Some(at)), value(metric.column, *figure), metric.column.unit);
            ChartPoint { x: at as f64 + 1.0, y: figure * scale, bar: None, tip }
        };
        let steps = series.changes().iter().flat_map(|c| [c.before, c.after].map(|y| (c.at as f64 + 0.5, y * scale)));
        let mut fit: Vec<(f64, f64)> = steps.collect();
        if let [(_, first), .., (_, last)] = fit[..] {
            fit.insert(0, (1.0, first));
            fit.push((points.len() as f64, last));
        }
        let line = ChartLine { points: points.iter().enumerate().map(point).collect(), fit, ..ChartLine::default() };
        let chart = svg::Chart {
            title: format!("{}: {}", self.name(series), metric.column.title),
            x_label: "runs, the oldest first".to_owned(),
            y_label: heading_of(metric.column, false),
            lines: vec![line],
            markers: true,
            whole_x: true,
            unnamed: true,
            width: 400.0,
            height: 230.0,
            ..svg::Chart::default()
        };
        if points.len() > 1 { Some(Chart { svg: chart.svg()? }) } else { None }
    }

    fn table(&self) -> Table {
        let row = |series: &Series, change: &Change| {
            let column = series.history.metric.column;
            let date = |at: Option<usize>| {
                self.run(series, at).map_or_else(String::new, |m| when(&m.started_at).chars().take(SECONDS).collect())
            };
            let interval = change.interval.map(|i| format!("{} – {}", ratio(i.low), ratio(i.high)));
            Row::of([
                self.name(series),
                column.title.to_owned(),
                value(column, change.before),
                value(column, change.after),
                column.unit.to_owned(),
                ratio(change.ratio),
                interval.unwrap_or_else(|| "–".to_owned()),
                format!("{} → {}", date(change.at.checked_sub(1)), date(Some(change.at))),
                format!("{:.4}", change.p),
            ])
        };
        let rows = self.series.iter().flat_map(|s| s.changes().iter().map(move |change| row(s, change)));
        let [workload, figure, unit, between] =
            ["Workload", "Figure", "Unit", "Between the runs of (UTC)"].map(Head::text);
        let [from, to, ratio, interval, p] = ["From", "To", "Ratio", "Interval", "p"].map(|of| Head::number(of, ""));
        let head = [workload, figure, from, to, unit, ratio, interval, between, p];
        Table { caption: "Changes of level".to_owned(), ..Table::of("figures", head, rows) }
    }

    fn sentences(&self) -> Vec<String> {
        let mut out = Vec::new();
        let still = self.series.iter().filter(|s| s.verdict() == "no_change").count();
        if still > 0 {
            out.push(format!("{} without a change of level.", count(still, "series", "series")));
        }
        let short: Vec<usize> =
            self.series.iter().filter(|s| s.changes.is_none()).map(|s| s.history.points.len()).collect();
        if let (Some(least), Some(most)) = (short.iter().min(), short.iter().max()) {
            let have = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let series = count(short.len(), "series is", "series are");
            out.push(format!("{series} too short: {LEAST_RUNS} runs are needed, there are {have}."));
        }
        let Judged { judged, level, .. } = self.judged;
        if judged > 1 {
            out.push(format!(
                "{judged} series judged together: at most 5 % of those said to have changed are expected not to have (Benjamini and \
                 Hochberg); intervals of {} % to match.",
                confidence(1.0 - level)
            ));
        }
        if let Some((tests, by)) = kept_tests(self.runs.iter().flat_map(|run| &run.records)) {
            let are = if tests == 1 { "is" } else { "are" };
            out.push(format!("{} of these runs {are} valid only by {by}.", counted(tests, "test")));
        }
        // Why runs are in no point of a series, each reason once.
        let mut reasons: BTreeMap<(usize, &String), BTreeSet<String>> = BTreeMap::new();
        for series in &self.series {
            for (run, why) in &series.history.left_out {
                reasons.entry((*run, why)).or_default().insert(self.name(series));
            }
        }
        for ((run, why), of) in reasons.iter().take(REASONS) {
            let id = self.runs.get(*run).map_or("", |run| run.manifest.run.as_str());
            let of = of.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
            out.push(cut(&format!("left out: {id} ({of}): {why}"), REASON));
        }
        if let more @ 1.. = reasons.len().saturating_sub(REASONS) {
            out.push(format!("left out: {more} more; --format csv counts them by series"));
        }
        out
    }
}

/// The platform that a run belongs to. A name that the user did not give holds the version, which may change in a history.
fn name(m: &Manifest) -> String {
    let given = m.plan.platform != format!("{} {}", m.target.product, m.target.version);
    if given { format!("{} ({})", m.plan.platform, m.target.product) } else { m.target.product.clone() }
}
