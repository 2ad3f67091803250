//! `--dry-run`: a plan in words, by the template `dry_run.jinja`.

use std::path::Path;

use loadline_database::kind_of;
use loadline_model::JobLoad;
use loadline_model::format::duration_s;
use loadline_model::plan::Plan;
use loadline_run::plan::duration::DurationEstimate;
use loadline_run::plan::{by_reason, workloads_of};
use loadline_run::server_memory::{DATA_PER_CACHE, DATA_PER_MEMORY, beyond_memory};
use loadline_run::sweep::{SweepPoints, SweptParameter};
use loadline_workload::{RowCount, Scope, Table, Workload};
use minijinja::context;

use crate::exit::Failure;
use crate::template::filled;

/// The plan in words.
pub(crate) fn describe(plan: &Plan, results: &Path) -> Result<String, Failure> {
    let length = DurationEstimate::of(plan);
    let each = length.steps * plan.node_counts().len().max(1) as f64 * f64::from(length.repeat);
    let known = workloads_of(plan).unwrap_or_default();
    let points: Vec<SweepPoints> = plan.workloads.iter().map(|w| SweepPoints::of(&known, w)).collect();
    let workloads = plan.workloads.iter().zip(&points).map(|(w, points)| {
        let forced = w.forced.as_ref().map_or(String::new(), |f| format!("  FORCED: {f}"));
        format!("{:<12} {} driver{}{forced}", w.code, w.driver, swept(points))
    });
    let kind = kind_of(&plan.target).ok();
    let report = kind.and_then(|kind| kind.native_report).filter(|_| plan.native_report());
    let (levels, delays) = plan.levels().map(|(paired, _)| paired.levels_and_delays()).unwrap_or_default();
    // Drawn again when the run starts.
    let drawn = plan.draws.map(|_| format!("{} for rows, drawn for what jobs draw", plan.seed));
    let context = context! {
        plan,
        results => results.display().to_string(),
        arms => plan.arms(),
        links => plan.levels().map(|(_, links)| links),
        levels,
        delays,
        changed => kind.map_or(&[][..], |kind| kind.level_settings),
        warmup => plan.warmup(),
        load => (plan.load != JobLoad::default()).then(|| plan.load.words()),
        seed => drawn.unwrap_or_else(|| plan.seeds()),
        beyond_memory => plan.server_memory_bytes().copied().map(beyond_memory),
        reads_storage => reads_storage(plan),
        data_per_cache => DATA_PER_CACHE,
        data_per_memory => DATA_PER_MEMORY,
        own_size => codes_of(plan, has_own_size),
        report => report.map(|report| (report.name, report.notice)),
        tests => if length.exact { format!("{each:.0} tests each") } else { "a sweep each".to_owned() },
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

/// What a workload is swept over, if not the jobs of the plan.
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

/// What a given `size` of the data set does not change.
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

/// Whether storage workloads are measured on a server with a cache of its own size.
fn reads_storage(plan: &Plan) -> bool {
    let private = kind_of(&plan.target).is_ok_and(|kind| (kind.is_temporary)(&plan.target));
    !private && !codes_of(plan, |w| w.group == "storage").is_empty()
}
