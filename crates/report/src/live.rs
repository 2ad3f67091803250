//! A run as it stands: what `loadline serve` shows of it in a browser, and `loadline watch` on a terminal.

use std::fmt::Write as _;

use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_model::TestRecord;
use loadline_model::disturbance::judged;
use loadline_model::format::{ABSENT, counted, duration_s, number};
use loadline_model::live::{LiveSecond, LiveTest};

use crate::columns::value;
use crate::content::stop;
use crate::doc::{Block, Chart, Head, Row, Table};
use crate::spec::TableSpec;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::words::validities;
use crate::{templates, text};

const MOST_TESTS: usize = 12;

/// A figure of each second.
#[derive(Clone, Copy)]
struct Figure {
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    /// Whether pages have a chart of it.
    drawn: bool,
    of: fn(&LiveSecond) -> Option<f64>,
}

impl Figure {
    fn name(&self) -> String {
        format!("{} [{}]", self.title, self.unit)
    }

    fn newest(&self, run: &LiveRun<'_>) -> String {
        run.newest(self.of).map_or(ABSENT.to_owned(), |v| number(v, self.decimals))
    }
}

const FIGURES: [Figure; 6] = [
    Figure { title: "Throughput", unit: "tps", decimals: 0, drawn: true, of: |s| s.tps },
    Figure { title: "Mean time", unit: "ms", decimals: 3, drawn: true, of: |s| s.latency_ms },
    Figure { title: "CPU busy", unit: "%", decimals: 0, drawn: true, of: |s| s.cpu_busy_pct },
    Figure { title: "CPU iowait", unit: "%", decimals: 0, drawn: false, of: |s| s.cpu_iowait_pct },
    Figure { title: "Log device busy", unit: "%", decimals: 0, drawn: true, of: |s| s.device_util_pct },
    Figure { title: "Device writes", unit: "1/s", decimals: 0, drawn: false, of: |s| s.device_writes_per_s },
];

/// What is known of a run that goes on.
#[derive(Debug, Clone, Default)]
pub struct LiveRun<'a> {
    /// `running`, `complete`, with what is to be said of it.
    pub state: String,
    /// The test that is under way.
    pub test: Option<&'a LiveTest>,
    /// What is done between tests.
    pub step: Option<&'a str>,
    /// Estimated time left, s.
    pub left_s: Option<f64>,
    /// The tests that are done.
    pub records: &'a [TestRecord],
    /// Workloads of the plan without a test.
    pub to_come: Vec<&'a str>,
    /// The newest seconds of the tests of one workload, the oldest first: that of the test under way, or of the last one.
    pub seconds: Vec<&'a LiveSecond>,
    /// Warnings.
    pub warnings: &'a [String],
}

impl LiveRun<'_> {
    /// The newest second of the test under way.
    #[must_use]
    pub fn last(&self) -> Option<&LiveSecond> {
        let test = self.test?.test;
        self.seconds.last().copied().filter(|second| second.test == test)
    }

    /// A figure of the test under way, of the newest second that has it.
    #[must_use]
    pub fn newest(&self, of: fn(&LiveSecond) -> Option<f64>) -> Option<f64> {
        let test = self.test?.test;
        self.seconds.iter().rev().take_while(|second| second.test == test).find_map(|second| of(second))
    }

    /// A figure of the seconds as lines, one for each test: number of the second and figure.
    #[must_use]
    pub fn lines(&self, of: fn(&LiveSecond) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
        let known = self.seconds.iter().enumerate();
        let known =
            known.filter_map(|(x, second)| Some((second.test, (x as f64, of(second).filter(|y| y.is_finite())?))));
        let known: Vec<(u32, (f64, f64))> = known.collect();
        known.chunk_by(|a, b| a.0 == b.0).map(|of_test| of_test.iter().map(|(_, point)| *point).collect()).collect()
    }
}

/// How many tests of a run are valid, disturbed and refused, with the reason of the newest that is not valid.
#[must_use]
pub fn validity(records: &[TestRecord]) -> String {
    let newest = records.iter().rfind(|r| !r.valid);
    let newest = newest.map_or_else(String::new, |r| format!("; test {}: {}", r.test, stop(&judged(r))));
    format!("{} done: {}{newest}", counted(records.len(), "test"), validities(records.iter()))
}

/// The run as HTML, without head and body.
#[must_use]
pub fn render_live(run: &LiveRun<'_>) -> String {
    let mut blocks = vec![Block::para(state(run))];
    blocks.extend(what(run).map(Block::heading));
    if run.last().is_some() {
        let head = FIGURES.map(|f| Head::number(f.title, f.unit));
        blocks.push(Block::Table(Table::of("figures narrow", head, [Row::of(FIGURES.map(|f| f.newest(run)))])));
    }
    blocks.extend(Block::charts(2, charts(run)));
    blocks.extend(waits(run).map(Block::Table));
    blocks.extend(rest(run));
    templates::part(&blocks)
}

/// The run as text `width` characters wide: what is needed most stands above what may be cut off.
#[must_use]
pub fn live_text(run: &LiveRun<'_>, width: usize) -> String {
    let mut out = text::wrapped(&state(run), "", width);
    if let Some(what) = what(run) {
        let _ = write!(out, "\n{}", text::wrapped(&what, "", width));
    }
    let rendered = |table: Option<Table>| {
        let mut out = String::new();
        table.iter().for_each(|table| text::table(&mut out, table, width));
        out
    };
    out.push_str(&beside(&rendered(sparklines(run)), &rendered(waits(run))));
    rest(run).iter().for_each(|block| text::block(&mut out, block, width));
    out
}

/// How the run stands, and its tests.
fn state(run: &LiveRun<'_>) -> String {
    let left = run.left_s.map_or_else(String::new, |s| {
        let about = if run.test.is_some_and(|t| t.left_exact) { "" } else { "about " };
        format!(" – {about}{} left", duration_s(s.max(0.0)))
    });
    format!("{}{left}. {}.", run.state, validity(run.records))
}

/// What it does, and how far it is.
fn what(run: &LiveRun<'_>) -> Option<String> {
    let test = || Some(format!("{} {}", test_name(run.test?), run.last().map_or_else(String::new, bar)));
    run.step.map(str::to_owned).or_else(test)
}

/// What is to come, warnings, and the tests that are done, which may be many.
fn rest(run: &LiveRun<'_>) -> Vec<Block> {
    let mut out = Vec::new();
    if !run.to_come.is_empty() {
        out.push(Block::para(format!("To come: {}.", run.to_come.join(", "))));
    }
    out.extend(Block::list(run.warnings.iter().cloned()));
    out.extend(Block::table(tests(run.records)));
    out
}

fn bar(second: &LiveSecond) -> String {
    const CELLS: usize = 12;
    if second.total_s <= 0.0 {
        return String::new();
    }
    let full = ((second.elapsed_s / second.total_s).clamp(0.0, 1.0) * CELLS as f64).round() as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(CELLS - full));
    format!("{bar} {:.0} of {:.0} s", second.elapsed_s.min(second.total_s), second.total_s)
}

/// The figures of the newest second with those before, as bars from 0 to their maximum.
fn sparklines(run: &LiveRun<'_>) -> Option<Table> {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const CELLS: usize = 20;
    let seconds = run.seconds.get(run.seconds.len().saturating_sub(CELLS)..)?;
    let row = |figure: Figure| {
        let known = |s: &&LiveSecond| (figure.of)(s).filter(|v| v.is_finite());
        let most = seconds.iter().filter_map(known).fold(f64::MIN_POSITIVE, f64::max);
        let height = |v: f64| ((v / most * BARS.len() as f64).ceil() as usize).clamp(1, BARS.len()) - 1;
        let line = seconds.iter().map(|s| known(s).and_then(|v| BARS.get(height(v))).unwrap_or(&' ')).collect();
        Row::of([figure.name(), figure.newest(run), line])
    };
    let head = [Head::text("Figure"), Head::number("Now", ""), Head::text("Last seconds")];
    (run.test.is_some() || !seconds.is_empty()).then(|| Table::of("figures", head, FIGURES.map(row)))
}

fn beside(left: &str, right: &str) -> String {
    let [left, right] = [left, right].map(|text| text.lines().collect::<Vec<_>>());
    let width = left.iter().map(|line| line.chars().count()).max().map_or(0, |width| width + 2);
    let line = |n: usize| {
        let [left, right] = [&left, &right].map(|lines| lines.get(n).copied().unwrap_or_default());
        format!("{left:<width$}{right}").trim_end().to_owned() + "\n"
    };
    (0..left.len().max(right.len())).map(line).collect()
}

/// `Test 3: LGWR-LAT1, 8 jobs, repetition 1 of 2`.
#[must_use]
pub fn test_name(test: &LiveTest) -> String {
    let s = if test.jobs == 1 { "" } else { "s" };
    format!("Test {}: {}, {} job{s}{}", test.test, test.workload, test.jobs, test.part())
}

fn waits(run: &LiveRun<'_>) -> Option<Table> {
    let mut waits: Vec<(&String, &f64)> = run.last()?.waits.iter().collect();
    waits.sort_by(|a, b| b.1.total_cmp(a.1));
    let table = TableSpec::<(&String, &f64)>::of("figures narrow", waits)
        .number("Sessions", "", |(_, n)| number(*n, 2))
        .text("Top waits", |(event, _)| event)
        .build();
    (!table.rows.is_empty()).then_some(table)
}

fn tests(records: &[TestRecord]) -> Table {
    let figure = |r: &TestRecord, column| r.figure(column).map(|v| value(column, v));
    let validity = |r: &TestRecord| r.validity().map_or("not checked", |of| of.name());
    let remark = |r: &TestRecord| r.invalid_reason.clone().unwrap_or_default();
    TableSpec::<&TestRecord>::of("figures", records.iter().rev().take(MOST_TESTS))
        .number("Test", "", |r| r.test)
        .text("Workload", |r| &r.workload)
        .number("Jobs", "", |r| r.jobs)
        .number("tps", "", |r| figure(r, THROUGHPUT))
        .number("Mean ms", "", |r| figure(r, LATENCY))
        .text("Checks", validity)
        .lines(|r| Row { invalid: !r.is_usable(), remark: remark(r), ..Row::default() })
        .caption("Tests done, the newest first")
        .build()
}

fn charts(run: &LiveRun<'_>) -> Vec<Chart> {
    let of = |figure: &Figure| {
        let line = |points: Vec<(f64, f64)>| {
            let points = points.into_iter().map(|(x, y)| ChartPoint { x, y, ..ChartPoint::default() }).collect();
            ChartLine { points, ..ChartLine::default() }
        };
        let lines = run.lines(figure.of).into_iter().map(line).collect();
        let labels = ["last seconds of the tests of this workload", ""];
        let chart = svg::Chart::of_lines(figure.name(), labels, lines, (480.0, 170.0));
        svg::Chart { unnamed: true, x_end: run.seconds.len().max(2) as f64 - 1.0, ..chart }.drawn()
    };
    FIGURES.iter().filter(|f| f.drawn).filter_map(of).collect()
}
