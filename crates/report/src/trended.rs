//! Histories of stored runs: where a figure changed its level, and between which two runs.

use std::collections::BTreeMap;

use loadline_analyze::Platform;
use loadline_analyze::compare::history::{History, histories};
use loadline_analyze::kpi::higher_is_better;
use loadline_analyze::paired::verdict::verdict_of;
use loadline_analyze::paired::{Verdict, percent};
use loadline_analyze::trend::{Change, LEAST_RUNS, judge};
use loadline_model::Manifest;
use loadline_model::format::counted;
use minijinja::{Value, context};

use crate::compared::beyond;
use crate::content::kept_tests;
use crate::doc::{Block, Chart, Document, Section, Standing};
use crate::listing::Listing;
use crate::platform_run::platform;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::templates::{items, prose};
use crate::words::{chosen_columns, heading_of, place, scale, value};
use crate::{Format, ReportError, RunData};

/// Expected share of false ones among the series that are said to have changed.
const ERROR: f64 = 0.05;
const MOST_CHARTS: usize = 24;
/// Most reasons for which runs were left out.
const REASONS: usize = 12;

/// Findings on histories.
#[derive(Debug)]
pub struct Trended<'a> {
    runs: &'a [RunData],
    series: Vec<Series>,
}

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

    fn newest(&self) -> Option<&Change> {
        self.changes().last()
    }

    fn verdict(&self) -> &'static str {
        match self.newest().map(|c| (c.ratio > 1.0) == higher_is_better(self.history.metric)) {
            None if self.changes.is_none() => "too_short",
            None => "no_change",
            Some(true) => "faster",
            Some(false) => "slower",
        }
    }

    /// `rows=25 threads=2`.
    fn parameters(&self) -> String {
        let all = self.history.sweep.parameters.iter().map(|(name, value)| format!("{name}={value}"));
        all.collect::<Vec<_>>().join(" ")
    }

    /// Column and value that was swept, if not jobs.
    fn swept(&self) -> Option<(&str, u32)> {
        let History { sweep, at, .. } = &self.history;
        (!sweep.over_jobs()).then_some((&sweep.over, *at))
    }

    /// The row of the table for scripts.
    fn row(&self) -> Value {
        let History { platform, sweep, jobs, metric, points, left_out, setup, .. } = &self.history;
        context! {
            platform, jobs, metric, setup, workload => sweep.workload, driver => sweep.driver,
            parameters => self.parameters(), swept => self.swept().map(|(id, value)| format!("{id}={value}")),
            runs => points.len(), left_out => left_out.len(), verdict => self.verdict(), newest => self.newest().map(|c| self.told(c)),
            change_points => self.changes().iter().map(|c| self.run(c.at)).collect::<Vec<_>>().join(";"),
            figure => points.last().map(|(_, figure)| figure),
        }
    }

    fn told(&self, c: &Change) -> Value {
        let (last, first, confidence) = (self.run(c.at - 1), self.run(c.at), percent(c.confidence));
        let Change { before, after, ratio, interval, p, .. } = c;
        context! { last, first, confidence, before, after, ratio, interval, p }
    }

    fn run(&self, at: usize) -> &str {
        self.history.points.get(at).map_or("", |(run, _)| run)
    }

    /// The figure over the runs, with the levels that were found; `None` of a single run.
    fn chart(&self, name: &str) -> Option<Chart> {
        let History { points, metric, .. } = &self.history;
        let scale = scale(metric);
        let point = |(at, (run, figure)): (usize, &(String, f64))| {
            let tip = format!("{run}: {} {}", value(metric, *figure), metric.unit);
            ChartPoint { x: at as f64 + 1.0, y: figure * scale, bar: None, tip }
        };
        let steps = self.changes().iter().flat_map(|c| [c.before, c.after].map(|y| (c.at as f64 + 0.5, y * scale)));
        let mut fit: Vec<(f64, f64)> = steps.collect();
        if let [(_, first), .., (_, last)] = fit[..] {
            fit.insert(0, (1.0, first));
            fit.push((points.len() as f64, last));
        }
        let line = ChartLine { points: points.iter().enumerate().map(point).collect(), fit, ..ChartLine::default() };
        let title = format!("{name}: {}", metric.title);
        let labels = ["runs, the oldest first".to_owned(), heading_of(metric, false)];
        let chart = svg::Chart::of_lines(title, labels, vec![line], (400.0, 230.0));
        let chart = svg::Chart { markers: true, whole_x: true, unnamed: true, ..chart };
        if points.len() > 1 { chart.drawn() } else { None }
    }
}

impl<'a> Trended<'a> {
    /// Of `runs` in the order of time, none of two arms. `figures`: ids of the columns to follow; `None` for the main figure and
    /// the mean time of each workload.
    ///
    /// # Errors
    /// An id that is no column.
    pub fn new(runs: &'a [RunData], figures: Option<&[String]>) -> Result<Trended<'a>, ReportError> {
        let figures = chosen_columns(figures)?;
        let named = |run: &'a RunData| (name(&run.manifest), platform(run, &run.manifest.run));
        let platforms: Vec<(String, Platform<'_>)> = runs.iter().map(named).collect();
        let histories = histories(&platforms, figures.as_deref());
        let figures = |h: &History| h.points.iter().map(|(_, figure)| *figure).collect();
        let judged = judge(&histories.iter().map(figures).collect::<Vec<Vec<f64>>>(), ERROR);
        let series = histories.into_iter().zip(judged).map(|(history, changes)| Series { history, changes });
        Ok(Trended { runs, series: series.collect() })
    }

    /// Number of series, of those that are too short, and of those of which the newest run of their platform has no figure.
    pub fn counts(&self) -> [usize; 3] {
        let count = |of: fn(&&Series) -> bool| self.series.iter().filter(of).count();
        [self.series.len(), count(|s| s.changes.is_none()), count(|s| !s.history.in_newest)]
    }

    /// Main figures whose newest level is shown to be slower by more than `share` (0.03: 3 %) than the one before, in words.
    pub fn slower_by(&self, share: f64) -> Vec<String> {
        let shown = self.series.iter().filter(|s| s.history.main).filter_map(|s| {
            let change = s.newest().filter(|c| c.interval.is_some_and(|i| beyond(i, share)))?;
            let slower = verdict_of(change.interval, higher_is_better(s.history.metric), 0.0) == Verdict::Slower;
            slower.then(|| self.says(s, change))
        });
        shown.collect()
    }

    /// For scripts a row per series, for people a page.
    pub fn render(&self, format: Format) -> Result<String, ReportError> {
        Listing::new("trend", self.series.iter().map(Series::row)).or(|| self.page(), format)
    }

    /// The workload of `series`, with what distinguishes it from other series of that.
    fn name(&self, series: &Series) -> String {
        let History { sweep, jobs, .. } = &series.history;
        let own = |s: &Series| {
            let driver = format!("{} driver", s.history.sweep.driver);
            [s.parameters(), driver, s.history.platform.clone(), s.history.setup.clone()]
        };
        let others = || self.series.iter().filter(|s| s.history.sweep.workload == sweep.workload).map(own);
        let differs = |(n, part): &(usize, String)| !part.is_empty() && others().any(|other| other[*n] != *part);
        let parts = own(series).into_iter().enumerate().filter(differs).map(|(_, part)| part);
        let swept = series.swept().map(|(id, value)| place(id, value));
        let all = parts.chain(swept).chain([counted(*jobs as usize, "job")]);
        all.fold(sweep.workload.clone(), |name, part| format!("{name}, {part}"))
    }

    /// `LGWR-LAT1, 1 job: Commit throughput is 0.800 (95 %: 0.784 to 0.812) of what it was, …`.
    fn says(&self, s: &Series, c: &Change) -> String {
        let column = s.history.metric;
        let [before, after] = [c.before, c.after].map(|of| value(column, of));
        let (title, unit) = (column.title, column.unit);
        prose("change", context! { name => self.name(s), title, unit, before, after, c => s.told(c) })
    }

    fn page(&self) -> Document {
        let [series, short, _] = self.counts();
        let changes = self.series.iter().flat_map(|s| s.changes().iter().map(|c| self.says(s, c)));
        let changes: Vec<String> = changes.collect();
        let changed = changes.len();
        // Each reason once, with the first series that it is of.
        let mut reasons: BTreeMap<&(String, String), &Series> = BTreeMap::new();
        for series in self.series.iter().rev() {
            reasons.extend(series.history.left_out.iter().map(|reason| (reason, series)));
        }
        let left_out = reasons.iter().take(REASONS).map(|((run, why), series)| (run, self.name(series), why));
        let context = context! {
            changes,
            kept => kept_tests(self.runs.iter().flat_map(|run| &run.records)),
            left_out => left_out.collect::<Vec<_>>(),
            more => reasons.len().saturating_sub(REASONS),
        };
        let items = items("trend", context);
        let charts = self.series.iter().filter_map(|s| s.chart(&self.name(s))).take(MOST_CHARTS);
        let blocks: Vec<Block> = Block::list(items).into_iter().chain(Block::charts(3, charts)).collect();
        let sections = (!blocks.is_empty()).then(|| Section::new("trend", "Levels over time", blocks));
        let ends = [self.runs.first(), self.runs.last()].map(|run| run.map_or("", |run| &run.manifest.run));
        Document {
            title: "Trend".to_owned(),
            subtitle: format!("{} from {} to {}", counted(self.runs.len(), "run"), ends[0], ends[1]),
            verdict: match series {
                0 => "There is no series: no valid test has such a figure.".to_owned(),
                _ => format!("Of {series} series {short} have fewer than {LEAST_RUNS} runs; level changes: {changed}."),
            },
            standing: Standing::new(changed > 0, series == 0 || short > 0),
            sections: sections.into_iter().collect(),
            ..Document::default()
        }
    }
}

/// The platform that a run belongs to. A name that the user did not give holds the version, which may change in a history.
fn name(m: &Manifest) -> String {
    let given = m.plan.platform != format!("{} {}", m.target.product, m.target.version);
    if given { format!("{} ({})", m.plan.platform, m.target.product) } else { m.target.product.clone() }
}
