//! Curves over the jobs: throughput beyond its peak, and figures that stand out between their neighbours.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::Reading;
use crate::sheet::{Series, is_text};

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
    needs: &[&["jobs"], &["rows_per_tx"], &["threads"], &["rate_tps"]],
    tolerance: "10 %, at the ends 20 %, and four times the largest deviation of the other rows; if no other figure of the test stands out as well. 4 %, at the ends 8 %, of what follows another figure (percentiles the mean, writes the throughput). Always a warning",
    meaning: "A wrong digit, or a test that something else disturbed",
    check: Check::Own(neighbours),
};

/// Rows of a series with what they are swept over, rising.
fn rising(context: &Context<'_>, series: &Series, swept: &'static str) -> Vec<(usize, f64)> {
    let mut rows: Vec<(usize, f64)> = series
        .rows
        .iter()
        .filter_map(|r| Some((*r, context.value(swept, *r)?)))
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
        for (row, jobs) in rising(context, series, "jobs") {
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
/// Times by which a row must deviate more than any other.
const MORE: f64 = 4.0;

/// What is nothing special in a curve.
struct Limits {
    /// Fewest points.
    points: usize,
    /// Deviation from the line through its neighbours, as a logarithm.
    between: f64,
    /// The same beyond the last two.
    beyond: f64,
    /// How far a line reaches beyond its points, in their distance.
    reach: f64,
}

/// A figure itself: it bends where the platform does.
const FIGURE: Limits = Limits { points: 6, between: 0.1, beyond: 0.2, reach: 1.2 };
/// A figure as a share of another one, which follows the same bends.
const SHARE: Limits = Limits { points: 5, between: 0.04, beyond: 0.08, reach: 2.0 };

/// Figures that follow others: the first of the right ones that a table has.
const FOLLOWING: [(&[&str], &[&str]); 3] = [
    (
        &[
            "transaction_time_ns_min",
            "transaction_time_ns_p50",
            "transaction_time_ns_p75",
            "transaction_time_ns_p90",
            "transaction_time_ns_p95",
            "transaction_time_ns_p99",
            "transaction_time_ns_max",
        ],
        &["commit_latency_ms", "transaction_time_ns_mean", "transaction_time_ns_p50", "transaction_time_ns_p95"],
    ),
    (
        &["commit_time_ns_p50", "commit_time_ns_p99", "commit_time_ns_max"],
        &["commit_time_ns_mean", "commit_time_ns_p50"],
    ),
    (
        &[
            "redo_sync_writes_per_s",
            "redo_blocks_per_s",
            "redo_mib_per_s",
            "rows_per_s",
            "physical_writes_per_s",
            "physical_written_mib_per_s",
            "block_reads_per_s",
            "cpu_busy_pct",
        ],
        &["tps", "redo_sync_writes_per_s", "redo_mib_per_s", "rows_per_s"],
    ),
];

fn neighbours(context: &Context<'_>, findings: &mut Findings) {
    let Some(swept) = context.sheet.swept() else { return };
    for series in context.series.iter().filter(|s| s.rows.len() <= LONGEST) {
        let rows = rising(context, series, swept);
        // A column with holes is not a curve, nor are repetitions.
        if rows.len() < SHARE.points || !rows.windows(2).all(|w| matches!(w, [a, b] if b.1 > a.1)) {
            continue;
        }
        let mut found = figures(context, &rows);
        found.extend(shares(context, &rows));
        found.sort_by_key(|f| f.row);
        found.dedup_by_key(|f| f.row);
        for f in found {
            let text = if f.of.is_empty() {
                "it does not lie on the curve through the other tests".to_owned()
            } else {
                format!("it does not follow {} as in the other tests", f.of)
            };
            let columns = [swept, f.id, f.of];
            let (row, expected) = (f.row, Some(f.expected));
            findings.push(context.about_row(NEIGHBOURS.id, Severity::Warning, row, &columns, f.id, expected, text));
        }
    }
}

/// A figure that stands out.
struct Found {
    row: usize,
    id: &'static str,
    /// What it was a share of; empty if it stands out itself.
    of: &'static str,
    expected: f64,
}

fn points(context: &Context<'_>, rows: &[(usize, f64)], id: &'static str, of: Option<&'static str>) -> Vec<Point> {
    let log = |id: &'static str, row: usize| {
        let figure = context.interval(id, row, Reading::Loose)?;
        let half = (figure.high - figure.low) / 2.0 / figure.middle();
        // Cells of one digit say nothing of a curve.
        (figure.low > 0.0 && half < 0.2).then(|| (figure.middle().ln(), half))
    };
    let point = |(row, jobs): &(usize, f64)| {
        let (y, half) = log(id, *row)?;
        let (below, wide) = of.map_or(Some((0.0, 0.0)), |of| log(of, *row))?;
        Some(Point { row: *row, x: jobs.ln(), y: y - below, half: half + wide })
    };
    let all: Vec<Point> = rows.iter().filter_map(point).collect();
    if all.len() == rows.len() { all } else { Vec::new() }
}

fn figures(context: &Context<'_>, rows: &[(usize, f64)]) -> Vec<Found> {
    let curves = context.sheet.columns.iter().map(|c| c.id).filter(|id| !NO_CURVES.contains(id) && !is_text(id));
    let spikes = curves.filter_map(|id| {
        let (row, expected) = spike(&points(context, rows, id, None), &FIGURE)?;
        Some(Found { row, id, of: "", expected: expected.exp() })
    });
    let all: Vec<Found> = spikes.collect();
    // Where several figures turn at once, it is the platform that does, and no digit is wrong.
    let count = |row: usize| all.iter().filter(|f| f.row == row).count();
    let alone: Vec<bool> = all.iter().map(|f| count(f.row) == 1).collect();
    all.into_iter().zip(alone).filter(|(_, alone)| *alone).map(|(f, _)| f).collect()
}

fn shares(context: &Context<'_>, rows: &[(usize, f64)]) -> Vec<Found> {
    let mut all = Vec::new();
    for (ids, wholes) in FOLLOWING {
        for id in ids.iter().copied().filter(|id| context.has(id)) {
            let Some(of) = wholes.iter().copied().filter(|w| *w != id).find_map(|w| context.resolve(w)) else {
                continue;
            };
            if let Some((row, share)) = spike(&points(context, rows, id, Some(of)), &SHARE) {
                let expected = context.value(of, row).map_or(0.0, |whole| share.exp() * whole);
                all.push(Found { row, id, of, expected });
            }
        }
    }
    all
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

/// The one point without which the others are a smooth curve, with the logarithm that they give it.
fn spike(points: &[Point], limits: &Limits) -> Option<(usize, f64)> {
    if points.len() < limits.points {
        return None;
    }
    let mut found: Option<(f64, usize, f64)> = None;
    for at in 0..points.len() {
        let point = points[at];
        let others: Vec<Point> = points.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, p)| *p).collect();
        let (between, beyond) = roughness(&others);
        let last = others.len() - 1;
        let near = |a: Point, b: Point| (point.x - a.x).abs() <= limits.reach * (b.x - a.x).abs();
        let (distance, limit) = match at {
            0 if !near(others[0], others[1]) => continue,
            0 => (off(point, others[0], others[1]), limits.beyond + MORE * beyond.max(0.0)),
            _ if at > last && !near(others[last], others[last - 1]) => continue,
            _ if at > last => (off(point, others[last - 1], others[last]), limits.beyond + MORE * beyond.max(0.0)),
            _ => (off(point, others[at - 1], others[at]), limits.between + MORE * between.max(0.0)),
        };
        let neighbour = others[at.min(last)].half;
        let excess = (distance.abs() - point.half - neighbour) / limit;
        if excess > 1.0 && found.is_none_or(|(most, ..)| excess > most) {
            found = Some((excess, point.row, point.y - distance));
        }
    }
    found.map(|(_, row, expected)| (row, expected))
}
