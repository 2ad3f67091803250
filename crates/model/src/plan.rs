//! What to measure: the specification a user gives, and the plan it becomes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capability::Driver;

/// A plan as a user states it, in a TOML file or by flags; what is `None` takes its default.
/// Flags override the file key by key (see [`PlanSpec::overridden_by`]).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlanSpec {
    /// Database under test, as a URL.
    pub target: Option<String>,
    /// Further instances of the same cluster, as URLs.
    pub node: Option<Vec<String>>,
    /// Name of the platform in tables and charts.
    pub platform: Option<String>,
    /// Workload codes.
    pub workload: Option<Vec<String>>,
    /// Groups, all of whose workloads are run.
    pub group: Option<Vec<String>>,
    /// Files of workloads that the user has written; all of them are run.
    pub workload_file: Option<Vec<String>>,
    /// Files of workloads that can be named in `workload` and in `parameters` and are not run for being there: those
    /// of a plan file, where flags say which workloads are run.
    #[serde(skip)]
    pub known_workload_file: Option<Vec<String>>,
    /// `auto` or a list of job counts.
    pub jobs: Option<JobsSpec>,
    /// Length of the measured window, e.g. `30s`.
    pub duration: Option<TimeSpec>,
    /// Time before the window opens, e.g. `2s`.
    pub warmup: Option<TimeSpec>,
    /// How often each test is repeated.
    pub repeat: Option<u32>,
    /// `database` or `client`.
    pub driver: Option<Driver>,
    /// Transactions per second over all jobs (open loop); client driver only.
    pub rate: Option<f64>,
    /// Share of the payload that compresses away, 0…1.
    pub payload_compressibility: Option<f64>,
    /// Seed of all randomness.
    pub seed: Option<u64>,
    /// Keep storage figures whose reads did not come from the device; such tests are marked.
    pub allow_cached: Option<bool>,
    /// Size of the data set, e.g. `256MiB`.
    pub size: Option<String>,
    /// Folder that holds the runs.
    pub results: Option<String>,
    /// Latency objective for the load line, e.g. `5ms`.
    pub latency_objective: Option<TimeSpec>,
    /// Server settings of a private throwaway server.
    pub setting: Option<BTreeMap<String, String>>,
    /// Workload parameters by workload code.
    pub parameters: Option<BTreeMap<String, BTreeMap<String, i64>>>,
    /// Run what a capability or the doctor refuses; such tests are marked.
    pub force: Option<bool>,
    /// Whether the storage is probed and each test is held against its limit.
    pub probe: Option<bool>,
    /// Take AWR snapshots around each test and keep the reports (Oracle; needs a licence).
    pub oracle_awr: Option<bool>,
    /// Leave the data set on the target after the run.
    pub keep_data: Option<bool>,
    /// Drop a data set that is in place, whatever it holds, and load anew.
    pub reload: Option<bool>,
}

/// `auto`, or job counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "jobs are «auto», a count from 1 to 4096, or a list of counts: \"auto\", 4, [1, 2, 4]")]
pub enum JobsSpec {
    /// A list of job counts.
    List(Vec<u32>),
    /// One job count.
    One(u32),
    /// The word `auto` (any other word is refused when the plan is made).
    Word(String),
}

/// A time as a number of seconds or as text with a unit (`500ms`, `30s`, `5m`, `1h`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a time is a number of seconds or a text with a unit: 30, \"30s\", \"5m\"")]
pub enum TimeSpec {
    /// Seconds.
    Seconds(f64),
    /// Text with a unit.
    Text(String),
}

impl PlanSpec {
    /// This specification with every key that `other` sets taken from `other`.
    #[must_use]
    pub fn overridden_by(self, other: PlanSpec) -> PlanSpec {
        PlanSpec {
            target: other.target.or(self.target),
            node: other.node.or(self.node),
            platform: other.platform.or(self.platform),
            workload: other.workload.or(self.workload),
            group: other.group.or(self.group),
            workload_file: other.workload_file.or(self.workload_file),
            known_workload_file: other.known_workload_file.or(self.known_workload_file),
            jobs: other.jobs.or(self.jobs),
            duration: other.duration.or(self.duration),
            warmup: other.warmup.or(self.warmup),
            repeat: other.repeat.or(self.repeat),
            driver: other.driver.or(self.driver),
            rate: other.rate.or(self.rate),
            payload_compressibility: other.payload_compressibility.or(self.payload_compressibility),
            seed: other.seed.or(self.seed),
            allow_cached: other.allow_cached.or(self.allow_cached),
            size: other.size.or(self.size),
            results: other.results.or(self.results),
            latency_objective: other.latency_objective.or(self.latency_objective),
            setting: other.setting.or(self.setting),
            parameters: other.parameters.or(self.parameters),
            force: other.force.or(self.force),
            probe: other.probe.or(self.probe),
            oracle_awr: other.oracle_awr.or(self.oracle_awr),
            keep_data: other.keep_data.or(self.keep_data),
            reload: other.reload.or(self.reload),
        }
    }
}

/// Job counts of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Jobs {
    /// Double from 1 until throughput no longer grows, at most to `max`.
    Auto {
        /// Highest job count that will be tried.
        max: u32,
    },
    /// Just these.
    List(Vec<u32>),
}

/// A resolved plan: every value valid and explicit. It holds no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// URL of the target without any password.
    pub target: String,
    /// URLs of further nodes without any password.
    pub nodes: Vec<String>,
    /// Name of the platform in tables and charts.
    pub platform: String,
    /// Workloads in the order in which they run.
    pub workloads: Vec<PlannedWorkload>,
    /// What was asked for but does not fit, with reasons.
    pub skipped: Vec<SkippedWorkload>,
    /// Workloads of the user's own, as they were written: a run is resumed without the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_files: Vec<WorkloadFile>,
    /// Job counts.
    pub jobs: Jobs,
    /// Length of the measured window, s.
    pub duration_s: f64,
    /// Time before the window opens, s.
    pub warmup_s: f64,
    /// How often each test is repeated.
    pub repeat: u32,
    /// Transactions per second over all jobs (open loop), if any.
    pub rate_tps: Option<f64>,
    /// Share of the payload that compresses away, 0…1.
    pub payload_compressibility: f64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Size of the data set, bytes.
    #[serde(default = "default_size")]
    pub size_bytes: u64,
    /// Whether storage figures whose reads did not come from the device are kept, and marked.
    #[serde(default)]
    pub allow_cached: bool,
    /// Latency objective for the load line, ns.
    pub latency_objective_ns: Option<u64>,
    /// Settings given to a private throwaway server.
    pub settings: BTreeMap<String, String>,
    /// Whether refusals were overridden.
    pub force: bool,
    /// Whether the storage is probed and each test is held against its limit.
    #[serde(default)]
    pub probe: bool,
    /// Whether the database's own report is kept of each test.
    #[serde(default)]
    pub native_report: bool,
    /// Whether the data set stays on the target after the run.
    #[serde(default)]
    pub keep_data: bool,
    /// Whether a data set that is in place is dropped and loaded anew.
    #[serde(default)]
    pub reload: bool,
}

/// Size of the data set of runs that did not have one.
fn default_size() -> u64 {
    DEFAULT_SIZE_BYTES
}

/// Size of the data set where none is given, bytes: loaded in seconds on two cores.
pub const DEFAULT_SIZE_BYTES: u64 = 128 << 20;

/// One workload of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedWorkload {
    /// Code in the catalogue.
    pub code: String,
    /// Driver it will use.
    pub driver: Driver,
    /// Why this driver and not the preferred one; empty when it is the preferred or the given one.
    #[serde(default)]
    pub driver_reason: String,
    /// Parameters that differ from the catalogue's defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, i64>,
    /// What a capability refuses and `--force` overrode; such tests are marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
}

/// A workload file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFile {
    /// Its name, as it was given.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// One workload that was asked for but cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedWorkload {
    /// Code in the catalogue.
    pub code: String,
    /// Why it cannot run here.
    pub reason: String,
}
