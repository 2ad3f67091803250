//! The plan of a run that measures what levels of replication cost.

use loadline_database::{Level, TARGETS, TargetKind, kind_of, redact};
use loadline_model::plan::{JobsSpec, Plan, TimeSpec};
use loadline_model::variant::{Links, Paired};

use super::features::drawn_seed;
use super::variants::windows_at_jobs;
use super::{DEFAULT_TARGET, PlanError, PlanSpec, one_plan, time_with_unit, value};

/// Default number of pairs: two more than the least with an interval.
const DEFAULT_PAIRS: u32 = 8;
/// Default one-way delays: the same rack, a metropolitan area, a region.
const DEFAULT_DELAYS: [&str; 3] = ["0", "1ms", "5ms"];
/// Longest one-way delay, s: more than the way around the earth.
const MOST_DELAY_S: f64 = 2.0;

/// Why standbys of the user's own have no distance of loadline's.
const NO_RELAY: &str = "loadline's relay is only between servers that it makes itself, such as postgres-temp:";

/// Default of the delays, which makes a plan one of levels.
pub fn default_delays() -> Vec<TimeSpec> {
    DEFAULT_DELAYS.iter().map(|text| TimeSpec::Text((*text).to_owned())).collect()
}

pub(super) fn are_in(spec: &PlanSpec) -> bool {
    spec.levels.is_some() || spec.standby.is_some() || spec.delay.is_some()
}

/// The plan of `spec` with its levels: the first variant is the baseline.
pub(super) fn plan(spec: &PlanSpec) -> Result<Plan, PlanError> {
    let url = spec.target.as_deref().unwrap_or(DEFAULT_TARGET);
    let kind = kind_of(url)?;
    let known = levels_of(kind, url)?;
    let levels = chosen(spec.levels.as_deref(), &known)?;
    let given = spec.standby.as_deref().unwrap_or_default();
    let standbys = standbys(kind, url, given, &levels, spec)?;
    let delays_ms = if standbys.is_empty() { delays(spec.delay.as_deref())? } else { vec![0.0] };
    let pairs = spec.pairs()?.unwrap_or(DEFAULT_PAIRS);
    let jobs = spec.jobs.clone().or(Some(JobsSpec::One(1)));
    let mut plan = one_plan(&PlanSpec { jobs, ..spec.clone() })?;
    windows_at_jobs(&plan)?;
    let needed = levels.iter().map(|level| level.replicas).max().unwrap_or(1);
    let replicas = needed.max(standbys.len() as u32).max(1);
    let at_once = levels.iter().any(|level| level.at_once);
    let levels: Vec<String> = levels.into_iter().map(|level| level.name).collect();
    let links = Links { at_once, standbys, replicas };
    let variants = Paired::of_levels(&levels, &delays_ms);
    let (looks, seed) = (vec![pairs as usize], spec.seed.unwrap_or_else(drawn_seed));
    plan.paired =
        Some(Box::new(Paired { variants, pairs, precision: None, looks, margin: 0.0, seed, links: Some(links) }));
    Ok(plan)
}

/// The levels of a kind of target, at least one.
fn levels_of(kind: &dyn TargetKind, url: &str) -> Result<Vec<Level>, PlanError> {
    let known = kind.levels();
    if !known.is_empty() {
        return Ok(known);
    }
    if let Some(why) = &kind.no_levels {
        return value(format!("no levels with '{}': {why}", redact(url)));
    }
    value(format!(
        "{} has no replicas whose level and distance loadline can change: give --target {}",
        redact(url),
        kinds(|kind| !kind.levels().is_empty() && kind.level_settings().is_empty())
    ))
}

/// The kinds of targets of which `is` holds, as their URLs begin.
fn kinds(is: impl Fn(&dyn TargetKind) -> bool) -> String {
    TARGETS.iter().filter(|kind| is(**kind)).map(|kind| format!("{}:", kind.scheme())).collect::<Vec<_>>().join(" or ")
}

/// The user's own standbys `given`, without passwords, if they fit the target and the levels; empty if loadline makes them.
fn standbys(
    kind: &dyn TargetKind,
    url: &str,
    given: &[String],
    levels: &[Level],
    spec: &PlanSpec,
) -> Result<Vec<String>, PlanError> {
    let shown = redact(url);
    let Some(first) = given.first().map(|first| redact(first)) else {
        return if kind.level_settings().is_empty() {
            Ok(Vec::new())
        } else {
            value(format!("levels of {shown} need its standbys: give each with --standby URL"))
        };
    };
    if kind.level_settings().is_empty() {
        return value(format!(
            "--standby {first} does not apply to {shown}, whose replicas loadline makes: it is for servers of yours ({})",
            kinds(|kind| !kind.level_settings().is_empty())
        ));
    }
    for (n, standby) in given.iter().enumerate() {
        let of = kind_of(standby)?;
        if of.scheme() != kind.scheme() {
            return value(format!("the standby '{}' is not {}: as the target is", redact(standby), kind.scheme()));
        }
        of.check_url(standby)?;
        if standby == url || given[..n].contains(standby) {
            return value(format!("the server '{}' is given twice: keep one", redact(standby)));
        }
    }
    let most = kind.levels().iter().map(|level| level.replicas).max().unwrap_or(0) as usize;
    if given.len() > most {
        return value(format!("{} standbys are given: levels are of at most {most}", given.len()));
    }
    if let Some(level) = levels.iter().find(|level| level.replicas as usize > given.len()) {
        return value(format!(
            "the level '{}' needs {} standbys, and {} is given: give more with --standby",
            level.name,
            level.replicas,
            given.len()
        ));
    }
    let far = delays(spec.delay.as_deref().or(Some(&[TimeSpec::Seconds(0.0)])))?.into_iter().find(|ms| *ms != 0.0);
    if let Some(ms) = far {
        return value(format!("the delay of {ms} ms does not apply to standbys of your own, only 0: {NO_RELAY}"));
    }
    Ok(given.iter().map(|standby| redact(standby)).collect())
}

/// The levels of these names, in the order of `known`; by default those that need one replica.
fn chosen(names: Option<&[String]>, known: &[Level]) -> Result<Vec<Level>, PlanError> {
    let Some(names) = names else {
        return Ok(known.iter().filter(|level| level.replicas <= 1).cloned().collect());
    };
    let is = |level: &Level, name: &str| {
        let is = |known: &str| known.eq_ignore_ascii_case(name.trim());
        is(&level.name) || level.alias.is_some_and(is)
    };
    if let Some(name) = names.iter().find(|name| !known.iter().any(|level| is(level, name))) {
        let all: Vec<&str> = known.iter().map(|level| level.name.as_str()).collect();
        return value(format!("there is no level '{name}': the target has {}", all.join(", ")));
    }
    if names.is_empty() {
        return value("levels = [] names nothing to measure".to_owned());
    }
    Ok(known.iter().filter(|level| names.iter().any(|name| is(level, name))).cloned().collect())
}

/// One-way delays, ms, rising.
fn delays(given: Option<&[TimeSpec]>) -> Result<Vec<f64>, PlanError> {
    let default = default_delays();
    let given = given.unwrap_or(&default);
    let ms = |t: &TimeSpec| Ok(time_with_unit("delay", t, 0.0, MOST_DELAY_S)? * 1e3);
    let mut delays = given.iter().map(ms).collect::<Result<Vec<f64>, PlanError>>()?;
    delays.sort_by(f64::total_cmp);
    delays.dedup();
    if delays.is_empty() {
        return value("delay = [] names nothing to measure: 0 is a link without delay".to_owned());
    }
    Ok(delays)
}
