//! A run as it stands, as a part of a page: what `loadline serve` shows of a run that goes on.

use loadline_analyze::kpi::{LATENCY, THROUGHPUT};
use loadline_model::format::{ABSENT, counted, duration_s, number, whole};
use loadline_model::live::{LiveSecond, LiveTest, bands};
use loadline_model::{TestRecord, Validity};

use crate::columns::value;
use crate::content::stop;
use crate::doc::{Block, Chart, Head, Row, Table};
use crate::html;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::svg_cells;

/// Tests shown, the newest.
const MOST_TESTS: usize = 12;

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

/// Shares of the jobs in each band over `seconds`: the bands from the lowest to the highest that hold any (upper ends, ms), and for
/// each second the shares in them.
#[must_use]
pub fn heat(seconds: &[&LiveSecond]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let held = || seconds.iter().flat_map(|s| s.jobs_by_ms.iter().map(|(end, _)| *end));
    let (low, high) = (held().fold(f64::INFINITY, f64::min), held().fold(0.0, f64::max));
    let ends: Vec<f64> = bands().filter(|end| (low..=high).contains(end)).collect();
    let shares = |second: &&LiveSecond| {
        let jobs: u32 = second.jobs_by_ms.iter().map(|(_, n)| n).sum();
        let of = |end: &f64| second.jobs_by_ms.iter().find(|(e, _)| e == end).map_or(0, |(_, n)| *n);
        ends.iter().map(|end| f64::from(of(end)) / f64::from(jobs.max(1))).collect()
    };
    let columns = seconds.iter().map(shares).collect();
    (ends, columns)
}

/// `≤ 500 µs`, of the upper end of a band in ms.
#[must_use]
pub fn band_name(end_ms: f64) -> String {
    match end_ms {
        ms if ms < 1.0 => format!("≤ {:.0} µs", ms * 1e3),
        ms if ms < 1e3 => format!("≤ {ms:.0} ms"),
        ms => format!("≤ {:.0} s", ms / 1e3),
    }
}

/// The tests of a run that are valid and those that are not, with the reason of the newest of these.
#[must_use]
pub fn validity(records: &[TestRecord]) -> String {
    let invalid: Vec<&TestRecord> = records.iter().filter(|r| !r.valid).collect();
    let newest = invalid.last().map_or_else(String::new, |r| {
        let why = r.invalid_reason.as_deref().unwrap_or("it does not say why");
        format!("; test {}: {}", r.test, stop(why))
    });
    let imported = records.iter().filter(|r| r.validity().is_none()).count();
    let unchecked = if imported == 0 { String::new() } else { format!(", {imported} imported and not checked") };
    format!(
        "{} done: {} valid, {} invalid{unchecked}{newest}",
        counted(records.len(), "test"),
        records.len() - invalid.len() - imported,
        invalid.len()
    )
}

/// The run as HTML, without head and body.
#[must_use]
pub fn render_live(run: &LiveRun<'_>) -> String {
    html::part(&blocks(run))
}

fn blocks(run: &LiveRun<'_>) -> Vec<Block> {
    let left = run.left_s.map_or_else(String::new, |s| {
        let about = if run.test.is_some_and(|t| t.left_exact) { "" } else { "about " };
        format!(" – {about}{} left", duration_s(s.max(0.0)))
    });
    let mut out = vec![Block::para(format!("{}{left}. {}.", run.state, validity(run.records)))];
    if let Some(text) = run.test.map(test_name).or_else(|| run.step.map(str::to_owned)) {
        out.push(Block::heading(text));
    }
    if let Some(second) = run.last() {
        out.push(Block::Table(now(run, second)));
    }
    let charts = charts(run);
    if !charts.is_empty() {
        out.push(Block::Charts { charts, per_row: 2 });
    }
    if let Some(table) = run.last().and_then(waits) {
        out.push(Block::Table(table));
    }
    if !run.records.is_empty() {
        out.push(Block::Table(tests(run.records)));
    }
    if !run.to_come.is_empty() {
        out.push(Block::para(format!("To come: {}.", run.to_come.join(", "))));
    }
    if !run.warnings.is_empty() {
        out.push(Block::List { items: run.warnings.to_vec() });
    }
    out
}

/// `Test 3: LGWR-LAT1, 8 jobs, repetition 1 of 2`.
#[must_use]
pub fn test_name(test: &LiveTest) -> String {
    let LiveTest { test, workload, jobs, repetition, repeat, arm, .. } = test;
    let s = if *jobs == 1 { "" } else { "s" };
    let part = match arm {
        Some(arm) => format!(", pair {repetition} of {repeat}, arm {arm}"),
        None if *repeat > 1 => format!(", repetition {repetition} of {repeat}"),
        None => String::new(),
    };
    format!("Test {test}: {workload}, {jobs} job{s}{part}")
}

fn now(run: &LiveRun<'_>, second: &LiveSecond) -> Table {
    let figure = |of, decimals| run.newest(of).map_or(ABSENT.to_owned(), |v| number(v, decimals));
    let cells = [
        format!("{:.0} of {:.0}", second.elapsed_s, second.total_s),
        run.newest(|s| s.tps).map_or(ABSENT.to_owned(), whole),
        figure(|s| s.latency_ms, 3),
        figure(|s| s.cpu_busy_pct, 0),
        figure(|s| s.cpu_iowait_pct, 0),
        figure(|s| s.device_util_pct, 0),
        figure(|s| s.device_writes_per_s, 0),
    ];
    let head = [
        ("Elapsed", "s"),
        ("Throughput", "tps"),
        ("Mean time", "ms"),
        ("CPU busy", "%"),
        ("CPU iowait", "%"),
        ("Log device busy", "%"),
        ("Device writes", "1/s"),
    ];
    let head = head.map(|(title, unit)| Head::number(title, unit)).to_vec();
    Table::of("figures narrow", head, vec![Row::of(cells)])
}

fn waits(second: &LiveSecond) -> Option<Table> {
    let mut waits: Vec<(&String, &f64)> = second.waits.iter().collect();
    waits.sort_by(|a, b| b.1.total_cmp(a.1));
    let rows: Vec<Row> = waits.iter().map(|(event, n)| Row::of([(*event).clone(), number(**n, 2)])).collect();
    let head = vec![Head::text("Top waits"), Head::number("Sessions", "mean")];
    (!rows.is_empty()).then(|| Table::of("figures narrow", head, rows))
}

fn tests(records: &[TestRecord]) -> Table {
    let row = |r: &TestRecord| {
        let figure = |column| r.figure(column).map_or(ABSENT.to_owned(), |v| value(column, v));
        let valid = match r.validity() {
            Some(Validity::Valid) => "valid",
            Some(_) => "invalid",
            None => "not checked",
        };
        let cells = [
            r.test.to_string(),
            r.workload.clone(),
            r.jobs.to_string(),
            figure(THROUGHPUT),
            figure(LATENCY),
            valid.to_owned(),
        ];
        let remark = r.invalid_reason.clone().unwrap_or_default();
        Row { invalid: !r.valid, remark, ..Row::of(cells) }
    };
    let rows = records.iter().rev().take(MOST_TESTS).map(row);
    let mut head = vec![Head::number("Test", ""), Head::text("Workload"), Head::number("Jobs", "")];
    head.extend([Head::of(THROUGHPUT), Head::of(LATENCY), Head::text("Checks")]);
    let caption = "Tests done, the newest first".to_owned();
    Table { caption, ..Table::of("figures", head, rows) }
}

fn charts(run: &LiveRun<'_>) -> Vec<Chart> {
    let of_last = run.seconds.last().and_then(|second| run.records.iter().rev().find(|r| r.test == second.test));
    let workload = run.test.map(|t| t.workload.as_str()).or_else(|| of_last.map(|r| r.workload.as_str()));
    let x_label = format!("last seconds of the tests of {}", workload.unwrap_or_default());
    let of = |title: &str, value: fn(&LiveSecond) -> Option<f64>| {
        let line = |points: Vec<(f64, f64)>| {
            let points = points.into_iter().map(|(x, y)| ChartPoint { x, y, ..ChartPoint::default() }).collect();
            ChartLine { points, ..ChartLine::default() }
        };
        let chart = svg::Chart {
            title: title.to_owned(),
            x_label: x_label.clone(),
            unnamed: true,
            x_end: run.seconds.len().max(2) as f64 - 1.0,
            lines: run.lines(value).into_iter().map(line).collect(),
            width: 480.0,
            height: 170.0,
            ..svg::Chart::default()
        };
        chart.svg().map(|svg| Chart { svg })
    };
    let (ends, columns) = heat(&run.seconds);
    let bands: Vec<String> = ends.into_iter().map(band_name).collect();
    let cells = run.seconds.iter().zip(columns).map(|(second, shares)| {
        let tip =
            |band: &String, pct: f64| format!("test {}, {:.0} s, {band}: {pct:.0} %", second.test, second.elapsed_s);
        shares.iter().zip(&bands).map(|(share, band)| Some((share * 100.0, tip(band, share * 100.0)))).collect()
    });
    let cells: Vec<Vec<svg_cells::Share>> = cells.collect();
    // Moments have no names below them: the tooltip says which they are.
    let moments = vec![String::new(); cells.len()];
    let title = "Jobs by the mean time of their transactions, each second";
    let heat = svg_cells::heat(title, &x_label, &moments, &bands, &cells);
    [
        of("Throughput [tps]", |s| s.tps),
        of("Mean transaction time [ms]", |s| s.latency_ms),
        heat.map(|svg| Chart { svg }),
        of("CPU busy [%]", |s| s.cpu_busy_pct),
        of("Log device busy [%]", |s| s.device_util_pct),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_second_add_up_and_empty_seconds_have_none() {
        let second = |jobs: &[(f64, u32)]| LiveSecond { jobs_by_ms: jobs.to_vec(), ..LiveSecond::default() };
        let all = [second(&[(0.5, 3), (2.0, 1)]), second(&[]), second(&[(1.0, 4)])];
        let (ends, columns) = heat(&all.iter().collect::<Vec<_>>());
        assert_eq!(ends, [0.5, 1.0, 2.0], "without a gap");
        let sums: Vec<f64> = columns.iter().map(|c| c.iter().sum()).collect();
        assert_eq!(sums, [1.0, 0.0, 1.0]);
        assert_eq!(heat(&[]), (vec![], vec![]));
    }

    #[test]
    fn texts_of_a_hostile_run_are_escaped() {
        let test = LiveTest { workload: "<script>x</script>".to_owned(), ..LiveTest::default() };
        let mut record = TestRecord::blank("<img src=x>");
        record.invalid_reason = Some("<b>".to_owned());
        let second =
            LiveSecond { waits: [("<em>".to_owned(), 1.0)].into(), tps: Some(f64::NAN), ..LiveSecond::default() };
        let run = LiveRun {
            state: "<u>".to_owned(),
            test: Some(&test),
            records: &[record],
            seconds: vec![&second],
            to_come: vec!["<p>x"],
            warnings: &["<a>".to_owned()],
            ..LiveRun::default()
        };
        let html = render_live(&run);
        for tag in ["<script>x", "<img", "<b>", "<em>", "<u>", "<p>x", "<a>"] {
            assert!(!html.contains(tag), "{tag} in {html}");
        }
    }
}
