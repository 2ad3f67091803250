//! The plan of a run that measures what levels of replication cost.

use loadline_database::{Level, TARGETS, TargetKind, kind_of, redact};
use loadline_model::plan::{JobsSpec, Plan, TimeSpec};
use loadline_model::variant::{Links, Paired};

use super::features::drawn_seed;
use super::variants::windows_at_jobs;
use super::{DEFAULT_TARGET, PlanError, PlanSpec, one_plan, time_with_unit, value, workloads_of};

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
    let known = workloads_of(&plan)?;
    for w in &plan.workloads {
        let found = known.find(&w.code)?;
        if !found.make(&found.params(&w.parameters)?).writes() {
            return value(format!(
                "{} writes nothing, so no commit of it waits for a replica: name one that writes",
                w.code
            ));
        }
    }
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
    let with: Vec<String> = TARGETS
        .iter()
        .filter(|k| !k.levels().is_empty() && k.level_settings().is_empty())
        .map(|k| format!("{}:", k.scheme()))
        .collect();
    value(format!(
        "{} has no replicas whose level and distance loadline can change: give --target {}",
        redact(url),
        with.join(" or ")
    ))
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
        let with: Vec<String> =
            TARGETS.iter().filter(|k| !k.level_settings().is_empty()).map(|k| format!("{}:", k.scheme())).collect();
        return value(format!(
            "--standby {first} does not apply to {shown}, whose replicas loadline makes: it is for servers of yours ({})",
            with.join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::planned;

    #[test]
    fn levels_are_in_the_targets_order_and_delays_rise() {
        let of = |more: &str| {
            let delays = "delay = ['1ms', '0', '0ms']";
            planned(&format!("target = 'postgres-temp:'\nworkload = ['LGWR-LAT1']\n{delays}\n{more}"))
        };
        let replicas = |plan: &Plan| plan.levels().unwrap().1.replicas;
        let plan = of("levels = ['on', 'LOCAL', 'ON']");
        let paired = plan.levels().unwrap().0;
        assert_eq!(paired.levels_and_delays(), (vec!["local", "on"], vec![0.0, 1.0]));
        assert_eq!((replicas(&plan), paired.pairs, paired.variants.len()), (1, DEFAULT_PAIRS, 5));
        let default = of("");
        assert!(default.levels().unwrap().0.levels_and_delays().0.len() > 2 && replicas(&default) == 1, "{default:?}");
        assert_eq!(replicas(&of("levels = ['on:any-1']")), 2);
    }

    #[test]
    fn standbys_of_the_users_have_no_distance_of_loadlines() {
        let own = "target = 'postgres://a:secret@h/d'\nstandby = ['postgres://a:secret@i/d']\nlevels = ['on', 'LOCAL']";
        let plan = planned(&format!("workload = ['LGWR-LAT1']\n{own}"));
        let (paired, links) = plan.levels().unwrap();
        assert_eq!((links.standbys.as_slice(), links.replicas), (&["postgres://a@i/d".to_owned()][..], 1));
        assert_eq!(paired.levels_and_delays().1, [0.0]);
    }
}
