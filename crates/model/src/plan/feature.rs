//! Additions of features to a plan.

use serde::{Deserialize, Serialize};

use crate::feature::features;
use crate::plan::Plan;

features! {
    Plan.features, stored by stored:
    pub enum PlanFeature {
        /// Seed with which jobs draw in the first window (see [`crate::seed_of_window`]), if the user gave none: drawn for each run.
        value Draws(draws: u64);
        /// Whether the window starts as soon as throughput is steady.
        flag AutoWarmup(auto_warmup: bool);
        /// Latency objective for the load line, ns.
        value LatencyObjective(latency_objective_ns: u64);
        /// URLs of further nodes without any password.
        list Nodes(nodes: String);
        /// Numbers of nodes to sweep over, rising; empty: all nodes of the target.
        list NodeCounts(node_counts: u32);
        /// Reaction of the run to a lost node; it ends, if that is not said.
        value OnNodeLoss(on_node_loss: OnNodeLoss);
        /// The agents that run the jobs; `None`: loadline's own process.
        one Agents(agents: PlannedAgents);
        /// Whether a list of job counts is of each node: `[1, 2]` over 3 nodes are 3 and 6 jobs.
        flag JobsPerNode(jobs_per_node: bool);
        /// Memory of the server's machine as the user states it, bytes.
        value ServerMemory(server_memory_bytes: u64);
        /// Whether storage figures whose reads did not come from the device are kept, and marked.
        flag AllowCached(allow_cached: bool);
        /// Whether the database's own report of each test is kept.
        flag NativeReport(native_report: bool);
        /// Times from the last change to the commit over which scans are made, s, ascending; empty: they are made over sizes.
        list IdleTimes(idle_s: f64);
        /// Whether hardware events of the database's processes are counted.
        flag PerfEvents(perf_events: bool);
        /// Whether the window is recorded in parts, with the size of the tables ([`crate::record::AgePoint`]).
        flag Aging(aging: bool);
    }
}

impl Plan {
    /// Whether its jobs run in loadline's own process.
    pub fn runs_jobs_here(&self) -> bool {
        self.agents().is_none()
    }

    pub fn resume_command(&self, folder: &str) -> String {
        let hub = self.agents().map_or_else(String::new, |of| format!(" --hub {}", of.hub));
        format!("loadline {} --resume {folder}{hub}", self.command())
    }

    /// Has so many `agents` run its jobs from now on. Returns whether agents run them at all.
    pub fn set_agents(&mut self, agents: u32) -> bool {
        let planned =
            self.features.iter_mut().find_map(|f| if let PlanFeature::Agents(of) = f { Some(of) } else { None });
        planned.map(|of| of.agents = agents).is_some()
    }
}

crate::named! {
    /// Reaction of a run when a node of its target is lost in a test.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum OnNodeLoss {
        #[default]
        End: "end", "The run ends after that test";
        Continue: "continue", "The later tests are measured over the nodes that are left";
    }
    /// The word used on the command line and in files.
    pub fn name;
    pub fn about;
}

crate::named! {
    /// Where agents have the target's password from.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AgentCredentials {
        #[default]
        Send: "send", "That of --target is sent to them, if nobody else can read it: by TLS, or on this machine";
        Local: "local", "Each has its own, in its environment, password file or option file";
    }
    /// The word used on the command line and in files.
    pub fn name;
    pub fn about;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedAgents {
    /// URL of their hub without any secret.
    pub hub: String,
    pub agents: u32,
    pub credentials: AgentCredentials,
}
