//! Charts: figures over jobs with one line per platform, load lines, and throughput over time with one line per test.

use std::collections::BTreeSet;

use loadline_analyze::kpi::{LATENCY, RESPONSE, THROUGHPUT};
use loadline_analyze::sweep::{JOBS, swept_value};
use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Estimate, Interval, Sweep};
use loadline_model::column::{self, column};
use loadline_model::format::number;
use loadline_model::{Column, Series, TestRecord};
use minijinja::context;

use super::qualified::with_interval;
use crate::bars::{Bars, heat};
use crate::canvas::COLOURS;
use crate::doc::{Block, Chart, Section};
use crate::platform_run::{PlatformRun, swept as swept_workloads};
use crate::svg;
use crate::templates::prose;
use crate::words::{
    distinct, grouped, heading_of, lower, place, scale, short_name, swept, swept_title, title_of, unit, value,
};

/// Columns drawn for a workload whose records name no KPIs.
const USUAL: [&Column; 3] = [THROUGHPUT, LATENCY, column::REDO_MIB_PER_S];
const PER_ROW: u8 = 3;
/// Widths of a load line, one of three charts side by side and one of two.
const NARROW: f64 = 340.0;
const WIDE: f64 = 480.0;
/// Fewest points of a load line, and most load lines of a summary.
const FEWEST: usize = 3;
const MOST_IN_SUMMARY: usize = 12;
/// Ratio of the largest to the smallest swept value that makes the axis logarithmic.
const LOG_AXIS_RATIO: f64 = 16.0;
/// Most charts over time that are not folded away.
const MOST_OPEN: usize = 8;

/// A workload's KPIs over what was swept, all platforms in each chart; its load line, its transaction times, and what sessions waited for.
pub(crate) fn of_workload(sides: &[PlatformRun<'_>], workload: &str) -> Vec<Block> {
    let sweeps = || sides.iter().flat_map(|s| &s.sweeps).filter(|s| s.workload == workload);
    let named = sweeps().map(|s| &s.kpis).find(|kpis| !kpis.is_empty());
    let columns: Vec<&'static Column> =
        named.map_or(USUAL.to_vec(), |kpis| kpis.iter().filter_map(|id| column(id)).collect());
    let log = sweeps().all(|s| s.group == "log-writer");
    let overs = distinct(sweeps().map(|s| s.over.as_str()));
    let both = overs.iter().flat_map(|over| columns.iter().map(move |column| (*over, *column)));
    let charts = both.filter_map(|(over, column)| sweep_chart(sides, workload, over, (column, log)));
    let below = load_line(sides, workload, WIDE).into_iter().chain(spread_and_waits(sides, workload));
    Block::charts(PER_ROW, charts).into_iter().chain(Block::charts(2, below)).collect()
}

/// `None` if all values are 0 or no sweep has more than one point.
fn sweep_chart(sides: &[PlatformRun<'_>], workload: &str, over: &str, (column, log): (&Column, bool)) -> Option<Chart> {
    let mut sweeps: Vec<(String, &Sweep)> = Vec::new();
    for side in sides {
        let own: Vec<&Sweep> = side.sweeps.iter().filter(|s| s.workload == workload && s.over == over).collect();
        let name = |sweep: &Sweep| match own.len() {
            1 => side.label.clone(),
            _ => format!("{} ({} driver)", side.label, sweep.driver),
        };
        sweeps.extend(own.iter().map(|sweep| (name(sweep), *sweep)));
    }
    if !sweeps.iter().any(|(_, sweep)| sweep.points.len() > 1) {
        return None;
    }
    let places = || sweeps.iter().flat_map(|(_, s)| &s.points).map(|p| f64::from(p.at));
    let (least, most) = (places().fold(f64::MAX, f64::min), places().fold(0.0, f64::max));
    let log_x = over != JOBS && least > 0.0 && most / least >= LOG_AXIS_RATIO;
    let lines: Vec<svg::ChartLine> = sweeps
        .iter()
        .enumerate()
        .map(|(colour, (name, sweep))| sweep_line(name, sweep, column, colour))
        .filter(|l| !l.points.is_empty() || !l.hollow.is_empty())
        .collect();
    if lines.iter().flat_map(|l| l.points.iter().chain(&l.hollow)).all(|p| p.y == 0.0) {
        return None;
    }
    let title = format!("{workload}: {} over {}", lower(title_of(column, log)), swept(over));
    let x_label = swept_title(over) + if log_x { " (logarithmic)" } else { "" };
    let chart = svg::Chart {
        whole_x: true,
        log_x,
        unnamed: sides.len() == 1 && sweeps.len() == 1,
        ..svg::Chart::of_points(title, [x_label, heading_of(column, log)], lines)
    };
    chart.drawn()
}

fn sweep_line(name: &str, sweep: &Sweep, column: &Column, colour: usize) -> svg::ChartLine {
    // The axis has the unit shown, which may differ from the stored one.
    let scale = scale(column);
    let tip = |at: u32, shown: &str| format!("{name}, {}: {shown} {}", place(&sweep.over, at), column.unit);
    let speeds_up = sweep.over_jobs() && column == sweep.rate && sweep.load.rate_tps.is_none();
    let means = || sweep.points.iter().filter_map(|p| Some((p.at, p.figure(column)?)));
    let first = means().next().filter(|(at, e)| speeds_up && *at > 0 && e.mean > 0.0);
    let mean = |(at, e): (u32, &Estimate)| {
        let bar = e.interval().map(|Interval { low, high }| (low.max(0.0) * scale, high * scale));
        let times = first.filter(|(fewest, _)| *fewest < at).map(|(fewest, first)| {
            format!(", {} times that of {}", number(e.mean / first.mean, 2), place(&sweep.over, fewest))
        });
        let tip = tip(at, &with_interval(column, e)) + &times.unwrap_or_default();
        svg::ChartPoint { x: f64::from(at), y: e.mean * scale, bar, tip }
    };
    // Twice the jobs, twice the throughput, up to the highest point.
    let ideal = first.map_or_else(Vec::new, |(fewest, first)| {
        let highest = means().map(|(_, e)| e.mean).fold(first.mean, f64::max);
        let most = means().map(|(at, _)| f64::from(at) / f64::from(fewest)).fold(1.0, f64::max);
        let end = most.min(highest / first.mean);
        // A shorter one looks like a speck.
        if end < 1.25 {
            return Vec::new();
        }
        [1.0, end].map(|times| (f64::from(fewest) * times, first.mean * times * scale)).into()
    });
    // Tests that no mean includes, and why.
    let hollow = sweep.points.iter().flat_map(|p| {
        let refused = p.refused.iter().map(|of| (of.test, &of.figures, format!("is refused: {}", of.reason)));
        let aside = p.set_aside.iter();
        let aside = aside.map(|of| (of.test, &of.figures, format!("is not part of the mean: {}", of.why())));
        refused.chain(aside).filter_map(move |(test, figures, why)| {
            let y = *figures.get(column.id)?;
            let tip = format!("{} (test {test} {why})", tip(p.at, &value(column, y)));
            Some(svg::ChartPoint { x: f64::from(p.at), y: y * scale, bar: None, tip })
        })
    });
    svg::ChartLine {
        name: name.to_owned(),
        points: means().map(mean).collect(),
        ideal,
        hollow: hollow.collect(),
        colour,
        ..svg::ChartLine::default()
    }
}

pub(crate) fn load_lines(sides: &[PlatformRun<'_>]) -> Section {
    let workloads = swept_workloads(sides);
    let charts =
        Block::charts(PER_ROW, workloads.iter().filter_map(|w| load_line(sides, w, NARROW)).take(MOST_IN_SUMMARY));
    let legend = charts.is_some().then(|| Block::Legend { text: prose("curves", ()) });
    let blocks = charts.into_iter().chain(legend).collect();
    Section { group: true, ..Section::evidence("curves", "Load lines as charts", blocks) }
}

/// The load line as people of the field draw it: mean latency, ms, over throughput, a point for each number of jobs.
fn load_line(sides: &[PlatformRun<'_>], workload: &str, width: f64) -> Option<Chart> {
    let (mut lines, mut first) = (Vec::new(), None);
    let sweeps = sides.iter().enumerate().flat_map(|(colour, side)| side.sweeps.iter().map(move |s| (colour, side, s)));
    for (colour, side, sweep) in sweeps.filter(|(.., s)| s.workload == workload && s.over_jobs()) {
        // Lines of other rates are not in this unit.
        let rate = *first.get_or_insert(sweep.rate);
        if sweep.rate != rate {
            continue;
        }
        let what = short_name(sweep, &side.sweeps);
        let name = match what.strip_prefix(workload).map(str::trim).filter(|more| !more.is_empty()) {
            Some(more) => format!("{} {more}", side.label),
            None => side.label.clone(),
        };
        let mut line = svg::ChartLine::through(&name, colour, []);
        for point in &sweep.points {
            let [column, ..] = point.latencies();
            let (Some(x), Some(y)) = (sweep.rate_at(point), point.figure(column)) else { continue };
            let at = place(&sweep.over, point.at);
            let ms = scale(column);
            let tip = format!("{name}, {at}: {} {}, {} ms", value(rate, x.mean), unit(rate), with_interval(column, y));
            line.labels.push((x.mean, y.mean * ms, point.at.to_string()));
            line.points.push(svg::ChartPoint { x: x.mean, y: y.mean * ms, bar: None, tip });
        }
        if line.points.len() >= FEWEST {
            lines.push(line);
        }
    }
    let rate = first?;
    let unnamed = sides.len() == 1 && lines.len() == 1;
    let labels = [format!("Throughput [{}]", unit(rate)), "Mean latency [ms]".to_owned()];
    let chart = svg::Chart::of_points(format!("{workload}: load line"), labels, lines);
    svg::Chart { unnamed, width, ..chart }.drawn()
}

/// Numbers of the tests of `sweeps` that no figure includes, because better ones of the same point exist.
pub(super) fn set_aside(sweeps: &[Sweep]) -> BTreeSet<u32> {
    sweeps.iter().flat_map(|s| &s.points).flat_map(|p| &p.set_aside).map(|aside| aside.test).collect()
}

/// How transaction times spread over jobs, and what sessions waited for, for each platform with several numbers of jobs.
fn spread_and_waits(sides: &[PlatformRun<'_>], workload: &str) -> Vec<Chart> {
    let mut charts = Vec::new();
    for side in sides {
        let aside = set_aside(&side.sweeps);
        let counts = |r: &&TestRecord| r.is_usable() && !aside.contains(&r.test);
        let is_over_jobs = |r: &&TestRecord| r.workload == workload && r.swept().is_none();
        let tests: Vec<&TestRecord> = side.run.records.iter().filter(counts).filter(is_over_jobs).collect();
        // Tests of other kinds are not one sweep: drivers, nodes, rates.
        let alike = tests.windows(2).all(|pair| (pair[0].driver, pair[0].nodes) == (pair[1].driver, pair[1].nodes));
        let open = tests.iter().any(|r| r.figure(RESPONSE).is_some());
        let mut at = grouped(tests, |r| r.jobs);
        at.sort_by_key(|(jobs, _)| *jobs);
        if at.len() < 2 || !alike || open {
            continue;
        }
        let of = if sides.len() > 1 { format!("{} – ", side.label) } else { String::new() };
        charts.extend(spread(side, &at, &format!("{of}{workload}: transaction times by jobs")));
        charts.extend(wait_stack(&at, &format!("{of}{workload}: what sessions did")));
    }
    charts
}

type ByJobs<'a> = [(u32, Vec<&'a TestRecord>)];

fn names(at: &ByJobs<'_>) -> Vec<String> {
    at.iter().map(|(jobs, _)| jobs.to_string()).collect()
}

fn spread(side: &PlatformRun<'_>, at: &ByJobs<'_>, title: &str) -> Option<Chart> {
    let counted = |(_, tests): &(u32, Vec<&TestRecord>)| {
        let mut all = Counts::default();
        let of_tests = tests.iter().filter_map(|r| side.run.histograms.get(&r.test)).flatten();
        of_tests.filter(|(kind, _)| kind == "transaction").for_each(|(_, counts)| all.merge(counts));
        all.buckets()
    };
    let buckets: Vec<_> = at.iter().map(counted).collect();
    let powers = || buckets.iter().flatten().map(|b| b.power);
    let (low, high) = (powers().min()?, powers().max()?);
    let rows: Vec<String> = (low..=high).map(|power| format!("≤ {}", label(power))).collect();
    let columns = names(at);
    let cell = |of: &[Bucket], power: u32, jobs: &str| {
        let bucket = of.iter().find(|b| b.power == power)?;
        Some((bucket.share_pct, format!("{jobs} jobs, up to {}: {} %", bucket.label(), number(bucket.share_pct, 3))))
    };
    let shares: Vec<Vec<_>> =
        buckets.iter().zip(&columns).map(|(of, jobs)| (low..=high).map(|p| cell(of, p, jobs)).collect()).collect();
    heat(title, "Jobs", &columns, &rows, &shares)
}

/// Stacked bars of the mean number of sessions in each wait; the smallest are one.
fn wait_stack(at: &ByJobs<'_>, title: &str) -> Option<Chart> {
    let mean = |tests: &[&TestRecord], event: &str| {
        let known: Vec<f64> = tests.iter().filter_map(|r| r.waits.mean_sessions(|one| one == event)).collect();
        loadline_analyze::stats::mean(&known).unwrap_or(0.0)
    };
    let known = at.iter().flat_map(|(_, tests)| tests).flat_map(|r| r.waits.sessions.keys());
    let whole = |event: &str| at.iter().map(|(_, tests)| mean(tests, event)).sum::<f64>();
    let mut events: Vec<(&str, f64)> = distinct(known).into_iter().map(|e| (e.as_str(), whole(e))).collect();
    events.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let rest = events.split_off(events.len().min(COLOURS - 1));
    let mut parts: Vec<(String, Vec<&str>)> = events.iter().map(|(e, _)| ((*e).to_owned(), vec![*e])).collect();
    if !rest.is_empty() {
        parts.push((format!("{} others", rest.len()), rest.iter().map(|(event, _)| *event).collect()));
    }
    let height = |jobs: u32, tests: &[&TestRecord], (name, events): &(String, Vec<&str>)| {
        let height: f64 = events.iter().map(|event| mean(tests, event)).sum();
        Some((height, format!("{jobs}, {name}: {}", number(height, 2))))
    };
    let heights = at.iter().map(|(jobs, tests)| parts.iter().map(|part| height(*jobs, tests, part)).collect());
    let bars = Bars {
        title: title.to_owned(),
        x_label: "Jobs".to_owned(),
        y_label: "Mean sessions, sampled".to_owned(),
        places: names(at),
        heights: heights.collect(),
        parts: parts.iter().enumerate().map(|(colour, (name, _))| (name.clone(), colour)).collect(),
        stacked: true,
    };
    bars.drawn()
}

/// Most points of a line; more are averaged.
const MOST_POINTS: usize = 300;

#[derive(Debug, Clone, PartialEq)]
pub struct OverTime {
    /// Seconds since the window start, and tps.
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) rows_per_point: usize,
}

impl OverTime {
    /// Throughput in `series` from the window start on; `None` if it has none.
    pub fn from_series(series: &Series) -> Option<OverTime> {
        let (times, values) = (series.column("t_s")?, series.column(THROUGHPUT.id)?);
        let rows: Vec<(f64, f64)> = times
            .into_iter()
            .zip(values)
            .filter_map(|(t, v)| Some((t?, v?)))
            .filter(|(t, v)| *t >= 0.0 && v.is_finite())
            .collect();
        let rows_per_point = rows.len().div_ceil(MOST_POINTS).max(1);
        let mean = |chunk: &[(f64, f64)]| {
            let n = chunk.len() as f64;
            chunk.iter().fold((0.0, 0.0), |a, r| (a.0 + r.0 / n, a.1 + r.1 / n))
        };
        let points: Vec<(f64, f64)> = rows.chunks(rows_per_point).map(mean).collect();
        (!points.is_empty()).then_some(OverTime { points, rows_per_point })
    }
}

pub(crate) fn over_time(sides: &[PlatformRun<'_>]) -> Section {
    let (mut charts, mut step) = (Vec::new(), 1);
    for (colour, side) in sides.iter().enumerate() {
        for workload in distinct(side.sweeps.iter().map(|s| s.workload.as_str())) {
            let tests: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == workload).collect();
            let lines = time_lines(side, &tests, colour);
            // Windows of a single row have no course.
            if lines.iter().all(|line| line.points.len() < 2) {
                continue;
            }
            let drawn = tests.iter().filter_map(|test| side.run.over_time.get(&test.test));
            step = drawn.map(|over_time| over_time.rows_per_point).fold(step, usize::max);
            let title = format!("{} – {workload}: throughput over time", side.label);
            let throughput = heading_of(THROUGHPUT, tests.iter().all(|t| t.group == "log-writer"));
            let labels = ["Time since window start [s]".to_owned(), throughput];
            charts.extend(svg::Chart::of_lines(title, labels, lines, (480.0, 220.0)).drawn());
        }
    }
    let many = charts.len() > MOST_OPEN;
    let folded = |charts| if many { Block::details("Charts of all workloads", vec![charts]) } else { charts };
    let legend = prose("over-time", context! { step });
    let blocks = Block::charts(2, charts).map(folded).into_iter().collect();
    Section::evidence("over-time", "Throughput over time", Block::explained(blocks, &legend))
}

fn time_lines(side: &PlatformRun<'_>, tests: &[&TestRecord], colour: usize) -> Vec<svg::ChartLine> {
    let order: BTreeSet<u32> = tests.iter().map(|t| swept_value(t)).collect();
    let repeated = tests.iter().any(|t| t.repetition > 1);
    let line = |test: &&TestRecord| {
        let over_time = side.run.over_time.get(&test.test)?;
        let rank = order.iter().position(|j| *j == swept_value(test)).unwrap_or(0) as f64;
        let share = if order.len() > 1 { rank / (order.len() - 1) as f64 } else { 1.0 };
        let jobs = place(test.swept().unwrap_or(JOBS), swept_value(test));
        let name = if repeated { format!("{jobs}, no. {}", test.repetition) } else { jobs };
        let line = svg::ChartLine::through(&name, colour, over_time.points.iter().copied());
        Some(svg::ChartLine { opacity: 0.4 + 0.6 * share, dashed: !test.is_usable(), ..line })
    };
    tests.iter().filter_map(line).collect()
}
