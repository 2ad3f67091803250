//! `loadline agent`, `loadline agents list`, and the agents of a run.

use std::sync::Arc;

use loadline_agents::{
    AgentTarget, Agents, AgentsError, HubError, HubLink, HubOptions, Presence, host, list, new_id, presence, serve,
};
use loadline_database::machine::allow_open_files;
use loadline_load::{OWN_FILES, Place};
use loadline_model::format::counted;
use loadline_model::plan::{AgentCredentials, Jobs};
use loadline_run::Study;
use loadline_run::plan::MAX_JOBS;

use crate::args::{AgentArgs, AgentsCommand, AgentsListArgs, HUB_VARIABLE, HubCommand, hub_url};
use crate::exit::{self, Failure, INTERRUPTED, TARGET, USAGE};
use crate::{listing, output, secrets, signals};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long a run waits for its agents, ns.
const WAIT_NS: u64 = 5_000_000_000;
/// How long agents have to say that they are there, for a listing, ns.
const LIST_NS: u64 = 1_000_000_000;

fn options(url: Option<&str>, name: &str) -> Result<HubOptions, Failure> {
    let url = url.ok_or_else(|| {
        Failure::usage(format!("name the hub: --hub nats://HOST:PORT, or the environment variable {HUB_VARIABLE}"))
    })?;
    secrets::keep(std::iter::once(url));
    Ok(HubOptions { url: url.to_owned(), name: format!("loadline {name}") })
}

exit::ends! {
    AgentsError => |e| match e {
        AgentsError::Connect(HubError::Usage(_)) => USAGE,
        AgentsError::Interrupted => INTERRUPTED,
        _ => TARGET,
    };
}

pub(crate) fn command(command: &HubCommand) -> Result<u8, Failure> {
    match command {
        HubCommand::Agents { command: AgentsCommand::List(args) } => agents_list(args),
        HubCommand::Agent(args) => agent(args),
    }
}

/// `loadline agent`: works until it is interrupted.
fn agent(args: &AgentArgs) -> Result<u8, Failure> {
    let name = args.name.clone().unwrap_or_else(host);
    if name.is_empty() || name.len() > 64 || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Failure::usage(format!("--name '{name}': write 1 to 64 characters without blanks, such as a1")));
    }
    let files = allow_open_files(u64::MAX).unwrap_or(u64::MAX);
    let files = u32::try_from(files.saturating_sub(OWN_FILES)).unwrap_or(u32::MAX).max(1);
    let most = args.max_jobs.unwrap_or(MAX_JOBS);
    if !(1..=MAX_JOBS).contains(&most) {
        return Err(Failure::usage(format!("--max-jobs {most} must be between 1 and {MAX_JOBS}")));
    }
    let options = options(hub_url(&args.hub).as_deref(), &name)?;
    let interrupted = Arc::default();
    signals::interruptible(&interrupted, "sessions on the database end with this process".to_owned())?;
    serve(&options, presence(&name, VERSION, most, files), &interrupted, &mut |text| output::say(text))?;
    Ok(INTERRUPTED)
}

fn agents_list(args: &AgentsListArgs) -> Result<u8, Failure> {
    let AgentsListArgs { hub, list: format } = args;
    let asker = new_id();
    let interrupted = Arc::default();
    signals::interruptible(&interrupted, "nothing was started".to_owned())?;
    let options = options(hub_url(hub).as_deref(), "list")?;
    let mut link = HubLink::connect(&options, &asker, interrupted).map_err(AgentsError::from)?;
    let row = |p: Presence| {
        let state = p.busy.map_or_else(|| "free".to_owned(), |run| format!("busy with run {run}"));
        let most = p.most_jobs.min(p.most_sessions);
        vec![p.name, p.version, p.host, p.process.to_string(), p.cpus.to_string(), state, most.to_string()]
    };
    let rows: Vec<Vec<String>> = list(&mut link, &asker, LIST_NS)?.into_iter().map(row).collect();
    if rows.is_empty() {
        output::say("no agent is at the hub: start one with `loadline agent --hub URL --name NAME`");
    }
    let columns = ["name", "version", "host", "process", "cpus", "state", "max_jobs"];
    listing::write_with(format, &columns, rows, &["process", "cpus", "max_jobs"])
}

/// The study with its agents, if its plan has some.
pub(crate) fn with(mut study: Study, hub: Option<&str>) -> Result<Study, Failure> {
    let Some(planned) = study.plan.agents().cloned() else { return Ok(study) };
    let hub = hub.ok_or_else(|| {
        Failure::usage(format!(
            "the run has {}: add --hub {}, with its token if it has one",
            counted(planned.agents as usize, "agent"),
            planned.hub
        ))
    })?;
    // Short enough to be read; subjects of the hub hold it.
    let run = new_id().chars().filter(char::is_ascii_alphanumeric).take(10).collect::<String>();
    let options = options(Some(hub), &format!("run {run}"))?;
    let link = HubLink::connect(&options, &run, Arc::clone(&study.request.interrupted)).map_err(AgentsError::from)?;
    let local = planned.credentials == AgentCredentials::Local;
    let url = |url: &String| if local { loadline_database::redact(url) } else { url.clone() };
    let target = AgentTarget {
        url: url(&study.request.url),
        nodes: study.request.nodes.iter().map(url).collect(),
        files: study.plan.workload_files.clone(),
    };
    let agents = Agents::enlist(link, &run, VERSION, planned.agents as usize, WAIT_NS, target)?;
    let who = agents.who();
    let most = who.iter().map(|p| p.most_jobs).fold(0, u32::saturating_add);
    match &mut study.plan.jobs {
        Jobs::Auto { max } => *max = most.min(*max),
        Jobs::List(list) => {
            if let Some(more) = list.iter().find(|n| **n > most) {
                let each: Vec<String> = who.iter().map(|p| format!("{} {}", p.name, p.most_jobs)).collect();
                let by_files = who.iter().any(|p| p.most_jobs == p.most_sessions);
                let limit = if by_files { "a higher limit of open files (ulimit -Hn)" } else { "more --max-jobs" };
                return Err(Failure::usage(format!(
                    "{more} jobs are more than the agents run, which is {most} ({}): ask for more agents, or start them with {limit}",
                    each.join(", ")
                )));
            }
        }
    }
    let names: Vec<String> = who.iter().map(|p| format!("{} on {}", p.name, p.host)).collect();
    output::say(&format!("run {run} at {}: agents {}", loadline_database::redact(hub), names.join(", ")));
    study.place = Place::Remote(Arc::new(agents));
    Ok(study)
}
