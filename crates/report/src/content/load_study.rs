//! The summary of a load study: one process, one server, the cluster. For each workload that loads data its figures with one job, at the peak of
//! one node, and at the peak of all nodes.

use std::ops::RangeInclusive;

use loadline_analyze::kpi::LATENCY;
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::Column;
use loadline_model::column::column;
use loadline_model::format::counted;
use minijinja::context;

use super::qualified::{figure, kept_by};
use crate::RunData;
use crate::doc::{Block, Cell, Section};
use crate::listing::Listing;
use crate::platform_run::{PlatformRun, sides};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, grouped, scale, title_of};

const GROUP: &str = "data-load";

/// How much of the platform a column is of: its id, its title, and why it may be missing.
const PARTS: [(&str, &str, &str); 3] = [
    ("one-job", "1 job", "no test of one job in the sweep over jobs, or it is refused"),
    ("one-node", "one node, peak", "no sweep over jobs on one node, or all its tests are refused"),
    ("all-nodes", "all nodes, peak", "no sweep over jobs on more than one node, or all its tests are refused"),
];

/// A platform and a workload, with each of [`PARTS`] that was measured.
struct Study<'a> {
    side: &'a PlatformRun<'a>,
    workload: &'a str,
    parts: [Option<Measured<'a>>; 3],
}

type Measured<'a> = (&'a Sweep, &'a SweepPoint);

impl<'a> Study<'a> {
    fn new(side: &'a PlatformRun<'a>, workload: &'a str) -> Study<'a> {
        let own = || side.sweeps.iter().filter(|sweep| sweep.workload == workload && sweep.over_jobs());
        let rate = |sweep: &Sweep| sweep.peak().and_then(|peak| sweep.rate_at(peak)).map_or(0.0, |rate| rate.mean);
        let best = |nodes: RangeInclusive<u32>| {
            let measured = own().filter(|sweep| nodes.contains(&sweep.nodes) && sweep.peak().is_some());
            measured.max_by(|a, b| rate(a).total_cmp(&rate(b)))
        };
        let most = own().map(|sweep| sweep.nodes).max().unwrap_or(1);
        let (one, all) = (best(0..=1), best(most.max(2)..=most));
        let job = |sweep: &'a Sweep| Some((sweep, sweep.at(1).filter(|point| !point.tests.is_empty())?));
        // A single job count has no peak.
        let peak = |sweep: &'a Sweep| if sweep.points.len() > 1 { Some((sweep, sweep.peak()?)) } else { None };
        // One job runs on one node, of however many.
        let parts = [one.and_then(job).or_else(|| all.and_then(job)), one.and_then(peak), all.and_then(peak)];
        Study { side, workload, parts }
    }

    fn measured(&self) -> impl Iterator<Item = &Measured<'a>> {
        self.parts.iter().flatten()
    }

    /// The metrics of the workload: its KPIs, and the transaction time.
    fn metrics(&self) -> Vec<&'static Column> {
        let kpis = self.measured().flat_map(|(sweep, _)| &sweep.kpis).filter_map(|id| column(id));
        distinct(kpis.chain([LATENCY]).filter(|c| self.measured().any(|(_, point)| point.figure(c).is_some())))
    }
}

/// The studies of `sides`: workloads of which at least two of [`PARTS`] are known.
fn studies<'a>(sides: &'a [PlatformRun<'a>]) -> Vec<Study<'a>> {
    let of_side = |side: &'a PlatformRun<'a>| {
        let own = side.sweeps.iter().filter(|sweep| sweep.group == GROUP && side.run.manifest.plan.paired.is_none());
        distinct(own.map(|sweep| sweep.workload.as_str())).into_iter().map(move |workload| Study::new(side, workload))
    };
    sides.iter().flat_map(of_side).filter(|study| study.measured().count() > 1).collect()
}

/// Contents of a row: where the figures were measured, or a figure.
type Metric = Option<&'static Column>;

/// The section; empty without a study. Platforms are rows: their names may be long.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let sides = sides(runs);
    let studies = studies(&sides);
    let several = distinct(studies.iter().map(|study| study.side.label.as_str())).len() > 1;
    let mut rows: Vec<(&Study<'_>, Metric)> = Vec::new();
    for (_, own) in grouped(&studies, |study| study.workload) {
        let all = distinct(own.iter().flat_map(|study| study.metrics())).into_iter().map(Some);
        rows.extend(std::iter::once(None).chain(all).flat_map(|metric| own.iter().map(move |study| (*study, metric))));
    }
    let mut table = TableSpec::<(&Study<'_>, Metric)>::new("figures", rows)
        .titles(|(study, _)| study.workload.to_owned())
        .text("Figure", |(_, metric)| metric.map_or("measured with", |column| title_of(column, false)));
    if several {
        table = table.once();
    }
    table = table
        .text("Unit", |(_, metric)| metric.map_or("", |column| column.unit))
        .text("Platform", |(study, _)| &study.side.label)
        .when(several);
    for (part, (_, title, _)) in PARTS.iter().enumerate() {
        let any = part < 2 || studies.iter().any(|study| study.parts[part].is_some());
        table = table.number(title, "", move |(study, metric)| cell(study, part, metric)).when(any);
    }
    let blocks = Block::explained(Block::table(table.build()).into_iter().collect(), &prose("load-study", ()));
    Section::new("load-study", "One process, one server, the cluster", blocks)
}

fn cell(study: &Study<'_>, part: usize, metric: Metric) -> Cell {
    let (_, title, why) = PARTS[part];
    let Some((sweep, point)) = study.parts[part] else { return Cell::absent(why, title) };
    match metric {
        Some(column) => figure(&study.side.run.records, point, column),
        None => {
            let nodes = match (sweep.nodes, study.side.run.manifest.target.nodes) {
                (0..=1, _) => String::new(),
                (n, all) if n < all => format!(", {n} of {all} nodes"),
                (n, _) => format!(", {n} nodes"),
            };
            let place = format!("{}{nodes}", counted(point.jobs as usize, "job"));
            Cell::from(place).noted(kept_by(point), "")
        }
    }
}

/// A row for each figure of each part of each platform; a value is in the unit of the column.
pub(crate) fn listing(runs: &[RunData]) -> Listing {
    let sides = sides(runs);
    let mut rows = Vec::new();
    for study in studies(&sides) {
        for ((part, ..), (sweep, point)) in PARTS.iter().zip(study.parts).filter_map(|(part, of)| Some((part, of?))) {
            rows.extend(study.metrics().into_iter().map(|figure| {
                context! {
                    label => study.side.label, workload => study.workload, part, nodes => sweep.nodes, jobs => point.jobs,
                    figure, unit => figure.unit, value => point.figure(figure).map(|e| e.mean * scale(figure)),
                }
            }));
        }
    }
    Listing::new("load study", rows)
}
