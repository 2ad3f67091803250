//! How the jobs of a plan make load: rate, think time, new sessions, populations.

use loadline_database::{TargetKind, redact};
use loadline_model::capability::Driver;
use loadline_model::plan::{Jobs, PlannedWorkload, PopulationSpec, TimeSpec};
use loadline_model::{JobLoad, Population};
use loadline_workload::{Sweep, Workloads};

use super::{MAX_JOBS, PlanError, PlanSpec, time_with_unit, value};

/// Shortest and longest mean think time, s. Below, a timer is late by as much.
const THINK_S: (f64, f64) = (1e-4, 600.0);

/// The load of `spec` for `workloads` on the target at `url`.
pub(super) fn load(
    spec: &PlanSpec,
    (known, workloads): (&Workloads, &[PlannedWorkload]),
    kind: &TargetKind,
    url: &str,
) -> Result<JobLoad, PlanError> {
    let load = JobLoad {
        rate_tps: rate(spec, known, workloads)?,
        think_s: spec.think.as_ref().map(|t| think("think", t)).transpose()?,
        reconnect_every: reconnect(spec, kind, url)?,
        populations: populations(spec, known, workloads)?,
    };
    for (flag, given) in [
        ("--think", load.think_s.is_some()),
        ("--reconnect-every", load.reconnect_every.is_some()),
        ("[[populations]]", load.is_mixed()),
    ] {
        if given {
            jobs_of_loadline(flag, known, workloads)?;
        }
    }
    Ok(load)
}

/// The job counts of `populations`: their sum.
pub(super) fn jobs_of(populations: &[Population]) -> Option<Jobs> {
    (!populations.is_empty()).then(|| Jobs::List(vec![populations.iter().map(|p| p.jobs).sum()]))
}

/// Refuses `flag` for workloads whose jobs are not those of the client driver's loop.
fn jobs_of_loadline(flag: &str, known: &Workloads, workloads: &[PlannedWorkload]) -> Result<(), PlanError> {
    for w in workloads {
        let found = known.find(&w.code)?;
        if w.driver == Driver::Database {
            return value(format!(
                "{flag} needs the client driver, but {} would run with the database driver, whose loop is inside the database: \
                 add --driver client",
                w.code
            ));
        }
        if found.scan.is_some() || found.visible.is_some() {
            return value(format!(
                "{flag} does not apply to {}, whose transactions have times of their own: leave out one of the two",
                w.code
            ));
        }
    }
    Ok(())
}

fn rate(spec: &PlanSpec, known: &Workloads, workloads: &[PlannedWorkload]) -> Result<Option<f64>, PlanError> {
    let Some(rate) = spec.rate else { return Ok(None) };
    check_rate("rate", rate)?;
    if let Some(w) = workloads.iter().find(|w| w.driver == Driver::Database) {
        return value(format!(
            "a rate needs the client driver, but {} would run with the database driver: add --driver client",
            w.code
        ));
    }
    let own = |w: &PlannedWorkload| Some(known.find(&w.code).ok()?.visible.as_ref()?.rate.clone());
    if let (Some(name), true) = (workloads.first().and_then(own), workloads.iter().all(|w| own(w).is_some())) {
        let code = workloads.first().map_or("", |w| w.code.as_str());
        return value(format!(
            "--rate does not apply to {code}, which has its own rate: set its parameter '{name}' in a plan file \
            (under [parameters.{code}])"
        ));
    }
    Ok(Some(rate))
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

fn reconnect(spec: &PlanSpec, kind: &TargetKind, url: &str) -> Result<Option<u64>, PlanError> {
    match kind.no_sessions.filter(|_| spec.reconnect_every.is_some()) {
        Some(why) => value(format!("--reconnect-every does not apply to {}: {why}", redact(url))),
        None => spec.reconnect_every(),
    }
}

fn populations(
    spec: &PlanSpec,
    known: &Workloads,
    workloads: &[PlannedWorkload],
) -> Result<Vec<Population>, PlanError> {
    let Some(given) = &spec.populations else { return Ok(Vec::new()) };
    if given.len() < 2 {
        return value(format!(
            "populations: {} given, and a mix has two or more: leave the key out and write jobs, think or rate",
            given.len()
        ));
    }
    for w in workloads {
        if known.find(&w.code)?.sweep != Sweep::Jobs {
            return value(format!("populations do not apply to {}, which is not a sweep over jobs", w.code));
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::make_plan;

    fn spec() -> PlanSpec {
        PlanSpec { workload: Some(vec!["LGWR-LAT1".into()]), ..PlanSpec::default() }
    }

    fn refused(spec: PlanSpec, parts: &[&str]) {
        let e = make_plan(&spec).unwrap_err().to_string();
        for part in parts {
            assert!(e.contains(part), "'{e}' does not contain '{part}'");
        }
    }

    fn text(t: &str) -> Option<TimeSpec> {
        Some(TimeSpec::Text(t.into()))
    }

    #[test]
    fn a_think_time_is_for_closed_loops_of_the_client_driver() {
        let plan = make_plan(&PlanSpec { think: text("10ms"), ..spec() }).unwrap();
        assert_eq!(plan.load, JobLoad { think_s: Some(0.01), ..JobLoad::default() });
        refused(PlanSpec { think: text("10ms"), rate: Some(20.0), ..spec() }, &["--think", "open loop", "--rate"]);
        refused(PlanSpec { think: text("10"), ..spec() }, &["think 10", "no unit", "10ms"]);
        refused(PlanSpec { think: text("1us"), ..spec() }, &["think 1us", "0.0001 s", "600 s"]);
        refused(PlanSpec { think: text("soon"), ..spec() }, &["think", "soon"]);
        let pg = || PlanSpec { target: Some("postgres://u@h/d".into()), ..spec() };
        refused(PlanSpec { think: text("10ms"), ..pg() }, &["--think", "LGWR-LAT1", "--driver client"]);
        assert!(make_plan(&PlanSpec { think: text("10ms"), driver: Some(Driver::Client), ..pg() }).is_ok());
        let own = |code: &str| PlanSpec { workload: Some(vec![code.into()]), think: text("10ms"), ..spec() };
        refused(own("DBL-STREAM"), &["--think", "DBL-STREAM"]);
        refused(own("LGWR-SIZE"), &["--think", "LGWR-SIZE"]);
    }

    #[test]
    fn new_sessions_need_a_target_with_sessions() {
        let of = |target: &str, n| PlanSpec { target: Some(target.into()), reconnect_every: Some(n), ..spec() };
        assert_eq!(make_plan(&of("sqlite:", 100)).unwrap().load.reconnect_every, Some(100));
        refused(of("null:", 100), &["--reconnect-every", "null:"]);
        refused(of("wal:", 100), &["--reconnect-every", "wal:"]);
        refused(of("sqlite:", 0), &["reconnect-every 0", "between 1"]);
        refused(of("postgres://u@h/d", 5), &["--reconnect-every", "--driver client"]);
    }

    #[test]
    fn populations_are_the_jobs() {
        let part = |jobs, think: Option<&str>, rate| PopulationSpec { jobs, think: think.and_then(text), rate };
        let of = |parts: &[PopulationSpec]| PlanSpec { populations: Some(parts.to_vec()), ..spec() };
        let mixed = of(&[part(8, Some("10ms"), None), part(2, None, Some(500.0))]);
        let plan = make_plan(&mixed).unwrap();
        assert_eq!(plan.jobs, Jobs::List(vec![10]));
        assert_eq!(plan.load.part_of(8, 10).population.rate_tps, Some(500.0));
        refused(PlanSpec { jobs: Some(loadline_model::plan::JobsSpec::One(4)), ..mixed.clone() }, &["--jobs", "populations"]);
        refused(PlanSpec { think: text("1ms"), ..mixed.clone() }, &["--think"]);
        refused(PlanSpec { rate: Some(3.0), ..mixed }, &["--rate"]);
        refused(of(&[part(8, None, None)]), &["populations", "1 given"]);
        refused(of(&[part(0, None, None), part(1, None, None)]), &["population 1", "jobs = 0"]);
        refused(of(&[part(1, None, None), part(1, Some("1ms"), Some(3.0))]), &["population 2", "rate", "think"]);
        refused(of(&[part(1, None, None), part(1, None, Some(-3.0))]), &["population 2", "-3"]);
        let (most, sum) = (MAX_JOBS.to_string(), (MAX_JOBS + 1).to_string());
        refused(of(&[part(MAX_JOBS, None, None), part(1, None, None)]), &[&sum, &most]);
        let once = PlanSpec { workload: Some(vec!["DBL-11".into()]), parameters: Some(BTreeMap::new()), ..of(&[]) };
        let two = vec![part(1, None, None), part(1, Some("1ms"), None)];
        refused(PlanSpec { populations: Some(two), ..once }, &["DBL-11"]);
    }

    #[test]
    fn a_plan_file_has_populations() {
        let text = "[[populations]]\njobs = 8\nthink = \"10ms\"\n[[populations]]\njobs = 2\nrate = 500\n";
        let spec = crate::plan::planfile::parse(text).unwrap();
        assert_eq!(spec.populations.map(|p| p.iter().map(|p| p.jobs).collect()), Some(vec![8, 2]));
        assert!(crate::plan::planfile::parse("[[populations]]\njobs = 8\nthnk = \"10ms\"\n").is_err());
    }
}
