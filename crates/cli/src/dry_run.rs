//! `--dry-run`: a plan in words, by the template `dry_run.jinja`.

use std::path::Path;

use loadline_database::{OpenRequest, is_temporary, kind_of, open};
use loadline_model::JobLoad;
use loadline_model::format::{counted, duration_s};
use loadline_model::plan::Plan;
use loadline_run::plan::duration::DurationEstimate;
use loadline_run::plan::{by_reason, workloads_of};
use loadline_run::server_memory::{DATA_PER_CACHE, DATA_PER_MEMORY, beyond_memory};
use loadline_run::sweep::{SweepPoints, SweptParameter};
use loadline_workload::{RowCount, Scope, Table, Workload};
use minijinja::context;

use crate::doctor;
use crate::exit::Failure;
use crate::template::filled;

/// The plan in words. `request`: the target, which is asked for what storage figures need of a server.
pub(crate) fn describe(plan: &Plan, results: &Path, request: &OpenRequest) -> Result<String, Failure> {
    let length = DurationEstimate::new(plan);
    let each = length.steps * plan.node_counts().len().max(1) as f64 * f64::from(length.repeat);
    let known = workloads_of(plan).unwrap_or_default();
    let points: Vec<SweepPoints> = plan.workloads.iter().map(|w| SweepPoints::new(&known, w)).collect();
    let workloads = plan.workloads.iter().zip(&points).map(|(w, points)| {
        let forced = w.forced.as_ref().map_or(String::new(), |f| format!("  FORCED: {f}"));
        format!("{:<14} {} driver{}{forced}", w.code, w.driver, swept(points))
    });
    let kind = kind_of(&plan.target).ok();
    let report = if plan.native_report() { kind.and_then(|kind| kind.native_report.as_ref()) } else { None };
    let (levels, delays) = plan.levels().map(|(paired, _)| paired.levels_and_delays()).unwrap_or_default();
    // Drawn again when the run starts.
    let drawn = plan.draws().map(|_| format!("{} for rows, drawn for what jobs draw", plan.seed));
    let context = context! {
        plan,
        results => results.display().to_string(),
        arms => plan.arms(),
        links => plan.levels().map(|(_, links)| links),
        levels,
        delays,
        changed => kind.map_or(&[][..], |kind| kind.level_settings()),
        warmup => plan.warmup(),
        load => (plan.load != JobLoad::default()).then(|| plan.load.words()),
        seed => drawn.unwrap_or_else(|| plan.seeds()),
        storage_size => storage_size(plan, request),
        own_size => codes_of(plan, has_own_size),
        report => report.map(|report| (&report.name, &report.notice)),
        tests => if length.exact { format!("{} each", counted(each.round() as usize, "test")) } else { "a sweep each".to_owned() },
        apart => points.iter().any(|p| p.parameter.is_some() || !p.over_jobs),
        workloads => workloads.collect::<Vec<_>>(),
        drivers => by_reason(plan.workloads.iter().map(|w| (&*w.code, &*w.driver_reason))),
        skipped => by_reason(plan.skipped.iter().map(|s| (&*s.code, &*s.reason))),
        time => duration_s(length.total_s()),
        steps => (!length.exact).then(|| format!("{:.0}", length.steps)),
        again => (plan.patience > 0.0).then(|| duration_s(plan.patience * length.total_s())),
    };
    filled(include_str!("dry_run.jinja"), context)
}

/// Axis of a workload's sweep, if not the jobs of the plan.
fn swept(points: &SweepPoints) -> String {
    match &points.parameter {
        Some(SweptParameter { name, values, .. }) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            let then = if points.over_jobs { ", then the jobs" } else { "" };
            format!(", 1 job with {name} = {}{then}", values.join(", "))
        }
        None if points.over_jobs => String::new(),
        None => ", one test".to_owned(),
    }
}

/// Codes of the plan's workloads of which `is` holds.
fn codes_of(plan: &Plan, is: impl Fn(&Workload) -> bool) -> Vec<&str> {
    let known = workloads_of(plan).unwrap_or_default();
    let codes = plan.workloads.iter().map(|w| w.code.as_str());
    codes.filter(|code| known.find(code).is_ok_and(|w| is(&w))).collect()
}

/// Whether the size of some table of the workload depends neither on the data set nor on the jobs.
fn has_own_size(workload: &Workload) -> bool {
    let own = |t: &Table| t.scope == Scope::Workload && matches!(t.rows, RowCount::Total(_) | RowCount::Fixed(_));
    workload.tables.iter().any(own)
}

/// Tables that a given `size` of the data set does not change.
pub(crate) fn unsized_ones(plan: &Plan, size: &str) -> Option<String> {
    let shares = |t: &Table| matches!(t.rows, RowCount::Share { .. });
    let codes = codes_of(plan, |w| !w.tables.is_empty() && !w.tables.iter().any(shares));
    // A study of all workloads has a size for those that take it.
    (!codes.is_empty() && codes.len() == plan.workloads.len()).then(|| {
        format!(
            "! --size {size} does not apply to {}, whose tables have sizes of their own (`loadline workloads CODE`)",
            codes.join(", ")
        )
    })
}

/// The `--size` that storage workloads need on a server that keeps its cache, and how it comes, as the doctor says it.
fn storage_size(plan: &Plan, request: &OpenRequest) -> Option<String> {
    // What runs in loadline's own process has no database driver, and gets a small cache.
    let is_server = kind_of(&plan.target).is_ok_and(|kind| kind.capabilities().missing_drivers.is_empty());
    if !is_server || is_temporary(&plan.target) || codes_of(plan, |w| w.group == "storage").is_empty() {
        return None;
    }
    let asked = open(request).map_err(Failure::from).and_then(|target| {
        let info = target.info()?;
        doctor::storage_size(target.as_ref(), &info, &request.url, plan.server_memory_bytes())
    });
    match asked {
        Ok(found) => found.map(|found| format!("{}: {}", found.value, found.advice)),
        Err(e) => {
            let rule = plan.server_memory_bytes().map_or_else(
                || {
                    format!(
                        "{DATA_PER_CACHE} times the database's cache if loadline can read the data files, else {DATA_PER_MEMORY} \
                         times the memory of their machine"
                    )
                },
                |bytes| format!("{} or more: {DATA_PER_MEMORY} times that memory", beyond_memory(bytes)),
            );
            Some(format!("{rule}; the target cannot be asked: {}", e.message))
        }
    }
}
