//! `loadline run`.

use std::path::{Path, PathBuf};

use loadline_database::{OpenRequest, kind_of, redact};
use loadline_load::Place;
use loadline_model::facts::FactName;
use loadline_model::plan::{Plan, SkippedWorkload};
use loadline_report::{Compared, Costs, RunData, end_page};
use loadline_run::plan::{DEFAULT_RESULTS, add_parameters, give_anew, requests};
use loadline_run::planfile::PlanFileError;
use loadline_run::study::Ended;
use loadline_run::{PlanError, PlanSpec, Study, StudyOutcome, make_plan, planfile, plans};
use loadline_store::StoredRun;
use loadline_workload::{CATALOGUE, Workloads};

use crate::args::{RunArgs, hub_url, set_hub, unique};
use crate::dry_run::{describe, unsized_ones};
use crate::exit::{self, Failure};
use crate::progress::Progress;
use crate::target::{absolute, run_folder};
use crate::{arguments, hub_run, live, output, probe, report, secrets, signals, source};

/// Width of tables if standard output is not a terminal.
const WIDTH: usize = 160;

pub(crate) fn run(args: &RunArgs, command: Vec<String>) -> Result<u8, Failure> {
    measure(args, command, plans::find(plans::DEFAULT_PLAN)?.spec()?, Vec::new(), Ok)
}

/// Measures what the flags say, on top of the plan file or of `default`, after `more` has added to it. `urls`: the
/// targets and proxies of variants, whose passwords a resumed run needs.
pub(crate) fn measure(
    args: &RunArgs,
    command: Vec<String>,
    default: PlanSpec,
    mut urls: Vec<String>,
    more: impl FnOnce(PlanSpec) -> Result<PlanSpec, Failure>,
) -> Result<u8, Failure> {
    let flags = flags(args)?;
    let mut hub = hub_url(&args.hub);
    let mut named = flags.workload.clone().unwrap_or_default();
    let study = match &args.resume {
        Some(run) => {
            urls.extend(flags.target.clone());
            let (study, by_first_command) = resumed(&flags, &urls, run, command)?;
            named.extend(by_first_command);
            study
        }
        None => {
            let spec = more(spec(args, flags.clone(), default)?)?;
            hub.clone_from(&spec.hub);
            let study = planned(&spec, command)?;
            check_parameters(&args.parameter, &study.plan)?;
            if let Some(size) = &flags.size {
                unsized_ones(&study.plan, size).inspect(|warning| output::say(warning));
            }
            if args.dry_run {
                output::stdout(describe(&study.plan, &study.results, &study.request)?.as_bytes())?;
                return Ok(0);
            }
            study
        }
    };
    let limits = args.limits.as_deref().map(probe::limits).transpose()?;
    let study = Study { limits, ..study };
    licence(&study.plan);
    let left = format!(
        "finished tests are on disk, if there are any (--resume goes on); what loadline made may be left: `{}` removes it",
        study.request.clean_command()
    );
    signals::interruptible(&study.request.interrupted, left)?;
    let study = hub_run::with(study, hub.as_deref())?;
    let _metrics = args.metrics.map(|listen| live::start_metrics(&study.results, listen)).transpose()?;
    let mut progress = Progress::new(&study.plan, study.resume.as_deref());
    // What no server of this kind can do was known before: this one does not refuse it.
    let known = study.plan.skipped.iter().filter(|skipped| !study.plan.has(&skipped.code));
    let known: Vec<&String> = known.map(|skipped| &skipped.code).collect();
    named.retain(|code| !known.iter().any(|known| known.eq_ignore_ascii_case(code)));
    let outcome = study.run(&mut progress);
    progress.finish();
    let outcome = outcome.map_err(Failure::from)?;
    if flags.workload_file.is_some() || flags.pgbench_script.is_some() {
        let own = |code: &&str| CATALOGUE.iter().all(|w| w.code != *code);
        named.extend(outcome.refused.iter().map(|skipped| skipped.code.as_str()).filter(own).map(str::to_owned));
    }
    finish(outcome, &named, args.strict)
}

/// Plan keys by the flags, but for parameters of workloads.
fn flags(args: &RunArgs) -> Result<PlanSpec, Failure> {
    let mut flags = args.options.spec();
    args.target.options.set(&mut flags);
    set_hub(&args.hub, &mut flags);
    let settings = &args.target.setting;
    flags.setting =
        (!settings.is_empty()).then(|| unique("--setting", settings)).transpose().map_err(Failure::usage)?;
    Ok(flags)
}

/// The plan file with the flags on top; without one, the flags on top of `default`.
fn spec(args: &RunArgs, flags: PlanSpec, default: PlanSpec) -> Result<PlanSpec, Failure> {
    let mut file = match (&args.plan_file, args.plan) {
        (Some(path), _) => planfile::read(path).map_err(|e| Failure::usage(not_a_file(path, &e)))?,
        (None, Some(plan)) => plan.spec()?,
        (None, None) => default,
    };
    // The jobs of a plan that comes with loadline are of each node: a speed-up compares as many on one node.
    file.jobs_per_node = match (&flags.jobs, &flags.nodes, &args.plan_file) {
        (Some(_), ..) => None,
        (None, Some(_), None) => Some(true),
        _ => file.jobs_per_node,
    };
    // The longest warm-up belongs to the file's own.
    file.max_warmup.take_if(|_| flags.warmup.is_some());
    // Within one source workloads and groups add up; flags replace those of the file.
    let scripts = flags.pgbench_script.is_some();
    if flags.workload.is_some() || flags.group.is_some() || flags.workload_file.is_some() || scripts {
        file.workload = None;
        file.group = None;
        if args.plan_file.is_none() && args.plan.is_none() {
            // The default plan's parameters belong to its own workloads.
            file.parameters = None;
        }
        // --workload may still name workloads from the plan's files.
        let known = file.workload_file.take();
        file.known_workload_file = if flags.workload_file.is_none() && !scripts { known } else { None };
        file.pgbench_script = None;
        (file.define, file.allow_writes, file.evidence) = (None, None, None);
    }
    let mut spec = file.overridden_by(flags);
    if !args.fact.is_empty() {
        let facts = spec.facts.get_or_insert_default();
        let id = |name: &str| FactName::find(name).map(|fact| fact.id);
        facts.retain(|name, _| id(name).is_none() || args.fact.iter().all(|(given, _)| id(given) != id(name)));
        let given = unique("--fact", &args.fact).map_err(Failure::usage)?;
        facts.extend(given.into_iter().map(|(name, value)| (name, value.into())));
    }
    for (code, name, value) in &args.parameter {
        add_parameters(spec.parameters.get_or_insert_default(), code, [(name.clone(), *value)]);
    }
    Ok(spec)
}

/// Refuses a parameter of a workload that is not measured.
fn check_parameters(given: &[(String, String, i64)], plan: &Plan) -> Result<(), Failure> {
    let planned = |code: &str| {
        let codes = plan.workloads.iter().map(|w| &w.code).chain(plan.skipped.iter().map(|s| &s.code));
        codes.into_iter().any(|planned| planned.eq_ignore_ascii_case(code))
    };
    match given.iter().find(|(code, ..)| !planned(code)) {
        Some((code, name, _)) => Err(Failure::usage(format!(
            "--parameter {code}.{name} is given, but {code} is not measured: name it in --workload"
        ))),
        None => Ok(()),
    }
}

/// The error of a plan file, with a hint if it is the name of a built-in plan.
fn not_a_file(path: &Path, error: &PlanFileError) -> String {
    let named = path.to_str().and_then(|name| plans::find(name).ok());
    match (error, named) {
        (PlanFileError::Read { .. }, Some(plan)) => {
            format!("{error}; to run the built-in plan, write --plan {}", plan.name)
        }
        _ => error.to_string(),
    }
}

fn planned(spec: &PlanSpec, command: Vec<String>) -> Result<Study, Failure> {
    secrets::keep_all(&serde_json::to_value(spec).map_err(|e| Failure::usage(e.to_string()))?);
    secrets::keep(spec.known_workload_file.iter().flatten().map(String::as_str));
    let plan = make_plan(spec)?;
    let servers = [&spec.node, &spec.standby, &spec.via].into_iter().flatten().flatten();
    let targets = spec.variant.iter().flatten().filter_map(|variant| variant.target.as_ref());
    let urls: Vec<String> = targets.chain(&spec.target).chain(servers).cloned().collect();
    let results = PathBuf::from(spec.results.as_deref().unwrap_or(DEFAULT_RESULTS));
    Ok(study(plan, &urls, results, None, command))
}

/// A study of `plan`, which has URLs without passwords; `urls`: as they are given.
fn study(plan: Plan, urls: &[String], results: PathBuf, resume: Option<PathBuf>, command: Vec<String>) -> Study {
    let base = OpenRequest { ask_password: arguments::ask(), ..OpenRequest::new("", absolute(&results)) };
    let (request, others) = requests(&plan, &base, urls);
    Study { plan, request, results, resume, command, limits: None, others, place: Place::Here }
}

/// Continues a run with the plan of its manifest, and the workloads that its first command named. `urls`: those of its targets and
/// proxies, only needed for their passwords.
fn resumed(
    flags: &PlanSpec,
    urls: &[String],
    run: &Path,
    command: Vec<String>,
) -> Result<(Study, Vec<String>), Failure> {
    let results = PathBuf::from(flags.results.as_deref().unwrap_or(DEFAULT_RESULTS));
    let folder = run_folder(run, &results);
    if !folder.exists() {
        return Err(Failure::usage(format!(
            "there is no run {}: give its folder, or its id in {}",
            run.display(),
            results.display()
        )));
    }
    let stored = StoredRun::open(&folder)?;
    if let Some(imported) = stored.records.iter().find_map(|r| r.imported()) {
        let what = imported.unchecked();
        return Err(Failure::usage(format!("run {} is {what}: there is nothing to go on with", stored.id())));
    }
    let mut plan = stored.manifest.plan.clone();
    // The manifest holds the texts of the workload files.
    Workloads::read(&plan.workload_files).map_err(PlanError::from)?;
    give_anew(&mut plan, flags, &stored.id())?;
    let variants = plan.arms().map_or(&[][..], |paired| &paired.variants);
    let targets = std::iter::once(&*plan.target).chain(variants.iter().skip(1).map(|of| plan.target_of(of)));
    let known: Vec<&str> = targets.chain(variants.iter().filter_map(|of| of.via.as_deref())).collect();
    if let Some(other) = urls.iter().map(|url| redact(url)).find(|url| !known.contains(&url.as_str())) {
        let (run, made_on) = (stored.id(), known.join(", "));
        return Err(Failure::usage(format!(
            "run {run} was made on {made_on}, not on {other}: resume it on its own target"
        )));
    }
    let folder = absolute(stored.path());
    let results = folder.parent().map_or(results, Path::to_owned);
    Ok((study(plan, urls, results, Some(folder), command), workloads_of(&stored.manifest.command)))
}

/// The workloads that a command line names.
fn workloads_of(command: &[String]) -> Vec<String> {
    let mut lists: Vec<&str> = command.iter().filter_map(|word| word.strip_prefix("--workload=")).collect();
    lists.extend(command.windows(2).filter(|pair| pair[0] == "--workload").map(|pair| pair[1].as_str()));
    lists.into_iter().flat_map(|list| list.split(',')).map(|code| code.trim().to_owned()).collect()
}

/// Prints what the database's own reports require, if they were requested.
fn licence(plan: &Plan) {
    let report = kind_of(&plan.target).ok().and_then(|kind| kind.native_report.as_ref());
    if let Some(report) = report
        && plan.native_report()
    {
        output::say(&report.notice);
    }
}

/// Width of the terminal, in characters; a pipe or a file has none.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(w, _)| usize::from(w.0))
}

pub(crate) fn width() -> usize {
    terminal_width().unwrap_or(WIDTH)
}

/// Prints key figures, the report's path and, as the last line of standard output, the run folder.
/// `named`: workloads that the user named; `strict`: whether a disturbed test makes the exit code 1.
fn finish(outcome: StudyOutcome, named: &[String], strict: bool) -> Result<u8, Failure> {
    let folder = outcome.folder.display().to_string();
    let data = source::load(&outcome.folder);
    let tests = outcome.records.len();
    let refused = outcome.records.iter().filter(|r| !r.is_usable()).count();
    let mut failed = show_figures(&data, &outcome, refused > 0)? || !outcome.left_out.is_empty();
    if refused > 0 {
        output::say(&format!("{refused} of {tests} tests are refused: do not use their figures"));
    }
    let plan = data.as_ref().ok().map(|(_, data)| &data.manifest.plan);
    // One of a plan or a group is left out like others that the target cannot run.
    let is_named = |skipped: &SkippedWorkload| named.iter().any(|code| code.eq_ignore_ascii_case(&skipped.code));
    failed |= plan.is_some_and(|plan| plan.skipped.iter().any(is_named)) || outcome.refused.iter().any(is_named);
    for skipped in &outcome.refused {
        output::say(&format!("not measured: {}: {}", skipped.code, skipped.reason));
    }
    if !outcome.left_out.is_empty() {
        output::say(&format!("planned and not measured: {}", outcome.left_out.join(", ")));
    }
    let resume = plan.cloned().unwrap_or_default().resume_command(&folder);
    let written = data.and_then(|(stored, data)| report::write_index(&stored, data));
    match written {
        _ if outcome.records.is_empty() => {}
        Ok(path) => output::stdout(format!("\nreport: {}\n", path.display()).as_bytes())?,
        Err(e) => {
            failed = true;
            output::say(&format!("loadline: the report could not be written: {}", e.message));
        }
    }
    let disturbed = outcome.records.iter().filter(|r| r.is_disturbed()).count();
    failed |= strict && disturbed > 0;
    let code = match outcome.ended {
        Ended::Complete => u8::from(failed) * exit::FAILED,
        Ended::Interrupted => {
            output::say(&format!("interrupted: continue with  {resume}"));
            exit::INTERRUPTED
        }
        Ended::Failed(e) => {
            let failure = Failure::from(e);
            output::say(&format!("loadline: {}\nfinished tests are kept: continue with  {resume}", failure.message));
            failure.code
        }
    };
    if disturbed > 0 {
        output::say(&format!(
            "{disturbed} of {tests} tests were disturbed by others on the machine: their figures are marked, with how much they may be too \
             low; stop what disturbs (the report names it) and run again for better ones"
        ));
    }
    output::stdout(format!("{folder}\n").as_bytes())?;
    Ok(code)
}

/// Prints key figures. Returns whether they failed: tests are refused, unless arms have an answer without them, or levels broke their laws.
fn show_figures(
    data: &Result<(StoredRun, RunData), Failure>,
    outcome: &StudyOutcome,
    refused: bool,
) -> Result<bool, Failure> {
    let (_, data) = match data {
        Ok(read) => read,
        Err(e) => {
            output::say(&format!("loadline: the key figures could not be read from the run folder: {}", e.message));
            return Ok(refused);
        }
    };
    if let Some(arms) = Compared::of_arms(data) {
        output::stdout(arms.text(width()).as_bytes())?;
        // A pair with a refused window is left out and counted.
        return Ok(refused && (arms.counts()[2] > 0 || arms.has_curves));
    }
    if let Some(costs) = Costs::from_run(data) {
        output::stdout(costs.text(width()).as_bytes())?;
        return Ok(refused || !costs.holds());
    }
    output::stdout(end_page(data, terminal_width()).as_bytes())?;
    if !outcome.records.is_empty() {
        let folder = outcome.folder.display();
        output::stdout(format!("\ntables of all tests: loadline report {folder} --format text\n").as_bytes())?;
    }
    Ok(refused)
}
