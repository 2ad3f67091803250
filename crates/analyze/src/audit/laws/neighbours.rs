//! Figures that stand out in a sweep: a cell that is far off what the other tests give it, in a row where nothing else is.
//!
//! Each figure is predicted from the other rows, as a curve of its own and as a share of figures that it follows. How far the
//! other rows are off the same way says how far is far: deleted residuals against Student's t. `outlier.rs` has the statistics.

use super::outlier::{Point, Shape, Test, deleted};
use super::sweep::rising;
use crate::audit::context::Context;
use crate::audit::finding::Findings;
use crate::audit::interval::{Interval, Reading};
use crate::audit::sheet::How;

/// Figures that are curves over a sweep, besides those of [`FOLLOWING`]. Times of parts, shares and counts of odd things jump.
const CURVES: [&str; 8] = [
    "commit_throughput_tps", "tx_per_s", "queries_per_s", "commit_latency_ms", "transaction_time_ns_mean",
    "redo_write_time_us", "read_time_us_mean", "cpu_idle_pct",
];
/// A series this long is not searched: each row is compared with all others.
const LONGEST: usize = 200;
/// Fewest tests of a sweep: three that agree and one that does not.
const FEWEST: usize = 4;

/// Figures that must not turn at an end of a sweep for another one to stand out there.
const WITNESSES: usize = 3;

/// Figures that follow others: their ids, or the beginnings of them; whom they follow, the closest first; and how closely.
const FOLLOWING: [(&[&str], &[&str], Shape); 6] = [
    (
        &["transaction_time_ns_"],
        &["commit_latency_ms", "transaction_time_ns_mean", "transaction_time_ns_p50", "transaction_time_ns_p99"],
        Shape::Slow,
    ),
    (&["log_file_sync_ms", "redo_sync_time_us"], &["commit_latency_ms", "redo_write_time_us"], Shape::Bends),
    (&["cpu_user_pct", "cpu_sys_pct"], &["cpu_busy_pct", "tps"], Shape::Slow),
    (
        &["redo_writes_per_s", "redo_sync_writes_per_s", "redo_blocks_per_s"],
        &["tps", "redo_sync_writes_per_s", "redo_mib_per_s"],
        Shape::Bends,
    ),
    (
        &["physical_writes_per_s", "physical_written_mib_per_s", "block_reads_per_s", "cpu_busy_pct"],
        &["tps", "redo_mib_per_s", "rows_per_s"],
        Shape::Slow,
    ),
    (&["redo_mib_per_s", "rows_per_s"], &["tps", "rows_per_s"], Shape::Same),
];

/// A figure in all tests of a sweep, or its share of another one.
struct Curve {
    id: &'static str,
    /// What it is a share of; empty if it is the figure itself.
    of: &'static str,
    shape: Shape,
    points: Vec<Point>,
}

/// A cell that stands out.
struct Found {
    id: &'static str,
    of: &'static str,
    /// Logarithm of what it is times what the others give it.
    off: f64,
}

pub(super) fn neighbours(context: &Context<'_>, findings: &mut Findings) {
    let swept = context.sheet.swept();
    for series in context.series.iter().filter(|s| (FEWEST..=LONGEST).contains(&s.rows.len())) {
        // Without a setting, the order of the rows is that of the tests, if they are such.
        let jobs = |row: &usize| context.jobs(*row, Reading::Rounded).map(|jobs| jobs.at);
        let own = context.sheet.columns.iter().all(|c| c.how != How::Inferred);
        let in_order = || {
            let mut rows: Vec<(usize, f64)> = match context.sessions {
                Some(_) => series.rows.iter().filter_map(|row| Some((*row, jobs(row)?))).collect(),
                None if own => series.rows.iter().zip(1u32..).map(|(row, n)| (*row, f64::from(n).exp())).collect(),
                None => Vec::new(),
            };
            rows.sort_by(|a, b| a.1.total_cmp(&b.1));
            rows
        };
        let rows = swept.map_or_else(in_order, |swept| rising(context, series, swept));
        // Repetitions are no curve.
        if rows.len() < FEWEST || !rows.windows(2).all(|w| matches!(w, [a, b] if b.1 > a.1)) {
            continue;
        }
        let curves = curves(context, &rows);
        let tests: Vec<Vec<Option<Test>>> = curves.iter().map(|c| deleted(&c.points, rows.len(), c.shape)).collect();
        for (at, (row, _)) in rows.iter().enumerate() {
            let Some(f) = culprit(standing_out(&curves, &tests, at)) else { continue };
            let text = if f.of.is_empty() {
                format!("{} does not lie on the curve through the other tests", f.id)
            } else {
                format!("{} does not follow {} as in the other tests", f.id, f.of)
            };
            let expected = context.interval(f.id, *row, Reading::Rounded);
            let expected = expected.map(|v| load(f.id, load(f.id, v).scaled((-f.off).exp())).at);
            let columns = [swept.unwrap_or(""), f.id, f.of];
            context.warn(findings, ("neighbours", *row), (&columns, f.id), expected, text);
        }
    }
}

fn curves(context: &Context<'_>, rows: &[(usize, f64)]) -> Vec<Curve> {
    let mut all = Vec::new();
    for id in context.sheet.columns.iter().map(|c| c.id) {
        let follows = |ends: &&[&str]| ends.iter().any(|e| *e == id || (e.ends_with('_') && id.starts_with(e)));
        if !CURVES.contains(&id) && !FOLLOWING.iter().any(|(ends, ..)| follows(ends)) {
            continue;
        }
        all.push(Curve { id, of: "", shape: Shape::Bends, points: points(context, rows, id, None) });
        for (_, wholes, shape) in FOLLOWING.iter().filter(|(ends, ..)| follows(ends)) {
            let wholes = wholes.iter().filter_map(|w| context.resolve(w)).filter(|w| *w != id).take(2);
            let curve = |of| Curve { id, of, shape: *shape, points: points(context, rows, id, Some(of)) };
            all.extend(wholes.map(curve));
        }
    }
    all
}

fn points(context: &Context<'_>, rows: &[(usize, f64)], id: &'static str, of: Option<&'static str>) -> Vec<Point> {
    // Cells of one digit say nothing of a curve, and without them the rest is another curve.
    let log = |id: &'static str, row: usize| {
        let figure = load(id, context.interval(id, row, Reading::Loose)?);
        let half = (figure.high - figure.low) / 2.0 / figure.at;
        Some((figure.at.ln(), if figure.low > 0.0 && half < 0.2 { half } else { f64::NAN }))
    };
    let point = |(at, (row, setting)): (usize, &(usize, f64))| {
        let (y, half) = log(id, *row)?;
        let (below, wide) = of.map_or(Some((0.0, 0.0)), |of| log(of, *row))?;
        Some(Point { at, x: setting.ln(), y: y - below, half: half + wide })
    };
    let all: Vec<Point> = rows.iter().enumerate().filter_map(point).collect();
    if all.iter().any(|p| p.half.is_nan()) { Vec::new() } else { all }
}

/// Idle time has no logarithm under full load: what is not idle has.
fn load(id: &str, figure: Interval) -> Interval {
    if id == "cpu_idle_pct" { Interval::exact(100.0).minus(figure) } else { figure }
}

/// The cells of row `at` that stand out, each by the curve that would show the least deviation.
fn standing_out(curves: &[Curve], tests: &[Vec<Option<Test>>], at: usize) -> Vec<Found> {
    let of_row: Vec<(&Curve, Test)> =
        curves.iter().zip(tests).filter_map(|(c, t)| Some((c, t.get(at).copied().flatten()?))).collect();
    let by = |a: &&(&Curve, Test), b: &&(&Curve, Test)| a.1.own_limit().total_cmp(&b.1.own_limit());
    let best: Vec<&(&Curve, Test)> =
        of_row.chunk_by(|a, b| a.0.id == b.0.id).filter_map(|same| same.iter().min_by(by)).collect();
    // What the columns of this table scatter by on the whole, also by their bends: shares alone would cry on noisy tests.
    let mut spreads: Vec<f64> = best.iter().map(|(_, t)| t.spread).collect();
    spreads.sort_by(f64::total_cmp);
    let usual = spreads.get(spreads.len() / 2).copied().unwrap_or(0.0);
    // Where the platform turns, several figures do: a bend of one alone is none of it.
    let own = || of_row.iter().filter(|(c, _)| c.of.is_empty());
    let others = |id: &str| own().filter(|(c, _)| c.id != id).count();
    let turns = |id: &str| own().any(|(c, t)| c.id != id && t.off.abs() > t.limit(usual) / 2.0);
    let witnesses = |c: &Curve| c.of.is_empty() && others(c.id) >= WITNESSES;
    let alone = |c: &Curve, t: &Test| c.shape != Shape::Bends || !turns(c.id) && (t.inside || witnesses(c));
    let off = best.into_iter().filter(|(c, t)| {
        // Percentiles and parts of the CPU time have the heaviest tails.
        let tails = c.id.starts_with("transaction_time_ns_") || c.id.starts_with("cpu_");
        t.is_curve(usual, tails) && t.off.abs() > t.limit(usual) && alone(c, t)
    });
    off.map(|(c, t)| Found { id: c.id, of: c.of, off: t.off }).collect()
}

/// The one cell that explains all that stands out; `None` if nothing does, or if the test as a whole is another one.
fn culprit(found: Vec<Found>) -> Option<Found> {
    let explains = |id: &str| found.iter().all(|f| f.id == id || f.of == id);
    if let Some(at) = found.iter().position(|f| explains(f.id)) {
        return found.into_iter().nth(at);
    }
    let first = found.first()?;
    let of = first.of;
    (!of.is_empty() && explains(of)).then_some(Found { id: of, of: first.id, off: -first.off })
}
