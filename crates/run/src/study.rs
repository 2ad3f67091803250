//! A run, from its plan to its last record: checks the target, creates the run folder, measures, cleans up.

mod disk_space;
mod find_rate;
mod full_disk;
mod level;
mod measure;
mod native_report;
mod nodes;
mod pairs;
mod prepare;
pub(crate) mod proof;
mod quiet;
mod refused;
mod same;
mod sequence;
pub(crate) mod side;
mod storage_probe;
mod switch;
mod tries;
mod variants;
pub(crate) mod window_length;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use loadline_database::{OpenRequest, Runs, TargetError, Way, Work, is_temporary, kind_of};
use loadline_load::{RemoteJobs, TestError};
use loadline_model::format::counted;
use loadline_model::machine::Machine;
use loadline_model::manifest::{MANIFEST_SCHEMA, RunState, TargetInfo};
use loadline_model::plan::{Plan, SkippedWorkload};
use loadline_model::probe::ProbedDir;
use loadline_model::variant::Variant;
use loadline_model::{LogWriterPoint, Manifest, TestRecord, seed_of_window};
use loadline_store::{RunFolder, StoreError, rfc3339, run_name};
use loadline_workload::Workloads;
use thiserror::Error;

pub use same::KnownLimits;

use self::refused::Refusals;
use self::side::Side;
use self::tries::Tries;
use self::variants::VariantsState;
use crate::event::{Event, Listener};
use crate::figures::nodes::are;
use crate::live::WatchedRun;
use crate::plan::{PlanError, workloads_of};
use crate::reference::log::LogWriter;
use crate::reference::{self, LogSource, References, Role};

/// A run to start or to resume.
pub struct Study {
    /// The plan; on resume, that of the manifest.
    pub plan: Plan,
    /// How the target is opened, with its secrets.
    pub request: OpenRequest,
    /// Folder of runs.
    pub results: PathBuf,
    /// Run folder to resume.
    pub resume: Option<PathBuf>,
    /// The command line without secrets.
    pub command: Vec<String>,
    /// Version of loadline.
    pub version: String,
    /// Reference log writer figures measured elsewhere (`--limits FILE`). `None`: measured here.
    pub limits: Option<KnownLimits>,
    /// How the targets of the variants after the first are opened, in a run of `loadline ab`.
    pub others: Vec<OpenRequest>,
    /// The agents that run the jobs, if the plan says so.
    pub agents: Option<Arc<dyn RemoteJobs>>,
}

/// Result of a run.
#[derive(Debug)]
pub struct StudyOutcome {
    /// The run folder.
    pub folder: PathBuf,
    /// All its tests, including those made before a resume.
    pub records: Vec<TestRecord>,
    /// Tests of the plan that were not made because nodes were lost, in words.
    pub left_out: Vec<String>,
    /// Workloads that the server refused while the run went on.
    pub refused: Vec<SkippedWorkload>,
    /// How it ended.
    pub ended: Ended,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// All tests of the plan were made.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// It failed. Tests measured before the failure are stored.
    Failed(StudyError),
}

/// Why a run did not start or did not complete.
#[derive(Debug, Error)]
#[allow(missing_docs)] // Its text says what each is.
pub enum StudyError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the doctor refuses the target:\n{0}\nChange that, or measure anyway with --force (tests are then marked)")]
    Doctor(String),
    #[error("nothing can be measured on the target:\n{0}")]
    Impossible(String),
    #[error("{0}")]
    Objective(String),
    #[error("{asked} jobs are more than the target allows: {because}; the maximum is {most}")]
    TooManyJobs { asked: u32, because: String, most: u32 },
    #[error("test {test} ({workload}, {}) failed: {source}", counted(*jobs as usize, "job"))]
    Test { test: u32, workload: String, jobs: u32, source: TestError },
    #[error(
        "{} lost: the run ends here, and a test in which that happened is stored as refused. To measure on over the nodes that \
         are left, begin a run with --on-node-loss continue; a resumed run needs all nodes",
        are(.0)
    )]
    NodesLost(Vec<String>),
    #[error("{} lost, and {why}: the run ends here, and a test in which that happened is stored as refused", are(.lost))]
    NoNodeLeft { lost: Vec<String>, why: String },
    #[error("{0}. The run ends here: start others in their place and resume it, or resume it with fewer (--agents)")]
    AgentsLost(String),
    #[error("interrupted before the first test was complete: nothing is kept")]
    Interrupted,
}

/// State of a run.
struct Context<'a> {
    listener: &'a mut dyn Listener,
    /// How the target of each variant is opened; of a run without variants, the target.
    requests: Vec<OpenRequest>,
    /// The target that is measured now.
    side: Side,
    /// Those of variants that have one of their own, by the index of the variant, without that which is measured now.
    parked: BTreeMap<usize, Side>,
    /// In a run of `loadline ab`.
    variants: Option<VariantsState>,
    /// The processes of the proxy through which jobs go in the variant in force, or why they are unknown; `None`: there is no proxy.
    via: Option<Result<Vec<u32>, String>>,
    manifest: Manifest,
    /// The workloads that the plan may name.
    known: Workloads,
    folder: RunFolder,
    /// The tests, each by the try that counts.
    records: Vec<TestRecord>,
    tries: Tries,
    /// Number of the last test that was stored before this run was resumed; 0 in a new one.
    stored: u32,
    agents: Option<Arc<dyn RemoteJobs>>,
    /// Work whose tables are there, by the index of its variant and the code of its workload.
    works: BTreeMap<(usize, String), Arc<Work>>,
    interrupted: Arc<AtomicBool>,
    /// See [`StudyOutcome::left_out`].
    left_out: Vec<String>,
    refused: Refusals,
    /// Whether it was said that replicas fall behind.
    said_narrow: bool,
}

impl Study {
    /// How the targets are opened: that of the plan, and those of the variants after the first.
    fn requests(&self) -> impl Iterator<Item = &OpenRequest> {
        std::iter::once(&self.request).chain(&self.others)
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`StudyError`] if no test was measured; nothing is left behind. Otherwise the run ends with an outcome.
    pub fn run(self, listener: &mut dyn Listener) -> Result<StudyOutcome, StudyError> {
        let via = |r: &OpenRequest| if let Way::Via(url) = &r.way { Some(url.clone()) } else { None };
        let all =
            |r: &OpenRequest| [&r.nodes[..], &r.standbys, std::slice::from_ref(&r.url), via(r).as_slice()].concat();
        let urls = self.requests().flat_map(all).collect();
        let mut listener = WatchedRun::new(listener, urls);
        let mut context = self.begin(&mut listener)?;
        context.listener.on(Event::Started { folder: context.folder.path() });
        for skipped in &context.manifest.plan.skipped {
            context.listener.on(Event::Skipped { code: &skipped.code, reason: &skipped.reason });
        }
        let result = context.measure();
        if result.is_ok() && context.stored > 0 && context.next_test() == context.stored + 1 {
            context.warn("nothing was left to measure".to_owned());
        }
        let (refused, first_refusal) = context.refused.take();
        let ended = match (result, first_refusal.filter(|_| context.records.is_empty())) {
            (Ok(()), Some(refusal)) => Ended::Failed(refusal),
            (Ok(()), None) => Ended::Complete,
            (Err(StudyError::Test { source: TestError::Interrupted, .. } | StudyError::Interrupted), _) => {
                Ended::Interrupted
            }
            // A session that waits, or is being opened, gives up when the user wants to stop.
            (Err(StudyError::Test { source: TestError::Target(e), .. } | StudyError::Target(e)), _)
                if context.stopped() && (e.is_lost() || matches!(e, TargetError::Unreachable(_))) =>
            {
                Ended::Interrupted
            }
            // Before anything is removed from the disk.
            (Err(e), _) => Ended::Failed(full_disk::explained(e, context.side.target.as_ref(), &context.side.info)),
        };
        context.manifest.state = match ended {
            Ended::Complete => RunState::Complete,
            Ended::Interrupted => RunState::Interrupted,
            Ended::Failed(_) => RunState::Failed,
        };
        // A run is complete when what it changed is put back: if it is killed before, a resume does that.
        context.end();
        let written = context.folder.write_manifest(&context.manifest);
        let is_empty = context.records.is_empty() && context.manifest.looks.is_empty();
        if is_empty && !matches!(ended, Ended::Complete) {
            // Nothing was measured: remove the run folder.
            let _ = std::fs::remove_dir_all(context.folder.path());
            return Err(match ended {
                Ended::Failed(e) => e,
                _ => StudyError::Interrupted,
            });
        }
        let ended = match (ended, written) {
            (Ended::Complete | Ended::Interrupted, Err(e)) => Ended::Failed(e.into()),
            (ended, _) => ended,
        };
        let folder = context.folder.path().to_owned();
        let (records, left_out) = (context.records, context.left_out);
        Ok(StudyOutcome { folder, records, left_out, refused, ended })
    }

    /// Everything before the first test.
    fn begin<'a>(&self, listener: &'a mut dyn Listener) -> Result<Context<'a>, StudyError> {
        // Open an existing run folder first: a damaged or running run is refused before the target is touched.
        let resumed = self.resume.as_deref().map(RunFolder::resume).transpose()?;
        if resumed.is_none() {
            writable(&self.results)?;
        }
        let known = workloads_of(&self.plan)?;
        let machine = loadline_collect::inventory::machine();
        let earlier = resumed.as_ref().map(|(_, run)| &run.manifest);
        let had_ended = earlier.is_some_and(|m| m.state == RunState::Complete);
        let Sides { side, parked, plan } = self.open_sides(&known, &machine, earlier, listener)?;
        let (manifest, folder, records, others) = match resumed {
            Some((folder, r)) => {
                r.warnings.iter().for_each(|w| listener.on(Event::Warning(w.clone())));
                let manifest = gone_on(r.manifest, plan, &side, &parked, listener);
                (manifest, folder, r.records, r.other_tries)
            }
            None => {
                let probes = self.probe_storage(&plan, &side.info, listener)?;
                let (manifest, folder) = self.new_run(plan, &side, machine, probes)?;
                (manifest, folder, Vec::new(), Vec::new())
            }
        };
        let stored = records.iter().chain(&others).map(|r| r.test).max().unwrap_or(0);
        let mut tries = Tries::new(&manifest.plan, &records, others);
        tries.settled = if had_ended { stored } else { 0 };
        let mut context = Context {
            listener,
            requests: self.requests().cloned().collect(),
            variants: VariantsState::of(&manifest.plan, parked.is_empty()),
            via: None,
            side,
            parked,
            tries,
            manifest,
            known,
            folder,
            records,
            stored,
            agents: self.agents.clone(),
            works: BTreeMap::new(),
            interrupted: Arc::clone(&self.request.interrupted),
            left_out: Vec::new(),
            refused: Refusals::default(),
            said_narrow: false,
        };
        if let Err(e) = context.make_ready() {
            if context.variants.is_some() {
                context.put_back();
            }
            if self.resume.is_none() {
                // Nothing was measured: remove the run folder.
                let _ = std::fs::remove_dir_all(context.folder.path());
            }
            return Err(e);
        }
        Ok(context)
    }

    /// Opens the target, and one for each other variant if some name another, or their settings differ and the target cannot change its
    /// own: if only some shared it, not all windows would begin alike. `earlier`: the run that is resumed.
    fn open_sides(
        &self,
        known: &Workloads,
        machine: &Machine,
        earlier: Option<&Manifest>,
        listener: &mut dyn Listener,
    ) -> Result<Sides, StudyError> {
        if !self.plan.node_counts.is_empty() {
            self.requests().try_for_each(|request| nodes::check(&self.plan, request))?;
        }
        listener.on(Event::Step("opening the target".to_owned()));
        let mut plan = self.plan.clone();
        let side = Side::open(self, &self.request, &mut plan, machine, earlier.map(|m| &m.target), listener)?;
        if side.target.facts().nodes > 1 {
            nodes::say_left_out(known, &plan, side.target.facts(), listener);
        }
        if plan.agents.is_some() && side.target.facts().runs == Runs::InProcess {
            let url = loadline_database::redact(&self.request.url);
            let text = format!("{url} runs inside loadline's own process: agents on other machines cannot load it");
            return Err(PlanError::Value(text).into());
        }
        let (mut parked, mut plans) = (BTreeMap::new(), vec![plan.clone()]);
        let can_change = side.target.abilities().settings.is_some();
        let share = |a: &Variant, b: &Variant| a.target == b.target && (can_change || a.settings == b.settings);
        let shared = plan.arms().is_none_or(|paired| paired.variants.windows(2).all(|two| share(&two[0], &two[1])));
        for (n, request) in (1..).zip(&self.others) {
            let mut own = variants::plan_of(&plan, n);
            if !shared {
                let earlier = earlier.and_then(|m| Some(&m.variants.get(n)?.target));
                parked.insert(n, Side::open(self, request, &mut own, machine, earlier, listener)?);
            }
            plans.push(own);
        }
        if !parked.is_empty() {
            variants::keep(&mut plan, plans)?;
        }
        if plan.platform.is_empty() {
            plan.platform = format!("{} {}", side.info.product, side.info.version);
        }
        Ok(Sides { side, parked, plan })
    }

    /// What the devices of the target do, by role, if the plan wants to know and the target has any.
    fn probe_storage(
        &self,
        plan: &Plan,
        info: &TargetInfo,
        listener: &mut dyn Listener,
    ) -> Result<BTreeMap<String, ProbedDir>, StudyError> {
        if !self.plan.probe || kind_of(&self.request.url)?.no_limit.is_some() {
            return Ok(BTreeMap::new());
        }
        listener.on(Event::Step("probing the storage".to_owned()));
        let (scratch, interrupted) = (&self.request.scratch, &self.request.interrupted);
        let probed = storage_probe::by_role(info, scratch, plan.warmup_s + plan.duration_s, plan.payload, interrupted);
        let (probes, notes) = probed.map_err(|_| StudyError::Interrupted)?;
        notes.into_iter().for_each(|n| listener.on(Event::Warning(n)));
        Ok(probes)
    }

    /// A run of `plan` in a new folder.
    fn new_run(
        &self,
        plan: Plan,
        side: &Side,
        machine: Machine,
        probes: BTreeMap<String, ProbedDir>,
    ) -> Result<(Manifest, RunFolder), StudyError> {
        let now = SystemTime::now();
        let folder = RunFolder::create(&self.results, &run_name(now, &side.info.kind))?;
        let manifest = Manifest {
            schema: MANIFEST_SCHEMA,
            run: folder.id(),
            loadline_version: self.version.clone(),
            started_at: rfc3339(now),
            command: self.command.clone(),
            plan,
            target: side.info.clone(),
            doctor: side.findings.clone(),
            machine,
            probes,
            ..Manifest::default()
        };
        Ok((manifest, folder))
    }
}

/// What a run measures, opened, and the plan without what that cannot run.
struct Sides {
    side: Side,
    /// Those of other variants that have one of their own, by the index of the variant.
    parked: BTreeMap<usize, Side>,
    plan: Plan,
}

/// `manifest` of a run that goes on with `plan`, and what changed meanwhile.
fn gone_on(
    manifest: Manifest,
    plan: Plan,
    side: &Side,
    parked: &BTreeMap<usize, Side>,
    listener: &mut dyn Listener,
) -> Manifest {
    // What is written now has the layout of now.
    let mut manifest = Manifest { schema: MANIFEST_SCHEMA, state: RunState::Started, ..manifest };
    // What the server refused is tried again.
    manifest.plan.skipped.retain(|skipped| !plan.has(&skipped.code));
    // What may be given anew.
    manifest.plan.agents = plan.agents;
    manifest.plan.force = plan.force;
    manifest.target.notes.extend(side.changes.said());
    for (n, found) in manifest.variants.iter_mut().enumerate() {
        found.target.notes.extend(parked.get(&n).unwrap_or(side).changes.said());
    }
    let settings = std::iter::once(side).chain(parked.values()).filter_map(|side| side.changes.settings.as_ref());
    settings.for_each(|w| listener.on(Event::Warning(w.clone())));
    manifest
}

impl Study {
    /// What measures the limits of the tests.
    fn references(
        &self,
        no_limit: Option<&str>,
        info: &TargetInfo,
        limits: Option<Vec<LogWriterPoint>>,
    ) -> Result<References, String> {
        if let Some(reason) = no_limit {
            return Err(reason.to_owned());
        }
        if !self.plan.probe && limits.is_none() {
            return Err("not measured (--no-probe)".to_owned());
        }
        let dir = |role| reference::writable_dir(info, role, &self.request.scratch);
        let log = match limits {
            Some(points) => LogSource::Points(points),
            None => match dir(Role::Log).and_then(|dir| LogWriter::open(&dir, &self.request.interrupted)) {
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
            interrupted: Arc::clone(&self.request.interrupted),
        })
    }
}

/// Does `what`, and again while the server still holds the run's former lock: it releases it when it notices that the session
/// has ended.
fn until_released<T>(mut what: impl FnMut() -> Result<T, TargetError>) -> Result<T, TargetError> {
    let mut done = what();
    for _ in 0..RELEASE_TRIES {
        if !matches!(done, Err(TargetError::Refused(_))) {
            break;
        }
        std::thread::sleep(RELEASE_PAUSE);
        done = what();
    }
    done
}

const RELEASE_TRIES: u32 = 20;
const RELEASE_PAUSE: Duration = Duration::from_millis(100);

/// Tries to make a folder in the results folder, before a server is started or a schema is created. Leaves nothing.
fn writable(results: &Path) -> Result<(), PlanError> {
    let tried = std::path::absolute(results).unwrap_or_default().join(format!(".loadline-{}", std::process::id()));
    let missing: Vec<&Path> = tried.ancestors().take_while(|dir| !dir.exists()).collect();
    let made = std::fs::create_dir_all(&tried);
    for dir in missing {
        let _ = std::fs::remove_dir(dir);
    }
    made.map_err(|e| {
        let shown = results.display();
        PlanError::Value(format!("no run can be stored in the folder '{shown}' ({e}): give another one with --results"))
    })
}

impl Context<'_> {
    fn step(&mut self, text: String) {
        self.listener.on(Event::Step(text));
    }

    fn warn(&mut self, text: String) {
        self.listener.on(Event::Warning(text));
    }

    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// What is left to do before the first test.
    fn make_ready(&mut self) -> Result<(), StudyError> {
        self.measure_overhead()?;
        if self.variants.is_some() {
            self.try_variants()?;
        }
        self.folder.write_manifest(&self.manifest)?;
        // Last step: a run that is refused must not lose the data set.
        for side in std::iter::once(&self.side).chain(self.parked.values()) {
            if let Some(target) = side.target.abilities().data_set.filter(|_| side.drop_data_set) {
                target.drop_data_set()?;
            }
        }
        Ok(())
    }

    /// `work` as a new window draws it. With the numbers of an earlier one it would find that one's rows in caches, and make
    /// changes and queries a second time. The number of windows is stored first: one that is interrupted has drawn as well.
    fn drawn_anew(&mut self, work: &Work) -> Result<Arc<Work>, StudyError> {
        let known = self.records.iter().map(|r| r.test).max().unwrap_or(0);
        self.manifest.windows = self.manifest.windows.max(known) + 1;
        self.folder.write_manifest(&self.manifest)?;
        let plan = &self.manifest.plan;
        let draws = seed_of_window(plan.draws.unwrap_or(plan.seed), self.manifest.windows);
        Ok(Arc::new(Work { draws, ..work.clone() }))
    }

    /// Brings back what variants changed, and removes what the run made.
    fn end(&mut self) {
        if self.variants.is_some() {
            self.put_back();
        }
        self.leave(0);
        for (n, side) in std::mem::take(&mut self.parked) {
            self.side = side;
            self.leave(n);
        }
    }

    /// Removes what the run created on the target, which is that of the variant `n`.
    fn leave(&mut self, n: usize) {
        self.side.lock = None;
        let Some(request) = self.requests.get(n).filter(|request| !is_temporary(&request.url)) else { return };
        let keep = self.manifest.plan.keep_data;
        if let Err(e) = until_released(|| self.side.target.clean_after_run(keep)) {
            let command = request.clean_command();
            self.warn(format!("loadline's tables could not be removed ({e}): run `{command}`"));
        }
    }
}
