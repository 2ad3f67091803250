//! Additions of features to the record of a test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::feature::features;
use crate::group::grouped;
use crate::limits::{SizePoint, TestLimit};
use crate::load::Population;
use crate::record::{DataSource, TestRecord, WorkloadFacts};
use crate::slow::SlowFigures;

features! {
    TestRecord.details, stored by stored:
    /// An addition of a feature to the record of a test.
    pub enum Detail {
        /// Seed with which its jobs drew; absent in records of older versions and of other tools.
        value Seed(seed: u64);
        value DataSource(data_source: DataSource);
        /// Facts of its workload; absent in records of older versions and of other tools.
        value Facts(facts: WorkloadFacts);
        /// Id of the column that was swept, if not `jobs`.
        text Swept(swept: String);
        /// The bound of the test, in short (`log sync`). Never stored: computed from the other fields for a report.
        text BoundedBy(bounded_by: String);
        /// Limit: what the machine allows for the same work.
        one Limit(limit: TestLimit);
        /// Figures of each node, in the order of the nodes; empty if there is one.
        list Nodes(by_node: NodeFigures);
        /// Figures of each part of the jobs, in the order of the jobs; empty if all jobs are alike.
        list Populations(populations: PopulationFigures);
        /// Figures of each kind of transaction; empty if all are of one kind.
        list Kinds(kinds: KindFigures);
        /// Waits of its slowest transactions, if its samples say which job waited.
        one Slow(slow: SlowFigures);
        list Agents(by_agent: AgentFigures);
        /// Commit times by redo since the last commit, rising (LGWR-SIZE only).
        list Sizes(sizes: SizePoint);
        /// The parts of its window, of a test that watches the database grow old (`--aging`).
        list Aging(aging: AgePoint);
        /// Where its figures come from, if loadline did not measure it.
        one Imported(imported: Imported);
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    pub jobs: u32,
    /// Transactions per second of these jobs, by their own count.
    pub tps: f64,
    /// Growth per second of its neutral counters (`loadline.commits`, see [`crate::snapshot::counter`]).
    pub per_s: BTreeMap<String, f64>,
    /// Means of what describes the moment ([`crate::snapshot::counter::GAUGES`]) over the readings of the window.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
}

/// Figures of a part of the jobs in the window of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationFigures {
    #[serde(flatten)]
    pub population: Population,
    /// Transactions per second of its jobs.
    pub tps: f64,
    /// Mean, median and 99th percentile of their transaction time, ns; absent if none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_ns: Option<[f64; 3]>,
    /// Mean, median and 99th percentile of their response time, from the intended start on; of an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<[f64; 3]>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindFigures {
    /// Name: that of a script, or of an arm of the program's choice.
    pub name: String,
    pub weight: i64,
    /// Those that succeeded and ended in the window; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    pub tps: f64,
    /// Mean, median and 99th percentile of their time, ns; absent if none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_ns: Option<[f64; 3]>,
    /// 95th percentile of their time, ns; absent in runs of older versions too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ns: Option<f64>,
}

/// The windows of agents may be apart from the common one by this much, ms: 0.2 % of a window of a second.
pub const MOST_START_SKEW_MS: f64 = 2.0;

impl AgentFigures {
    /// As it is stored: what tells its machine, process and sessions apart is of no use later.
    pub fn stored(&self) -> AgentFigures {
        AgentFigures { machine: String::new(), process: 0, sessions: Vec::new(), ..self.clone() }
    }

    /// Why agents failed: those with the same reason together.
    pub fn failures(agents: &[AgentFigures]) -> String {
        let failed = agents.iter().filter_map(|agent| Some((agent.failed.as_deref()?, agent)));
        let said = grouped(failed, |(why, _)| *why).into_iter().map(|(why, of)| {
            let names: Vec<String> = of.iter().map(|(_, agent)| format!("{} on {}", agent.name, agent.host)).collect();
            format!("agent{} {}: {why}", if names.len() == 1 { "" } else { "s" }, names.join(", "))
        });
        said.collect::<Vec<_>>().join("; ")
    }
}

/// How much of a network link was used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    pub interface: String,
    /// Bytes per second in the direction that had more.
    pub bytes_per_s: f64,
    /// Share of the link's speed in that direction, %; `None` if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentFigures {
    pub name: String,
    pub host: String,
    /// Identity of its machine: agents with the same share CPUs.
    #[serde(skip)]
    pub machine: String,
    #[serde(skip)]
    pub process: u32,
    /// Sessions of its jobs on each server, by the server's ids, as far as known.
    #[serde(skip)]
    pub sessions: Vec<Vec<u32>>,
    /// CPUs of its machine that it may use.
    pub cpus: u32,
    /// Number of its first job in the test.
    #[serde(default)]
    pub first_job: u32,
    pub jobs: u32,
    /// Transactions per second of these jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_time_ns_p50: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_time_ns_p99: Option<u64>,
    /// Transactions that ended with an error in the window.
    pub errors: u64,
    /// Jobs whose first transaction began later than the window.
    pub late_starts: u32,
    /// CPU time of its process, as a share of its machine, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_pct: Option<f64>,
    /// CPU time of its machine that was used, by whomever, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cpu_pct: Option<f64>,
    /// The network interface of its machine that was used most, by whomever, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<LinkUse>,
    /// Upper bound of the distance of its window from the common one, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew_ms: Option<f64>,
    /// Why it counted nothing, if it was lost or failed, in words that follow its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Whether it is lost for the tests that follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// A part of the window of a test that watches the database grow old. What was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgePoint {
    /// End, s after the window start.
    pub t_s: f64,
    pub tps: f64,
    /// 99th percentile of their times, ns; open loop from the intended start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Sizes of the tables at its end by the database, by column id.
    #[serde(flatten)]
    pub sizes: BTreeMap<String, f64>,
}

/// Source of a test that another tool measured. loadline has checked none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub files: Vec<ImportedFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Name without folders; `-` is standard input.
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Imported {
    /// `pgbench 15.18`.
    pub fn tool_and_version(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.tool),
            None => format!("{}, version unknown", self.tool),
        }
    }

    /// Words in place of the validity of a test: `imported from pgbench 15.18, not checked by loadline`.
    pub fn unchecked(&self) -> String {
        format!("imported from {}, not checked by loadline", self.tool_and_version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_fields_of_the_stored_record_in_one_order() {
        let slow = Detail::Slow(SlowFigures::default());
        let nodes = Detail::Nodes(vec![NodeFigures { jobs: 3, ..NodeFigures::default() }]);
        let figures = [("tx_per_s".to_owned(), 7.0)].into();
        let details = vec![slow.clone(), nodes.clone()];
        let record = TestRecord { details, figures, ..TestRecord::blank("TP-MIXED") };
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""by_node":[{"jobs":3"#) && text.find("by_node") < text.find("\"slow\""), "{text}");
        let read: TestRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(read, TestRecord { details: vec![nodes, slow], ..record });
        assert_eq!((read.by_node()[0].jobs, read.kinds().len(), read.imported()), (3, 0, None));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn an_unknown_version_of_a_tool_is_said() {
        let imported = Imported { tool: "fio".to_owned(), ..Imported::default() };
        assert_eq!(imported.unchecked(), "imported from fio, version unknown, not checked by loadline");
    }
}
