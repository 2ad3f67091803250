//! `loadline run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loadline_database::{OpenRequest, kind_of};
use loadline_model::JobLoad;
use loadline_model::format::duration_s;
use loadline_model::plan::{Jobs, JobsSpec, OnNodeLoss, Plan, PlanSpec, ShareSpec, TimeSpec};
use loadline_report::{Compared, Costs, end_page};
use loadline_run::plan::duration::DurationEstimate;
use loadline_run::plan::{DEFAULT_RESULTS, check_agents, workloads_of as known_workloads};
use loadline_run::planfile::PlanFileError;
use loadline_run::storage_size::{DATA_PER_CACHE, DATA_PER_MEMORY, beyond_memory};
use loadline_run::study::Ended;
use loadline_run::sweep::{SweepPoints, SweptParameter};
use loadline_run::{Study, StudyOutcome, make_plan, planfile, plans};
use loadline_store::StoredRun;
use loadline_workload::{CATALOGUE, RowCount, Scope, Table, Workload, Workloads};

use crate::args::RunArgs;
use crate::exit::{self, Failure};
use crate::progress::Progress;
use crate::target::{absolute, run_folder};
use crate::{arguments, hub_run, live, output, probe, report, secrets, signals, stored};

/// Width of tables if standard output is not a terminal.
const WIDTH: usize = 160;

pub(crate) fn run(args: &RunArgs, command: Vec<String>) -> Result<u8, Failure> {
    measure(args, command, plans::find(plans::DEFAULT_PLAN)?.spec()?, [None, None], Ok)
}

/// Measures what the flags say, on top of the plan file or of `default`, after `more` has added to it. `arms`: the URLs of
/// two arms, whose passwords a resumed run needs.
pub(crate) fn measure(
    args: &RunArgs,
    command: Vec<String>,
    default: PlanSpec,
    arms: [Option<&str>; 2],
    more: impl FnOnce(PlanSpec) -> Result<PlanSpec, Failure>,
) -> Result<u8, Failure> {
    let mut hub = args.agents.hub.url();
    let mut named = args.workload.clone();
    let study = match &args.resume {
        Some(run) => {
            let (study, by_first_command) = resumed(args, arms, run, command)?;
            named.extend(by_first_command);
            study
        }
        None => {
            let spec = more(spec(args, default)?)?;
            hub.clone_from(&spec.hub);
            let (plan, request, results) = planned(&spec)?;
            check_parameters(&args.parameter, &plan)?;
            if let Some(size) = &args.size {
                unsized_ones(&plan, size).inspect(|warning| output::say(warning));
            }
            if args.dry_run {
                output::stdout(describe(&plan, &results).as_bytes())?;
                return Ok(0);
            }
            let other = request_b(spec.arm_b.and_then(|arm| arm.target).or(spec.target).as_deref(), &plan, &request);
            Study { other, ..study(plan, request, results, None, command) }
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
    let mut progress = Progress::new();
    let outcome = study.run(&mut progress);
    progress.finish();
    let outcome = outcome.map_err(Failure::from)?;
    if !args.workload_file.is_empty() || !args.pgbench_script.is_empty() {
        let own = |code: &&str| CATALOGUE.iter().all(|w| w.code != *code);
        named.extend(outcome.refused.iter().map(|skipped| skipped.code.as_str()).filter(own).map(str::to_owned));
    }
    finish(outcome, &named, args.strict)
}

/// The plan file with the flags on top; without one, the flags on top of `default`.
fn spec(args: &RunArgs, default: PlanSpec) -> Result<PlanSpec, Failure> {
    let file = match (&args.plan_file, args.plan) {
        (Some(path), _) => planfile::read(path).map_err(|e| Failure::usage(not_a_file(path, &e)))?,
        (None, Some(plan)) => plan.spec()?,
        (None, None) => default,
    };
    let list = |v: &Vec<String>| (!v.is_empty()).then(|| v.clone());
    let flags = PlanSpec {
        target: args.target.target.clone(),
        node: list(&args.target.node),
        nodes: args.nodes.clone(),
        on_node_loss: args.on_node_loss,
        hub: args.agents.hub.hub.clone().or_else(|| args.agents.agents.and_then(|_| args.agents.hub.url())),
        agents: args.agents.agents,
        agent_credentials: args.agents.agent_credentials,
        platform: args.platform.clone(),
        workload: list(&args.workload),
        group: list(&args.group),
        workload_file: list(&args.workload_file.iter().map(|p| p.display().to_string()).collect()),
        known_workload_file: None,
        pgbench_script: list(&args.pgbench_script),
        define: list(&args.define),
        allow_writes: args.allow_writes.then_some(true),
        evidence: args.evidence.clone(),
        jobs: args.jobs.as_deref().map(jobs).transpose()?,
        duration: args.duration.clone().map(TimeSpec::Text),
        warmup: args.warmup.clone().map(TimeSpec::Text),
        max_warmup: args.max_warmup.clone().map(TimeSpec::Text),
        repeat: args.repeat,
        driver: args.driver,
        rate: args.rate,
        think: args.think.clone().map(TimeSpec::Text),
        reconnect_every: args.reconnect_every,
        payload_compressibility: args.payload_compressibility,
        seed: args.seed,
        results: args.results.as_ref().map(|p| p.display().to_string()),
        latency_objective: args.latency_objective.clone().map(TimeSpec::Text),
        setting: (!args.target.setting.is_empty()).then(|| unique("--setting", &args.target.setting)).transpose()?,
        size: args.size.clone(),
        server_memory: args.server_memory.clone(),
        allow_cached: args.allow_cached.then_some(true),
        parameters: None,
        force: args.force.then_some(true),
        patience: args.patience.clone().map(ShareSpec::Text),
        probe: args.no_probe.then_some(false),
        oracle_awr: args.oracle_awr.then_some(true),
        keep_data: args.keep_data.then_some(true),
        reload: args.reload.then_some(true),
        ..PlanSpec::default()
    };
    // Within one source workloads and groups add up; flags replace those of the file.
    let mut file = file;
    // The jobs of a plan that comes with loadline are of each node: a speed-up compares as many on one node.
    file.jobs_per_node = match (&flags.jobs, &flags.nodes, &args.plan_file) {
        (Some(_), ..) => None,
        (None, Some(_), None) => Some(true),
        _ => file.jobs_per_node,
    };
    // The longest warm-up belongs to the file's own.
    file.max_warmup.take_if(|_| flags.warmup.is_some());
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
        file.known_workload_file = known.filter(|_| flags.workload_file.is_none() && !scripts);
        file.pgbench_script = None;
        (file.define, file.allow_writes, file.evidence) = (None, None, None);
    }
    let mut spec = file.overridden_by(flags);
    if !args.parameter.is_empty() {
        set_parameters(spec.parameters.get_or_insert_default(), &args.parameter);
    }
    Ok(spec)
}

/// Sets workload parameters, by workload code and name.
pub(crate) fn set_parameters(all: &mut BTreeMap<String, BTreeMap<String, i64>>, given: &[(String, String, i64)]) {
    for (code, name, value) in given {
        // A plan file may write the code otherwise.
        let known = all.keys().find(|known| known.eq_ignore_ascii_case(code)).unwrap_or(code).clone();
        all.entry(known).or_default().insert(name.clone(), *value);
    }
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

/// Settings by name; one that is given twice is refused.
pub(crate) fn unique(flag: &str, given: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    for (name, value) in given {
        if all.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("{flag} {name} is given twice: keep one")));
        }
    }
    Ok(all)
}

fn jobs(text: &str) -> Result<JobsSpec, Failure> {
    let counts: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
    match counts {
        Ok(list) => Ok(JobsSpec::List(list)),
        Err(_) if !text.contains(',') => Ok(JobsSpec::Word(text.to_owned())),
        Err(_) => Err(Failure::usage(format!("'{text}' is not a list of job counts: write 1,2,4,8 or auto"))),
    }
}

fn planned(spec: &PlanSpec) -> Result<(Plan, OpenRequest, PathBuf), Failure> {
    secrets::keep_all(&serde_json::to_value(spec).map_err(|e| Failure::usage(e.to_string()))?);
    secrets::keep(spec.known_workload_file.iter().flatten().map(String::as_str));
    let plan = make_plan(spec).map_err(|e| Failure::usage(e.to_string()))?;
    let results = PathBuf::from(spec.results.as_deref().unwrap_or(DEFAULT_RESULTS));
    let url = spec.arm_a.as_ref().and_then(|arm| arm.target.clone()).or_else(|| spec.target.clone());
    let url = url.unwrap_or_else(|| loadline_run::plan::DEFAULT_TARGET.to_owned());
    let mut request = OpenRequest::new(&url, absolute(&results));
    request.nodes = spec.node.clone().unwrap_or_default();
    request.standbys = spec.standby.clone().unwrap_or_default();
    request.settings.clone_from(&plan.settings);
    request.native_report = plan.native_report;
    request.replicas = plan.levels.as_ref().map_or(0, |levels| levels.replicas);
    request.ask_password = arguments::ask();
    Ok((plan, request, results))
}

fn study(plan: Plan, request: OpenRequest, results: PathBuf, resume: Option<PathBuf>, command: Vec<String>) -> Study {
    Study {
        plan,
        request,
        results,
        resume,
        command,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        limits: None,
        other: None,
        agents: None,
    }
}

/// How the target of arm B is opened; `a` is the request of arm A.
fn request_b(spec_target: Option<&str>, plan: &Plan, a: &OpenRequest) -> Option<OpenRequest> {
    let arms = plan.arms.as_ref()?;
    let url = spec_target.map_or_else(|| a.url.clone(), str::to_owned);
    Some(OpenRequest { url, settings: arms.b.settings.clone(), ..a.clone() })
}

/// Continues a run with the plan of its manifest, and the workloads that its first command named. A target URL is only needed for its
/// password.
fn resumed(
    args: &RunArgs,
    arms: [Option<&str>; 2],
    run: &Path,
    command: Vec<String>,
) -> Result<(Study, Vec<String>), Failure> {
    let results = args.results.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_RESULTS));
    let folder = run_folder(run, &results);
    if !folder.exists() {
        return Err(Failure::usage(format!(
            "there is no run {}: give its folder, or its id in {}",
            run.display(),
            results.display()
        )));
    }
    let stored = StoredRun::open(&folder)?;
    if let Some(imported) = stored.records.iter().find_map(|r| r.imported.as_ref()) {
        let what = imported.unchecked();
        return Err(Failure::usage(format!("run {} is {what}: there is nothing to go on with", stored.id())));
    }
    let plan = stored.manifest.plan.clone();
    let named = workloads_of(&stored.manifest.command);
    // The manifest holds the texts of the workload files.
    Workloads::read(&plan.workload_files).map_err(|e| Failure::usage(e.to_string()))?;
    let given = args.target.target.as_deref();
    let url = own_url(arms[0].or(given), &plan.target)?;
    let folder = absolute(stored.path());
    let results = folder.parent().map_or(results, Path::to_owned);
    let mut request = OpenRequest::new(&url, results.clone());
    request.nodes.clone_from(&plan.nodes);
    request.standbys = plan.levels.as_ref().map_or_else(Vec::new, |levels| levels.standbys.clone());
    request.settings.clone_from(&plan.settings);
    request.native_report = plan.native_report;
    request.replicas = plan.levels.as_ref().map_or(0, |levels| levels.replicas);
    request.ask_password = arguments::ask();
    let mut plan = Plan { force: plan.force || args.force, ..plan };
    match &mut plan.agents {
        Some(of) => {
            of.agents = args.agents.agents.unwrap_or(of.agents);
            check_agents(of.agents).map_err(|e| Failure::usage(e.to_string()))?;
        }
        None if args.agents.agents.is_some() => {
            return Err(Failure::usage(format!("the jobs of run {} do not run on agents", stored.id())));
        }
        None => {}
    }
    let url_b =
        plan.arms.as_ref().map(|of| own_url(arms[1].or(given.filter(|_| of.a.target == of.b.target)), &of.b.target));
    let other = request_b(url_b.transpose()?.as_deref(), &plan, &request);
    Ok((Study { other, ..study(plan, request, results, Some(folder), command) }, named))
}

/// The workloads that a command line names.
fn workloads_of(command: &[String]) -> Vec<String> {
    let mut lists: Vec<&str> = command.iter().filter_map(|word| word.strip_prefix("--workload=")).collect();
    lists.extend(command.windows(2).filter(|pair| pair[0] == "--workload").map(|pair| pair[1].as_str()));
    lists.into_iter().flat_map(|list| list.split(',')).map(|code| code.trim().to_owned()).collect()
}

/// `given`, which may have the password, if it is the target of the run; the run's without one.
fn own_url(given: Option<&str>, target: &str) -> Result<String, Failure> {
    match given {
        Some(url) if loadline_database::redact(url) == target => Ok(url.to_owned()),
        Some(url) => Err(Failure::usage(format!(
            "the run was made on {target}, not on {}: resume it on its own target",
            loadline_database::redact(url)
        ))),
        None => Ok(target.to_owned()),
    }
}

/// Prints what the database's own reports require, if they were requested.
fn licence(plan: &Plan) {
    let report = kind_of(&plan.target).ok().and_then(|kind| kind.native_report);
    if let Some(report) = report.filter(|_| plan.native_report) {
        output::say(report.notice);
    }
}

/// Width of the terminal, in characters; a pipe or a file has none.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(w, _)| usize::from(w.0))
}

/// Width of texts, in characters.
pub(crate) fn width() -> usize {
    terminal_width().unwrap_or(WIDTH)
}

/// Prints key figures, the report's path and, as the last line of standard output, the run folder.
/// `named`: workloads that the user named; `strict`: whether a disturbed test makes the exit code 1.
fn finish(outcome: StudyOutcome, named: &[String], strict: bool) -> Result<u8, Failure> {
    let folder = outcome.folder.display().to_string();
    let width = width();
    let data = stored::load(&outcome.folder);
    let plan = data.as_ref().ok().map(|(_, data)| &data.manifest.plan);
    let hub = plan.and_then(|plan| plan.agents.as_ref()).map_or_else(String::new, |of| format!(" --hub {}", of.hub));
    let resume = format!("loadline {} --resume {folder}{hub}", plan.map_or("run", |plan| plan.command()));
    let arms = data.as_ref().ok().and_then(|(_, data)| Compared::of_arms(data, width));
    let costs = data.as_ref().ok().and_then(|(_, data)| Costs::of(data, width));
    match (&arms, &data) {
        (Some(arms), _) => output::stdout(arms.text().as_bytes())?,
        (None, Ok(_)) if costs.is_some() => {
            output::stdout(costs.iter().map(|c| c.text.as_str()).collect::<String>().as_bytes())?
        }
        (None, Ok((_, data))) => output::stdout(end_page(data, terminal_width()).as_bytes())?,
        (None, Err(e)) => {
            output::say(&format!("loadline: the key figures could not be read from the run folder: {}", e.message))
        }
    }
    if arms.is_none() && costs.is_none() && !outcome.records.is_empty() {
        output::stdout(format!("\ntables of all tests: loadline report {folder} --format text\n").as_bytes())?;
    }
    let mut code = 0;
    let tests = outcome.records.len();
    let refused = outcome.records.iter().filter(|r| !r.is_usable()).count();
    if refused > 0 {
        // A pair of arms with a refused window is left out and counted; that is an answer as long as there are others.
        let answered = arms.is_some_and(|arms| arms.counts()[2] == 0);
        code = if answered { 0 } else { exit::FAILED };
        output::say(&format!("{refused} of {tests} tests are refused: do not use their figures"));
    }
    if costs.is_some_and(|costs| !costs.holds) {
        code = exit::FAILED;
    }
    for skipped in &outcome.refused {
        // One of a plan or a group is left out like others that the target cannot run.
        if named.iter().any(|code| code.eq_ignore_ascii_case(&skipped.code)) {
            code = exit::FAILED;
        }
        output::say(&format!("not measured: {}: {}", skipped.code, skipped.reason));
    }
    if !outcome.left_out.is_empty() {
        code = exit::FAILED;
        output::say(&format!("planned and not measured: {}", outcome.left_out.join(", ")));
    }
    let written = data.and_then(|(stored, data)| report::write_index(&stored, data));
    match Some(written).filter(|_| !outcome.records.is_empty()) {
        Some(Ok(path)) => output::stdout(format!("\nreport: {}\n", path.display()).as_bytes())?,
        Some(Err(e)) => {
            code = exit::FAILED;
            output::say(&format!("loadline: the report could not be written: {}", e.message));
        }
        None => {}
    }
    match outcome.ended {
        Ended::Complete => {}
        Ended::Interrupted => {
            output::say(&format!("interrupted: continue with  {resume}"));
            code = exit::INTERRUPTED;
        }
        Ended::Failed(e) => {
            let failure = Failure::from(e);
            output::say(&format!("loadline: {}\nfinished tests are kept: continue with  {resume}", failure.message));
            code = failure.code;
        }
    }
    let disturbed = outcome.records.iter().filter(|r| r.is_disturbed()).count();
    if disturbed > 0 {
        output::say(&format!(
            "{disturbed} of {tests} tests were disturbed by others on the machine: their figures are marked, with how much they may be too \
             low; stop what disturbs (the report names it) and run again for better ones"
        ));
        code = if strict && code == 0 { exit::FAILED } else { code };
    }
    output::stdout(format!("{folder}\n").as_bytes())?;
    Ok(code)
}

/// What a workload is swept over, if not the jobs of the plan.
fn swept(points: &SweepPoints) -> String {
    let then = if points.over_jobs { ", then the jobs" } else { "" };
    match &points.parameter {
        Some(SweptParameter { name, values, .. }) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!(", 1 job with {name} = {}{then}", values.join(", "))
        }
        None if points.over_jobs => String::new(),
        None => ", one test".to_owned(),
    }
}

/// Codes of the plan's workloads of which `is` holds.
fn codes_of(plan: &Plan, is: impl Fn(&Workload) -> bool) -> Vec<&str> {
    let known = known_workloads(plan).unwrap_or_default();
    let codes = plan.workloads.iter().map(|w| w.code.as_str());
    codes.filter(|code| known.find(code).is_ok_and(|w| is(&w))).collect()
}

/// Whether the size of some table of the workload depends neither on the data set nor on the jobs.
fn has_own_size(workload: &Workload) -> bool {
    let own = |t: &Table| t.scope == Scope::Workload && matches!(t.rows, RowCount::Total(_) | RowCount::Fixed(_));
    workload.tables.iter().any(own)
}

/// What a given `size` of the data set does not change.
fn unsized_ones(plan: &Plan, size: &str) -> Option<String> {
    let shares = |t: &Table| matches!(t.rows, RowCount::Share { .. });
    let codes = codes_of(plan, |w| !w.tables.is_empty() && !w.tables.iter().any(shares));
    // A study of all workloads has a size for those that take it.
    (!codes.is_empty() && codes.len() == plan.workloads.len()).then(|| {
        format!(
            "! --size {size} does not apply to {}, whose tables have sizes of their own (`loadline workloads CODE`)",
            codes.join(", ")
        )
    })
}

/// Whether storage workloads are measured on a server with a cache of its own size.
fn reads_storage(plan: &Plan) -> bool {
    let private = kind_of(&plan.target).is_ok_and(|kind| (kind.is_temporary)(&plan.target));
    !private && !codes_of(plan, |w| w.group == "storage").is_empty()
}

/// The plan in words.
fn describe(plan: &Plan, results: &Path) -> String {
    let length = DurationEstimate::of(plan);
    let jobs = match &plan.jobs {
        Jobs::List(list) => {
            let each = if plan.jobs_per_node { " on each node" } else { "" };
            format!("{}{each}", list.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        Jobs::Auto { max } => format!("1, 2, 4, … until throughput no longer grows, at most {max}"),
    };
    let mut out = format!("target      {}\n", plan.target);
    for node in &plan.nodes {
        out += &format!("node        {node}\n");
    }
    if !plan.node_counts.is_empty() {
        out += &format!("nodes       {}\n", plan.node_counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    }
    if let Some(agents) = &plan.agents {
        out += &format!("agents      {} at {}\n", agents.agents, agents.hub);
    }
    if plan.on_node_loss == OnNodeLoss::Continue {
        out += "            if one is lost, continue over those that are left\n";
    }
    let alone = plan.arms.is_none();
    for (name, value) in plan.settings.iter().filter(|_| alone) {
        out += &format!("setting     {name} = {value}\n");
    }
    if let Some(arms) = &plan.arms {
        for arm in [&arms.a, &arms.b] {
            let settings: Vec<String> = arm.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let settings = if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
            out += &format!("arm {}{settings}\n", arm.label);
        }
        let looks: Vec<String> = arms.looks.iter().map(usize::to_string).collect();
        let precision = arms.precision.map_or_else(String::new, |p| {
            format!(", until the interval is ±{} % wide, looked at after {} pairs", p * 100.0, looks.join(", "))
        });
        out += &format!("pairs       {}{precision}\nequivalent  within ±{} %\n", arms.pairs, arms.margin * 100.0);
    }
    if let Some(levels) = &plan.levels {
        let delays: Vec<String> = levels.delays_ms.iter().map(|ms| format!("{ms} ms")).collect();
        out += &format!("levels      {}\n", levels.levels.join(", "));
        if levels.standbys.is_empty() {
            out += &format!("delays      {} one way\n", delays.join(", "));
            if levels.jitter_ms > 0.0 {
                out += &format!("jitter      up to {} ms\n", levels.jitter_ms);
            }
            if let Some(bytes) = levels.bytes_per_s {
                out += &format!("bandwidth   {} per second\n", loadline_model::format::bytes(bytes as f64));
            }
        }
        levels.standbys.iter().for_each(|standby| out += &format!("standby     {standby}\n"));
        let changed = kind_of(&plan.target).map_or(&[][..], |kind| kind.level_settings);
        if !changed.is_empty() {
            out += &format!("changes     {} of the server, until the run ends\n", changed.join(" and "));
        }
        out += &format!("replicas    {}\npairs       {}\n", levels.replicas, levels.pairs);
    }
    out += &format!("results     {}\njobs        {jobs}\n", results.display());
    out += &format!("window      {} s after {} of warm-up\n", plan.duration_s, plan.warmup());
    if plan.load != JobLoad::default() {
        out += &format!("load        {}\n", plan.load.words());
    }
    out += &format!(
        "repeat      {}\ndata set    {}\nseed        {}\ncompressible payload {} %\n",
        plan.repeat,
        loadline_model::format::bytes(plan.size_bytes as f64),
        // Drawn again when the run starts.
        if plan.draws.is_some() { format!("{} for rows, drawn for what jobs draw", plan.seed) } else { plan.seeds() },
        plan.payload_compressibility * 100.0
    );
    if let Some(bytes) = plan.server_memory_bytes {
        let size = beyond_memory(bytes);
        out += &format!(
            "server memory {}: a --size of {size} or more passes it\n",
            loadline_model::format::bytes(bytes as f64)
        );
    } else if reads_storage(plan) {
        out += &format!(
            "            storage figures need a --size of {DATA_PER_CACHE} times the database's cache on this machine, of \
             {DATA_PER_MEMORY} times the memory of another one: `loadline doctor` says it\n"
        );
    }
    let own = codes_of(plan, has_own_size);
    if !own.is_empty() {
        out += &format!("own tables  {}: sized by their parameters, not by --size\n", own.join(", "));
    }
    if plan.keep_data {
        out += "keep data   the data set stays on the target\n";
    }
    if plan.reload {
        out += "reload      an existing data set is dropped and loaded again\n";
    }
    if plan.native_report {
        let report = kind_of(&plan.target).ok().and_then(|kind| kind.native_report);
        out += &report.map_or(String::new(), |r| format!("report      {} of each test ({})\n", r.name, r.notice));
    }
    if let Some(ns) = plan.latency_objective_ns {
        out += &format!("objective   latency of {} ms at most\n", ns as f64 / 1e6);
    }
    let times = length.repeat;
    let tests = |n: f64| {
        let n = n * plan.node_counts.len().max(1) as f64;
        if length.exact { format!("{:.0} tests each", n * f64::from(times)) } else { "a sweep each".to_owned() }
    };
    let known = known_workloads(plan).unwrap_or_default();
    let points: Vec<SweepPoints> = plan.workloads.iter().map(|w| SweepPoints::of(&known, w)).collect();
    let apart = if points.iter().all(|p| p.parameter.is_none() && p.over_jobs) { "" } else { ", except where noted" };
    out += &format!("workloads   {}{apart}\n", tests(length.steps));
    for file in &plan.workload_files {
        out += &format!("  (from {})\n", file.name);
    }
    for (w, points) in plan.workloads.iter().zip(&points) {
        let forced = w.forced.as_ref().map_or(String::new(), |f| format!("  FORCED: {f}"));
        out += &format!("  {:<12} {} driver{}{forced}\n", w.code, w.driver, swept(points));
    }
    for (reason, codes) in by_reason(plan.workloads.iter().map(|w| (&*w.code, &*w.driver_reason))) {
        out += &format!("  ({codes}: {reason})\n");
    }
    for (reason, codes) in by_reason(plan.skipped.iter().map(|s| (&*s.code, &*s.reason))) {
        out += &format!("  skipped: {codes}: {reason}\n");
    }
    let assumed =
        if length.exact { String::new() } else { format!(", if every sweep takes {:.0} steps", length.steps) };
    let about = if plan.auto_warmup { "at most about" } else { "about" };
    let again = match plan.patience {
        share if share > 0.0 => {
            format!("; at most {} more to measure disturbed tests again", duration_s(share * length.total_s()))
        }
        _ => String::new(),
    };
    out += &format!("time        {about} {}{assumed}{again}\n", duration_s(length.total_s()));
    out
}

/// Each reason with the workloads that have it.
fn by_reason<'a>(workloads: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, String)> {
    let mut reasons: Vec<(&str, String)> = Vec::new();
    for (code, reason) in workloads.filter(|(_, reason)| !reason.is_empty()) {
        match reasons.iter_mut().find(|(same, _)| *same == reason) {
            Some((_, codes)) => *codes += &format!(", {code}"),
            None => reasons.push((reason, code.to_owned())),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_stands_once() {
        let reasons = super::by_reason([("A", "x"), ("B", ""), ("C", "y"), ("D", "x")].into_iter());
        assert_eq!(reasons, [("x", "A, D".to_owned()), ("y", "C".to_owned())]);
    }
}
