//! The workloads of a plan: which run, each with which driver, and why others do not.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_database::{TargetKind, Work, redact, table_names};
use loadline_model::capability::Driver;
use loadline_model::group::grouped;
use loadline_model::plan::{Plan, PlannedWorkload, SkippedWorkload, WorkloadFile};
use loadline_workload::{CATALOGUE, Params, Workload, Workloads, find_group};

use super::{PlanError, PlanSpec, features, read_file, scripts, value};

pub(super) struct Chosen {
    pub(super) known: Workloads,
    pub(super) workloads: Vec<PlannedWorkload>,
    pub(super) skipped: Vec<SkippedWorkload>,
    pub(super) files: Vec<WorkloadFile>,
}

/// The chosen workloads with their drivers, and the skipped ones, in the order of the catalogue and of the files. If only files are given,
/// only their workloads run.
pub(super) fn choose(spec: &PlanSpec, kind: &dyn TargetKind, url: &str) -> Result<Chosen, PlanError> {
    let mut files = workload_files(&spec.workload_file)?;
    files.extend(scripts::file(spec)?);
    let own = Workloads::read(&files)?.own;
    files.extend(workload_files(&spec.known_workload_file)?);
    let known = Workloads::read(&files)?;
    let wanted = wanted(spec, own, &known)?;
    let parameters = parameters(spec, &known)?;
    let asked = features::driver(spec);
    let (mut workloads, mut skipped) = (Vec::new(), Vec::new());
    for workload in CATALOGUE.iter().chain(&known.own).filter(|w| wanted.iter().any(|v| v.code == w.code)) {
        let code = workload.code.clone();
        let barred = features::barred(spec, workload);
        let choice = choose_driver(workload, kind, asked, spec.force.unwrap_or(false));
        match choice.and_then(|choice| barred.map_or(Ok(choice), Err)) {
            Ok(planned) => {
                let parameters = parameters.get(&code).copied().cloned().unwrap_or_default();
                workloads.push(PlannedWorkload { parameters, ..planned });
            }
            Err(reason) => skipped.push(SkippedWorkload { code, reason }),
        }
    }
    if workloads.is_empty() {
        return Err(PlanError::Nothing { target: redact(url), reasons: reasons(&skipped) });
    }
    check_table_names(&known, &workloads)?;
    // A run stores the files of the workloads that it runs.
    let runs = |code: &str| workloads.iter().any(|w| w.code == code) || skipped.iter().any(|s| s.code == code);
    files.retain(|file| known.own.iter().any(|w| w.text() == file.text && runs(&w.code)));
    Ok(Chosen { known, workloads, skipped, files })
}

/// The workloads that `spec` names. `own`: those of its files.
fn wanted(spec: &PlanSpec, own: Vec<Arc<Workload>>, known: &Workloads) -> Result<Vec<Arc<Workload>>, PlanError> {
    if spec.workload.is_none() && spec.group.is_none() && own.is_empty() {
        // A scan takes as long as all sweeps: it runs only if it is named.
        return Ok(CATALOGUE.iter().filter(|w| w.scan.is_none()).cloned().collect());
    }
    let mut wanted = own;
    for code in spec.workload.iter().flatten() {
        wanted.push(known.find(code)?);
    }
    for group in spec.group.iter().flatten() {
        wanted.extend(find_group(group)?);
    }
    if wanted.is_empty() {
        let key = if spec.workload.is_some() { "workload" } else { "group" };
        return value(format!(
            "{key} = [] names nothing to run: omit the key to run all workloads, or name some (`loadline workloads` \
            lists them)"
        ));
    }
    Ok(wanted)
}

/// The parameters that `spec` gives, by workload code; those of workloads that do not run are checked as well.
fn parameters<'a>(
    spec: &'a PlanSpec,
    known: &Workloads,
) -> Result<BTreeMap<String, &'a BTreeMap<String, i64>>, PlanError> {
    let mut parameters = BTreeMap::new();
    for (code, given) in spec.parameters.iter().flatten() {
        let workload = known.find(code)?;
        workload.params(given)?;
        if parameters.insert(workload.code.clone(), given).is_some() {
            return value(format!("the parameters of {} are given twice: keep one [parameters.{0}]", workload.code));
        }
    }
    Ok(parameters)
}

/// Adds parameters of the workload `code`, which may be written otherwise in `all`: codes are compared without case.
pub fn add_parameters(
    all: &mut BTreeMap<String, BTreeMap<String, i64>>,
    code: &str,
    given: impl IntoIterator<Item = (String, i64)>,
) {
    let known = all.keys().find(|known| known.eq_ignore_ascii_case(code)).cloned();
    all.entry(known.unwrap_or_else(|| code.to_owned())).or_default().extend(given);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    /// Whether `--force` runs it anyway; such tests are marked.
    pub forceable: bool,
}

/// Why `workload` cannot run on targets of `kind` with `driver`, whatever the settings of a server; `None` if it can.
pub fn refusal(workload: &Workload, kind: &dyn TargetKind, driver: Driver) -> Option<Refusal> {
    let at_client = if driver == Driver::Database { workload.only_at_client() } else { None };
    let at_client = at_client.map(|reason| Refusal { reason: reason.to_owned(), forceable: false });
    if workload.scan.is_some() && at_client.is_some() {
        return at_client;
    }
    let capabilities = kind.capabilities();
    let forceable = capabilities.refusal_for_good(driver, &workload.needs).is_none();
    let refused = capabilities.refusal(driver, &workload.needs).map(|reason| Refusal { reason, forceable });
    refused.or(at_client)
}

/// `workload` with the driver asked for, or the first with the capabilities that it needs.
fn choose_driver(
    workload: &Workload,
    kind: &dyn TargetKind,
    asked: Option<Driver>,
    force: bool,
) -> Result<PlannedWorkload, String> {
    let refusal = |driver| refusal(workload, kind, driver);
    let chosen = |driver, driver_reason, forced| {
        let driver_given = asked.is_some();
        Ok(PlannedWorkload { driver_given, driver_reason, forced, ..PlannedWorkload::new(&workload.code, driver) })
    };
    let not_with = |driver, r: &Refusal| format!("not with the {driver} driver: {}", r.reason);
    let scan_at = (workload.scan.is_some() && asked != Some(Driver::Database)).then_some(Driver::Client);
    if let Some(driver) = scan_at.or(asked) {
        let why = scan_at.and(workload.only_at_client()).unwrap_or_default().to_owned();
        return match refusal(driver) {
            None => chosen(driver, why, None),
            Some(r) if force && (r.forceable || scan_at.is_some()) => chosen(driver, why, Some(r.reason)),
            Some(r) => Err(if scan_at.is_some() { r.reason } else { not_with(driver, &r) }),
        };
    }
    let mut reasons = Vec::new();
    for driver in Driver::ALL {
        match refusal(driver) {
            None => return chosen(driver, reasons.join("; "), None),
            Some(r) => reasons.push(not_with(driver, &r)),
        }
    }
    Err(reasons.join("; "))
}

/// Refuses two workloads with a table of the same name, which is made from the code and the name in the file.
fn check_table_names(known: &Workloads, workloads: &[PlannedWorkload]) -> Result<(), PlanError> {
    let mut seen: BTreeMap<String, (&str, String)> = BTreeMap::new();
    for planned in workloads {
        for (table, name) in table_names(&*known.find(&planned.code)?) {
            if let Some((other, of)) = seen.get(&name) {
                return value(format!(
                    "the table '{of}' of {other} and the table '{table}' of {} would both be named {name} in the \
                    database: rename one, or run the two workloads separately",
                    planned.code
                ));
            }
            seen.insert(name, (&planned.code, table.to_owned()));
        }
    }
    Ok(())
}

fn workload_files(names: &Option<Vec<String>>) -> Result<Vec<WorkloadFile>, PlanError> {
    let read = |name: &String| Ok(WorkloadFile { name: name.clone(), text: read_file("workload file", name)? });
    names.iter().flatten().map(read).collect()
}

/// Workload and parameters of an entry of a plan, for a data set of `size_bytes`, if both are still valid.
pub fn planned(
    known: &Workloads,
    workload: &PlannedWorkload,
    calibrated: &BTreeMap<String, i64>,
    size_bytes: u64,
) -> Result<(Arc<Workload>, Params), PlanError> {
    let found = known.find(&workload.code)?;
    let mut given = workload.parameters.clone();
    // An arm may give what was calibrated in the other.
    for (name, value) in calibrated {
        given.entry(name.clone()).or_insert(*value);
    }
    let params = found.params(&given)?.with_size(size_bytes);
    Ok((found, params))
}

/// The work of an entry of `plan`, if that is still valid.
pub(crate) fn work_of(
    known: &Workloads,
    plan: &Plan,
    workload: &PlannedWorkload,
    calibrated: &BTreeMap<String, i64>,
) -> Result<Work, PlanError> {
    let (found, params) = planned(known, workload, calibrated, plan.size_bytes)?;
    Ok(Work::new(found, params.with_keys(plan.load.keys), plan.seed, plan.payload))
}

/// The workloads that `plan` may name; an error if this version does not read a file of an older plan.
pub fn workloads_of(plan: &Plan) -> Result<Workloads, PlanError> {
    Ok(Workloads::read(&plan.workload_files)?)
}

pub fn by_reason<'a>(workloads: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, String)> {
    let codes = |of: Vec<(&str, &str)>| of.into_iter().map(|(code, _)| code).collect::<Vec<_>>().join(", ");
    let groups = grouped(workloads.filter(|(_, reason)| !reason.is_empty()), |(_, reason)| *reason);
    groups.into_iter().map(|(reason, of)| (reason, codes(of))).collect()
}

/// Why workloads are skipped, grouped by reason.
pub(crate) fn reasons(skipped: &[SkippedWorkload]) -> String {
    let groups = by_reason(skipped.iter().map(|s| (&*s.code, &*s.reason)));
    groups.iter().map(|(reason, codes)| format!("{codes}: {reason}")).collect::<Vec<_>>().join("; ")
}
