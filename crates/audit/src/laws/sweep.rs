//! Curves over the jobs: throughput beyond its peak, and figures that stand out between their neighbours.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::Reading;
use crate::sheet::Series;

pub(crate) static SATURATION: Law = Law {
    id: "falling-throughput",
    name: "Throughput beyond its peak",
    formula: "tps does not fall as jobs rise, up to saturation",
    needs: &[&["jobs", "tps"]],
    tolerance: "0.5 %; always an info",
    meaning: "More jobs than the platform serves: they wait for each other, and throughput falls below its peak",
    check: Check::Own(saturation),
};

pub(crate) static NEIGHBOURS: Law = Law {
    id: "neighbours",
    name: "Curves do not jump",
    formula: "a figure lies near the line through its neighbours in the sweep, where all others do",
    needs: &[&["jobs"]],
    tolerance: "10 %, and four times the largest deviation of the other rows; at the ends 20 %. Only if no other figure of the test stands out as well; always a warning",
    meaning: "A wrong digit, or a test that something else disturbed",
    check: Check::Own(neighbours),
};

/// Rows of a series with its jobs, rising.
fn by_jobs(context: &Context<'_>, series: &Series) -> Vec<(usize, f64)> {
    let mut rows: Vec<(usize, f64)> = series
        .rows
        .iter()
        .filter_map(|r| Some((*r, context.value("jobs", *r)?)))
        .filter(|(_, jobs)| *jobs > 0.0)
        .collect();
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    rows
}

fn saturation(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept() != Some("jobs") {
        return;
    }
    for series in &context.series {
        let mut peak: Option<(f64, f64)> = None;
        for (row, jobs) in by_jobs(context, series) {
            let Some(tps) = context.interval("tps", row, Reading::Loose) else { continue };
            let Some((most, at)) = peak.filter(|(most, _)| *most > tps.low) else {
                peak = Some((tps.middle(), jobs));
                continue;
            };
            if jobs > at && tps.high < most * 0.995 && findings.wants(SATURATION.id, Severity::Info) {
                let text = format!(
                    "throughput falls: {} at {} jobs was its peak; beyond it the platform is saturated",
                    shown(most, 5),
                    shown(at, 4)
                );
                let columns = ["jobs", "tps"];
                findings.push(context.about_row(SATURATION.id, Severity::Info, row, &columns, "tps", Some(most), text));
            }
        }
    }
}

/// Columns that are settings or numbers of tests, and no curves.
const NO_CURVES: [&str; 12] = [
    "test",
    "run",
    "jobs",
    "nodes",
    "threads",
    "rows_per_tx",
    "elapsed_s",
    "repetition",
    "errors",
    "conflicts",
    "commits",
    "block_bytes",
];
/// A series this long is not searched: each row is compared with all others.
const LONGEST: usize = 200;
/// Relative deviation, as a logarithm, that is nothing special: between neighbours, and beyond them.
const BETWEEN: f64 = 0.1;
const BEYOND: f64 = 0.2;
/// Times by which a row must deviate more than any other.
const MORE: f64 = 4.0;

fn neighbours(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept() != Some("jobs") {
        return;
    }
    for series in context.series.iter().filter(|s| s.rows.len() <= LONGEST) {
        let rows = by_jobs(context, series);
        let curves =
            context.sheet.columns.iter().filter(|c| !NO_CURVES.contains(&c.id) && !crate::sheet::is_text(c.id));
        let mut found: Vec<(usize, &'static str, f64)> = Vec::new();
        for id in curves.map(|c| c.id) {
            let of = |(row, jobs): &(usize, f64)| {
                let figure = context.interval(id, *row, Reading::Loose)?;
                let half = (figure.high - figure.low) / 2.0 / figure.middle();
                // Cells of one digit say nothing of a curve.
                (figure.low > 0.0 && half < 0.2).then(|| Point {
                    row: *row,
                    x: jobs.ln(),
                    y: figure.middle().ln(),
                    half,
                })
            };
            let points: Vec<Point> = rows.iter().filter_map(of).collect();
            let distinct = points.windows(2).all(|w| matches!(w, [a, b] if b.x > a.x));
            // A column with holes is not a curve, nor are repetitions.
            if points.len() >= 6 && points.len() == rows.len() && distinct {
                found.extend(spike(&points).map(|(row, expected)| (row, id, expected)));
            }
        }
        for (row, id, expected) in &found {
            // Where several figures turn at once, it is the platform that does, and no digit is wrong.
            if found.iter().filter(|(other, ..)| other == row).count() > 1 {
                continue;
            }
            let text = format!("the curve through the other tests gives {}", shown(*expected, 3));
            let columns = ["jobs", *id];
            findings.push(context.about_row(
                NEIGHBOURS.id,
                Severity::Warning,
                *row,
                &columns,
                id,
                Some(*expected),
                text,
            ));
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Point {
    row: usize,
    x: f64,
    y: f64,
    half: f64,
}

/// How far `point` is from the line through two others.
fn off(point: Point, a: Point, b: Point) -> f64 {
    point.y - (a.y + (b.y - a.y) * (point.x - a.x) / (b.x - a.x))
}

/// Largest distance of any point from the line through its neighbours, and from that through the two at either side.
fn roughness(points: &[Point]) -> (f64, f64) {
    let (mut between, mut beyond) = (0.0f64, 0.0f64);
    for w in points.windows(3) {
        let [a, b, c] = *w else { continue };
        between = between.max(off(b, a, c).abs() - b.half);
        beyond = beyond.max(off(a, b, c).abs() - a.half).max(off(c, a, b).abs() - c.half);
    }
    (between, beyond)
}

/// The one point without which the others are a smooth curve, with the value that they give it.
fn spike(points: &[Point]) -> Option<(usize, f64)> {
    let mut found: Option<(f64, usize, f64)> = None;
    for at in 0..points.len() {
        let point = points[at];
        let others: Vec<Point> = points.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, p)| *p).collect();
        let (between, beyond) = roughness(&others);
        let last = others.len() - 1;
        // A line reaches no further beyond its points than they are apart.
        let near = |a: Point, b: Point| (point.x - a.x).abs() <= 1.2 * (b.x - a.x).abs();
        let (distance, limit) = match at {
            0 if !near(others[0], others[1]) => continue,
            0 => (off(point, others[0], others[1]), BEYOND + MORE * beyond),
            _ if at > last && !near(others[last], others[last - 1]) => continue,
            _ if at > last => (off(point, others[last - 1], others[last]), BEYOND + MORE * beyond),
            _ => (off(point, others[at - 1], others[at]), BETWEEN + MORE * between.max(0.0)),
        };
        let excess = (distance.abs() - point.half) / limit.max(f64::MIN_POSITIVE);
        if excess > 1.0 && found.is_none_or(|(most, ..)| excess > most) {
            found = Some((excess, point.row, (point.y - distance).exp()));
        }
    }
    found.map(|(_, row, expected)| (row, expected))
}
