//! Comparison between platforms: factors between their figures with intervals, refused if the work was not equal.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::manifest::Calibration;
use loadline_model::plan::{Payload, WorkloadFile};
use loadline_model::{Column, TestRecord};
use serde::Serialize;

use crate::kpi::metrics;
use crate::stats::{Interval, Ratio};
use crate::sweep::{JOBS, Sweep, sweeps};

pub mod history;
mod setup;
mod work;

use setup::Setup;
pub use setup::codes_in;

#[derive(Debug, Clone, Copy, Default)]
pub struct Platform<'a> {
    /// Label, unique among the platforms compared.
    pub label: &'a str,
    pub payload: Option<Payload>,
    pub data_bytes: Option<u64>,
    pub calibration: Option<&'a BTreeMap<String, Calibration>>,
    pub workload_files: &'a [WorkloadFile],
    /// Whether the database ran in loadline's own process.
    pub in_process: bool,
    /// Whether it may be compared with a platform that was measured with another driver (`--across-drivers`).
    pub across_drivers: bool,
    /// Whether it may be compared with a platform that did other work, which is then said (`--unequal`).
    pub unequal: bool,
    pub records: &'a [TestRecord],
}

impl<'a> Platform<'a> {
    pub fn new(label: &'a str, records: &'a [TestRecord]) -> Platform<'a> {
        Platform { label, records, ..Platform::default() }
    }
}

/// How many times better the other platform is than the base in one figure: `other / base` if more is better,
/// `base / other` if less is. Above 1 the other platform is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Factor {
    pub metric: &'static Column,
    /// The base platform's figure, in the column's unit.
    pub base: f64,
    /// The other platform's figure, in the column's unit.
    pub other: f64,
    pub n_base: usize,
    pub n_other: usize,
    pub factor: Ratio,
    /// If a side has a single test: an interval from the course of its window, in which what differs from window to window is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Interval>,
}

/// The points of two sweeps that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparedAt {
    /// At the same number of jobs (or swept value).
    Jobs(u32),
    /// Each at its own highest throughput.
    Peak { base_jobs: u32, other_jobs: u32 },
}

/// The comparison of two points: factors, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonRow {
    pub at: ComparedAt,
    /// Factors of the figures that both platforms have; empty if refused.
    pub factors: Vec<Factor>,
    pub refused: Option<String>,
    /// Remarks on the validity of the comparison, and evidence of equal work that is missing.
    pub caveat: Option<String>,
    /// Numbers of the tests of both points, if there are factors.
    #[serde(skip)]
    pub tests: [Vec<u32>; 2],
}

/// One workload on one platform against the base platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    pub workload: String,
    pub group: String,
    /// Id of the swept column: `jobs` or another parameter.
    pub over: String,
    /// Figures compared, the main one first.
    pub metrics: Vec<&'static Column>,
    pub base: String,
    pub other: String,
    pub refused: Option<String>,
    /// The platform that has no test of the workload, if that is the reason.
    pub lacks: Option<String>,
    /// The peak first, then every job count that both platforms measured.
    pub rows: Vec<ComparisonRow>,
    /// Number of nodes, if a platform measured the workload over several numbers of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Job counts that only one of both measured, each with the platform that lacks it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_sided: Vec<(u32, String)>,
}

impl Comparison {
    /// Whether it is a log-writer workload, whose transactions are called commits.
    pub fn about_the_log(&self) -> bool {
        self.group == "log-writer"
    }

    /// Lowest and highest factor of `column` over equal job counts, each with its job count.
    pub fn range(&self, column: &Column) -> Option<((u32, Factor), (u32, Factor))> {
        let seen = |row: &ComparisonRow| match row.at {
            ComparedAt::Jobs(jobs) => Some((jobs, *row.factor(column)?)),
            ComparedAt::Peak { .. } => None,
        };
        let seen: Vec<(u32, Factor)> = self.rows.iter().filter_map(seen).collect();
        let by_value = |a: &&(u32, Factor), b: &&(u32, Factor)| a.1.factor.value.total_cmp(&b.1.factor.value);
        Some((*seen.iter().min_by(by_value)?, *seen.iter().max_by(by_value)?))
    }

    pub fn peak(&self) -> Option<&ComparisonRow> {
        self.rows.iter().find(|r| matches!(r.at, ComparedAt::Peak { .. }))
    }
}

impl ComparisonRow {
    fn refused(at: ComparedAt, refused: Option<String>) -> ComparisonRow {
        ComparisonRow { at, factors: Vec::new(), refused, caveat: None, tests: Default::default() }
    }

    pub fn factor(&self, column: &Column) -> Option<&Factor> {
        self.factors.iter().find(|f| f.metric == column)
    }
}

/// Compares every platform with the first one, by workload in the order of its tests.
pub fn compare(platforms: &[Platform<'_>]) -> Vec<Comparison> {
    let Some((base, others)) = platforms.split_first() else { return Vec::new() };
    let base_sweeps = sweeps(base.records);
    let mut out = Vec::new();
    for other in others {
        let mut partnered = BTreeSet::new();
        let other_sweeps = sweeps(other.records);
        for sweep in &other_sweeps {
            // Over several numbers of nodes, each is compared with its own.
            let counts = |all: &[Sweep]| {
                let of: Vec<u32> = all.iter().filter(|s| s.workload == sweep.workload).map(|s| s.nodes).collect();
                of.iter().any(|n| Some(n) != of.first())
            };
            let nodes = (counts(&base_sweeps) || counts(&other_sweeps)).then_some(sweep.nodes);
            match partner(base, &base_sweeps, other, sweep, nodes) {
                Some((index, partner)) => {
                    partnered.insert(index);
                    out.push(Comparison { nodes, ..compare_sweeps(base, partner, other, sweep) });
                }
                None => out.push(one_sided(base, other, sweep, base.label)),
            }
        }
        for (_, sweep) in base_sweeps.iter().enumerate().filter(|(index, _)| !partnered.contains(index)) {
            let several = other.records.iter().any(|r| r.workload == sweep.workload && r.nodes != sweep.nodes);
            let alike = |r: &TestRecord| {
                let is_swept_alike = r.swept().unwrap_or(JOBS) == sweep.over;
                r.workload == sweep.workload && is_swept_alike && (!several || r.nodes == sweep.nodes)
            };
            if !other.records.iter().any(alike) {
                out.push(one_sided(base, other, sweep, other.label));
            }
        }
    }
    let order = |workload: &str| base_sweeps.iter().position(|s| s.workload == workload).unwrap_or(usize::MAX);
    out.sort_by_key(|c| order(&c.workload));
    out
}

/// The base platform's sweep to compare `sweep` with: over so many `nodes`, if that matters, and preferably with the same driver,
/// rate and parameters, else any of the same workload (which is then refused).
fn partner<'a>(
    base: &Platform<'_>,
    sweeps: &'a [Sweep],
    other: &Platform<'_>,
    sweep: &Sweep,
    nodes: Option<u32>,
) -> Option<(usize, &'a Sweep)> {
    let alike =
        |b: &Sweep| b.workload == sweep.workload && b.over == sweep.over && nodes.is_none_or(|nodes| b.nodes == nodes);
    let same = sweeps.iter().enumerate().filter(|(_, b)| alike(b));
    let rank = |b: &Sweep| {
        let (driver, load) = (b.driver == sweep.driver, b.driver == sweep.driver && b.load == sweep.load);
        (driver, load, load && Setup::new(base, b, other, sweep).different_parameters().is_none())
    };
    // The first of those that are as good.
    same.rev().max_by_key(|(_, b)| rank(b))
}

/// Which of two platforms is imported, if they are not both loadline's own: no workload of one tool is another's.
fn other_tool(platforms: [&Platform<'_>; 2]) -> Option<String> {
    let tool = |p: &Platform<'_>| {
        p.records.iter().find_map(|r| r.imported()).map_or("loadline".to_owned(), |i| i.tool.clone())
    };
    let ([x, y], [of_x, of_y]) = (platforms.map(|p| p.label), platforms.map(tool));
    (of_x != of_y).then(|| format!("different definitions of work: '{x}' ran that of {of_x}, '{y}' that of {of_y}"))
}

fn one_sided(base: &Platform<'_>, other: &Platform<'_>, sweep: &Sweep, lacks: &str) -> Comparison {
    let why = other_tool([base, other]).map_or_else(String::new, |why| format!(" ({why})"));
    let over = if sweep.over_jobs() { String::new() } else { format!(" over {}", sweep.over) };
    let over = if sweep.nodes > 1 { format!("{over} over {} nodes", sweep.nodes) } else { over };
    Comparison {
        refused: Some(format!("'{lacks}' has no test of {}{over}{why}", sweep.workload)),
        lacks: Some(lacks.to_owned()),
        ..blank(base, other, sweep, metrics(&sweep.group, &sweep.kpis, sweep.is_open_loop()))
    }
}

fn blank(base: &Platform<'_>, other: &Platform<'_>, sweep: &Sweep, metrics: Vec<&'static Column>) -> Comparison {
    Comparison {
        workload: sweep.workload.clone(),
        group: sweep.group.clone(),
        over: sweep.over.clone(),
        metrics,
        base: base.label.to_owned(),
        other: other.label.to_owned(),
        ..Comparison::default()
    }
}

fn compare_sweeps(base: &Platform<'_>, a: &Sweep, other: &Platform<'_>, b: &Sweep) -> Comparison {
    let setup = Setup::new(base, a, other, b);
    let refused = setup.refused();
    let open_loop = a.is_open_loop() && b.is_open_loop();
    let metrics = metrics(&a.group, &a.kpis, open_loop);
    let (mut rows, mut one_sided) = (Vec::new(), Vec::new());
    if refused.is_none() {
        for (has, lacks, label) in [(a, b, other.label), (b, a, base.label)] {
            let alone = has.points.iter().filter(|p| lacks.at(p.at).is_none());
            one_sided.extend(alone.map(|p| (p.at, label.to_owned())));
        }
        if let (Some(pa), Some(pb)) = (a.peak(), b.peak()) {
            let at = ComparedAt::Peak { base_jobs: pa.at, other_jobs: pb.at };
            rows.push(if a.rate == b.rate {
                setup.row(&metrics, at, pa, pb)
            } else {
                let [x, y] = setup.names();
                let why = format!("the peak is in {} on '{x}' and in {} on '{y}'", a.rate, b.rate);
                ComparisonRow::refused(at, Some(why))
            });
        }
        let equal = a.points.iter().filter_map(|pa| Some((pa, b.at(pa.at)?)));
        rows.extend(equal.map(|(pa, pb)| setup.row(&metrics, ComparedAt::Jobs(pa.at), pa, pb)));
    }
    Comparison { refused, rows, one_sided, ..blank(base, other, a, metrics) }
}
