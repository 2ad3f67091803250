//! The platforms of a report: one per run, each with a unique name.

use loadline_model::format::counted;
use std::collections::BTreeSet;

use loadline_analyze::{Comparison, Platform, Shape, Sweep, compare, shape, sweeps};
use loadline_model::column::TABLES;
use loadline_model::manifest::{Calibration, TargetInfo};
use loadline_model::record::LevelPoint;
use loadline_model::{ArmName, TestRecord};

use crate::RunData;
use crate::cause;
use crate::words::distinct;

/// One run as a platform.
#[derive(Debug, Clone)]
pub(crate) struct PlatformRun<'a> {
    /// Unique name.
    pub(crate) label: String,
    /// The run.
    pub(crate) run: &'a RunData,
    /// Its sweeps.
    pub(crate) sweeps: Vec<Sweep>,
    /// Its scans of commit time over redo.
    pub(crate) scans: Vec<Scan<'a>>,
}

/// A test that scanned commit time over redo since the last commit.
#[derive(Debug, Clone)]
pub(crate) struct Scan<'a> {
    /// The test.
    pub(crate) record: &'a TestRecord,
    /// Its shape; `None` for a refused test.
    pub(crate) shape: Option<Shape>,
    /// The setting of the target that causes the sawtooth, in a sentence; `None` without a sawtooth.
    pub(crate) cause: Option<String>,
}

fn scans(run: &RunData) -> Vec<Scan<'_>> {
    let of = |record| {
        let shape = Some(record).filter(|r: &&TestRecord| r.is_usable()).map(|r| shape(&r.sizes));
        let cause = match &shape {
            Some(Shape::Sawtooth { period_bytes, .. }) => {
                Some(cause::sentence(*period_bytes, &run.manifest.target.settings))
            }
            _ => None,
        };
        Scan { record, shape, cause }
    };
    run.records.iter().filter(|r| !r.sizes.is_empty()).map(of).collect()
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

/// `runs` with the arms of each run as two platforms, each level and distance as one, and each number of nodes; `None` if no run
/// has several of them.
pub(crate) fn apart(runs: &[RunData]) -> Option<Vec<RunData>> {
    let parts: Vec<Option<Vec<RunData>>> = runs
        .iter()
        .map(|run| arms(run).or_else(|| levels(run)).or_else(|| node_counts(run, runs.len() == 1)))
        .collect();
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

/// The arms of `run` as platforms; `None` if it has none.
fn arms(run: &RunData) -> Option<Vec<RunData>> {
    let arms = run.manifest.plan.arms.as_deref()?;
    let part = |name: ArmName| {
        let (arm, m) = (arms.get(name), &run.manifest);
        let mut of_arm = part_of(run, &arm.label, |r| r.arm == Some(name));
        let part = &mut of_arm.manifest;
        part.target = m.target_of(Some(name)).cloned().unwrap_or_else(|| TargetInfo {
            product: "unknown product".to_owned(),
            nodes: 1,
            local: m.target.local,
            ..TargetInfo::default()
        });
        match &m.arms {
            Some(found) => part.doctor.clone_from(&found[name as usize].doctor),
            // Older runs hold what was found in arm A alone.
            None => {
                part.target.url.clone_from(&arm.target);
                part.target.settings.extend(arm.settings.clone());
                part.doctor.retain(|_| name == ArmName::A);
            }
        }
        part.plan.target.clone_from(&arm.target);
        part.plan.settings.clone_from(&arm.settings);
        part.plan.workloads.clone_from(&arm.workloads);
        part.data_set.retain(|table| table.arm.is_none_or(|of| of == name));
        // Databases of different kinds are calibrated each, and have clocks of their own.
        let of_b = |code: &str| code.strip_suffix(Calibration::IN_ARM_B).map(str::to_owned);
        if name == ArmName::B && m.calibration.keys().any(|code| of_b(code).is_some()) {
            part.calibration = m.calibration.iter().filter_map(|(code, c)| Some((of_b(code)?, c.clone()))).collect();
            part.overhead.in_database_ns_per_tx = None;
        }
        part.calibration.retain(|code, _| of_b(code).is_none());
        of_arm
    };
    Some(ArmName::ALL.map(part).into())
}

/// The baseline, and each level at each distance, as platforms; `None` if `run` has none.
fn levels(run: &RunData) -> Option<Vec<RunData>> {
    let levels = run.manifest.plan.levels.as_deref()?;
    let mut parts = vec![part_of(run, "baseline", |r| r.arm == Some(ArmName::A))];
    for level in &levels.levels {
        for delay_ms in &levels.delays_ms {
            let point = LevelPoint { level: level.clone(), delay_ms: *delay_ms };
            let of = |r: &TestRecord| r.arm == Some(ArmName::B) && r.level.as_ref() == Some(&point);
            // The way to a user's own standbys is not known.
            let way = if levels.standbys.is_empty() { format!(", {delay_ms} ms") } else { String::new() };
            parts.push(part_of(run, &format!("{level}{way}"), of));
        }
    }
    parts.retain(|part| !part.records.is_empty());
    (!parts.is_empty()).then_some(parts)
}

/// The tests of `run` that are `of` the platform called `label`.
fn part_of(run: &RunData, label: &str, of: impl Fn(&TestRecord) -> bool) -> RunData {
    let mut part = run.clone();
    part.records.retain(of);
    label.clone_into(&mut part.manifest.plan.platform);
    part
}

/// Every platform against the first. The arms or levels of one run are compared in their pairs of windows instead.
pub(crate) fn comparisons(sides: &[PlatformRun<'_>], across_drivers: bool) -> Vec<Comparison> {
    comparisons_as_told(sides, across_drivers, false)
}

/// The same, of unequal work as well if `unequal`.
pub(crate) fn comparisons_as_told(sides: &[PlatformRun<'_>], across_drivers: bool, unequal: bool) -> Vec<Comparison> {
    let in_pairs = |s: &PlatformRun<'_>| s.run.manifest.plan.arms.is_some() || s.run.manifest.plan.levels.is_some();
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
        payload_compressibility: Some(m.plan.payload_compressibility),
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

/// Codes of the workloads that scanned commit time over redo.
pub(crate) fn scanned(sides: &[PlatformRun<'_>]) -> Vec<String> {
    distinct(sides.iter().flat_map(|s| &s.scans).map(|s| s.record.workload.clone()))
}

/// Codes of all workloads of group `group`.
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
