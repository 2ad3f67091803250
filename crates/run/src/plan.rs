//! Makes a plan, in which every value is valid and explicit, from the user's options.

pub mod duration;
mod features;
pub mod levels;
mod load;
pub mod options;
pub mod planfile;
pub mod plans;
mod refusals;
pub mod scripts;
pub mod sweep;
pub mod variants;
mod workloads;

use std::collections::BTreeMap;

use loadline_database::{TargetError, TargetKind, kind_of, redact, refuse_secrets};
use loadline_model::facts::stated;
use loadline_model::plan::{Jobs, JobsSpec, Payload, Plan, TimeSpec};
use loadline_workload::{ParamError, Unknown, UserError};
use thiserror::Error;

pub use features::{AWR_FLAG, give_anew, requests};
pub use options::PlanSpec;
use workloads::{Chosen, choose};
pub use workloads::{Refusal, add_parameters, by_reason, planned, refusal, workloads_of};
pub(crate) use workloads::{reasons, work_of};

/// Default target: needs no server.
pub const DEFAULT_TARGET: &str = "sqlite:";
pub const DEFAULT_RESULTS: &str = "loadline-results";
pub const DEFAULT_EQUIVALENCE: f64 = 0.02;
pub const DEFAULT_SEED: u64 = 42;
pub const AUTO_MAX_JOBS: u32 = 1024;
/// Default number of jobs with which the highest rate is searched.
const SEARCH_JOBS: u32 = 16;
/// Maximum number of jobs of one process, each with a thread.
pub const MAX_JOBS: u32 = 20_000;

/// Why a plan cannot be made: a usage error. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error("{0}")]
    User(#[from] UserError),
    #[error("{0}")]
    Value(String),
    #[error("nothing to run on '{target}': {reasons}")]
    Nothing { target: String, reasons: String },
}

fn value<T>(text: String) -> Result<T, PlanError> {
    Err(PlanError::Value(text))
}

/// Makes the plan of `spec`, without a platform name until the target is opened. An error names the offending value and those allowed.
pub fn make_plan(spec: &PlanSpec) -> Result<Plan, PlanError> {
    refusals::check(spec)?;
    if levels::are_in(spec) {
        levels::plan(spec)
    } else if variants::are_in(spec) {
        variants::plan(spec)
    } else {
        one_plan(spec)
    }
}

fn one_plan(spec: &PlanSpec) -> Result<Plan, PlanError> {
    let url = spec.target.as_deref().unwrap_or(DEFAULT_TARGET);
    let kind = checked_target(spec, url)?;
    spec.setting.as_ref().map_or(Ok(()), refuse_secrets)?;
    let Chosen { known, workloads, skipped, files } = choose(spec, kind, url)?;
    let load = load::load(spec, (&known, &workloads), kind, url)?;
    refusals::check_workloads(spec, &known, &workloads)?;
    let scans = workloads.iter().any(|w| known.find(&w.code).is_ok_and(|found| found.scan.is_some()));
    let features = features::of_plan(spec, kind, url, scans)?;
    let few = JobsSpec::One(SEARCH_JOBS);
    let given = spec.jobs.as_ref().or(load.objective.and(Some(&few)));
    let jobs = match load.populations.iter().map(|part| part.jobs).sum::<u32>() {
        0 => jobs(given, features::processes(spec)?)?,
        all => Jobs::List(vec![all]),
    };
    Ok(Plan {
        target: redact(url),
        platform: spec.platform.clone().unwrap_or_default(),
        facts: facts_of(spec)?,
        workloads,
        skipped,
        workload_files: files,
        jobs,
        duration_s: spec.duration()?,
        warmup_s: warmup_s(spec)?,
        repeat: spec.repeat()?,
        load,
        payload: Payload { compressibility: spec.payload_compressibility()?, duplicates: spec.payload_duplicates()? },
        seed: spec.seed.unwrap_or(DEFAULT_SEED),
        size_bytes: spec.size()?,
        settings: spec.setting.clone().unwrap_or_default(),
        force: spec.force.unwrap_or(false),
        patience: spec.patience()?,
        probe: spec.probe.unwrap_or(true),
        keep_data: spec.keep_data.unwrap_or(false),
        reload: spec.reload.unwrap_or(false),
        features,
        paired: None,
    })
}

/// The kind of the target at `url`, if it and its nodes can be asked for what `spec` asks of them.
fn checked_target(spec: &PlanSpec, url: &str) -> Result<&'static dyn TargetKind, PlanError> {
    let kind = kind_of(url)?;
    kind.check_url(url)?;
    for node in spec.node.iter().flatten() {
        kind_of(node)?.check_url(node)?;
    }
    let setting = spec.setting.iter().flatten().next();
    if let Some((name, _)) = setting
        && !kind.is_temporary(url)
    {
        return value(format!(
            "--setting {name} does not apply to {}: it is only for servers and databases that loadline creates itself; \
            change the setting on the server, of two arms with --switch-a and --switch-b",
            redact(url)
        ));
    }
    Ok(kind)
}

/// The facts that the user states, without passwords.
fn facts_of(spec: &PlanSpec) -> Result<BTreeMap<String, String>, PlanError> {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), redact);
    let given: Vec<(&str, String)> = spec.facts.iter().flatten().map(|(name, of)| (name.as_str(), text(of))).collect();
    stated(given.iter().map(|(name, value)| (*name, value.as_str()))).map_err(PlanError::Value)
}

/// Whether the warm-up lasts until throughput is steady.
fn is_auto(warmup: &TimeSpec) -> bool {
    matches!(warmup, TimeSpec::Text(text) if text.trim().eq_ignore_ascii_case("auto"))
}

/// The warm-up, or the longest one, s.
fn warmup_s(spec: &PlanSpec) -> Result<f64, PlanError> {
    if spec.warmup.as_ref().is_some_and(is_auto) {
        return spec.max_warmup();
    }
    match spec.warmup() {
        Err(PlanError::Value(why)) => value(format!("{why}, or 'auto'")),
        seconds => seconds,
    }
}

/// Maximum size of a workload file, bytes: the manifest stores it.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The text of a file that a plan names; `what` it is.
fn read_file(what: &str, name: &str) -> Result<String, PlanError> {
    let failed = |e: std::io::Error| PlanError::Value(format!("the {what} {name} cannot be read: {e}"));
    let size = std::fs::metadata(name).map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        return value(format!("the {what} {name} has {size} bytes; the maximum is {MAX_FILE_BYTES}"));
    }
    std::fs::read_to_string(name).map_err(failed)
}

fn jobs(spec: Option<&JobsSpec>, processes: u32) -> Result<Jobs, PlanError> {
    let most = MAX_JOBS.saturating_mul(processes);
    let allowed = format!("give 'auto' or counts from 1 to {most}, such as 1,2,4,8");
    let mut list = match spec {
        None => return Ok(Jobs::Auto { max: AUTO_MAX_JOBS }),
        Some(JobsSpec::Word(word)) if word.eq_ignore_ascii_case("auto") => {
            return Ok(Jobs::Auto { max: AUTO_MAX_JOBS });
        }
        Some(JobsSpec::Word(word)) => return value(format!("jobs '{word}' is not a job count: {allowed}")),
        Some(JobsSpec::One(n)) => vec![*n],
        Some(JobsSpec::List(list)) => list.clone(),
    };
    if list.is_empty() {
        return value(format!("the list of job counts is empty: {allowed}"));
    }
    if let Some(n) = list.iter().find(|n| !(1..=most).contains(*n)) {
        return value(format!("{n} jobs cannot be run: {allowed}"));
    }
    list.sort_unstable();
    list.dedup();
    Ok(Jobs::List(list))
}

/// A short time, s. Its unit is required unless it is 0: ms are as likely meant as the seconds of other times.
fn time_with_unit(what: &str, spec: &TimeSpec, min: f64, max: f64) -> Result<f64, PlanError> {
    let number = match spec {
        TimeSpec::Seconds(s) => Some(*s),
        TimeSpec::Text(text) => text.trim().parse().ok(),
    };
    match number.filter(|n| *n > 0.0) {
        Some(n) => value(format!("{what} {n} has no unit: write {n}ms or {n}s")),
        None => options::in_range(what, spec, [&format!("{min} s"), &format!("{max} s")]),
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::Driver;
    use loadline_workload::CATALOGUE;
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::testing::planned;

    /// Plans that are refused, and what the refusal says.
    #[derive(Deserialize)]
    struct Refused {
        plan: PlanSpec,
        says: Vec<String>,
    }

    #[test]
    fn refusals_name_the_value_and_the_allowed_ones() {
        let all: BTreeMap<String, Vec<Refused>> = toml::from_str(include_str!("plan/refused.toml")).unwrap();
        for Refused { plan, says } in &all["refused"] {
            let e = make_plan(plan).expect_err(&format!("{plan:?}")).to_string();
            assert!(says.iter().all(|part| e.contains(part)), "'{e}' does not say {says:?}");
            assert!(!e.contains("s3cret"), "{e}");
        }
    }

    /// A plan, and values of what is made of it, by their paths.
    #[derive(Deserialize)]
    struct Planned {
        plan: PlanSpec,
        made: BTreeMap<String, Value>,
    }

    /// The value at `path`, of which `*` goes through a list.
    fn at(value: &Value, path: &str) -> Value {
        match path.split_once("/*") {
            Some((list, rest)) => {
                let list = value.pointer(list).and_then(Value::as_array);
                list.into_iter().flatten().map(|one| at(one, rest)).collect()
            }
            None => value.pointer(path).filter(|found| !found.is_null()).cloned().unwrap_or("absent".into()),
        }
    }

    #[test]
    fn what_is_given_is_planned() {
        let all: BTreeMap<String, Vec<Planned>> = toml::from_str(include_str!("plan/planned.toml")).unwrap();
        for Planned { plan, made } in &all["planned"] {
            let value = serde_json::to_value(make_plan(plan).unwrap_or_else(|e| panic!("{plan:?}: {e}"))).unwrap();
            for (path, wanted) in made {
                assert_eq!(at(&value, path), *wanted, "{path} of {plan:?}");
            }
        }
        assert_eq!(planned("warmup = 'auto'").warmup(), "at most 60 s");
    }

    #[test]
    fn nothing_asked_for_is_the_whole_catalogue_on_sqlite() {
        let plan = planned("");
        assert_eq!(plan.target, "sqlite:");
        let sweeps = CATALOGUE.iter().filter(|w| w.scan.is_none()).count();
        assert_eq!(plan.workloads.len() + plan.skipped.len(), sweeps, "scans run only if named");
        assert!(plan.workloads.iter().all(|w| w.driver == Driver::Client && w.driver_reason.contains("procedures")));
    }

    #[test]
    fn tables_of_two_workloads_have_two_names() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "code = \"TP\"\nsummary = \"x\"\nprogram = [{ execute = \"look\" }]\n[[table]]\nname = \"light_account\"\n\
                    rows = 10\ncolumn = [{ name = \"id\", type = \"int\", fill = \"key\" }]\n[[statement]]\nname = \"look\"\n\
                    sql = \"SELECT id FROM {light_account}\"\neffect = { read = 10 }\n";
        std::fs::write(file.path(), text).unwrap();
        let files = Some(vec![file.path().display().to_string()]);
        let with = |code: &str| PlanSpec {
            workload: Some(vec![code.into()]),
            workload_file: files.clone(),
            ..PlanSpec::default()
        };
        let e = make_plan(&with("TP-LIGHT")).unwrap_err().to_string();
        for part in ["'account' of TP-LIGHT", "'light_account' of TP", "tp_light_account"] {
            assert!(e.contains(part), "'{e}' does not contain '{part}'");
        }
        let plan = make_plan(&with("TP-HEAVY")).unwrap();
        assert_eq!((plan.workloads.len(), plan.workload_files.len()), (2, 1));
        // The workload of a known file runs, and the file is stored, only if it is named.
        let known = |code: &str| PlanSpec { known_workload_file: files.clone(), workload_file: None, ..with(code) };
        let one = |plan: Plan| (plan.workloads.len(), plan.workloads[0].code.clone(), plan.workload_files.len());
        assert_eq!(one(make_plan(&known("TP-LIGHT")).unwrap()), (1, "TP-LIGHT".to_owned(), 0));
        assert_eq!(one(make_plan(&known("TP")).unwrap()), (1, "TP".to_owned(), 1));
    }

    #[test]
    fn no_password_reaches_the_plan() {
        let url = "postgres://ann:tops3cret@host/db?password=tops3cret".to_owned();
        let plan =
            make_plan(&PlanSpec { target: Some(url.clone()), node: Some(vec![url]), ..PlanSpec::default() }).unwrap();
        assert!(!format!("{plan:?}").contains("tops3cret"));
    }
}
