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
use crate::doc::{Block, Cell, Head, Notes, Section};
use crate::listing::{Listing, Named};
use crate::platform_run::{PlatformRun, sides};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, grouped};

/// Group of the workloads that load data.
const GROUP: &str = "data-load";

/// How much of the platform a column is of: its id, its title, and why it may be missing.
const PARTS: [(&str, &str, &str); 3] = [
    ("one-job", "1 job", "no test of one job that is not refused"),
    ("one-node", "one node, peak", "no sweep over jobs on one node"),
    ("all-nodes", "all nodes, peak", "no sweep over jobs on more than one node"),
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
        let peak = |sweep: &Sweep| sweep.peak().and_then(|peak| sweep.rate_at(peak)).map_or(0.0, |rate| rate.mean);
        let all = sweeps(&of_nodes).into_iter().filter(|sweep| sweep.over_jobs() && sweep.peak().is_some());
        all.max_by(|a, b| peak(a).total_cmp(&peak(b)))
    };
    let most = records.iter().map(|r| r.nodes).max().unwrap_or(1);
    let one = over(&|nodes| nodes <= 1);
    let all = over(&|nodes| nodes == most).filter(|_| most > 1);
    let found = |part, nodes, sweep: Option<&Sweep>, point: Option<&SweepPoint>| {
        Some(Measured { part, nodes, sweep: sweep?.clone(), point: point?.clone() })
    };
    // One job runs on one node, of however many.
    let (nodes, single) = if one.is_some() { (1, one.as_ref()) } else { (most, all.as_ref()) };
    let job = single.and_then(|sweep| sweep.at(1)).filter(|point| !point.tests.is_empty());
    // A single job count has no peak.
    let peak =
        |sweep: &Option<Sweep>| sweep.as_ref().filter(|sweep| sweep.points.len() > 1).and_then(|s| s.peak().cloned());
    let parts = [
        found(0, nodes, single, job),
        found(1, 1, one.as_ref(), peak(&one).as_ref()),
        found(2, most, all.as_ref(), peak(&all).as_ref()),
    ];
    parts.into_iter().flatten().collect()
}

/// What a row shows: where the figures were measured, or a figure.
type Metric = Option<&'static Column>;

/// The metrics of a workload: its KPIs, and the transaction time.
fn metrics(study: &Study<'_>) -> Vec<&'static Column> {
    let kpis = study.measured.iter().flat_map(|measured| &measured.sweep.kpis).filter_map(|id| column(id));
    let known = |c: &&Column| study.measured.iter().any(|measured| measured.point.figure(c).is_some());
    distinct(kpis.chain([LATENCY]).filter(known))
}

/// The section; empty without a study.
pub(crate) fn section(runs: &[RunData]) -> Section {
    let studies = studies(runs);
    let labels = distinct(studies.iter().map(|study| study.label.as_str()));
    let workloads = distinct(studies.iter().map(|study| study.workload.as_str()));
    let of_workload = |workload: &str| {
        let own = studies.iter().filter(|study| study.workload == workload);
        std::iter::once(None).chain(distinct(own.flat_map(metrics)).into_iter().map(Some)).collect::<Vec<Metric>>()
    };
    let rows: Vec<(&str, Metric)> = workloads
        .iter()
        .flat_map(|workload| of_workload(workload).into_iter().map(|metric| (*workload, metric)))
        .collect();
    let notes = Notes::default();
    let mut table = TableSpec::<(&str, Metric)>::of("figures", rows)
        .text("Workload", |(workload, _)| workload)
        .once()
        .text("Figure", |(_, metric)| metric.map_or("measured with", |column| column.title))
        .text("Unit", |(_, metric)| metric.map_or("", |column| column.unit));
    let (studies, notes) = (&studies, &notes);
    for label in &labels {
        for (part, (_, title, _)) in PARTS.iter().enumerate() {
            let title = if labels.len() > 1 { format!("{label}: {title}") } else { (*title).to_owned() };
            let head = Head { numeric: true, ..Head::text(&title) };
            let of = move |workload: &str| studies.iter().find(|s| s.workload == workload && s.label == *label);
            let any = part < 2 || studies.iter().any(|study| study.part(part).is_some());
            table = table.column(head, move |(workload, metric)| cell(of(workload), part, metric, notes)).when(any);
        }
    }
    let table = table.notes(notes).build();
    let blocks = Block::table(table).into_iter().collect();
    Section::of(
        "load-study",
        "One process, one server, the cluster",
        Block::explained(blocks, &prose("load-study", ())),
    )
}

fn cell(study: Option<&Study<'_>>, part: usize, metric: Metric, notes: &Notes) -> Cell {
    let (_, title, why) = PARTS[part];
    let missing =
        || Cell::absent(notes.mark(if study.is_some() { why } else { "not measured on this platform" }, title));
    let Some((study, measured)) = study.and_then(|study| Some((study, study.part(part)?))) else { return missing() };
    match metric {
        Some(column) => figure(&study.run.records, &measured.point, column, notes),
        None => {
            let on = |n: u32| format!(", {}", counted(n as usize, "node"));
            let nodes = if measured.nodes > 1 { on(measured.nodes) } else { String::new() };
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
