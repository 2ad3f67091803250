//! Histories of stored runs: where a figure changed its level, between which two runs, and what else changed there.

use loadline_analyze::Platform;
use loadline_analyze::compare::history::{History, histories};
use loadline_analyze::kpi::uses_data;
use loadline_analyze::paired::Verdict;
use loadline_analyze::paired::verdict::verdict_of;
use loadline_analyze::stats::Interval;
use loadline_analyze::trend::{Change, Judged, judge};
use loadline_model::Manifest;
use loadline_model::format::{bytes, counted};

use crate::compared::beyond;
use crate::content::ratios::ratio;
use crate::csv::{self, Named, number};
use crate::platform_run::platform;
use crate::{ReportError, RunData, columns, html, text};

mod page;

/// Expected share of false ones among the series that are said to have changed.
const ERROR: f64 = 0.05;

/// What histories show.
#[derive(Debug)]
pub struct Trended<'a> {
    runs: &'a [RunData],
    series: Vec<Series>,
    judged: Judged,
}

/// A history with the place of its runs in [`Trended::runs`], and what it shows.
#[derive(Debug)]
struct Series {
    platform: String,
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
}

impl<'a> Trended<'a> {
    /// Of `runs` in the order of time, none of two arms. `figures`: ids of the columns to follow; `None` for the main figure and
    /// the mean time of each workload.
    ///
    /// # Errors
    /// An id that is no column.
    pub fn of(runs: &'a [RunData], figures: Option<&[String]>) -> Result<Trended<'a>, ReportError> {
        let figures = columns::chosen(figures)?;
        let mut names: Vec<String> = runs.iter().map(|run| name(&run.manifest)).collect();
        names.sort();
        names.dedup();
        let mut series: Vec<Series> = Vec::new();
        for of in names {
            let own: Vec<(usize, &RunData)> =
                runs.iter().enumerate().filter(|(_, r)| name(&r.manifest) == of).collect();
            let platforms: Vec<Platform<'_>> = own.iter().map(|(_, run)| platform(run, &run.manifest.run)).collect();
            for mut history in histories(&platforms, figures.as_deref()) {
                let places = history.points.iter_mut().map(|(run, _)| run);
                let places = places.chain(history.left_out.iter_mut().map(|(run, _)| run));
                places.for_each(|run| *run = own.get(*run).map_or(*run, |(place, _)| *place));
                series.push(Series { platform: of.clone(), history, changes: None });
            }
        }
        let figures = |s: &Series| s.history.points.iter().map(|(_, figure)| *figure).collect();
        let mut judged = judge(&series.iter().map(figures).collect::<Vec<Vec<f64>>>(), ERROR);
        for (series, changes) in series.iter_mut().zip(std::mem::take(&mut judged.changes)) {
            series.changes = changes;
        }
        Ok(Trended { runs, series, judged })
    }

    /// Number of series, and of those that are long enough.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [self.series.len(), self.judged.judged]
    }

    /// Number of series of which the newest run of their platform has no figure.
    #[must_use]
    pub fn not_in_newest(&self) -> usize {
        let newest = |s: &Series| self.runs.iter().rposition(|run| name(&run.manifest) == s.platform);
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
        html::render(&page::page(self))
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        text::render(&page::page(self))
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
            ("platform", &|s| s.platform.clone()),
            ("workload", &|s| s.history.workload.clone()),
            ("parameters", &|s| parameters(&s.history)),
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

    /// The work of `series`, with what distinguishes it from others.
    fn name(&self, series: &Series) -> String {
        let history = &series.history;
        let others = || self.series.iter().filter(|s| s.history.workload == history.workload);
        let mut name = history.workload.clone();
        if others().any(|s| s.history.parameters != history.parameters) && !history.parameters.is_empty() {
            name.push_str(&format!(" ({})", parameters(history)));
        }
        if others().any(|s| s.history.driver != history.driver) {
            name.push_str(&format!(", {} driver", history.driver));
        }
        let setups: Vec<Vec<String>> = others().map(|s| self.setup(s)).collect();
        let differs = |part: &String| setups.iter().any(|setup| !setup.contains(part));
        self.setup(series).into_iter().filter(differs).for_each(|part| name.push_str(&format!(", {part}")));
        if let Some((column, value)) = &history.swept {
            name.push_str(&format!(", {value} {}", crate::words::swept(column)));
        }
        if self.series.iter().any(|s| s.platform != series.platform) {
            name.push_str(&format!(", {}", series.platform));
        }
        name + ", " + &counted(history.jobs as usize, "job")
    }
}

/// `rows=25 threads=2`.
fn parameters(history: &History) -> String {
    history.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The platform that a run belongs to. A name that the user did not give holds the version, which may change in a history.
fn name(m: &Manifest) -> String {
    let given = m.plan.platform != format!("{} {}", m.target.product, m.target.version);
    if given { format!("{} ({})", m.plan.platform, m.target.product) } else { m.target.product.clone() }
}
