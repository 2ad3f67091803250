//! `--dry-run`: a plan in words, a line for each thing that it says.

use std::path::Path;

use loadline_database::kind_of;
use loadline_model::JobLoad;
use loadline_model::format::{bytes, duration_s};
use loadline_model::plan::{Jobs, OnNodeLoss, Plan};
use loadline_run::plan::duration::DurationEstimate;
use loadline_run::plan::{by_reason, workloads_of};
use loadline_run::storage_size::{DATA_PER_CACHE, DATA_PER_MEMORY, beyond_memory};
use loadline_run::sweep::{SweepPoints, SweptParameter};
use loadline_workload::{RowCount, Scope, Table, Workload};

/// A line: what it is about, and what the plan says of it. Without a word it goes on with the line above.
type Line = (&'static str, String);

/// The plan in words.
pub(crate) fn describe(plan: &Plan, results: &Path) -> String {
    let length = DurationEstimate::of(plan);
    let mut out = String::new();
    for lines in [target(plan), arms(plan), levels(plan), load(plan, results), data(plan)] {
        out.extend(lines.into_iter().map(|(about, text)| format!("{about:<11} {text}\n")));
    }
    out += &workloads(plan, &length);
    let assumed =
        if length.exact { String::new() } else { format!(", if every sweep takes {:.0} steps", length.steps) };
    let about = if plan.auto_warmup { "at most about" } else { "about" };
    let again = match plan.patience {
        share if share > 0.0 => {
            format!("; at most {} more to measure disturbed tests again", duration_s(share * length.total_s()))
        }
        _ => String::new(),
    };
    out + &format!("time        {about} {}{assumed}{again}\n", duration_s(length.total_s()))
}

/// `values`, separated by commas.
fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn target(plan: &Plan) -> Vec<Line> {
    let mut lines = vec![("target", plan.target.clone())];
    lines.extend(plan.nodes.iter().map(|node| ("node", node.clone())));
    if !plan.node_counts.is_empty() {
        lines.push(("nodes", list(&plan.node_counts)));
    }
    lines.extend(plan.agents.iter().map(|of| ("agents", format!("{} at {}", of.agents, of.hub))));
    if plan.on_node_loss == OnNodeLoss::Continue {
        lines.push(("", "if one is lost, continue over those that are left".to_owned()));
    }
    // Those of two arms are named with them.
    let settings = plan.settings.iter().filter(|_| plan.arms().is_none());
    lines.extend(settings.map(|(name, value)| ("setting", format!("{name} = {value}"))));
    lines
}

fn arms(plan: &Plan) -> Vec<Line> {
    let Some(arms) = plan.arms() else { return Vec::new() };
    let mut lines = Vec::new();
    for arm in &arms.variants {
        let settings: Vec<String> = arm.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let settings = if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
        lines.push(("arm", format!("{}{settings}", arm.label)));
    }
    let precision = arms.precision.map_or_else(String::new, |p| {
        let looks = list(&arms.looks);
        format!(", until the interval is ±{} % wide, looked at after {looks} pairs", p * 100.0)
    });
    lines.push(("pairs", format!("{}{precision}", arms.pairs)));
    lines.push(("equivalent", format!("within ±{} %", arms.margin * 100.0)));
    lines
}

fn levels(plan: &Plan) -> Vec<Line> {
    let Some((paired, links)) = plan.levels() else { return Vec::new() };
    let (levels, delays) = paired.levels_and_delays();
    let mut lines = vec![("levels", levels.join(", "))];
    if links.standbys.is_empty() {
        let delays: Vec<String> = delays.iter().map(|ms| format!("{ms} ms")).collect();
        lines.push(("delays", format!("{} one way", delays.join(", "))));
        if links.jitter_ms > 0.0 {
            lines.push(("jitter", format!("up to {} ms", links.jitter_ms)));
        }
        lines.extend(links.bytes_per_s.map(|n| ("bandwidth", format!("{} per second", bytes(n as f64)))));
    }
    lines.extend(links.standbys.iter().map(|standby| ("standby", standby.clone())));
    let changed = kind_of(&plan.target).map_or(&[][..], |kind| kind.level_settings);
    if !changed.is_empty() {
        lines.push(("changes", format!("{} of the server, until the run ends", changed.join(" and "))));
    }
    lines.push(("replicas", links.replicas.to_string()));
    lines.push(("pairs", paired.pairs.to_string()));
    lines
}

fn load(plan: &Plan, results: &Path) -> Vec<Line> {
    let jobs = match &plan.jobs {
        Jobs::List(counts) if plan.jobs_per_node => format!("{} on each node", list(counts)),
        Jobs::List(counts) => list(counts),
        Jobs::Auto { max } => format!("1, 2, 4, … until throughput no longer grows, at most {max}"),
    };
    let mut lines = vec![
        ("results", results.display().to_string()),
        ("jobs", jobs),
        ("window", format!("{} s after {} of warm-up", plan.duration_s, plan.warmup())),
    ];
    if plan.load != JobLoad::default() {
        lines.push(("load", plan.load.words()));
    }
    lines.push(("repeat", plan.repeat.to_string()));
    lines
}

fn data(plan: &Plan) -> Vec<Line> {
    // Drawn again when the run starts.
    let drawn = plan.draws.map(|_| format!("{} for rows, drawn for what jobs draw", plan.seed));
    let mut lines = vec![
        ("data set", bytes(plan.size_bytes as f64)),
        ("seed", drawn.unwrap_or_else(|| plan.seeds())),
        ("compressible payload", format!("{} %", plan.payload_compressibility * 100.0)),
    ];
    if let Some(memory) = plan.server_memory_bytes {
        let size = beyond_memory(memory);
        lines.push(("server memory", format!("{}: a --size of {size} or more passes it", bytes(memory as f64))));
    } else if reads_storage(plan) {
        let size = format!(
            "storage figures need a --size of {DATA_PER_CACHE} times the database's cache on this machine, of {DATA_PER_MEMORY} times \
             the memory of another one: `loadline doctor` says it"
        );
        lines.push(("", size));
    }
    let own = codes_of(plan, has_own_size);
    if !own.is_empty() {
        lines.push(("own tables", format!("{}: sized by their parameters, not by --size", own.join(", "))));
    }
    if plan.keep_data {
        lines.push(("keep data", "the data set stays on the target".to_owned()));
    }
    if plan.reload {
        lines.push(("reload", "an existing data set is dropped and loaded again".to_owned()));
    }
    let native = kind_of(&plan.target).ok().and_then(|kind| kind.native_report).filter(|_| plan.native_report);
    lines.extend(native.map(|report| ("report", format!("{} of each test ({})", report.name, report.notice))));
    let objective = plan.latency_objective_ns;
    lines.extend(objective.map(|ns| ("objective", format!("latency of {} ms at most", ns as f64 / 1e6))));
    lines
}

fn workloads(plan: &Plan, length: &DurationEstimate) -> String {
    let each = length.steps * plan.node_counts.len().max(1) as f64 * f64::from(length.repeat);
    let tests = if length.exact { format!("{each:.0} tests each") } else { "a sweep each".to_owned() };
    let known = workloads_of(plan).unwrap_or_default();
    let points: Vec<SweepPoints> = plan.workloads.iter().map(|w| SweepPoints::of(&known, w)).collect();
    let apart = if points.iter().all(|p| p.parameter.is_none() && p.over_jobs) { "" } else { ", except where noted" };
    let mut out = format!("workloads   {tests}{apart}\n");
    out.extend(plan.workload_files.iter().map(|file| format!("  (from {})\n", file.name)));
    for (w, points) in plan.workloads.iter().zip(&points) {
        let forced = w.forced.as_ref().map_or(String::new(), |f| format!("  FORCED: {f}"));
        out += &format!("  {:<12} {} driver{}{forced}\n", w.code, w.driver, swept(points));
    }
    let drivers = by_reason(plan.workloads.iter().map(|w| (&*w.code, &*w.driver_reason)));
    out.extend(drivers.iter().map(|(reason, codes)| format!("  ({codes}: {reason})\n")));
    let skipped = by_reason(plan.skipped.iter().map(|s| (&*s.code, &*s.reason)));
    out.extend(skipped.iter().map(|(reason, codes)| format!("  skipped: {codes}: {reason}\n")));
    out
}

/// What a workload is swept over, if not the jobs of the plan.
fn swept(points: &SweepPoints) -> String {
    match &points.parameter {
        Some(SweptParameter { name, values, .. }) => {
            let then = if points.over_jobs { ", then the jobs" } else { "" };
            format!(", 1 job with {name} = {}{then}", list(values))
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
