//! Begin of a run, before its first test: opens what it measures, probes the storage, makes the run folder or goes on in one.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use loadline_database::kind_of;
use loadline_model::Manifest;
use loadline_model::machine::Machine;
use loadline_model::manifest::{MANIFEST_SCHEMA, RunState, TargetInfo};
use loadline_model::plan::Plan;
use loadline_model::probe::{Operation, ProbedDir};
use loadline_model::variant::Variant;
use loadline_storage::probe::{Point, ProbeError, ProbeOptions, probe};
use loadline_store::{RunFolder, rfc3339, run_name};
use loadline_workload::Workloads;

use super::refused::Refusals;
use super::side::Side;
use super::tries::Tries;
use super::variants::{self, VariantsState};
use super::{Context, Study, StudyError, spread};
use crate::live::{Event, Listener};
use crate::plan::{PlanError, workloads_of};
use crate::reference::{Role, probe_options, writable_dir};

/// Shortest and longest time in which a directory is probed, s, including the creation of the test file.
const PROBE_S: [f64; 2] = [1.0, 4.0];
const PROBE_BYTES: u64 = 128 << 20;

pub(super) fn begin<'a>(study: &Study, listener: &'a mut dyn Listener) -> Result<Context<'a>, StudyError> {
    // Open an existing run folder first: a damaged or running run is refused before the target is touched.
    let resumed = study.resume.as_deref().map(RunFolder::resume).transpose()?;
    if resumed.is_none() {
        writable(&study.results)?;
    }
    let known = workloads_of(&study.plan)?;
    let machine = loadline_collect::inventory::machine();
    let earlier = resumed.as_ref().map(|(_, run)| &run.manifest);
    let had_ended = earlier.is_some_and(|m| m.state == RunState::Complete);
    let mut plan = study.plan.clone();
    let (side, parked) = open_sides(study, &mut plan, &known, &machine, earlier, listener)?;
    let (manifest, folder, records, others) = match resumed {
        Some((folder, r)) => {
            r.warnings.iter().for_each(|w| listener.on(Event::Warning(w.clone())));
            let manifest = gone_on(r.manifest, plan, &side, &parked, listener);
            (manifest, folder, r.records, r.other_tries)
        }
        None => {
            let probes = probe_storage(study, &plan, &side.info, listener)?;
            let (manifest, folder) = new_run(study, plan, &side, machine, probes)?;
            (manifest, folder, Vec::new(), Vec::new())
        }
    };
    let stored = records.iter().chain(&others).map(|r| r.test).max().unwrap_or(0);
    let mut tries = Tries::new(&manifest.plan, &records, others);
    tries.settled = if had_ended { stored } else { 0 };
    let mut context = Context {
        listener,
        requests: study.requests().cloned().collect(),
        variants: VariantsState::default(),
        via: None,
        side,
        parked,
        tries,
        manifest,
        known,
        folder,
        records,
        stored,
        place: study.place.clone(),
        works: BTreeMap::new(),
        interrupted: Arc::clone(&study.request.interrupted),
        left_out: Vec::new(),
        refused: Refusals::default(),
    };
    if let Err(e) = context.make_ready() {
        context.put_back();
        if study.resume.is_none() {
            context.folder.remove();
        }
        return Err(e);
    }
    Ok(context)
}

/// Opens the target, and one for each other variant, by its index, if some name another, or their settings differ and the target cannot
/// change its own: if only some shared it, not all windows would begin alike. Takes from `plan` what they cannot run. `earlier`: the run
/// that is resumed.
fn open_sides(
    study: &Study,
    plan: &mut Plan,
    known: &Workloads,
    machine: &Machine,
    earlier: Option<&Manifest>,
    listener: &mut dyn Listener,
) -> Result<(Side, BTreeMap<usize, Side>), StudyError> {
    spread::check(study)?;
    listener.on(Event::Step("opening the target".to_owned()));
    let side = Side::open(study, &study.request, plan, machine, earlier.map(|m| &m.target), listener)?;
    spread::check_open(plan, known, side.target.facts(), listener)?;
    let (mut parked, mut plans) = (BTreeMap::new(), vec![plan.clone()]);
    let can_change = side.target.abilities().settings.is_some();
    let share = |a: &Variant, b: &Variant| a.target == b.target && (can_change || a.settings == b.settings);
    let shared = plan.arms().is_none_or(|paired| paired.variants.windows(2).all(|two| share(&two[0], &two[1])));
    let apart: &[_] = if shared { &[] } else { &study.others };
    for (n, request) in (1..).zip(apart) {
        let mut own = variants::plan_of(plan, n);
        let earlier = earlier.and_then(|m| Some(&m.variants.get(n)?.target));
        parked.insert(n, Side::open(study, request, &mut own, machine, earlier, listener)?);
        plans.push(own);
    }
    if !parked.is_empty() {
        variants::keep(plan, plans)?;
    }
    if plan.platform.is_empty() {
        plan.platform = format!("{} {}", side.info.product, side.info.version);
    }
    Ok((side, parked))
}

/// Operations to measure: commits of the log-writer workloads' sizes, single-block reads, bandwidth.
fn points() -> Vec<Point> {
    let point = |operation, size, depth| Point { operation, size, depth };
    let sync = [2 << 10, 4 << 10, 32 << 10, 128 << 10, 512 << 10];
    let mut all: Vec<Point> = sync.map(|size| point(Operation::SyncWriteFdatasyncPrealloc, size, 1)).into();
    all.extend([1, 32].map(|depth| point(Operation::RandomRead, 8 << 10, depth)));
    all.push(point(Operation::SequentialRead, 1 << 20, 8));
    all.push(point(Operation::SequentialWrite, 1 << 20, 8));
    all
}

/// Probes of the devices under log and data, by role, if the plan wants them; none takes longer than a test.
fn probe_storage(
    study: &Study,
    plan: &Plan,
    info: &TargetInfo,
    listener: &mut dyn Listener,
) -> Result<BTreeMap<String, ProbedDir>, StudyError> {
    let mut found: BTreeMap<String, ProbedDir> = BTreeMap::new();
    if !study.plan.probe || kind_of(&study.request.url)?.no_limit.is_some() {
        return Ok(found);
    }
    listener.on(Event::Step("probing the storage".to_owned()));
    let seconds = (plan.warmup_s + plan.duration_s).clamp(PROBE_S[0], PROBE_S[1]);
    for (role, name) in [(Role::Log, "log"), (Role::Data, "data")] {
        let not_probed = |why: String| Event::Warning(format!("the storage under the {name} was not probed: {why}"));
        let dir = match writable_dir(info, role, &study.request.scratch) {
            Ok(dir) => dir,
            Err(why) => {
                listener.on(not_probed(why));
                continue;
            }
        };
        let device = std::fs::metadata(&dir).map(|m| m.dev()).ok();
        // Log and data on one filesystem are probed once.
        if found.values().any(|p| Some(p.st_dev) == device) {
            continue;
        }
        let (size, only) = (Some(PROBE_BYTES), Some(points()));
        let options = ProbeOptions { size, seconds, only, ..probe_options(plan.payload) };
        match probe(&dir, &options, &study.request.interrupted, &mut |_| ()) {
            Ok(probed) => {
                found.insert(name.to_owned(), probed);
            }
            Err(ProbeError::Interrupted) => return Err(StudyError::Interrupted),
            Err(e) => listener.on(not_probed(e.to_string())),
        }
    }
    Ok(found)
}

fn new_run(
    study: &Study,
    plan: Plan,
    side: &Side,
    machine: Machine,
    probes: BTreeMap<String, ProbedDir>,
) -> Result<(Manifest, RunFolder), StudyError> {
    let now = SystemTime::now();
    let folder = RunFolder::create(&study.results, &run_name(now, &side.info.kind))?;
    let manifest = Manifest {
        schema: MANIFEST_SCHEMA,
        run: folder.id(),
        loadline_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: rfc3339(now),
        command: study.command.clone(),
        plan,
        target: side.info.clone(),
        doctor: side.findings.clone(),
        machine,
        probes,
        ..Manifest::default()
    };
    Ok((manifest, folder))
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
    manifest.plan.features = plan.features;
    manifest.plan.force = plan.force;
    let note = |side: &Side| side.change.as_ref().map(|change| change.text.clone());
    manifest.target.notes.extend(note(side));
    for (n, found) in manifest.variants.iter_mut().enumerate() {
        found.target.notes.extend(note(parked.get(&n).unwrap_or(side)));
    }
    let changes = std::iter::once(side).chain(parked.values()).filter_map(|side| side.change.as_ref());
    // Another version is refused, or forced, which marks its tests.
    changes.filter(|change| !change.is_other).for_each(|change| listener.on(Event::Warning(change.text.clone())));
    manifest
}

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
