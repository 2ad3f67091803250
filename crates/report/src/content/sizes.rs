//! Commit time over redo since the last commit: shape and charts.

use loadline_analyze::stats::quantile;
use loadline_analyze::{Shape, kept_test};
use loadline_model::disturbance::judged;
use loadline_model::format::{counted, duration_ns, number};
use loadline_model::limits::SizePoint;
use minijinja::context;

use crate::doc::{Block, Chart, Row, Section, Table};
use crate::platform_run::{PlatformRun, Scan, scanned};
use crate::spec::TableSpec;
use crate::svg;
use crate::templates::prose;

const MIB: f64 = 1024.0 * 1024.0;
/// End of the axis as a multiple of a curve that was fitted to a low quantile.
const CUT_OFF: f64 = 2.5;
const QUARTILES: [f64; 3] = [0.25, 0.5, 0.75];

/// The section: shapes, then a chart of each scan.
pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for workload in scanned(sides) {
        let scans: Vec<SideScan<'_>> = sides
            .iter()
            .enumerate()
            .flat_map(|(i, side)| side.scans.iter().map(move |scan| (i, side, scan)))
            .filter(|(.., scan)| scan.record.workload == workload)
            .collect();
        blocks.push(Block::Table(table(&scans, sides.len() > 1)));
        blocks.extend(idle_table(&scans, sides.len() > 1));
        let charts =
            scans.iter().filter(|scan| !is_idle(scan.2)).filter_map(|(colour, side, scan)| chart(*colour, side, scan));
        blocks.extend(Block::charts(2, charts));
    }
    let blocks = Block::explained(blocks, &prose("sizes", ()));
    Section::new("sizes", "Commit time over redo since the last commit", blocks)
}

/// A scan on its platform, with the platform's colour.
type SideScan<'a> = (usize, &'a PlatformRun<'a>, &'a Scan<'a>);

fn table(scans: &[SideScan<'_>], several: bool) -> Table {
    let row = |(_, side, scan): &SideScan<'_>| {
        let (r, sizes) = (scan.record, scan.record.sizes());
        let median = |of: fn(f64, f64) -> f64| drawn(sizes, QUARTILES).map(|(_, q)| q[1]).reduce(of);
        let bytes = sizes.iter().map(|p| p.redo_bytes).filter(|b| b.is_finite());
        let commits = || sizes.iter().map(|p| p.commit_ns.len());
        context! {
            workload => r.workload, several, label => side.label, test => r.test, sizes => sizes.len(),
            largest_mib => bytes.reduce(f64::max).map(|b| b / MIB),
            commits => [commits().min(), commits().max()],
            medians => [median(f64::min), median(f64::max)],
        }
    };
    let remark = |side: &PlatformRun<'_>, Scan { record: r, shape, cause }: &Scan<'_>| {
        let (label, shape) = (several.then_some(&side.label), shape.as_ref().map(|shape| prose("shape", shape)));
        let refused = (!r.is_usable()).then(|| judged(r));
        prose("remark-of-scan", context! { label, shape, cause, refused, test => r.test, kept => kept_test(r) })
    };
    TableSpec::new("key", scans)
        .columns("table of scans", row)
        .lines(|(_, side, scan)| Row {
            invalid: !scan.record.is_usable(),
            first: true,
            remark: remark(side, scan),
            ..Row::default()
        })
        .build()
}

/// Whether the scan is one over times since the last change.
fn is_idle(scan: &Scan<'_>) -> bool {
    scan.record.sizes().iter().any(|p| p.idle_s > 0.0)
}

/// The quartiles of the commit times after each idle time.
fn idle_table(scans: &[SideScan<'_>], several: bool) -> Option<Block> {
    let points = scans.iter().filter(|(.., scan)| is_idle(scan));
    let points =
        points.flat_map(|(_, side, scan)| drawn(scan.record.sizes(), QUARTILES).map(move |of| (*side, *scan, of)));
    let row = |(side, scan, (point, quartiles)): (&PlatformRun<'_>, &Scan<'_>, (&SizePoint, [f64; 3]))| {
        let (label, test, commits) = (&side.label, scan.record.test, point.commit_ns.len());
        context! { several, label, test, idle_s => point.idle_s, commits, quartiles }
    };
    Block::table(TableSpec::new("key", points).columns("table of idle times", row).build())
}

/// Sizes with three quantiles of their commit times, ns.
fn drawn(sizes: &[SizePoint], quantiles: [f64; 3]) -> impl Iterator<Item = (&SizePoint, [f64; 3])> {
    sizes.iter().filter_map(move |p| {
        let times: Vec<f64> = p.commit_ns.iter().map(|ns| *ns as f64).collect();
        let [a, b, c] = quantiles.map(|q| quantile(&times, q));
        Some((p, [a?, b?, c?]))
    })
}

/// Dots at the second of `quantiles`.
fn points(name: &str, scan: &Scan<'_>, quantiles: [f64; 3]) -> Vec<svg::ChartPoint> {
    let refused = if scan.record.is_usable() { "" } else { " (the test is refused)" };
    let quarters = drawn(scan.record.sizes(), QUARTILES);
    let dots = drawn(scan.record.sizes(), quantiles);
    dots.zip(quarters)
        .map(|((p, [_, dot, _]), (_, [low, middle, high]))| svg::ChartPoint {
            x: p.redo_bytes / MIB,
            y: dot / 1e6,
            bar: None,
            tip: format!(
                "{name}, {} MiB: median {}, half of {} between {} and {}{refused}",
                number(p.redo_bytes / MIB, 3),
                duration_ns(middle),
                counted(p.commit_ns.len(), "commit"),
                duration_ns(low),
                duration_ns(high)
            ),
        })
        .collect()
}

/// One scan: medians, quartiles and fit.
fn chart(colour: usize, side: &PlatformRun<'_>, scan: &Scan<'_>) -> Option<Chart> {
    let record = scan.record;
    let (name, fitted_to) = match &scan.shape {
        Some(Shape::Sawtooth { period_bytes, quantile, .. }) => {
            (format!("sawtooth of {} MiB", number(period_bytes / MIB, 3)), *quantile)
        }
        Some(Shape::Straight { quantile, .. }) => ("a straight line".to_owned(), *quantile),
        Some(Shape::Undecided { .. }) => ("nothing fitted".to_owned(), 0.5),
        None => ("refused".to_owned(), 0.5),
    };
    let of_quantile = match fitted_to {
        q if q >= 0.5 => "",
        q if q >= 0.25 => ", lower quartiles",
        _ => ", lowest deciles",
    };
    let fit = scan.shape.as_ref().map(|s| fitted(s, record.sizes())).unwrap_or_default();
    // Draws the fitted quantile; the medians lie far above a low one.
    let is_low = fitted_to < 0.5;
    let quantiles = if is_low { [fitted_to, fitted_to, 0.5] } else { QUARTILES };
    let y_end = if is_low { fit.iter().map(|f| f.1 * CUT_OFF).reduce(f64::max) } else { None };
    let dots = points(&side.label, scan, quantiles);
    let (points, hollow) = if record.is_usable() { (dots, Vec::new()) } else { (Vec::new(), dots) };
    let line = svg::ChartLine {
        name: name + of_quantile,
        colour,
        fit,
        points,
        hollow,
        band: drawn(record.sizes(), quantiles).map(|(p, q)| [p.redo_bytes / MIB, q[0] / 1e6, q[2] / 1e6]).collect(),
        ..svg::ChartLine::default()
    };
    let title = format!("{} – {}, test {}", side.label, record.workload, record.test);
    let time = if y_end.is_some() { "Commit time [ms], cut off above" } else { "Commit time [ms]" };
    let labels = ["Redo since the last commit [MiB]", time];
    let chart = svg::Chart::of_lines(title, labels, vec![line], (480.0, 250.0));
    svg::Chart { markers: true, dots: true, y_end, ..chart }.drawn()
}

/// Corners of the fitted curve: both ends, and both sides of each fall.
fn fitted(shape: &Shape, sizes: &[SizePoint]) -> Vec<(f64, f64)> {
    /// Most falls drawn: more would be a solid area.
    const MOST_FALLS: u32 = 400;
    let finite = || sizes.iter().map(|p| p.redo_bytes).filter(|b| b.is_finite());
    let (Some(first), Some(last)) = (finite().reduce(f64::min), finite().reduce(f64::max)) else { return Vec::new() };
    let mut at = vec![first];
    if let Shape::Sawtooth { period_bytes, first_fall_bytes, .. } = shape {
        // One byte before and one after each fall.
        let falls = (0..MOST_FALLS).map(|i| first_fall_bytes + f64::from(i) * period_bytes);
        at.extend(falls.filter(|f| *f > first + 1.0 && *f < last - 1.0).flat_map(|f| [f - 1.0, f + 1.0]));
    }
    at.push(last);
    at.into_iter().filter_map(|x| Some((x / MIB, shape.fitted_ns(x)?.max(0.0) / 1e6))).collect()
}
