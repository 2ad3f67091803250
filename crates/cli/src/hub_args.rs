//! Flags of agents and of their hub.

use clap::builder::TypedValueParser;
use clap::{Args, ValueHint};
use loadline_model::plan::AgentCredentials;

use crate::list_args::ListArgs;
use crate::value_args::one_of;

/// Environment variable with the URL of the hub, for those who keep its token off the command line.
pub(crate) const HUB_VARIABLE: &str = "LOADLINE_HUB";

/// How the hub is reached.
#[derive(Debug, Clone, Args)]
pub(crate) struct HubArgs {
    /// Hub at which agents wait: a NATS server, nats://HOST:PORT or tls://HOST:PORT, with a token@ or user:password@ before HOST
    /// if it asks for one [default: the environment variable LOADLINE_HUB]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) hub: Option<String>,
}

impl HubArgs {
    /// URL of the hub, from the flag or the environment.
    pub(crate) fn url(&self) -> Option<String> {
        self.hub.clone().or_else(|| std::env::var(HUB_VARIABLE).ok().filter(|url| !url.is_empty()))
    }
}

/// Agents that run the jobs of a run.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentsArgs {
    /// Number of agents over which the jobs are spread (see docs/agents.md) [default: that of the plan, else none: loadline itself
    /// runs the jobs]
    #[arg(long, value_name = "N")]
    pub(crate) agents: Option<u32>,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    /// Where agents have the target's password from [default: that of the plan, else send]
    #[arg(long, value_parser = agent_credentials())]
    pub(crate) agent_credentials: Option<AgentCredentials>,
}

/// `loadline agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    /// Name of the agent in tables and messages; no two agents at a hub have the same [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Most jobs that it runs at a time; on servers no more than it may open files (ulimit -Hn) [default: 20000]
    #[arg(long, value_name = "N")]
    pub(crate) max_jobs: Option<u32>,
}

/// Where agents have the target's password from.
fn agent_credentials() -> impl TypedValueParser<Value = AgentCredentials> {
    one_of([
        (
            "send",
            "That of --target is sent to them, if nobody else can read it: by TLS, or on this machine",
            AgentCredentials::Send,
        ),
        ("local", "Each has its own, in its environment, password file or option file", AgentCredentials::Local),
    ])
}

/// `loadline agents list`.
#[derive(Debug, Args)]
pub(crate) struct AgentsListArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}
