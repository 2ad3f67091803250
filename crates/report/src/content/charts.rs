//! Charts: figures over jobs with one line per platform, and throughput over time with one line per test.

use loadline_analyze::kpi::{LATENCY, RESPONSE, THROUGHPUT};
use loadline_analyze::sweep::{JOBS, swept_value};
use loadline_analyze::waits::{Bucket, Counts, label};
use loadline_analyze::{Interval, Sweep};
use loadline_model::column::{self, column};
use loadline_model::format::number;
use loadline_model::{Column, TestRecord};

use super::curves;
use super::figure::with_interval;
use crate::columns::{scale, value};
use crate::doc::{Block, Chart, Section};
use crate::platform_run::PlatformRun;
use crate::words::{heading_of, lower, place, swept, swept_title, title_of};
use crate::{svg, svg_cells};

/// Columns drawn for a workload whose records name no KPIs.
const USUAL: [&Column; 3] = [THROUGHPUT, LATENCY, column::REDO_MIB_PER_S];
/// Charts per row.
const PER_ROW: u8 = 3;
/// Ratio of the largest to the smallest swept value that makes the axis logarithmic.
const LOG_AXIS_RATIO: f64 = 16.0;
/// Most charts over time that are not folded away.
const MOST_OPEN: usize = 8;

/// Explains the charts of [`of_workload`], once per section.
pub(crate) const LEGEND: &str = "Axes start at zero unless they are logarithmic. Hollow markers are tests that no mean includes: invalid tests, and \
     cached ones next to tests with device figures. \
     Error bars are 95 % confidence intervals of the mean over repetitions.";

/// A workload's KPIs over jobs and other swept parameters, all platforms in each chart.
pub(crate) fn of_workload(sides: &[PlatformRun<'_>], workload: &str) -> Option<Block> {
    let sweeps = || sides.iter().flat_map(|s| &s.sweeps).filter(|s| s.workload == workload);
    let mut overs: Vec<&str> = Vec::new();
    for sweep in sweeps() {
        if !overs.contains(&sweep.over.as_str()) {
            overs.push(&sweep.over);
        }
    }
    let named = sweeps().map(|s| &s.kpis).find(|kpis| !kpis.is_empty());
    let columns: Vec<&'static Column> =
        named.map_or(USUAL.to_vec(), |kpis| kpis.iter().filter_map(|id| column(id)).collect());
    let log = sweeps().all(|s| s.group == "log-writer");
    let mut charts = Vec::new();
    for over in overs {
        let drawn = columns.iter().filter_map(|column| {
            let title = format!("{workload}: {} over {}", lower(title_of(column, log)), swept(over));
            let svg = sweep_chart(sides, workload, over, (column, log), &title)?.svg()?;
            Some(Chart { svg })
        });
        charts.extend(drawn);
    }
    charts.extend(curves::of_workload(sides, workload));
    (!charts.is_empty()).then_some(Block::Charts { charts, per_row: PER_ROW })
}

/// `None` if all values are 0 or no sweep has more than one point.
fn sweep_chart(
    sides: &[PlatformRun<'_>],
    workload: &str,
    over: &str,
    (column, log): (&Column, bool),
    title: &str,
) -> Option<svg::Chart> {
    let mut lines = Vec::new();
    for side in sides {
        let own: Vec<&Sweep> = side.sweeps.iter().filter(|s| s.workload == workload && s.over == over).collect();
        for sweep in &own {
            let name = match own.len() {
                1 => side.label.clone(),
                _ => format!("{} ({} driver)", side.label, sweep.driver),
            };
            lines.push((name, *sweep));
        }
    }
    if !lines.iter().any(|(_, sweep)| sweep.points.len() > 1) {
        return None;
    }
    let places = || lines.iter().flat_map(|(_, s)| &s.points).map(|p| f64::from(p.at));
    let (least, most) = (places().fold(f64::MAX, f64::min), places().fold(0.0, f64::max));
    let log_x = over != JOBS && least > 0.0 && most / least >= LOG_AXIS_RATIO;
    let one = lines.len() == 1;
    let lines: Vec<svg::ChartLine> = lines
        .into_iter()
        .enumerate()
        .map(|(colour, (name, sweep))| sweep_line(name, sweep, column, colour))
        .filter(|l| !l.points.is_empty() || !l.hollow.is_empty())
        .collect();
    if lines.iter().flat_map(|l| l.points.iter().chain(&l.hollow)).all(|p| p.y == 0.0) {
        return None;
    }
    Some(svg::Chart {
        title: title.to_owned(),
        x_label: if log_x { format!("{} (logarithmic)", swept_title(over)) } else { swept_title(over) },
        y_label: heading_of(column, log),
        lines,
        markers: true,
        whole_x: true,
        log_x,
        unnamed: sides.len() == 1 && one,
        width: 400.0,
        height: 270.0,
        ..svg::Chart::default()
    })
}

fn sweep_line(name: String, sweep: &Sweep, column: &Column, colour: usize) -> svg::ChartLine {
    // The axis has the unit shown, which may differ from the stored one.
    let scale = scale(column);
    let tip = |at: u32, shown: &str| format!("{name}, {}: {shown} {}", place(&sweep.over, at), column.unit);
    let points = sweep
        .points
        .iter()
        .filter_map(|p| {
            let e = p.figure(column)?;
            let bar = e.interval().map(|Interval { low, high }| (low.max(0.0) * scale, high * scale));
            let tip = tip(p.at, &with_interval(column, e));
            Some(svg::ChartPoint { x: f64::from(p.at), y: e.mean * scale, bar, tip })
        })
        .collect();
    let hollow = sweep
        .points
        .iter()
        .flat_map(|p| p.invalid.iter().map(move |i| (p.at, i)))
        .filter_map(|(at, i)| {
            let y = *i.figures.get(column.id)?;
            let tip = format!("{} (test {} is invalid: {})", tip(at, &value(column, y)), i.test, i.reason);
            Some(svg::ChartPoint { x: f64::from(at), y: y * scale, bar: None, tip })
        })
        .collect::<Vec<_>>();
    let aside = sweep.points.iter().flat_map(|p| p.set_aside.iter().map(move |s| (p.at, s))).filter_map(|(at, s)| {
        let y = *s.figures.get(column.id)?;
        let why = s.kept().unwrap_or_else(|| "its blocks have another source".to_owned());
        let tip = format!("{} (test {} is not part of the mean: {why})", tip(at, &value(column, y)), s.test);
        Some(svg::ChartPoint { x: f64::from(at), y: y * scale, bar: None, tip })
    });
    let hollow = hollow.into_iter().chain(aside).collect();
    svg::ChartLine { name: name.clone(), points, hollow, colour, opacity: 1.0, ..svg::ChartLine::default() }
}

/// How transaction times spread over jobs, and what sessions waited for, for each platform with several numbers of jobs.
pub(crate) fn spread_and_waits(sides: &[PlatformRun<'_>], workload: &str) -> Option<Block> {
    let mut charts = Vec::new();
    for side in sides {
        let valid = |r: &&TestRecord| r.valid && r.workload == workload && r.swept.is_none();
        let tests: Vec<&TestRecord> = side.run.records.iter().filter(valid).collect();
        let mut jobs: Vec<u32> = tests.iter().map(|r| r.jobs).collect();
        jobs.sort_unstable();
        jobs.dedup();
        // Tests of other kinds are not one sweep: drivers, nodes, rates.
        let alike = tests.windows(2).all(|pair| (pair[0].driver, pair[0].nodes) == (pair[1].driver, pair[1].nodes));
        let open = tests.iter().any(|r| r.figure(RESPONSE).is_some());
        if jobs.len() < 2 || !alike || open {
            continue;
        }
        let of = if sides.len() > 1 { format!("{} – ", side.label) } else { String::new() };
        let at: Vec<Vec<&TestRecord>> =
            jobs.iter().map(|n| tests.iter().copied().filter(|r| r.jobs == *n).collect()).collect();
        let columns: Vec<String> = jobs.iter().map(u32::to_string).collect();
        charts.extend(spread(
            side,
            &at,
            &columns,
            &format!("{of}{workload}: transaction times, share of each number of jobs"),
        ));
        charts.extend(wait_stack(&at, &columns, &format!("{of}{workload}: what sessions did")));
    }
    let charts: Vec<Chart> = charts.into_iter().map(|svg| Chart { svg }).collect();
    (!charts.is_empty()).then_some(Block::Charts { charts, per_row: 2 })
}

/// Heat map of the transaction times of the tests `at` each number of jobs.
fn spread(side: &PlatformRun<'_>, at: &[Vec<&TestRecord>], columns: &[String], title: &str) -> Option<String> {
    let counted = |tests: &Vec<&TestRecord>| {
        let mut all = Counts::default();
        let of_tests = tests.iter().filter_map(|r| side.run.histograms.get(&r.test)).flatten();
        of_tests.filter(|(kind, _)| kind == "transaction").for_each(|(_, counts)| all.merge(counts));
        all.buckets()
    };
    let buckets: Vec<_> = at.iter().map(counted).collect();
    let powers = || buckets.iter().flatten().map(|b| b.power);
    let (low, high) = (powers().min()?, powers().max()?);
    let rows: Vec<String> = (low..=high).map(|power| format!("≤ {}", label(power))).collect();
    let cell = |of: &[Bucket], power: u32, jobs: &str| {
        let bucket = of.iter().find(|b| b.power == power)?;
        Some((bucket.share_pct, format!("{jobs} jobs, up to {}: {} %", bucket.label(), number(bucket.share_pct, 3))))
    };
    let shares: Vec<Vec<_>> =
        buckets.iter().zip(columns).map(|(of, jobs)| (low..=high).map(|p| cell(of, p, jobs)).collect()).collect();
    svg_cells::heat(title, "Jobs", columns, &rows, &shares)
}

/// Stacked bars of the mean number of sessions in each wait; the smallest are one.
fn wait_stack(at: &[Vec<&TestRecord>], columns: &[String], title: &str) -> Option<String> {
    let mut events: Vec<(&str, f64)> = Vec::new();
    let mean = |tests: &[&TestRecord], event: &str| {
        let known: Vec<f64> = tests.iter().filter_map(|r| r.waits.mean_sessions(&[event])).collect();
        loadline_analyze::stats::mean(&known).unwrap_or(0.0)
    };
    for tests in at {
        for event in tests.iter().flat_map(|r| r.waits.sessions.keys()) {
            if !events.iter().any(|(known, _)| known == event) {
                events.push((event, at.iter().map(|tests| mean(tests, event)).sum()));
            }
        }
    }
    events.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let rest = events.split_off(events.len().min(svg::COLOURS - 1));
    let mut parts: Vec<String> = events.iter().map(|(event, _)| (*event).to_owned()).collect();
    if !rest.is_empty() {
        parts.push(format!("{} others", rest.len()));
    }
    let heights = at.iter().map(|tests| {
        let mut column: Vec<f64> = events.iter().map(|(event, _)| mean(tests, event)).collect();
        if !rest.is_empty() {
            column.push(rest.iter().map(|(event, _)| mean(tests, event)).sum());
        }
        column
    });
    svg_cells::stacked(title, ("Jobs", "Mean sessions, sampled"), columns, &parts, &heights.collect::<Vec<_>>())
}

/// Throughput over time by platform and workload, one line per test.
pub(crate) fn over_time(sides: &[PlatformRun<'_>]) -> Section {
    let mut charts = Vec::new();
    let mut longest_step = 0.0f64;
    for (colour, side) in sides.iter().enumerate() {
        let mut workloads: Vec<&str> = side.sweeps.iter().map(|s| s.workload.as_str()).collect();
        workloads.dedup();
        let mut once: Vec<&str> = Vec::new();
        for workload in workloads {
            if once.contains(&workload) {
                continue;
            }
            once.push(workload);
            let tests: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == workload).collect();
            let title = format!("{} – {workload}: throughput over time", side.label);
            let log = tests.iter().all(|t| t.group == "log-writer");
            let (lines, step) = time_lines(side, &tests, colour);
            longest_step = longest_step.max(step);
            let chart = svg::Chart {
                title,
                x_label: "Time since window start [s]".to_owned(),
                y_label: heading_of(THROUGHPUT, log),
                lines,
                markers: false,
                whole_x: false,
                width: 600.0,
                height: 250.0,
                ..svg::Chart::default()
            };
            charts.extend(chart.svg().map(|svg| Chart { svg }));
        }
    }
    let mut blocks = Vec::new();
    if !charts.is_empty() {
        let many = charts.len() > MOST_OPEN;
        let charts_of_all = Block::Charts { charts, per_row: 2 };
        blocks.push(if many {
            Block::Details { summary: "Charts of all workloads".to_owned(), blocks: vec![charts_of_all] }
        } else {
            charts_of_all
        });
        let averaged = if longest_step > 1.0 {
            format!(" Long tests are averaged: up to {longest_step:.0} rows of the series per point.")
        } else {
            String::new()
        };
        blocks.push(Block::para(format!(
            "One line per test, labelled with its job count (or swept value); a darker line is a higher count. Dashed lines are invalid \
             tests. Warm-up is not shown.{averaged}"
        )));
    }
    Section { in_text: false, ..Section::of("over-time", "Throughput over time", blocks) }
}

/// One line per test with a series, and the most rows averaged into one point.
fn time_lines(side: &PlatformRun<'_>, tests: &[&TestRecord], colour: usize) -> (Vec<svg::ChartLine>, f64) {
    let mut order: Vec<u32> = tests.iter().map(|t| swept_value(t)).collect();
    order.sort_unstable();
    order.dedup();
    let repeated = tests.iter().any(|t| t.repetition > 1);
    let mut step = 0.0f64;
    let lines = tests
        .iter()
        .filter_map(|test| {
            let over_time = side.run.over_time.get(&test.test)?;
            step = step.max(over_time.rows_per_point as f64);
            let point = |(x, y): &(f64, f64)| svg::ChartPoint { x: *x, y: *y, bar: None, tip: String::new() };
            let points = over_time.points.iter().map(point).collect();
            let rank = order.iter().position(|j| *j == swept_value(test)).unwrap_or(0) as f64;
            let share = if order.len() > 1 { rank / (order.len() - 1) as f64 } else { 1.0 };
            let jobs = place(test.swept.as_deref().unwrap_or(JOBS), swept_value(test));
            let name = if repeated { format!("{jobs}, no. {}", test.repetition) } else { jobs };
            Some(svg::ChartLine {
                name,
                points,
                hollow: Vec::new(),
                colour,
                opacity: 0.4 + 0.6 * share,
                dashed: !test.valid,
                ..svg::ChartLine::default()
            })
        })
        .filter(|l| !l.points.is_empty())
        .collect();
    (lines, step)
}
