//! A run as it stands: what `loadline serve` shows of it in a browser, and `loadline watch` on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use loadline_analyze::kpi::{LATENCY, THROUGHPUT, rate_of};
use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Sweep, sweeps};
use loadline_model::column::{CPU_BUSY_PCT, LIMIT_SHARE_PCT, RESPONSE_TIME_NS_P99, TRANSACTION_TIME_NS_P99};
use loadline_model::disturbance::judged;
use loadline_model::format::{ABSENT, counted, duration_ns, duration_s, number};
use loadline_model::live::{LiveSecond, LiveTest};
use loadline_model::{Column, TestRecord};
use minijinja::{Value, context};

use crate::content::{by_weight, stop};
use crate::doc::{Block, Chart, Row, Table};
use crate::spec::TableSpec;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::words::{distinct, grouped, unit, validities, value};
use crate::{templates, text};

const MOST_TESTS: usize = 12;
/// Width and height of a chart, three of which stand side by side.
const SIZE: (f64, f64) = (340.0, 170.0);
/// Heights of a bar, and shades of a share.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [(f64, char); 4] = [(30.0, '█'), (10.0, '▓'), (1.0, '▒'), (0.0, '░')];
/// Most tests with a bar, or with a column in the heat map.
const MOST_BARS: usize = 16;
/// Most rows of the heat map.
const MOST_SHADED: usize = 8;

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

#[derive(Debug, Clone)]
pub struct LiveRun<'a> {
    /// `running`, `complete`, with what is to be said of it.
    pub state: String,
    pub test: Option<&'a LiveTest>,
    /// Work between tests.
    pub step: Option<&'a str>,
    pub left_s: Option<f64>,
    pub records: &'a [TestRecord],
    /// Workloads of the plan without a test.
    pub to_come: Vec<&'a str>,
    /// The newest seconds of the tests of one workload, the oldest first: that of the test under way, or of the last one.
    pub seconds: Vec<&'a LiveSecond>,
    pub warnings: &'a [String],
    /// How the transaction times of tests are spread, by the number of the test.
    pub latencies: &'a BTreeMap<u32, Counts>,
}

impl LiveRun<'_> {
    /// The newest second of the test under way.
    pub fn last(&self) -> Option<&LiveSecond> {
        let test = self.test?.test;
        self.seconds.last().copied().filter(|second| second.test == test)
    }

    /// A figure of the test under way, of the newest second that has it.
    pub fn newest(&self, of: fn(&LiveSecond) -> Option<f64>) -> Option<f64> {
        let test = self.test?.test;
        self.seconds.iter().rev().take_while(|second| second.test == test).find_map(|second| of(second))
    }

    /// The workload of the test under way, or of the newest one that is done.
    fn workload(&self) -> Option<&str> {
        self.test.map(|test| &test.workload).or(self.records.last().map(|r| &r.workload)).map(String::as_str)
    }

    /// A figure of the seconds as lines, one for each test: number of the second and figure.
    pub fn lines(&self, of: fn(&LiveSecond) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
        let known = self.seconds.iter().enumerate();
        let known =
            known.filter_map(|(x, second)| Some((second.test, (x as f64, of(second).filter(|y| y.is_finite())?))));
        let known: Vec<(u32, (f64, f64))> = known.collect();
        known.chunk_by(|a, b| a.0 == b.0).map(|of_test| of_test.iter().map(|(_, point)| *point).collect()).collect()
    }
}

/// How many tests of a run are valid, disturbed and refused, with the reason of the newest that is not valid.
pub fn validity(records: &[TestRecord]) -> String {
    let newest = records.iter().rfind(|r| !r.valid);
    let newest = newest.map_or_else(String::new, |r| format!("; test {}: {}", r.test, stop(&judged(r))));
    format!("{} done: {}{newest}", counted(records.len(), "test"), validities(records.iter()))
}

/// The run as HTML, without head and body.
pub fn render_live(run: &LiveRun<'_>) -> String {
    let mut blocks = vec![Block::para(state(run))];
    blocks.extend(what(run).map(Block::heading));
    if run.last().is_some() {
        let table = TableSpec::<()>::new("figures narrow", [()]);
        let table = FIGURES.iter().fold(table, |table, f| table.number(f.title, f.unit, |()| f.newest(run)));
        blocks.push(Block::Table(table.build()));
    }
    blocks.extend(Block::charts(3, load_line(run).into_iter().chain(charts(run))));
    blocks.extend(waits(run).map(Block::Table));
    blocks.extend(rest(run));
    blocks.extend(Block::table(tests(run.records)));
    templates::render("blocks.html", context! { blocks })
}

/// The run as text `width` characters wide: what is needed most stands above what may be cut off.
pub fn live_text(run: &LiveRun<'_>, width: usize) -> String {
    let mut out = text::wrapped(&state(run), "", width);
    if let Some(what) = what(run) {
        let _ = write!(out, "\n{}", text::wrapped(&what, "", width));
    }
    let rendered = |table: Option<Table>| {
        let mut out = String::new();
        table.iter().for_each(|table| text::table(&mut out, table, width.min(48)));
        out
    };
    out.push_str(&beside(&rendered(sparklines(run)), &rendered(waits(run))));
    rest(run).iter().for_each(|block| text::block(&mut out, block, width));
    let tests = Some(tests(run.records)).filter(|table| !table.rows.is_empty());
    out.push_str(&beside(&rendered(tests), &rendered(heat(run))));
    out
}

/// The run as one table for a terminal of `width` × `height` characters: what it does, a line for each workload, and how it stands.
pub fn live_table(run: &LiveRun<'_>, width: usize, height: usize) -> String {
    let begun = run.records.iter().map(|r| &r.workload).chain(run.test.map(|test| &test.workload));
    let codes: Vec<&str> = distinct(begun.map(String::as_str).chain(run.to_come.iter().copied()));
    // Heading, rule, and the sentences around the table.
    let most = height.saturating_sub(8).max(1);
    let at = run.workload().and_then(|code| codes.iter().position(|c| *c == code)).unwrap_or(0);
    let first = (at + 1 + most / 2).min(codes.len()).saturating_sub(most);
    let rows = codes.iter().copied().skip(first).take(most);
    let table = TableSpec::<&str>::new("figures", rows).columns("table of workloads", |code| workload(run, code));
    let mut out = text::clean(&what(run).unwrap_or_default());
    table.if_rows().iter().for_each(|table| text::table(&mut out, table, width));
    if codes.len() > most {
        let _ = writeln!(out, "… {} workloads in all", codes.len());
    }
    out + &text::wrapped(&state(run), "", width)
}

/// A workload at its peak; while a test of it is under way, that test, with the 99th percentile of the test before.
fn workload(run: &LiveRun<'_>, code: &str) -> Value {
    let tests: Vec<&TestRecord> = run.records.iter().filter(|r| r.workload == code).collect();
    let test = run.test.filter(|test| test.workload == code);
    let rate = rate_of(&tests);
    let rate_at = |r: &&TestRecord| r.figure(rate).filter(|v| r.is_usable() && v.is_finite());
    // As in a report: disturbed tests count where there is no valid one. Its sweeps would take too long here, beside a window.
    let any_valid = tests.iter().any(|r| r.valid);
    let rates = tests.iter().filter(|r| r.valid || !any_valid).filter_map(|r| Some((r, rate_at(r)?)));
    let peak = rates.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let shown = if test.is_some() { tests.last() } else { peak.map(|(r, _)| r) };
    let jobs = test.map(|test| test.jobs).or(shown.map(|r| r.jobs));
    let throughput = match test {
        Some(_) => run.newest(|s| s.tps).map(|tps| format!("{} tps", number(tps, 0))),
        None => peak.map(|(_, v)| format!("{} {}", value(rate, v), unit(rate))),
    };
    let highest = peak.map_or(f64::MIN_POSITIVE, |(_, v)| v);
    let newest = tests.get(tests.len().saturating_sub(MOST_BARS)..).unwrap_or_default();
    let bars: String = newest.iter().map(|r| rate_at(r).map_or('✗', |v| bar_of(v, highest))).collect();
    let p99 = shown.and_then(|r| r.figure(TRANSACTION_TIME_NS_P99)).map(duration_ns);
    let state = match test {
        Some(_) => run.last().map_or_else(|| "begins".to_owned(), progress),
        None if tests.is_empty() => "to come".to_owned(),
        None => validities(tests.iter().copied()),
    };
    context! { code, jobs, throughput, bars, p99, state }
}

/// A bar of `value`, if `highest` has the highest one.
fn bar_of(value: f64, highest: f64) -> char {
    let height = (value / highest * BARS.len() as f64).ceil() as usize;
    BARS.get(height.clamp(1, BARS.len()) - 1).copied().unwrap_or(' ')
}

/// How the transaction times of the newest tests of the workload are spread: a row for times up to a bound, a column for each test.
fn heat(run: &LiveRun<'_>) -> Option<Table> {
    let tests = run.records.iter().filter(|r| Some(r.workload.as_str()) == run.workload());
    let mut spread: Vec<Vec<Bucket>> =
        tests.rev().filter_map(|r| Some(run.latencies.get(&r.test)?.buckets())).collect();
    spread.truncate(MOST_BARS);
    spread.reverse();
    let powers = || spread.iter().flatten().filter(|b| b.count > 0).map(|b| b.power);
    let (low, high) = (powers().min()?, powers().max()?);
    let step = (high - low + 1).div_ceil(MOST_SHADED as u32).max(1);
    // Few are drawn wider.
    let wide = if spread.len() > MOST_BARS / 2 { 1 } else { 2 };
    let cell = |test: &Vec<Bucket>, top: u32| {
        let within = test.iter().filter(|b| b.power <= top && b.power + step > top);
        let pct: f64 = within.map(|b| b.share_pct).sum();
        std::iter::repeat_n(SHADES.iter().find(|(from, _)| pct > *from).map_or(' ', |(_, shade)| *shade), wide)
    };
    TableSpec::<u32>::new("figures", (low..=high).rev().step_by(step as usize))
        .text("Up to", |top| format!("≤ {}", label(top)))
        .text("Share", |top| spread.iter().flat_map(|test| cell(test, top)).collect::<String>())
        .caption("Latencies, test by test")
        .if_rows()
}

/// Throughput over jobs of the workload as far as it is known; the test under way is hollow.
fn load_line(run: &LiveRun<'_>) -> Option<Chart> {
    let workload = run.workload()?;
    let sweep = sweeps(run.records).into_iter().rfind(|s| s.workload == workload && s.over_jobs());
    let rate = sweep.as_ref().map_or(THROUGHPUT, |s| s.rate);
    let point = |jobs: u32, y: f64| {
        let tip = format!("{}: {} {}", counted(jobs as usize, "job"), value(rate, y), unit(rate));
        ChartPoint { x: f64::from(jobs), y, tip, ..ChartPoint::default() }
    };
    let mut line = ChartLine::default();
    if let Some(sweep) = &sweep {
        line.points.extend(sweep.points.iter().filter_map(|p| Some(point(p.at, sweep.rate_at(p)?.mean))));
    }
    if let Some(test) = run.test
        && rate == THROUGHPUT
    {
        line.hollow.extend(run.newest(|s| s.tps).map(|tps| point(test.jobs, tps)));
    }
    let labels = ["Jobs".to_owned(), unit(rate)];
    let chart = svg::Chart::of_lines(format!("{workload}: load line so far"), labels, vec![line], SIZE);
    svg::Chart { unnamed: true, markers: true, whole_x: true, ..chart }.drawn()
}

/// Names of the figures that [`headlines`] gives.
pub const HEADLINES: [&str; 5] = ["peak", "mean time", "p99", "of limit", "CPU"];

/// Figures of the peak of a workload, named by [`HEADLINES`].
pub type Headlines = (String, [Option<String>; HEADLINES.len()]);

/// Those of each workload, in the order of the answer in a report. Of several sweeps of a workload the first one counts.
pub fn headlines(records: &[TestRecord]) -> Vec<Headlines> {
    let of_sweep = |sweep: &Sweep| {
        let peak = sweep.peak()?;
        let figure = |column: &Column| Some(peak.figure(column)?.mean);
        let percent = |column| figure(column).map(|pct| format!("{} %", number(pct, 0)));
        let figures = [
            figure(sweep.rate).map(|v| format!("{} {}", value(sweep.rate, v), unit(sweep.rate))),
            peak.latency_ms().map(|ms| duration_ns(ms * 1e6)),
            figure(RESPONSE_TIME_NS_P99).or_else(|| figure(TRANSACTION_TIME_NS_P99)).map(duration_ns),
            percent(LIMIT_SHARE_PCT),
            percent(CPU_BUSY_PCT),
        ];
        Some((sweep.workload.clone(), figures))
    };
    grouped(by_weight(&sweeps(records)), |sweep| sweep.workload.clone())
        .into_iter()
        .filter_map(|(_, of)| of_sweep(of[0]))
        .collect()
}

fn state(run: &LiveRun<'_>) -> String {
    let left = run.left_s.map_or_else(String::new, |s| {
        let about = if run.test.is_some_and(|t| t.left_exact) { "" } else { "about " };
        format!(" – {about}{} left", duration_s(s.max(0.0)))
    });
    let held = run.last().and_then(|second| second.held).map_or_else(String::new, |held| format!(", {held}"));
    format!("{}{held}{left}. {}.", run.state, validity(run.records))
}

fn what(run: &LiveRun<'_>) -> Option<String> {
    let test = || Some(format!("{} {}", test_name(run.test?), run.last().map_or_else(String::new, bar)));
    run.step.map(str::to_owned).or_else(test)
}

fn rest(run: &LiveRun<'_>) -> Vec<Block> {
    let mut out = Vec::new();
    if !run.to_come.is_empty() {
        out.push(Block::para(format!("To come: {}.", run.to_come.join(", "))));
    }
    out.extend(Block::list(run.warnings.iter().cloned()));
    out
}

/// `20 of 32 s`.
fn progress(second: &LiveSecond) -> String {
    format!("{:.0} of {:.0} s", second.elapsed_s.min(second.total_s), second.total_s)
}

fn bar(second: &LiveSecond) -> String {
    const CELLS: usize = 12;
    if second.total_s <= 0.0 {
        return String::new();
    }
    let full = ((second.elapsed_s / second.total_s).clamp(0.0, 1.0) * CELLS as f64).round() as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(CELLS - full));
    format!("{bar} {}", progress(second))
}

/// The figures of the newest second with those before, as bars from 0 to their maximum.
fn sparklines(run: &LiveRun<'_>) -> Option<Table> {
    const CELLS: usize = 20;
    let seconds = run.seconds.get(run.seconds.len().saturating_sub(CELLS)..)?;
    let line = |figure: Figure| {
        let known = |s: &&LiveSecond| (figure.of)(s).filter(|v| v.is_finite());
        let most = seconds.iter().filter_map(known).fold(f64::MIN_POSITIVE, f64::max);
        seconds.iter().map(|s| known(s).map_or(' ', |v| bar_of(v, most))).collect::<String>()
    };
    let table = TableSpec::<Figure>::new("figures", FIGURES)
        .text("Figure", |figure| figure.name())
        .number("Now", "", |figure| figure.newest(run))
        .text("Last seconds", line);
    (run.test.is_some() || !seconds.is_empty()).then(|| table.build())
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
pub fn test_name(test: &LiveTest) -> String {
    let s = if test.jobs == 1 { "" } else { "s" };
    format!("Test {}: {}, {} job{s}{}", test.test, test.workload, test.jobs, test.part())
}

fn waits(run: &LiveRun<'_>) -> Option<Table> {
    let mut waits: Vec<(&String, &f64)> = run.last()?.waits.iter().collect();
    waits.sort_by(|a, b| b.1.total_cmp(a.1));
    TableSpec::<(&String, &f64)>::new("figures narrow", waits)
        .number("Sessions", "", |(_, n)| number(*n, 2))
        .text("Top waits", |(event, _)| event)
        .if_rows()
}

fn tests(records: &[TestRecord]) -> Table {
    let figure = |r: &TestRecord, column| r.figure(column).map(|v| value(column, v));
    let validity = |r: &TestRecord| r.validity().map_or("not checked", |of| of.name());
    let remark = |r: &TestRecord| r.invalid_reason.clone().unwrap_or_default();
    TableSpec::<&TestRecord>::new("figures narrow", records.iter().rev().take(MOST_TESTS))
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
        let lines = run.lines(figure.of).into_iter().map(|points| ChartLine::through("", 0, points)).collect();
        let labels = ["last seconds of the tests of this workload", ""];
        let chart = svg::Chart::of_lines(figure.name(), labels, lines, SIZE);
        svg::Chart { unnamed: true, x_end: run.seconds.len().max(2) as f64 - 1.0, ..chart }.drawn()
    };
    FIGURES.iter().filter(|f| f.drawn).filter_map(of).collect()
}
