//! Charts that people of the field know: latency over throughput, speed-up against the ideal, share of the limit.

use loadline_analyze::kpi::{LATENCY, RESPONSE};
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::format::{counted, number};
use loadline_model::{Column, column};

use super::figure::with_interval;
use crate::bars::lying;
use crate::canvas::COLOURS;
use crate::columns::{scale, value};
use crate::doc::{Block, Chart, Section};
use crate::platform_run::{PlatformRun, swept};
use crate::svg;
use crate::templates::prose;
use crate::words::{place, short_name, unit};

const FEWEST: usize = 3;
const MOST_IN_SUMMARY: usize = 12;

/// The charts of a summary: shares of the limit, then some curves, load lines first.
pub(crate) fn summary(sides: &[PlatformRun<'_>]) -> Section {
    let workloads = swept(sides);
    let lines = workloads.iter().filter_map(|w| load_line(sides, w));
    let ups = workloads.iter().filter_map(|w| speed_up(sides, w));
    let charts = Block::charts(3, lines.chain(ups).take(MOST_IN_SUMMARY));
    let legend = charts.is_some().then(|| Block::Legend { text: prose("curves", ()) });
    let blocks = Block::charts(2, shares(sides)).into_iter().chain(charts).chain(legend).collect();
    Section { group: true, ..Section::evidence("curves", "Load lines as charts", blocks) }
}

/// Load line and speed-up of a workload.
pub(crate) fn of_workload(sides: &[PlatformRun<'_>], workload: &str) -> Vec<Chart> {
    [load_line(sides, workload), speed_up(sides, workload)].into_iter().flatten().collect()
}

/// The sweeps of `workload` over jobs in a closed loop, with the name and colour of their line.
fn over_jobs<'a>(sides: &'a [PlatformRun<'_>], workload: &str) -> Vec<(String, usize, &'a Sweep)> {
    let mut out = Vec::new();
    for (colour, side) in sides.iter().enumerate() {
        let own = side.sweeps.iter().filter(|s| s.workload == workload && s.over_jobs());
        for sweep in own {
            let what = short_name(sweep, &side.sweeps);
            let name = match what.strip_prefix(workload).map(str::trim).filter(|more| !more.is_empty()) {
                Some(more) => format!("{} {more}", side.label),
                None => side.label.clone(),
            };
            out.push((name, colour, sweep));
        }
    }
    out
}

/// Mean latency, ms, over throughput, a point for each number of jobs.
fn load_line(sides: &[PlatformRun<'_>], workload: &str) -> Option<Chart> {
    let sweeps = over_jobs(sides, workload);
    let rate = sweeps.first()?.2.rate;
    let mut lines = Vec::new();
    for (name, colour, sweep) in sweeps.iter().filter(|(.., s)| s.rate == rate) {
        let mut line = svg::ChartLine { name: name.clone(), colour: *colour, ..svg::ChartLine::default() };
        for point in &sweep.points {
            let (Some(x), Some((column, y))) = (sweep.rate_at(point), latency(point)) else { continue };
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
    let unnamed = sides.len() == 1 && lines.len() == 1;
    let labels = [format!("Throughput [{}]", unit(rate)), "Mean latency [ms]".to_owned()];
    let chart = svg::Chart::of_points(format!("{workload}: load line"), labels, lines);
    svg::Chart { unnamed, ..chart }.drawn()
}

/// Latency at `point`: from the intended start on in an open loop.
fn latency(point: &SweepPoint) -> Option<(&'static Column, &loadline_analyze::Estimate)> {
    [RESPONSE, LATENCY].into_iter().find_map(|c| Some((c, point.figure(c)?)))
}

/// Throughput over jobs as a multiple of the throughput at the fewest jobs; the ideal is dashed.
fn speed_up(sides: &[PlatformRun<'_>], workload: &str) -> Option<Chart> {
    let mut lines = Vec::new();
    let mut most = 0.0f64;
    let mut base = None;
    for (name, colour, sweep) in over_jobs(sides, workload).into_iter().filter(|(.., s)| s.load.rate_tps.is_none()) {
        let points: Vec<(f64, f64)> =
            sweep.points.iter().filter_map(|p| Some((f64::from(p.at), sweep.rate_at(p)?.mean))).collect();
        let Some(&(first, tps)) = points.first().filter(|(at, tps)| *at > 0.0 && *tps > 0.0) else { continue };
        // Lines of different fewest jobs have no common ideal.
        if points.len() < FEWEST || *base.get_or_insert(first) != first {
            continue;
        }
        most = points.iter().map(|(at, _)| *at).fold(most, f64::max);
        let point = |(at, y): &(f64, f64)| {
            let tip = format!("{name}, {}: {} times", place(&sweep.over, *at as u32), number(y / tps, 2));
            svg::ChartPoint { x: *at, y: y / tps, bar: None, tip }
        };
        let points = points.iter().map(point).collect();
        lines.push(svg::ChartLine { points, name, colour, ..svg::ChartLine::default() });
    }
    let (base, highest) = (base?, lines.iter().flat_map(|l| &l.points).map(|p| p.y).fold(1.0, f64::max));
    // The ideal is drawn up to somewhat above the lines: it would press them to the ground.
    let end = (most / base).min(highest * 1.3).max(1.0);
    let unnamed = lines.len() == 1;
    let ideal = [1.0, end].map(|y| svg::ChartPoint { x: base * y, y, bar: None, tip: "ideal".to_owned() });
    lines.push(svg::ChartLine {
        name: "ideal".to_owned(),
        points: ideal.to_vec(),
        colour: COLOURS - 1,
        dashed: true,
        ..svg::ChartLine::default()
    });
    let labels = ["Jobs".to_owned(), format!("Throughput, times that of {}", counted(base as usize, "job"))];
    let chart = svg::Chart::of_points(format!("{workload}: speed-up against the ideal"), labels, lines);
    svg::Chart { unnamed, ..chart }.drawn()
}

/// Share of the hardware's limit at the peak of each workload, %.
fn shares(sides: &[PlatformRun<'_>]) -> Option<Chart> {
    let workloads = swept(sides);
    let at_peak = |side: &PlatformRun<'_>, workload: &str| {
        let sweep = side.sweeps.iter().filter(|s| s.workload == workload);
        sweep.filter_map(|s| Some(s.peak()?.figure(column::LIMIT_SHARE_PCT)?.mean)).reduce(f64::max)
    };
    let known: Vec<String> =
        workloads.into_iter().filter(|w| sides.iter().any(|side| at_peak(side, w).is_some())).collect();
    let parts: Vec<String> = sides.iter().map(|side| side.label.clone()).collect();
    let shares: Vec<Vec<Option<f64>>> =
        known.iter().map(|w| sides.iter().map(|side| at_peak(side, w)).collect()).collect();
    let title = "Share of the hardware's limit for the same work, at the peak";
    lying(title, &known, &parts, &shares)
}
