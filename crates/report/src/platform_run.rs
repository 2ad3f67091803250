//! The platforms of a report: one per run, each with a unique name.

use loadline_model::format::counted;
use std::collections::BTreeSet;

use loadline_analyze::{Bound, Comparison, Platform, Shape, Sweep, bound_of_sweep, compare, shape, sweeps};
use loadline_model::column::TABLES;
use loadline_model::manifest::{Calibration, TargetInfo};
use loadline_model::variant::Variant;
use loadline_model::{Letter, Manifest, TestRecord};

use crate::RunData;
use crate::cause;
use crate::words::distinct;

#[derive(Debug, Clone)]
pub(crate) struct PlatformRun<'a> {
    /// Unique name.
    pub(crate) label: String,
    pub(crate) run: &'a RunData,
    pub(crate) sweeps: Vec<Sweep>,
    /// Scans of commit time over redo.
    pub(crate) scans: Vec<Scan<'a>>,
}

/// A test that scanned commit time over redo since the last commit.
#[derive(Debug, Clone)]
pub(crate) struct Scan<'a> {
    pub(crate) record: &'a TestRecord,
    /// Shape; `None` for a refused test.
    pub(crate) shape: Option<Shape>,
    /// The setting of the target that causes the sawtooth, in a sentence; `None` without a sawtooth.
    pub(crate) cause: Option<String>,
}

impl PlatformRun<'_> {
    /// The bound of `sweep`; nothing tells that of a published platform.
    pub(crate) fn bound(&self, sweep: &Sweep) -> Option<Bound> {
        if self.run.published.is_none() { bound_of_sweep(sweep, &self.run.records) } else { None }
    }
}

fn scans(run: &RunData) -> Vec<Scan<'_>> {
    let of = |record| {
        let shape = Some(record).filter(|r: &&TestRecord| r.is_usable()).map(|r| shape(r.sizes()));
        let cause = match &shape {
            Some(Shape::Sawtooth { period_bytes, .. }) => {
                Some(cause::sentence(*period_bytes, &run.manifest.target.settings))
            }
            _ => None,
        };
        Scan { record, shape, cause }
    };
    run.records.iter().filter(|r| !r.sizes().is_empty()).map(of).collect()
}

/// The platforms of `runs`. Platforms with the same name get their run id added.
pub(crate) fn sides(runs: &[RunData]) -> Vec<PlatformRun<'_>> {
    let name = |run: &RunData| run.manifest.plan.platform.clone();
    let mut out: Vec<PlatformRun<'_>> = Vec::new();
    for run in runs {
        let mut label = name(run);
        if runs.iter().filter(|r| name(r) == label).count() > 1 {
            label = format!("{label} ({})", run.manifest.run);
        }
        let wanted = label.clone();
        let mut n = 2;
        while out.iter().any(|s| s.label == label) {
            label = format!("{wanted} #{n}");
            n += 1;
        }
        out.push(PlatformRun { label, run, sweeps: sweeps(&run.records), scans: scans(run) });
    }
    out
}

/// `runs` with each variant of a run as a platform, and each number of nodes; `None` if no run has several of them.
pub(crate) fn by_variant(runs: &[RunData]) -> Option<Vec<RunData>> {
    let parts: Vec<Option<Vec<RunData>>> =
        runs.iter().map(|run| variants(run).or_else(|| node_counts(run, runs.len() == 1))).collect();
    let any = parts.iter().any(Option::is_some);
    let all = runs.iter().zip(parts).flat_map(|(run, parts)| parts.unwrap_or_else(|| vec![run.clone()]));
    any.then(|| all.collect())
}

/// The tests over each number of nodes as platforms; `None` if there is one number.
fn node_counts(run: &RunData, alone: bool) -> Option<Vec<RunData>> {
    let counts: BTreeSet<u32> = run.records.iter().map(|r| r.nodes).collect();
    let part = |n: &u32| {
        let label = counted(*n as usize, "node");
        let label = if alone { label } else { format!("{}, {label}", run.manifest.plan.platform) };
        let mut part = part_of(run, &label, |r| r.nodes == *n);
        // Workloads that write are not measured over nodes that take no writes.
        part.manifest.plan.workloads.retain(|w| part.records.iter().any(|r| r.workload == w.code));
        part
    };
    (counts.len() > 1).then(|| counts.iter().map(part).collect())
}

/// The variants of `run` as platforms; `None` if it has none.
fn variants(run: &RunData) -> Option<Vec<RunData>> {
    let paired = run.manifest.plan.paired.as_deref()?;
    let part = |(n, variant): (usize, &Variant)| {
        let of = paired.window(n, n == 0);
        // Windows of the first stand beside each of the others.
        let is_of = |r: &TestRecord| r.arm() == Some(of.arm) && (n == 0 || r.level() == of.level.as_ref());
        let mut part = part_of(run, &paired.label(variant), is_of);
        if paired.links.is_none() {
            set_as_found(&mut part.manifest, Letter::nth(n), variant);
        }
        part
    };
    let mut parts: Vec<RunData> = paired.variants.iter().enumerate().map(part).collect();
    parts.retain(|part| paired.links.is_none() || !part.records.is_empty());
    (!parts.is_empty()).then_some(parts)
}

fn set_as_found(m: &mut Manifest, arm: Letter, variant: &Variant) {
    m.target = m.target_of(Some(arm)).cloned().unwrap_or_else(|| TargetInfo {
        product: "unknown product".to_owned(),
        nodes: 1,
        local: m.target.local,
        ..TargetInfo::default()
    });
    match m.variants.get(arm.index()) {
        Some(found) => m.doctor.clone_from(&found.doctor),
        // Older runs hold what was found in arm A alone.
        None => {
            m.target.url.clone_from(&variant.target);
            m.target.settings.extend(variant.settings.clone());
            m.doctor.retain(|_| arm == Letter::A);
        }
    }
    m.plan.target.clone_from(&variant.target);
    m.plan.settings.clone_from(&variant.settings);
    m.plan.workloads.clone_from(&variant.workloads);
    m.data_set.retain(|table| table.arm.is_none_or(|of| of == arm));
    // Databases of different kinds are calibrated each, and have clocks of their own.
    let own = if m.calibration.keys().any(|key| Calibration::of_key(key).1 == arm) { arm } else { Letter::A };
    if own != Letter::A {
        m.overhead.in_database_ns_per_tx = None;
    }
    let of_arm = |(key, calibration): (String, Calibration)| {
        let (code, of) = Calibration::of_key(&key);
        (of == own).then(|| (code.to_owned(), calibration))
    };
    m.calibration = std::mem::take(&mut m.calibration).into_iter().filter_map(of_arm).collect();
}

/// The tests of `run` that are `of` the platform called `label`.
fn part_of(run: &RunData, label: &str, of: impl Fn(&TestRecord) -> bool) -> RunData {
    let mut part = run.clone();
    part.records.retain(of);
    label.clone_into(&mut part.manifest.plan.platform);
    part
}

/// Every platform against the first, of unequal work as well if `unequal`. The variants of one run are compared in their pairs of windows
/// instead.
pub(crate) fn comparisons(sides: &[PlatformRun<'_>], across_drivers: bool, unequal: bool) -> Vec<Comparison> {
    let in_pairs = |s: &PlatformRun<'_>| s.run.manifest.plan.paired.is_some();
    if sides.iter().all(|s| in_pairs(s) && s.run.manifest.run == sides[0].run.manifest.run) {
        return Vec::new();
    }
    let platforms: Vec<Platform<'_>> =
        sides.iter().map(|s| Platform { across_drivers, unequal, ..platform(s.run, &s.label) }).collect();
    compare(&platforms)
}

/// `run` as a platform of comparisons, under the name `label`.
pub(crate) fn platform<'a>(run: &'a RunData, label: &'a str) -> Platform<'a> {
    let m = &run.manifest;
    Platform {
        label,
        payload: Some(m.plan.payload),
        data_bytes: Some(m.plan.size_bytes).filter(|bytes| *bytes > 0),
        calibration: Some(&m.calibration),
        workload_files: &m.plan.workload_files,
        in_process: m.target.in_process,
        across_drivers: false,
        unequal: false,
        records: &run.records,
    }
}

/// Codes of the workloads with sweeps, in order of first appearance.
pub(crate) fn swept(sides: &[PlatformRun<'_>]) -> Vec<String> {
    distinct(sides.iter().flat_map(|s| &s.sweeps).map(|s| s.workload.clone()))
}

pub(crate) fn scanned(sides: &[PlatformRun<'_>]) -> Vec<String> {
    distinct(sides.iter().flat_map(|s| &s.scans).map(|s| s.record.workload.clone()))
}

pub(crate) fn workloads_of(sides: &[PlatformRun<'_>], group: &str) -> Vec<String> {
    let of_group = sides.iter().flat_map(|s| &s.run.records).filter(|r| r.group == group);
    distinct(of_group.map(|r| r.workload.clone()))
}

/// Codes of the groups of the tests, in the standard order; unknown ones last.
pub(crate) fn groups<'a, 'b: 'a>(sides: impl Iterator<Item = &'a PlatformRun<'b>>) -> Vec<String> {
    let mut out = distinct(sides.flat_map(|s| &s.run.records).map(|r| r.group.clone()));
    out.sort_by_key(|code| TABLES.iter().position(|t| t.group == code).unwrap_or(TABLES.len()));
    out
}

/// Name of group `code`; the code itself if unknown.
pub(crate) fn group_title(code: &str) -> &str {
    TABLES.iter().find(|t| t.group == code).map_or(code, |t| t.title)
}
