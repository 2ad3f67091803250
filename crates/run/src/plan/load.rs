//! How the jobs of a plan make load: rate, think time, new sessions, populations.

use loadline_database::{TargetKind, redact};
use loadline_model::load::RateObjective;
use loadline_model::plan::{PlannedWorkload, PopulationSpec, RateSpec, TimeSpec};
use loadline_model::{JobLoad, Population};
use loadline_workload::Workloads;

use super::{MAX_JOBS, PlanError, PlanSpec, time_with_unit, value};

/// Shortest and longest mean think time, s. Below, a timer is late by as much.
const THINK_S: (f64, f64) = (1e-4, 600.0);

pub(super) fn load(
    spec: &PlanSpec,
    (known, workloads): (&Workloads, &[PlannedWorkload]),
    kind: &dyn TargetKind,
    url: &str,
) -> Result<JobLoad, PlanError> {
    Ok(JobLoad {
        rate_tps: rate(spec, known, workloads)?,
        objective: objective(spec)?,
        think_s: spec.think.as_ref().map(|t| think("think", t)).transpose()?,
        reconnect_every: reconnect(spec, kind, url)?,
        keys: spec.keys,
        populations: populations(spec.populations.as_deref())?,
    })
}

fn rate(spec: &PlanSpec, known: &Workloads, workloads: &[PlannedWorkload]) -> Result<Option<f64>, PlanError> {
    let tps = match &spec.rate {
        None => return Ok(None),
        Some(RateSpec::Tps(tps)) => Some(*tps),
        Some(RateSpec::Text(word)) if word.trim().eq_ignore_ascii_case("auto") => None,
        Some(RateSpec::Text(word)) => {
            return value(format!("rate '{word}' must be a number of transactions per second, or 'auto'"));
        }
    };
    tps.map_or(Ok(()), |tps| check_rate("rate", tps))?;
    let own = |w: &PlannedWorkload| Some(known.find(&w.code).ok()?.visible.as_ref()?.rate.clone());
    if let (Some(name), true) = (workloads.first().and_then(own), workloads.iter().all(|w| own(w).is_some())) {
        let code = workloads.first().map_or("", |w| w.code.as_str());
        return value(format!(
            "--rate does not apply to {code}, which has its own rate: set its parameter '{name}' in a plan file \
            (under [parameters.{code}])"
        ));
    }
    Ok(tps)
}

fn objective(spec: &PlanSpec) -> Result<Option<RateObjective>, PlanError> {
    let all = [(0, "latency", &spec.latency), (95, "p95", &spec.p95), (99, "p99", &spec.p99)];
    let given: Vec<_> = all.into_iter().filter_map(|(pct, name, time)| Some((pct, name, time.as_ref()?))).collect();
    // Objectives without a search are refused before.
    let Some(RateSpec::Text(_)) = spec.rate else { return Ok(None) };
    let [(pct, name, time)] = given[..] else {
        let what = "--rate auto needs one objective, and not more: --p99, --p95 or --latency, such as --p99 5ms";
        return value(what.to_owned());
    };
    let seconds = time_with_unit(name, time, 1e-6, 3600.0)?;
    Ok(Some(RateObjective { pct, ns: (seconds * 1e9).round() as u64 }))
}

fn check_rate(what: &str, rate: f64) -> Result<(), PlanError> {
    if rate.is_finite() && rate > 0.0 && rate <= 1e8 {
        return Ok(());
    }
    value(format!("{what} {rate} must be a number of transactions per second above 0 and at most 100,000,000"))
}

fn think(what: &str, spec: &TimeSpec) -> Result<f64, PlanError> {
    time_with_unit(what, spec, THINK_S.0, THINK_S.1)
}

fn reconnect(spec: &PlanSpec, kind: &dyn TargetKind, url: &str) -> Result<Option<u64>, PlanError> {
    match &kind.no_sessions {
        Some(why) if spec.reconnect_every.is_some() => {
            value(format!("--reconnect-every does not apply to {}: {why}", redact(url)))
        }
        _ => spec.reconnect_every(),
    }
}

fn populations(given: Option<&[PopulationSpec]>) -> Result<Vec<Population>, PlanError> {
    let Some(given) = given else { return Ok(Vec::new()) };
    if given.len() < 2 {
        return value(format!(
            "populations: {} given, and a mix has two or more: leave the key out and write jobs, think or rate",
            given.len()
        ));
    }
    let all = given.iter().enumerate().map(|(n, p)| population(n + 1, p)).collect::<Result<Vec<_>, _>>()?;
    let jobs: u64 = all.iter().map(|p| u64::from(p.jobs)).sum();
    if jobs > u64::from(MAX_JOBS) {
        return value(format!("the populations have {jobs} jobs: at most {MAX_JOBS} can be run"));
    }
    Ok(all)
}

fn population(number: usize, spec: &PopulationSpec) -> Result<Population, PlanError> {
    if !(1..=MAX_JOBS).contains(&spec.jobs) {
        return value(format!("population {number}: jobs = {} must be between 1 and {MAX_JOBS}", spec.jobs));
    }
    if spec.think.is_some() && spec.rate.is_some() {
        return value(format!("population {number} has a rate and a think time: leave out one of the two"));
    }
    if let Some(rate) = spec.rate {
        check_rate(&format!("population {number}: rate"), rate)?;
    }
    let think_s = spec.think.as_ref().map(|t| think(&format!("population {number}: think"), t)).transpose()?;
    Ok(Population { jobs: spec.jobs, think_s, rate_tps: spec.rate })
}
