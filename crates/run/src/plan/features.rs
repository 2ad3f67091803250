//! Additions of features' options to a plan: each feature is a line of [`of_plan`].

use std::time::{SystemTime, UNIX_EPOCH};

use loadline_collect::os::perf_events;
use loadline_database::{OpenRequest, TargetKind, Way, redact};
use loadline_model::Driver;
use loadline_model::plan::{OnNodeLoss, Plan, PlanFeature, PlannedAgents, TimeSpec};
use loadline_model::variant::{Paired, Variant};
use loadline_workload::{Instrument, Workload};

use super::{PlanError, PlanSpec, is_auto, options, time_with_unit, value};

/// Flag of the key `oracle-awr`.
pub const AWR_FLAG: &str = "--oracle-awr";

/// Additions of the options of `spec` to its plan for a target of this `kind` at `url`. `scans`: whether a workload of it scans.
pub(super) fn of_plan(
    spec: &PlanSpec,
    kind: &dyn TargetKind,
    url: &str,
    scans: bool,
) -> Result<Vec<PlanFeature>, PlanError> {
    let nodes: Vec<String> = spec.node.iter().flatten().map(|node| redact(node)).collect();
    let objective = |t: &TimeSpec| time_with_unit("latency objective", t, 1e-6, 3600.0);
    let objective_s = spec.latency_objective.as_ref().map(objective).transpose()?;
    // Rows that stay on a server must be the same in the next run, which must not draw what this one drew: its rows would be in caches.
    let draws = spec.seed.is_none().then(|| u64::from(drawn_seed() as u32));
    let all = [
        draws.map(PlanFeature::Draws),
        flag(PlanFeature::AutoWarmup, spec.warmup.as_ref().map(is_auto)),
        objective_s.map(|s| PlanFeature::LatencyObjective((s * 1e9) as u64)),
        listed(PlanFeature::Nodes, nodes),
        listed(PlanFeature::NodeCounts, node_counts(spec.nodes.as_deref())?),
        spec.on_node_loss.filter(|of| *of != OnNodeLoss::End).map(PlanFeature::OnNodeLoss),
        agents(spec, kind, url)?.map(PlanFeature::Agents),
        flag(PlanFeature::JobsPerNode, spec.jobs_per_node),
        spec.server_memory()?.map(PlanFeature::ServerMemory),
        flag(PlanFeature::AllowCached, spec.allow_cached),
        flag(PlanFeature::NativeReport, native_report(spec, kind, url)?),
        listed(PlanFeature::IdleTimes, idle_times(spec, scans)?),
        flag(PlanFeature::PerfEvents, counts_perf_events(spec)?),
        flag(PlanFeature::Aging, spec.aging),
    ];
    Ok(all.into_iter().flatten().collect())
}

fn listed<T>(feature: fn(Vec<T>) -> PlanFeature, values: Vec<T>) -> Option<PlanFeature> {
    (!values.is_empty()).then(|| feature(values))
}

fn flag(feature: fn(bool) -> PlanFeature, given: Option<bool>) -> Option<PlanFeature> {
    given.filter(|is| *is).map(feature)
}

/// How the targets of `plan` are opened: its own with further nodes and standbys, and those of the variants after the first; all as
/// `base`, with the passwords of the URLs `given`.
pub fn requests(plan: &Plan, base: &OpenRequest, given: &[String]) -> (OpenRequest, Vec<OpenRequest>) {
    let whole = |shown: &str| given.iter().find(|url| redact(url) == shown).map_or(shown, String::as_str).to_owned();
    let all = |shown: &[String]| shown.iter().map(|url| whole(url)).collect();
    let links = plan.levels().map(|(_, links)| links);
    let request = OpenRequest {
        url: whole(&plan.target),
        nodes: all(plan.nodes()),
        standbys: links.map_or_else(Vec::new, |links| all(&links.standbys)),
        settings: plan.settings.clone(),
        native_report: plan.native_report(),
        way: if plan.arms().is_some_and(Paired::has_via) { Way::Direct } else { Way::Own },
        replicas: links.map_or(0, |links| links.replicas),
        ..base.clone()
    };
    let of_variant = |variant: &Variant| OpenRequest {
        url: whole(plan.target_of(variant)),
        settings: variant.settings.clone(),
        way: variant.via.as_deref().map_or_else(|| request.way.clone(), |via| Way::Via(whole(via))),
        ..request.clone()
    };
    let others = plan.arms().into_iter().flat_map(|paired| paired.variants.iter().skip(1)).map(of_variant).collect();
    (request, others)
}

/// Changes the `plan` of a `run` that is resumed in what may be given anew; refuses agents for one that has none.
pub fn give_anew(plan: &mut Plan, given: &PlanSpec, run: &str) -> Result<(), PlanError> {
    plan.force |= given.force.is_some();
    match given.agents()? {
        Some(agents) if !plan.set_agents(agents) => value(format!("the jobs of run {run} do not run on agents")),
        _ => Ok(()),
    }
}

/// The driver that `spec` asks for. Of the in-database driver the load is the database's own, wherever its sessions come from.
pub(super) fn driver(spec: &PlanSpec) -> Option<Driver> {
    let only_client = spec.agents.is_some() || spec.aging == Some(true);
    if only_client { Some(Driver::Client) } else { spec.driver }
}

/// Processes of loadline over which the jobs are spread.
pub(super) fn processes(spec: &PlanSpec) -> Result<u32, PlanError> {
    Ok(if spec.hub.is_some() { spec.agents()?.unwrap_or(1) } else { 1 })
}

fn agents(spec: &PlanSpec, kind: &dyn TargetKind, url: &str) -> Result<Option<PlannedAgents>, PlanError> {
    let Some((hub, agents)) = spec.hub.as_deref().zip(spec.agents()?) else { return Ok(None) };
    // The null engine is temporary, but each process has one.
    if kind.is_temporary(url) && kind.no_limit.is_none() {
        return value(format!(
            "agents cannot reach {}, a server that loadline starts for itself: give them the URL of a server",
            redact(url)
        ));
    }
    Ok(Some(PlannedAgents { hub: redact(hub), agents, credentials: spec.agent_credentials.unwrap_or_default() }))
}

/// Why `workload` cannot run as `spec` asks; `None` if it can.
pub(super) fn barred(spec: &PlanSpec, workload: &Workload) -> Option<String> {
    spec.agents?;
    let why = if workload.scan.is_some() {
        "it is a scan by one session of loadline itself, not a load of jobs"
    } else if workload.has(Instrument::Checkpoint) {
        "its jobs split their times by a phase that agents are not told of"
    } else {
        return None;
    };
    Some(format!("not with agents: {why}"))
}

/// Numbers of nodes, rising. Whether the target has as many is checked when the run begins: plans are listed without one.
fn node_counts(given: Option<&[u32]>) -> Result<Vec<u32>, PlanError> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let mut counts = given.to_vec();
    counts.sort_unstable();
    counts.dedup();
    match counts.first() {
        Some(0) => value("--nodes 0: a test needs a node".to_owned()),
        None => value("nodes = [] names nothing to measure: leave the key out for all nodes".to_owned()),
        Some(_) => Ok(counts),
    }
}

fn native_report(spec: &PlanSpec, kind: &dyn TargetKind, url: &str) -> Result<Option<bool>, PlanError> {
    if spec.oracle_awr == Some(true) && kind.native_report.as_ref().is_none_or(|r| r.flag != AWR_FLAG) {
        return value(format!("{AWR_FLAG} is for Oracle: {} is {} and has no AWR", redact(url), kind.product));
    }
    Ok(spec.oracle_awr)
}

/// Times from the last change to the commit, s, ascending.
fn idle_times(spec: &PlanSpec, scans: bool) -> Result<Vec<f64>, PlanError> {
    let Some(given) = &spec.idle else { return Ok(Vec::new()) };
    let each = given.iter().map(|time| options::in_range("idle", time, ["0", "60 s"]));
    let mut idle_s = each.collect::<Result<Vec<f64>, _>>()?;
    idle_s.sort_by(f64::total_cmp);
    idle_s.dedup();
    if idle_s.len() < 2 {
        return value(format!("idle needs two different times or more, such as 0,1s, and has {}", idle_s.len()));
    }
    if !scans {
        return value(
            "idle applies to scans of commit time only, and none is planned: add --workload LGWR-SIZE".to_owned(),
        );
    }
    Ok(idle_s)
}

fn counts_perf_events(spec: &PlanSpec) -> Result<Option<bool>, PlanError> {
    match spec.perf_events.unwrap_or(false).then(perf_events) {
        Some(Err(why)) => value(format!("--perf-events: {why}")),
        _ => Ok(spec.perf_events),
    }
}

/// A seed of this run alone: with one order of windows in all runs, what happens at the same time in each would look like a difference.
pub(super) fn drawn_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::planned;

    #[test]
    fn each_server_is_opened_with_its_own_password() {
        let url = |host: &str| format!("postgres://u:of-{host}@{host}/d");
        // Passwords are not given by the order of servers, and not for all.
        let given = ["p", "b", "s", "n", "h"].map(url);
        let cases = [
            ("node = ['n', 'm']\nvariant = [{}, { target = 'b' }]", vec![vec!["h", "n", "m"], vec!["b", "n", "m"]]),
            ("standby = ['s']\nlevels = ['on']", vec![vec!["h", "s"]]),
            ("via = ['p', 'q']", vec![vec!["h"], vec!["h", "p"], vec!["h", "q"]]),
        ];
        for (keys, hosts) in cases {
            let text = format!("target = 'h'\nworkload = ['TP-LIGHT']\n{keys}");
            let all = "hnmbspq".chars().map(String::from);
            let text = all.fold(text, |text, h| text.replace(&format!("'{h}'"), &format!("'postgres://u@{h}/d'")));
            let (first, others) = requests(&planned(&text), &OpenRequest::new("", Default::default()), &given);
            let opened: Vec<_> = std::iter::once(first).chain(others).map(|request| request.urls()).collect();
            let whole =
                |host: &&str| if ["m", "q"].contains(host) { format!("postgres://u@{host}/d") } else { url(host) };
            let wanted: Vec<Vec<String>> = hosts.iter().map(|of| of.iter().map(whole).collect()).collect();
            assert_eq!(opened, wanted, "{keys}");
        }
    }
}
