//! The summary of a load study: one process, one server, the cluster. For each workload that loads data its figures with one job, at the peak of
//! one node, and at the peak of all nodes.

use loadline_analyze::kpi::LATENCY;
use loadline_analyze::{Sweep, SweepPoint, sweeps};
use loadline_model::column::column;
use loadline_model::format::counted;
use loadline_model::{Column, TestRecord};
use serde_json::Value;

use super::figure::figure;
use super::qualified;
use crate::RunData;
use crate::doc::{Block, Cell, Notes, Section};
use crate::listing::{Listing, Named};
use crate::platform_run::{PlatformRun, sides};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, grouped, title_of};

/// Group of the workloads that load data.
const GROUP: &str = "data-load";

/// How much of the platform a column is of: its id, its title, and why it may be missing.
const PARTS: [(&str, &str, &str); 3] = [
    ("one-job", "1 job", "no test of one job in the sweep over jobs, or it is refused"),
    ("one-node", "one node, peak", "no sweep over jobs on one node, or all its tests are refused"),
    ("all-nodes", "all nodes, peak", "no sweep over jobs on more than one node, or all its tests are refused"),
];

/// One of [`PARTS`] of a platform, with what was measured.
struct Measured {
    part: usize,
    nodes: u32,
    sweep: Sweep,
    point: SweepPoint,
}

/// A platform and a workload.
struct Study<'a> {
    label: String,
    run: &'a RunData,
    workload: String,
    measured: Vec<Measured>,
}

impl Study<'_> {
    fn part(&self, part: usize) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.part == part)
    }
}

fn is_load(r: &&TestRecord) -> bool {
    r.group == GROUP && r.variant.is_none()
}

/// The studies of `runs`: workloads of which at least two of [`PARTS`] are known.
fn studies(runs: &[RunData]) -> Vec<Study<'_>> {
    if !runs.iter().flat_map(|run| &run.records).any(|r| is_load(&r)) {
        return Vec::new();
    }
    sides(runs).into_iter().flat_map(of_side).filter(|study| study.measured.len() > 1).collect()
}

fn of_side(side: PlatformRun<'_>) -> Vec<Study<'_>> {
    let (label, run) = (side.label, side.run);
    let workloads = grouped(run.records.iter().filter(is_load).cloned(), |r| r.workload.clone());
    let study = |(workload, own): (String, Vec<TestRecord>)| Study {
        label: label.clone(),
        run,
        workload,
        measured: measured(&own),
    };
    workloads.into_iter().map(study).collect()
}

/// The parts of which the tests of one workload tell, over jobs.
fn measured(records: &[TestRecord]) -> Vec<Measured> {
    let over = |fits: &dyn Fn(u32) -> bool| -> Option<Sweep> {
        let of_nodes: Vec<TestRecord> = records.iter().filter(|r| fits(r.nodes)).cloned().collect();
        let rate = |sweep: &Sweep| sweep.peak().and_then(|peak| sweep.rate_at(peak)).map_or(0.0, |rate| rate.mean);
        let all = sweeps(&of_nodes).into_iter().filter(|sweep| sweep.over_jobs() && sweep.peak().is_some());
        all.max_by(|a, b| rate(a).total_cmp(&rate(b)))
    };
    let most = records.iter().map(|r| r.nodes).max().unwrap_or(1);
    let one = over(&|nodes| nodes <= 1);
    let all = over(&|nodes| nodes == most).filter(|_| most > 1);
    let found = |part, nodes, sweep: &Option<Sweep>, point: fn(&Sweep) -> Option<&SweepPoint>| {
        let sweep = sweep.as_ref()?;
        Some(Measured { part, nodes, point: point(sweep)?.clone(), sweep: sweep.clone() })
    };
    // One job runs on one node, of however many.
    let single = found(0, 1, &one, job).or_else(|| found(0, most, &all, job));
    let parts = [single, found(1, 1, &one, peak), found(2, most, &all, peak)];
    parts.into_iter().flatten().collect()
}

fn job(sweep: &Sweep) -> Option<&SweepPoint> {
    sweep.at(1).filter(|point| !point.tests.is_empty())
}

/// A single job count has no peak.
fn peak(sweep: &Sweep) -> Option<&SweepPoint> {
    sweep.peak().filter(|_| sweep.points.len() > 1)
}

/// What a row shows: where the figures were measured, or a figure.
type Metric = Option<&'static Column>;

/// The metrics of a workload: its KPIs, and the transaction time.
fn metrics(study: &Study<'_>) -> Vec<&'static Column> {
    let kpis = study.measured.iter().flat_map(|measured| &measured.sweep.kpis).filter_map(|id| column(id));
    let known = |c: &&Column| study.measured.iter().any(|measured| measured.point.figure(c).is_some());
    distinct(kpis.chain([LATENCY]).filter(known))
}

/// The section; empty without a study. Platforms are rows: their names may be long.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let studies = studies(runs);
    let several = distinct(studies.iter().map(|study| study.label.as_str())).len() > 1;
    let mut rows: Vec<(&Study<'_>, Metric)> = Vec::new();
    for (_, own) in grouped(&studies, |study| study.workload.as_str()) {
        let all = distinct(own.iter().flat_map(|study| metrics(study))).into_iter().map(Some);
        rows.extend(std::iter::once(None).chain(all).flat_map(|metric| own.iter().map(move |study| (*study, metric))));
    }
    let notes = Notes::default();
    let mut table = TableSpec::<(&Study<'_>, Metric)>::of("figures", rows)
        .titles(|(study, _)| study.workload.clone())
        .text("Figure", |(_, metric)| metric.map_or("measured with", |column| title_of(column, false)));
    if several {
        table = table.once();
    }
    table = table
        .text("Unit", |(_, metric)| metric.map_or("", |column| column.unit))
        .text("Platform", |(study, _)| &study.label)
        .when(several);
    for (part, (_, title, _)) in PARTS.iter().enumerate() {
        let notes = &notes;
        let any = part < 2 || studies.iter().any(|study| study.part(part).is_some());
        table = table.number(title, "", move |(study, metric)| cell(study, part, metric, notes)).when(any);
    }
    let table = table.notes(&notes).build();
    let blocks = Block::table(table).into_iter().collect();
    Section::of(
        "load-study",
        "One process, one server, the cluster",
        Block::explained(blocks, &prose("load-study", ())),
    )
}

fn cell(study: &Study<'_>, part: usize, metric: Metric, notes: &Notes) -> Cell {
    let (_, title, why) = PARTS[part];
    let Some(measured) = study.part(part) else { return Cell::absent(notes.mark(why, title)) };
    match metric {
        Some(column) => figure(&study.run.records, &measured.point, column, notes),
        None => {
            let nodes = match (measured.nodes, study.run.manifest.target.nodes) {
                (0..=1, _) => String::new(),
                (n, all) if n < all => format!(", {n} of {all} nodes"),
                (n, _) => format!(", {n} nodes"),
            };
            let place = format!("{}{nodes}", counted(measured.point.jobs as usize, "job"));
            Cell::from(place).marked(qualified::mark(&measured.point, notes))
        }
    }
}

/// A figure of a part of a platform.
type Line<'a> = (&'a Study<'a>, &'a Measured, &'static Column);

/// A row for each figure of each part of each platform; a value is in the unit of the column.
pub(crate) fn listing(runs: &[RunData]) -> Listing {
    let studies = studies(runs);
    let all = studies.iter().flat_map(|study| study.measured.iter().map(move |measured| (study, measured)));
    let lines: Vec<Line<'_>> = all
        .flat_map(|(study, measured)| metrics(study).into_iter().map(move |column| (study, measured, column)))
        .collect();
    let columns: [Named<Line<'_>>; 8] = [
        ("platform", |(study, ..)| study.label.as_str().into()),
        ("workload", |(study, ..)| study.workload.as_str().into()),
        ("part", |(_, measured, _)| PARTS[measured.part].0.into()),
        ("nodes", |(_, measured, _)| measured.nodes.into()),
        ("jobs", |(_, measured, _)| measured.point.jobs.into()),
        ("figure", |(.., column)| column.id.into()),
        ("unit", |(.., column)| column.unit.into()),
        ("value", |(_, measured, column)| {
            measured.point.figure(column).map_or(Value::Null, |e| (e.mean * crate::columns::scale(column)).into())
        }),
    ];
    Listing::new(&columns, &lines)
}
