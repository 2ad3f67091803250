//! Plans: values as a user writes them, and the plan that they become.

mod feature;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::feature::*;
use crate::load::JobLoad;
pub use crate::variant::PlannedWorkload;
use crate::variant::{Links, Paired, Variant};

/// Part of the jobs as a user states it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PopulationSpec {
    pub jobs: u32,
    /// Mean time that each thinks after a transaction, e.g. `10ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<TimeSpec>,
    /// Transactions per second of these jobs together (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// `auto`, or job counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "jobs are 'auto', a count from 1 to 20000, or a list of counts: \"auto\", 4, [1, 2, 4]")]
pub enum JobsSpec {
    List(Vec<u32>),
    One(u32),
    /// The word `auto` (any other word is refused when the plan is made).
    Word(String),
}

/// Values that users write as a number or as text: their names, that of the number, how it is shown, and what is expected.
macro_rules! written {
    ($($(#[$about:meta])* $name:ident, $number:ident, $shown:literal, $expecting:tt;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(untagged, expecting = $expecting)]
        pub enum $name {
            $number(f64),
            Text(String),
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $name::$number(number) => write!(f, $shown, number),
                    $name::Text(text) => f.write_str(text),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> $name {
                $name::Text(text)
            }
        }
    )*};
}

written! {
    /// A time as a number of seconds or as text with a unit (`500ms`, `30s`, `5m`, `1h`).
    TimeSpec, Seconds, "{} s", "a time is a number of seconds or a text with a unit: 30, \"30s\", \"5m\"";
    RateSpec, Tps, "{}", "a rate is a number of transactions per second, or \"auto\"";
    ShareSpec, Share, "{}", "a share is a number or a text: 0.3, \"30%\"";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Jobs {
    /// Doubles from 1 until throughput no longer grows, up to `max`.
    Auto {
        max: u32,
    },
    List(Vec<u32>),
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs::List(Vec::new())
    }
}

/// A resolved plan: every value valid and explicit. It holds no secret. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// URL of the target without any password.
    pub target: String,
    /// Name of the platform in tables and charts.
    pub platform: String,
    /// Facts of the platform that the user states, by id: see [`crate::facts`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Workloads in the order in which they run.
    pub workloads: Vec<PlannedWorkload>,
    /// Workloads that were asked for but cannot run, with reasons. One that is among [`Self::workloads`] as well was refused by the
    /// server while the run went on: [`Self::refused`].
    pub skipped: Vec<SkippedWorkload>,
    /// The user's workload files with their texts, so that a run can be resumed without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_files: Vec<WorkloadFile>,
    pub jobs: Jobs,
    /// Length of the measured window, s.
    pub duration_s: f64,
    /// Warm-up: time under load before the window starts, s; the longest one, if [`Plan::auto_warmup`].
    pub warmup_s: f64,
    pub repeat: u32,
    #[serde(flatten)]
    pub load: JobLoad,
    #[serde(flatten)]
    pub payload: Payload,
    /// Seed of the rows that are loaded, and of what jobs draw unless [`Plan::draws`] says otherwise.
    pub seed: u64,
    /// Size of the data set, bytes.
    pub size_bytes: u64,
    /// Settings of a private server.
    pub settings: BTreeMap<String, String>,
    /// Whether refusals were overridden.
    pub force: bool,
    /// Most time for waiting for a quiet machine and for second tries of disturbed tests, as a share of the time of the plan; 0: none.
    #[serde(default)]
    pub patience: f64,
    /// Whether the storage is probed and the limit of each test is measured.
    #[serde(default)]
    pub probe: bool,
    /// Whether the data set stays on the target after the run.
    #[serde(default)]
    pub keep_data: bool,
    /// Whether an existing data set is dropped and loaded again.
    #[serde(default)]
    pub reload: bool,
    #[serde(flatten, with = "feature::stored")]
    pub features: Vec<PlanFeature>,
    /// Variants that are compared in pairs of windows; `None`: the run is a sweep.
    #[serde(default, alias = "arms", alias = "levels", skip_serializing_if = "Option::is_none")]
    pub paired: Option<Box<Paired>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Payload {
    /// Share of each payload that can be compressed away, 0…1.
    #[serde(rename = "payload_compressibility")]
    pub compressibility: f64,
    /// Share of payloads that are copies of earlier ones, 0…1; if the user gives it, identical blocks are counted.
    #[serde(rename = "payload_duplicates", default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<f64>,
}

impl fmt::Display for Payload {
    /// `0.5`, or `0.5, duplicates 0.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.compressibility)?;
        self.duplicates.filter(|share| *share > 0.0).map_or(Ok(()), |share| write!(f, ", duplicates {share}"))
    }
}

impl Plan {
    pub fn has(&self, code: &str) -> bool {
        self.workloads.iter().any(|workload| workload.code == code)
    }

    /// Refusals of the server while the run went on.
    pub fn refused(&self) -> impl Iterator<Item = &SkippedWorkload> {
        self.skipped.iter().filter(|skipped| self.has(&skipped.code))
    }

    /// The variants of a run that compares them (`loadline ab`).
    pub fn arms(&self) -> Option<&Paired> {
        self.paired.as_deref().filter(|paired| paired.links.is_none())
    }

    /// The levels of a run that measures what they cost, and the links between the servers.
    pub fn levels(&self) -> Option<(&Paired, &Links)> {
        let paired = self.paired.as_deref()?;
        Some((paired, paired.links.as_ref()?))
    }

    /// URL of the target of `variant` without any password.
    pub fn target_of<'a>(&'a self, variant: &'a Variant) -> &'a str {
        if variant.target.is_empty() { &self.target } else { &variant.target }
    }

    pub fn workload_of<'a>(&'a self, variant: &'a Variant, code: &str) -> Option<&'a PlannedWorkload> {
        variant.workloads.iter().chain(&self.workloads).find(|workload| workload.code == code)
    }

    /// The command of loadline that measures and resumes such a run.
    pub fn command(&self) -> &'static str {
        self.paired.as_ref().map_or("run", |paired| paired.command())
    }

    /// Seeds in words: `7`, or `42 for rows, 1234 for what jobs draw`.
    pub fn seeds(&self) -> String {
        self.draws()
            .map_or(self.seed.to_string(), |draws| format!("{} for rows, {draws} for what jobs draw", self.seed))
    }

    /// The listed job counts of tests over so many nodes, all nodes together; `None`: they are found in the sweep.
    pub fn jobs_over(&self, nodes: u32) -> Option<Vec<u32>> {
        let each = if self.jobs_per_node() { nodes } else { 1 };
        match &self.jobs {
            Jobs::List(list) => Some(list.iter().map(|jobs| jobs.saturating_mul(each)).collect()),
            Jobs::Auto { .. } => None,
        }
    }

    /// Length of the warm-up in words: `2 s`, or `at most 60 s`.
    pub fn warmup(&self) -> String {
        let most = if self.auto_warmup() { "at most " } else { "" };
        format!("{most}{} s", self.warmup_s)
    }
}

/// Default size of the data set, bytes: loaded in seconds on two cores.
pub const DEFAULT_SIZE_BYTES: u64 = 128 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFile {
    pub name: String,
    pub text: String,
}

/// One workload that was asked for but cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedWorkload {
    pub code: String,
    pub reason: String,
}
