//! A target that a run measures, opened, and what the run knows of it. A run of variants may have several.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loadline_collect::os::Server;
use loadline_collect::page_cache::DataFiles;
use loadline_database::{OpenRequest, PRIVILEGE, RunLock, Target, TargetError, is_temporary, kind_of};
use loadline_model::machine::Machine;
use loadline_model::manifest::TargetInfo;
use loadline_model::plan::{Jobs, Plan, SkippedWorkload};
use loadline_model::{Driver, Finding, LogWriterPoint, Severity};

use loadline_load::{allow_jobs, allow_threads, server_of};
use loadline_storage::StorageFacts;

use super::disk_space::{self, SpaceCheck};
use super::{Study, StudyError};
use crate::checks::settings::changes;
use crate::instrument::data_files;
use crate::live::{Event, Listener};
use crate::plan::{PlanError, reasons, workloads_of};
use crate::reference::log::LogWriter;
use crate::reference::{self, LogSource, References, Role};
use crate::server_memory::{self, ServerMemory};

pub(super) struct Side {
    pub(super) target: Arc<dyn Target>,
    pub(super) lock: Option<RunLock>,
    pub(super) info: TargetInfo,
    pub(super) findings: Vec<Finding>,
    /// Change since the earlier tests of a resumed run.
    pub(super) change: Option<Change>,
    /// The target's data files, for dropping them from the page cache.
    pub(super) data_files: Result<DataFiles, String>,
    /// The database's processes, as they are known without a test.
    pub(super) server: Server,
    /// Memory of the server's machine, if known.
    pub(super) server_memory: Option<ServerMemory>,
    /// Highest job count of an automatic sweep.
    pub(super) max_jobs: u32,
    /// Refusals by the doctor of the target as it is in force, if they were forced.
    pub(super) forced: Option<String>,
    /// Tool that measures the limits of its tests, or why there is none.
    pub(super) references: Result<References, String>,
    /// The note on later tests after a node was lost.
    pub(super) without: Option<String>,
    pub(super) space: SpaceCheck,
}

impl Side {
    /// Opens the target of `request`, and asks everything that may refuse it. Skips workloads of `plan` that it cannot run.
    /// `earlier`: its description in a run that is resumed.
    pub(super) fn open(
        study: &Study,
        request: &OpenRequest,
        plan: &mut Plan,
        machine: &Machine,
        earlier: Option<&TargetInfo>,
        listener: &mut dyn Listener,
    ) -> Result<Side, StudyError> {
        let temporary = is_temporary(&request.url);
        if plan.runs_jobs_here() {
            // Before a server is started for them.
            allow_threads(most_listed(plan, 1)).map_err(|e| PlanError::Value(e.to_string()))?;
        }
        let target: Arc<dyn Target> = Arc::from(loadline_database::open(request)?);
        let lock = target.lock()?;
        let mut info = target.info()?;
        let mut findings = target.doctor()?;
        forgive_privilege(plan, &mut findings)?;
        listener.on(Event::Doctor(&findings));
        let change = earlier.and_then(|earlier| Change::between(earlier, &info, temporary));
        let given = if plan.arms().is_some() { request.settings.keys().collect() } else { Vec::new() };
        let names: Vec<&str> = given.into_iter().map(String::as_str).collect();
        let forced = forced(change.as_ref(), &findings, plan.force, &names)?;
        fit_workloads(plan, target.as_ref(), &names)?;
        let max_jobs = fit_jobs(plan, target.as_ref())?;
        add_storage(&mut info);
        let space = disk_space::check(target.as_ref(), plan, &info, earlier.is_none())?;
        space.notes.iter().for_each(|note| listener.on(Event::Warning(note.clone())));
        info.notes.extend(space.notes.iter().cloned());
        let data_files = data_files(target.as_ref(), &info);
        let server = server_of(target.as_ref())?;
        let sets_cache = !temporary && plan.server_memory_bytes().is_some();
        let cache = if sets_cache { target.abilities().tables } else { None };
        let cache_bytes = cache.map_or(Ok(None), |cache| cache.set_cache(None))?;
        let server_memory = server_memory::known(plan, &info, cache_bytes, machine.memory_bytes)?;
        listener.on(Event::Step("opening the reference log writer".to_owned()));
        let no_limit = kind_of(&request.url)?.no_limit.as_deref();
        let limits = study.limits.as_ref().map(|limits| limits.for_target(&info, &machine.host)).transpose()?;
        let limits = limits.map(|(points, warning)| {
            warning.into_iter().for_each(|w| listener.on(Event::Warning(w)));
            points
        });
        let references = references(study, no_limit, &info, limits);
        Ok(Side {
            target,
            lock: Some(lock),
            info,
            findings,
            change,
            data_files,
            server,
            server_memory,
            max_jobs,
            forced,
            references,
            without: None,
            space,
        })
    }

    /// Reads the target's description anew. `values`: what it said of settings that no report may state otherwise.
    pub(super) fn read_back(&mut self, values: &BTreeMap<String, Option<String>>) -> Result<(), TargetError> {
        let mut info = self.target.info()?;
        for (name, value) in values {
            if let Some(value) = value
                && !info.settings.contains_key(name)
            {
                info.settings.insert(name.clone(), value.clone());
            }
        }
        info.notes.extend(self.space.notes.iter().cloned());
        add_storage(&mut info);
        self.info = info;
        Ok(())
    }
}

fn references(
    study: &Study,
    no_limit: Option<&str>,
    info: &TargetInfo,
    limits: Option<Vec<LogWriterPoint>>,
) -> Result<References, String> {
    if let Some(reason) = no_limit {
        return Err(reason.to_owned());
    }
    if !study.plan.probe && limits.is_none() {
        return Err("not measured (--no-probe)".to_owned());
    }
    let dir = |role| reference::writable_dir(info, role, &study.request.scratch);
    let log = match limits {
        Some(points) => LogSource::Points(points),
        None => match dir(Role::Log).and_then(|dir| LogWriter::open(&dir, &study.request.interrupted)) {
            Ok(writer) => LogSource::Measured(Box::new(writer)),
            Err(_) if !info.local => LogSource::Smallest(Default::default()),
            Err(reason) => LogSource::None(reason),
        },
    };
    let elsewhere = (!info.local).then(|| "the database runs on another machine than loadline".to_owned());
    Ok(References {
        log,
        data_dir: dir(Role::Data),
        test_file: Default::default(),
        elsewhere,
        rows: Default::default(),
        interrupted: Arc::clone(&study.request.interrupted),
    })
}

/// Does `what`, and again while the server has not noticed yet that the session with the run's former lock has ended.
pub(super) fn until_released<T>(mut what: impl FnMut() -> Result<T, TargetError>) -> Result<T, TargetError> {
    for _ in 0..RELEASE_TRIES {
        match what() {
            Err(TargetError::Refused(_)) => std::thread::sleep(RELEASE_PAUSE),
            done => return done,
        }
    }
    what()
}

const RELEASE_TRIES: u32 = 20;
const RELEASE_PAUSE: Duration = Duration::from_millis(100);

/// A privilege without which loadline cannot make its tables is none that a plan of scripts needs: it makes nothing for them.
fn forgive_privilege(plan: &Plan, findings: &mut [Finding]) -> Result<(), PlanError> {
    let known = workloads_of(plan)?;
    if plan.workloads.iter().all(|w| known.find(&w.code).is_ok_and(|w| w.scripts.is_some())) {
        for finding in findings.iter_mut().filter(|of| of.id == PRIVILEGE && of.severity == Severity::Impossible) {
            finding.severity = Severity::Ok;
            finding.advice.push_str("; pgbench scripts do not need it");
        }
    }
    Ok(())
}

/// Adds filesystem and device under log and data of a local target.
pub(crate) fn add_storage(info: &mut TargetInfo) {
    if !info.local {
        return;
    }
    for (role, dir) in [("log", info.log_dir.clone()), ("data", info.data_dir.clone())] {
        if let Some(facts) = dir.and_then(|d| StorageFacts::read(Path::new(&d)).ok()) {
            info.storage.insert(role.to_owned(), facts.storage);
        }
    }
}

/// Refusals of a target, by its version and the doctor; an error unless forced, or about an arm's `own` settings.
pub(super) fn forced(
    change: Option<&Change>,
    findings: &[Finding],
    force: bool,
    own: &[&str],
) -> Result<Option<String>, StudyError> {
    let all = [change.map_or(Ok(None), |change| change.forced(force))?, refused(findings, force, own)?];
    Ok(all.into_iter().flatten().reduce(|a, b| format!("{a}; {b}")))
}

fn refused(findings: &[Finding], force: bool, own: &[&str]) -> Result<Option<String>, StudyError> {
    let lines = |severity: Severity, but: &[&str]| {
        let found = findings.iter().filter(|f| f.severity == severity && !but.contains(&f.subject.as_str()));
        found.map(|f| format!("  {} = {}: {}", f.subject, f.value, f.advice)).collect::<Vec<_>>()
    };
    let impossible = lines(Severity::Impossible, &[]);
    if !impossible.is_empty() {
        return Err(StudyError::Impossible(impossible.join("\n")));
    }
    let others = lines(Severity::Refused, own);
    if !others.is_empty() && !force {
        return Err(StudyError::Doctor(others.join("\n")));
    }
    let refused = lines(Severity::Refused, &[]);
    Ok((!refused.is_empty()).then(|| refused.join("; ").trim().to_owned()))
}

/// Skips workloads that the server cannot run because of its version or settings; marks them instead with `--force`, and if one of the
/// settings `own`, which an arm has on purpose, is the reason. If the plan left the driver open, another one may do.
pub(super) fn fit_workloads(plan: &mut Plan, target: &dyn Target, own: &[&str]) -> Result<(), StudyError> {
    let (capabilities, kind) = (target.capabilities()?, kind_of(&plan.target)?);
    let known = workloads_of(plan)?;
    for mut workload in std::mem::take(&mut plan.workloads) {
        let found = known.find(&workload.code).map_err(PlanError::from)?;
        let refusal = |driver| capabilities.refusal(driver, &found.needs);
        let does =
            |driver: &Driver| refusal(*driver).is_none() && crate::plan::refusal(&found, kind, *driver).is_none();
        if let Some(reason) = refusal(workload.driver) {
            let purpose = capabilities.is_refused_by(own, workload.driver, &found.needs);
            let open = !purpose && !workload.driver_given;
            if let Some(other) = Driver::ALL.into_iter().find(|d| open && does(d)) {
                workload.driver_reason = format!("not with the {} driver: {reason}", workload.driver);
                workload.driver = other;
            } else if plan.force || purpose {
                workload.forced = Some(reason);
            } else {
                plan.skipped.push(SkippedWorkload { code: workload.code, reason });
                continue;
            }
        }
        plan.workloads.push(workload);
    }
    if plan.workloads.is_empty() {
        let reasons = reasons(&plan.skipped);
        return Err(PlanError::Nothing { target: plan.target.clone(), reasons }.into());
    }
    Ok(())
}

/// Highest job count that the plan lists, over its most nodes or else so many.
fn most_listed(plan: &Plan, nodes: u32) -> u32 {
    let nodes = plan.node_counts().last().copied().unwrap_or(nodes);
    plan.jobs_over(nodes).into_iter().flatten().max().unwrap_or(1)
}

/// Checks the plan's job counts against the target's limit. Returns the maximum for a sweep.
pub(super) fn fit_jobs(plan: &Plan, target: &dyn Target) -> Result<u32, StudyError> {
    let limit = target.job_limit()?;
    let asked = most_listed(plan, target.facts().nodes);
    if let Some(most) = limit.jobs.filter(|most| asked > *most) {
        return Err(StudyError::TooManyJobs { asked, because: limit.because, most });
    }
    let most = match &plan.jobs {
        Jobs::List(_) => asked,
        Jobs::Auto { max } => (*max).min(limit.jobs.unwrap_or(u32::MAX)),
    };
    // Other processes have limits of their own.
    if plan.runs_jobs_here() {
        allow_jobs(target, most).map_err(|e| PlanError::Value(e.to_string()))?;
    }
    Ok(most)
}

/// Figures of the reference log writer from a file.
#[derive(Debug, Clone)]
pub struct KnownLimits {
    /// Host name of the machine on which they were measured.
    pub host: String,
    pub points: Vec<LogWriterPoint>,
}

impl KnownLimits {
    /// The figures, labelled with their machine, and a warning if it is probably not the database's; an error if it is not. `here`: host
    /// name of loadline's machine.
    pub(super) fn for_target(
        &self,
        info: &TargetInfo,
        here: &str,
    ) -> Result<(Vec<LogWriterPoint>, Option<String>), PlanError> {
        let host = &self.host;
        let other = |runs_on: &str| {
            format!(
                "the file of --limits was measured on '{host}', but the database runs on '{runs_on}': make it there with `loadline \
                 probe`"
            )
        };
        if info.local && host != here {
            return Err(PlanError::Value(other(here)));
        }
        // A container has another host name than its machine.
        let warning = info.host.as_deref().filter(|of| !info.local && of != host).map(other);
        let label = match (&info.host, info.local) {
            (Some(of), false) if of != host => format!(" on '{host}', not on the database's '{of}'"),
            (None, false) => format!(" on {host} (the database does not tell its machine's name)"),
            _ => format!(" on {host}"),
        };
        let points = self.points.iter().map(|p| LogWriterPoint { of: p.of.clone() + &label, ..p.clone() });
        Ok((points.collect(), warning))
    }
}

/// Change of the server since the earlier tests of a resumed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) text: String,
    /// Whether it is another product or version, and not the same with other settings.
    pub(super) is_other: bool,
}

impl Change {
    /// Between `before` and `now`. A private server is made anew from the settings of the plan.
    fn between(before: &TargetInfo, now: &TargetInfo, private: bool) -> Option<Change> {
        let product = |info: &TargetInfo| format!("{} {}", info.product, info.version);
        let (was, is) = (product(before), product(now));
        if was != is {
            let text = format!("the earlier tests of this run are of {was}, and the server is now {is}");
            return Some(Change { text, is_other: true });
        }
        let changed = changes(before, now);
        let text = format!("settings of the server have changed since the earlier tests of this run: {changed}");
        (!private && !changed.is_empty()).then_some(Change { text, is_other: false })
    }

    /// Refuses another version, unless `force`; then returns how its tests are marked.
    fn forced(&self, force: bool) -> Result<Option<String>, TargetError> {
        if self.is_other && !force {
            return Err(TargetError::Refused(format!(
                "{}: a run is of one server. Start a new run and compare the two, or --force the rest of this one (its tests \
                 are then marked)",
                self.text
            )));
        }
        Ok(self.is_other.then(|| self.text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, setting: &str) -> TargetInfo {
        TargetInfo {
            product: "PostgreSQL".into(),
            version: version.into(),
            settings: [("shared_buffers".to_owned(), setting.to_owned())].into(),
            ..TargetInfo::default()
        }
    }

    #[test]
    fn a_run_is_of_one_version() {
        let old = info("15.1", "1GB");
        assert_eq!(Change::between(&old, &old, false), None);
        let upgraded = Change::between(&old, &info("16.0", "2GB"), false).unwrap();
        let why = upgraded.forced(false).unwrap_err().to_string();
        assert!(why.contains("PostgreSQL 15.1") && why.contains("PostgreSQL 16.0"), "{why}");
        assert_eq!(upgraded.forced(true).unwrap().as_ref(), Some(&upgraded.text));
        let changed = Change::between(&old, &info("15.1", "2GB"), false).unwrap();
        assert!(changed.text.contains("shared_buffers") && changed.forced(false) == Ok(None));
        assert_eq!(Change::between(&old, &info("15.1", "2GB"), true), None, "a private server");
    }

    #[test]
    fn limits_of_another_machine_are_refused_or_marked_with_both_names() {
        let point = LogWriterPoint { of: "log in /d".into(), ..LogWriterPoint::default() };
        let limits = KnownLimits { host: "db1".into(), points: vec![point] };
        let of = |local, host: Option<&str>, here: &str| {
            let info = TargetInfo { local, host: host.map(str::to_owned), ..TargetInfo::default() };
            limits.for_target(&info, here).map(|(points, warning)| (points[0].of.clone(), warning.is_some()))
        };
        assert_eq!(of(true, None, "db1").unwrap(), ("log in /d on db1".to_owned(), false));
        let why = of(true, None, "laptop").unwrap_err().to_string();
        assert!(why.contains("'db1'") && why.contains("'laptop'"), "{why}");
        assert_eq!(of(false, Some("db1"), "laptop").unwrap(), ("log in /d on db1".to_owned(), false));
        let (text, warned) = of(false, Some("db2"), "laptop").unwrap();
        assert!(warned && text.contains("'db1'") && text.contains("'db2'"), "{text}");
        assert!(of(false, None, "laptop").unwrap().0.contains("does not tell"));
    }
}
