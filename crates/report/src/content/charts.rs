//! Charts: figures over jobs with a line a platform, and throughput over time with a line a test.

use loadline_analyze::sweep::{LATENCY, THROUGHPUT};
use loadline_analyze::{Interval, Sweep};
use loadline_model::column::column;
use loadline_model::{Column, TestRecord};

use super::key::with_interval;
use crate::columns::value;
use crate::doc::{Block, Chart, Section};
use crate::side::Side;
use crate::svg;

/// Columns that are drawn over jobs, and the heading of their charts.
const OVER_JOBS: [(&str, &str); 3] =
    [(THROUGHPUT, "Throughput"), (LATENCY, "Commit latency"), ("redo_mib_per_s", "Redo")];
/// More points than this in a line are averaged: paper and eyes tell no more apart.
const MOST_POINTS: usize = 300;

/// Per workload: throughput, latency and redo over jobs, all platforms in each.
pub(crate) fn over_jobs(sides: &[Side<'_>], workloads: &[String]) -> Section {
    let mut blocks = Vec::new();
    for workload in workloads {
        let charts: Vec<Chart> = OVER_JOBS
            .iter()
            .filter_map(|(id, title)| {
                let column = column(id)?;
                let title = format!("{workload}: {} over jobs", title.to_lowercase());
                let svg = jobs_chart(sides, workload, column, &title).svg()?;
                Some(Chart { title, svg })
            })
            .collect();
        if !charts.is_empty() {
            blocks.push(Block::Charts { charts, per_row: 3 });
        }
    }
    if !blocks.is_empty() {
        blocks.push(Block::para(
            "Axes start at zero. Hollow markers are invalid tests: they are shown and feed nothing. Error bars are 95 % \
             confidence intervals of the mean over repetitions. Point at a marker for its figures.",
        ));
    }
    Section { id: "charts", title: "Charts".to_owned(), in_text: false, blocks }
}

fn jobs_chart(sides: &[Side<'_>], workload: &str, column: &Column, title: &str) -> svg::Chart {
    let mut lines = Vec::new();
    for side in sides {
        let of_workload: Vec<&Sweep> = side.sweeps.iter().filter(|s| s.workload == workload).collect();
        for sweep in &of_workload {
            let name = match of_workload.len() {
                1 => side.label.clone(),
                _ => format!("{} ({} driver)", side.label, sweep.driver),
            };
            lines.push((name, *sweep));
        }
    }
    let lines = lines
        .into_iter()
        .enumerate()
        .map(|(colour, (name, sweep))| sweep_line(name, sweep, column, colour))
        .filter(|l| !l.points.is_empty() || !l.hollow.is_empty())
        .collect();
    svg::Chart {
        title: title.to_owned(),
        x_label: column_title("jobs"),
        y_label: column.heading(),
        lines,
        markers: true,
        whole_x: true,
        width: 400.0,
        height: 270.0,
        ..svg::Chart::default()
    }
}

fn column_title(id: &str) -> String {
    column(id).map(Column::heading).unwrap_or_default()
}

fn sweep_line(name: String, sweep: &Sweep, column: &Column, colour: usize) -> svg::Line {
    let tip = |jobs: u32, shown: &str| format!("{name}, {jobs} jobs: {shown} {}", column.unit);
    let points = sweep
        .points
        .iter()
        .filter_map(|p| {
            let e = p.figure(column.id)?;
            let bar = e.interval().map(|Interval { low, high }| (low.max(0.0), high));
            let tip = tip(p.jobs, &with_interval(column, e));
            Some(svg::Point { x: f64::from(p.jobs), y: e.mean, bar, tip })
        })
        .collect();
    let hollow = sweep
        .points
        .iter()
        .flat_map(|p| p.invalid.iter().map(move |i| (p.jobs, i)))
        .filter_map(|(jobs, i)| {
            let y = *i.figures.get(column.id)?;
            let tip = format!("{} (test {} is invalid: {})", tip(jobs, &value(column, y)), i.test, i.reason);
            Some(svg::Point { x: f64::from(jobs), y, bar: None, tip })
        })
        .collect();
    svg::Line { name: name.clone(), points, hollow, colour, opacity: 1.0, ..svg::Line::default() }
}

/// Per platform and workload: throughput over time, a line a test.
pub(crate) fn over_time(sides: &[Side<'_>]) -> Section {
    let mut charts = Vec::new();
    let mut longest_step = 0.0f64;
    for (colour, side) in sides.iter().enumerate() {
        let mut workloads: Vec<&str> = side.sweeps.iter().map(|s| s.workload.as_str()).collect();
        workloads.dedup();
        for workload in workloads {
            let tests: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == workload).collect();
            let title = format!("{} – {workload}: throughput over time", side.label);
            let (lines, step) = time_lines(side, &tests, colour);
            longest_step = longest_step.max(step);
            let chart = svg::Chart {
                title: title.clone(),
                x_label: "Time since the window opened [s]".to_owned(),
                y_label: column_title(THROUGHPUT),
                lines,
                markers: false,
                whole_x: false,
                width: 600.0,
                height: 250.0,
                ..svg::Chart::default()
            };
            charts.extend(chart.svg().map(|svg| Chart { title, svg }));
        }
    }
    let mut blocks = Vec::new();
    if !charts.is_empty() {
        blocks.push(Block::Charts { charts, per_row: 2 });
        let averaged = if longest_step > 1.0 {
            format!(" Long tests are averaged: up to {longest_step:.0} rows of the series to a point.")
        } else {
            String::new()
        };
        blocks.push(Block::para(format!(
            "One line a test, named by its job count; the more jobs, the darker. Broken lines are invalid tests. Warm-up is \
             left out.{averaged}"
        )));
    }
    Section { id: "over-time", title: "Throughput over time".to_owned(), in_text: false, blocks }
}

/// A line a test that has a series, and how many rows stand behind a point at most.
fn time_lines(side: &Side<'_>, tests: &[&TestRecord], colour: usize) -> (Vec<svg::Line>, f64) {
    let mut order: Vec<u32> = tests.iter().map(|t| t.jobs).collect();
    order.sort_unstable();
    order.dedup();
    let repeated = tests.iter().any(|t| t.repetition > 1);
    let mut step = 0.0f64;
    let lines = tests
        .iter()
        .filter_map(|test| {
            let series = side.run.series.get(&test.test)?;
            let (times, values) = (series.column("t_s")?, series.column(THROUGHPUT)?);
            let rows: Vec<(f64, f64)> = times
                .into_iter()
                .zip(values)
                .filter_map(|(t, v)| Some((t?, v?)))
                .filter(|(t, v)| *t >= 0.0 && v.is_finite())
                .collect();
            let per_point = rows.len().div_ceil(MOST_POINTS).max(1);
            step = step.max(per_point as f64);
            let points = rows
                .chunks(per_point)
                .map(|chunk| {
                    let n = chunk.len() as f64;
                    let sum = chunk.iter().fold((0.0, 0.0), |a, r| (a.0 + r.0 / n, a.1 + r.1 / n));
                    svg::Point { x: sum.0, y: sum.1, bar: None, tip: String::new() }
                })
                .collect();
            let rank = order.iter().position(|j| *j == test.jobs).unwrap_or(0) as f64;
            let share = if order.len() > 1 { rank / (order.len() - 1) as f64 } else { 1.0 };
            let jobs = super::count(test.jobs as usize, "job", "jobs");
            let name = if repeated { format!("{jobs}, no. {}", test.repetition) } else { jobs };
            Some(svg::Line {
                name,
                points,
                hollow: Vec::new(),
                colour,
                opacity: 0.4 + 0.6 * share,
                dashed: !test.valid,
                ..svg::Line::default()
            })
        })
        .filter(|l| !l.points.is_empty())
        .collect();
    (lines, step)
}
