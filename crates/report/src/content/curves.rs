//! Load lines as people of the field draw them: latency over throughput.

use loadline_analyze::kpi::{LATENCY, RESPONSE};
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::Column;

use super::figure::with_interval;
use crate::columns::{scale, value};
use crate::doc::{Block, Chart, Section};
use crate::platform_run::{PlatformRun, swept};
use crate::svg;
use crate::templates::prose;
use crate::words::{place, short_name, unit};

const FEWEST: usize = 3;
const MOST_IN_SUMMARY: usize = 12;

/// The charts of a summary.
pub(crate) fn summary(sides: &[PlatformRun<'_>]) -> Section {
    let workloads = swept(sides);
    let charts = Block::charts(3, workloads.iter().filter_map(|w| load_line(sides, w)).take(MOST_IN_SUMMARY));
    let legend = charts.is_some().then(|| Block::Legend { text: prose("curves", ()) });
    let blocks = charts.into_iter().chain(legend).collect();
    Section { group: true, ..Section::evidence("curves", "Load lines as charts", blocks) }
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
pub(super) fn load_line(sides: &[PlatformRun<'_>], workload: &str) -> Option<Chart> {
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
