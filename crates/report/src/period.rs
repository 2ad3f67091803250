//! A page about one period of a database, a test or a time for which it was watched: load profile, time model and waits, its own statistics,
//! what went on over time. Two or more periods are set side by side.

mod counters;
mod time;
mod views;

use std::collections::BTreeMap;

use loadline_analyze::kpi::THROUGHPUT;
use loadline_analyze::waits::Counts;
use loadline_model::activity::Watched;
use loadline_model::activity::{Counted, Topic, Unit};
use loadline_model::disturbance::{judged, why_not_valid};
use loadline_model::format::{ABSENT, bytes, counted, duration_ns, number};
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Activity, Column, Imported, Series, Snapshot, TestRecord};
use minijinja::context;

use crate::content::{standing, stop, verdict as tests_verdict};
use crate::doc::{Block, Document, Head, Section, Table};
use crate::spec::TableSpec;
use crate::templates::{page, prose, stored};
use crate::{Format, ReportError, RunData};

#[derive(Debug, Clone)]
pub struct Period {
    /// Name beside others.
    label: String,
    title: String,
    subtitle: String,
    record: Option<TestRecord>,
    remarks: Vec<String>,
    /// Counters at its start and end, and the time between them, s; `None` if they could not be read.
    counters: Option<(Snapshot, Snapshot, f64)>,
    waits: WaitProfile,
    series: Series,
    /// Figures by column id.
    figures: BTreeMap<String, f64>,
    activity: Option<Activity>,
    histograms: Vec<(String, Counts)>,
}

impl Period {
    /// Test number `test` of `run`, with what is stored beside its record; `None` if there is no such test.
    pub fn of_test(
        run: &RunData,
        test: u32,
        snapshots: &[(String, Snapshot)],
        series: Series,
        activity: Option<Activity>,
    ) -> Option<Period> {
        let record = run.records.iter().find(|r| r.test == test)?.clone();
        let title = format!("{}, {}", record.workload, counted(record.jobs as usize, "job"));
        let m = &run.manifest;
        let target = stored(&m.target_of(record.arm()));
        let context = context! { r => stored(&record), target, loadline => m.loadline_version };
        let subtitle = prose("period-of-test", context);
        let counted = activity.as_ref().and_then(|a| a.counted.as_ref());
        // What disturbed a test too much is its verdict.
        let noticed = if !record.is_disturbed() { record.disturbed_by.clone() } else { None };
        let mut remarks: Vec<String> = record.notes.iter().map(ToString::to_string).chain(noticed).collect();
        let counters = without_reset(counters(snapshots, counted), &mut remarks);
        Some(Period {
            label: format!("{title}, test {test} of {}", record.run),
            title,
            subtitle,
            remarks,
            counters,
            waits: record.waits.clone(),
            series,
            activity,
            histograms: run.histograms.get(&test).cloned().unwrap_or_default(),
            figures: record.figures.clone(),
            record: Some(record),
        })
    }

    /// A database that was watched; `name` distinguishes it from others.
    pub fn of_watched(watched: Watched, name: &str) -> Period {
        let Watched { target, taken_at, seconds, open, close, waits, series, figures, activity, mut notes, .. } =
            watched;
        let loadline = &watched.loadline_version;
        let subtitle = prose("period-watched", context! { target => stored(&target), seconds, taken_at, loadline });
        let between = open.seconds_until(&close);
        Period {
            label: name.to_owned(),
            title: format!("Snapshot of {} {}", target.product, target.version),
            subtitle,
            record: None,
            counters: without_reset(Some((open, close, between)), &mut notes),
            remarks: notes,
            waits,
            series,
            figures,
            activity: Some(activity),
            histograms: Vec::new(),
        }
    }

    fn grown(&self, name: &str) -> Option<f64> {
        let (open, close, _) = self.counters.as_ref()?;
        open.delta(close, name)
    }

    fn per_second(&self, name: &str) -> Option<f64> {
        let (.., seconds) = self.counters.as_ref()?;
        if *seconds > 0.0 { self.grown(name).map(|n| n / seconds) } else { None }
    }

    /// Transactions per second: those of the test, or all that the database counted.
    fn tps(&self) -> Option<f64> {
        match &self.record {
            Some(record) => record.figure(THROUGHPUT),
            None => self.per_second(counter::COMMITS),
        }
    }

    fn figure(&self, column: &Column) -> Option<f64> {
        self.figures.get(column.id).copied()
    }
}

/// The two snapshots that the test's figures are of.
fn counters(snapshots: &[(String, Snapshot)], counted: Option<&Counted>) -> Option<(Snapshot, Snapshot, f64)> {
    let named = |name: &str| snapshots.iter().find(|(n, _)| n == name).map(|(_, s)| s.clone());
    match counted {
        Some(counted) => Some((named(&counted.open)?, named(&counted.close)?, counted.seconds)),
        // A run of an older version, or a scan of sizes.
        None => {
            let (open, close) = named("passed open").zip(named("passed close")).or(named("open").zip(named("close")))?;
            let seconds = open.seconds_until(&close);
            Some((open, close, seconds))
        }
    }
}

/// `counters`, unless the database's statistics were reset between them: what they grew by is then unknown.
fn without_reset(
    counters: Option<(Snapshot, Snapshot, f64)>,
    remarks: &mut Vec<String>,
) -> Option<(Snapshot, Snapshot, f64)> {
    let (open, close, _) = counters.as_ref()?;
    let reset: Vec<&str> = open.reset_until(close).collect();
    if reset.is_empty() {
        return counters;
    }
    remarks.insert(0, format!("Statistics were reset meanwhile ({}): counters are not shown", reset.join(", ")));
    None
}

/// The periods with letters as names, and what each letter stands for.
fn lettered(periods: &[Period]) -> Vec<Period> {
    let named = |(period, letter): (&Period, char)| {
        let mut period = period.clone();
        period.title = format!("{letter}: {}", period.label);
        period.subtitle = format!("{letter}: {}", period.subtitle);
        period.label = letter.to_string();
        period
    };
    periods.iter().zip('A'..).map(named).collect()
}

fn document(periods: &[Period]) -> Document {
    let mut sections = vec![
        Section::new("answer", "The test", time::answer(periods)),
        Section::new("load", "Load profile", counters::profile(periods)),
        Section::new("time", "Time model", time::model(periods)),
        Section::new("waits", "Top waits", time::waits(periods)),
        Section::new("slow", "Slowest transactions", time::slowest(periods)),
        Section::new("over-time", "Over time", time::over_time(periods)),
        Section::new("latency", "Latencies", time::latencies(periods)),
    ];
    sections.extend(counters::sections(periods));
    for topic in Topic::ALL {
        let blocks = views::blocks(topic, periods);
        match sections.iter_mut().find(|section| section.title == topic.title()) {
            Some(counted) => counted.blocks.extend(blocks),
            None => sections.push(Section::new(views::id(topic), topic.title(), blocks)),
        }
    }
    sections.push(Section::new("cost", "What the sampling cost", cost(periods)));
    sections.push(Section::new("not-here", "Not on this page", views::missing(periods)));
    sections.retain(|s| !s.blocks.is_empty());
    let several = periods.len() > 1;
    Document {
        title: periods.iter().map(|p| p.title.as_str()).collect::<Vec<_>>().join(" · "),
        subtitle: periods.iter().map(|p| p.subtitle.as_str()).collect::<Vec<_>>().join(" · "),
        standing: standing(periods.iter().filter_map(|p| p.record.as_ref())),
        verdict: verdict(periods),
        remarks: periods.iter().flat_map(|p| p.remarks.iter().map(move |r| named(p, several, r))).collect(),
        sections,
        ..Document::default()
    }
}

fn named(period: &Period, several: bool, text: &str) -> String {
    let of = if several { format!("{}: ", period.label) } else { String::new() };
    format!("{of}{}.", stop(text))
}

fn verdict(periods: &[Period]) -> String {
    let tests = || periods.iter().filter_map(|p| p.record.as_ref());
    let of_test = |r: &TestRecord| {
        let (imported, validity) = (r.imported().map(Imported::unchecked), r.validity());
        // Only tests of loadline's own were judged.
        let why = validity.map_or_else(|| format!("not valid: {}", why_not_valid(r)), |_| judged(r));
        context! { test => r.test, imported, why => (!r.valid).then_some(why) }
    };
    let each: Vec<_> = tests().map(of_test).collect();
    prose("verdict-of-tests", context! { tests => each, verdict => tests_verdict(tests(), false) })
}

fn cost(periods: &[Period]) -> Vec<Block> {
    let said = |p: &Period| Some(named(p, periods.len() > 1, &prose("cost", &p.activity.as_ref()?.sampling)));
    periods.iter().filter_map(said).map(Block::para).collect()
}

/// Writes the page of one period, or of several side by side.
///
/// # Errors
/// [`ReportError`]: no period, or a format that pages do not have.
pub fn render_page(periods: &[Period], format: Format) -> Result<Vec<u8>, ReportError> {
    let document = match periods {
        [] => return Err(ReportError::NoRun),
        [one] => document(std::slice::from_ref(one)),
        several => document(&lettered(several)),
    };
    Ok(page(&document, format, false)?.into_bytes())
}

fn name<'a>(period: &'a Period, periods: &[Period]) -> &'a str {
    if periods.len() > 1 { &period.label } else { "" }
}

/// A heading, with the period's name if there are several.
fn heading(period: &Period, periods: &[Period], what: &str) -> String {
    let heading = format!("{} {what}", name(period, periods));
    let mut letters = heading.trim().chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// `n` of `unit`, with about three digits.
fn amount(n: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => bytes(n),
        Unit::Ms => duration_ns(n * 1e6),
        Unit::Count | Unit::Text if n == n.round() && n.abs() < 1e15 => number(n, 0),
        Unit::Count | Unit::Text => {
            let decimals = match n.abs() {
                a if a >= 100.0 => 0,
                a if a >= 10.0 => 1,
                a if a >= 1.0 => 2,
                a if a >= 0.01 => 3,
                _ => 6,
            };
            number(n, decimals)
        }
    }
}

fn shown(n: Option<f64>, unit: Unit) -> String {
    n.map_or(ABSENT.to_owned(), |n| amount(n, unit))
}

fn each(rate: Option<f64>, tps: Option<f64>) -> Option<f64> {
    rate.zip(tps.filter(|tps| *tps > 0.0)).map(|(n, tps)| n / tps)
}

/// `table` with these columns for each period, and for two the ratio of what is `compared`.
fn side_by_side<R: Copy, const N: usize>(
    mut table: TableSpec<R>,
    periods: &[Period],
    (heads, cells): ([Head; N], impl Fn(R, usize) -> [String; N]),
    (compared, ratio): (&str, impl Fn(R) -> String),
) -> Table {
    for (at, period) in periods.iter().enumerate() {
        for (n, head) in heads.iter().enumerate() {
            let head = Head { title: heading(period, periods, &head.title), ..head.clone() };
            table = table.column(head, |row| cells(row, at)[n].clone());
        }
    }
    if periods.len() == 2 {
        table = table.column(Head::number("B / A", "").tip(&format!("Ratio of the {compared}.")), ratio);
    }
    table.build()
}

fn ratio(a: Option<f64>, b: Option<f64>) -> String {
    let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
    ratio.filter(|r| r.is_finite()).map_or(ABSENT.to_owned(), |r| amount(r, Unit::Count))
}
