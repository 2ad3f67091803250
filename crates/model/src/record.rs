//! The record of one test: work, figures, checks.

use std::collections::BTreeMap;

use serde::de::IntoDeserializer;
use serde::de::value::Error as Unknown;
use serde::{Deserialize, Deserializer, Serialize};

use crate::capability::Driver;
use crate::check::{Check, CheckId, Outcome};
use crate::forced::{DataSource, Forced};
use crate::imported::{Imported, valid_or_unchecked};
use crate::limits::{SizePoint, TestLimit};
use crate::load::Population;
use crate::note::{Note, known_notes};
use crate::slow::SlowFigures;
use crate::snapshot::WaitProfile;
use crate::variant::{InPair, Letter, LevelPoint};

/// Version of the record's layout; raised if an old reader would misread a new record.
pub const RECORD_SCHEMA: u32 = 2;

/// What one node did in the window of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Jobs on it.
    pub jobs: u32,
    /// Transactions per second of these jobs, by their own count.
    pub tps: f64,
    /// Growth per second of its neutral counters (`loadline.commits`, see [`crate::snapshot::counter`]).
    pub per_s: BTreeMap<String, f64>,
    /// Means of what describes the moment ([`crate::snapshot::counter::GAUGES`]) over the readings of the window.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
}

/// What the jobs of a part did in the window of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationFigures {
    /// The part.
    #[serde(flatten)]
    pub population: Population,
    /// Transactions per second of its jobs.
    pub tps: f64,
    /// Mean, median and 99th percentile of their transaction time, ns; absent if none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_ns: Option<[f64; 3]>,
    /// The same of their response time, from the intended start on; of an open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<[f64; 3]>,
}

/// What one kind of transaction of a mix did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindFigures {
    /// Its name: that of a script, or of an arm of the program's choice.
    pub name: String,
    /// Its weight in the mix.
    pub weight: i64,
    /// Those that succeeded and ended in the window; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Transactions per second.
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
    #[must_use]
    pub fn stored(&self) -> AgentFigures {
        AgentFigures { machine: String::new(), process: 0, sessions: Vec::new(), ..self.clone() }
    }

    /// Why agents failed: those with the same reason together.
    #[must_use]
    pub fn failures(agents: &[AgentFigures]) -> String {
        let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
        for agent in agents {
            let Some(why) = agent.failed.as_deref() else { continue };
            let name = format!("{} on {}", agent.name, agent.host);
            match by_reason.iter_mut().find(|(of, _)| *of == why) {
                Some((_, names)) => names.push(name),
                None => by_reason.push((why, vec![name])),
            }
        }
        let said = by_reason.iter().map(|(why, names)| {
            let plural = if names.len() == 1 { "agent" } else { "agents" };
            format!("{plural} {}: {why}", names.join(", "))
        });
        said.collect::<Vec<_>>().join("; ")
    }
}

/// How much of a network link was used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    /// Its interface.
    pub interface: String,
    /// Bytes per second in the direction that had more.
    pub bytes_per_s: f64,
    /// The same as a share of the link's speed, %; `None` if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct: Option<f64>,
}

/// What one agent did in the window of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // Its names say what each is.
pub struct AgentFigures {
    pub name: String,
    pub host: String,
    /// What only its machine has: agents with the same share CPUs.
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
    /// Median of their transaction times, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_time_ns_p50: Option<u64>,
    /// The same, 99 %.
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

crate::named! {
    /// What the checks of a test say of it, best first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Validity {
        /// All proofs hold, and the machine was quiet.
        Valid: "valid";
        /// All proofs hold, but others took more of the machine than is allowed.
        Disturbed: "disturbed";
        /// A proof failed.
        Refused: "refused";
    }
    /// Its word.
    pub fn name;
}

/// What comparisons ask of a workload. A user's own is in no catalogue, so its tests say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Whether its work depends on the size of the data set (`--size`).
    pub sized: bool,
    /// Whether its transactions change rows with the default parameters.
    pub writes: bool,
}

/// A part of the window of a test that watches the database grow old. What was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgePoint {
    /// Its end, s after the window start.
    pub t_s: f64,
    /// Transactions per second in it.
    pub tps: f64,
    /// 99th percentile of their times, ns; open loop from the intended start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// What the database said of its tables at its end, by column id.
    #[serde(flatten)]
    pub sizes: BTreeMap<String, f64>,
}

/// One line of `tests.jsonl`; each begins as [`TestRecord::blank`]. Figures are at the top level under their column ids (see [`crate::column`]), so that
/// `jq .commit_throughput_tps` works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // Its names say what each is.
pub struct TestRecord {
    pub schema: u32,
    pub platform: String,
    pub run: String,
    /// Number of the test in its run, from 1.
    pub test: u32,
    pub workload: String,
    pub group: String,
    /// Target URL without secrets.
    pub target: String,
    pub driver: Driver,
    pub nodes: u32,
    pub jobs: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// The variant that it measures, in a run of pairs; `repetition` is then the number of its pair.
    #[serde(flatten)]
    pub variant: Option<InPair>,
    /// Number of the test whose first try was disturbed and of which this is a further try; of a pair, that of its first window. See
    /// [`crate::tries`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub try_of: Option<u32>,
    /// Tries of the test. Never stored: counted when a run is read.
    #[serde(default = "once", skip)]
    pub tries: u32,
    /// Wall-clock start of the measured window, RFC 3339, UTC.
    pub started_at: String,
    /// Whether no check failed: all proofs hold, and nothing disturbed it. An imported test has no checks and its figures are used: ask [`TestRecord::validity`] where
    /// validity is shown. Stored as `null` then.
    #[serde(deserialize_with = "valid_or_unchecked")]
    pub valid: bool,
    /// Failed checks and what disturbed it, if not valid.
    pub invalid_reason: Option<String>,
    /// Refusals that `--force` or `--allow-cached` overrode.
    #[serde(default, skip_serializing_if = "Forced::is_empty")]
    pub forced: Forced,
    /// What disturbed it, from the figures ([`crate::disturbance`]): `CPU steal 8 %; …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed_by: Option<String>,
    #[serde(deserialize_with = "known_checks")]
    pub checks: Vec<Check>,
    /// Column ids without a figure, with the reason.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "known_notes")]
    pub notes: Vec<Note>,
    /// Error texts of failed transactions, with their counts.
    #[serde(default)]
    pub error_texts: BTreeMap<String, u64>,
    /// Sampled waits of the job sessions.
    #[serde(default)]
    pub waits: WaitProfile,
    /// Workload parameters in force, calibrated ones included.
    #[serde(default)]
    pub parameters: BTreeMap<String, i64>,
    /// Seed with which its jobs drew; absent in records of older versions and of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Source of the blocks that the database read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_source: Option<DataSource>,
    /// Ids of the columns of the workload's key performance metrics, the most important first; empty in
    /// records of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kpis: Vec<String>,
    /// What its workload is; absent in records of older versions and of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<WorkloadFacts>,
    /// Id of the column that was swept, if not `jobs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept: Option<String>,
    /// What bounds the test, in short (`log sync`). Never stored: computed from the other fields for a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_by: Option<String>,
    /// Limit: what the machine allows for the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<TestLimit>,
    /// What each node did, in the order of the nodes; empty if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_node: Vec<NodeFigures>,
    /// What each part of the jobs did, in the order of the jobs; empty if all jobs are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub populations: Vec<PopulationFigures>,
    /// What each kind of transaction did; empty if all are of one kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindFigures>,
    /// What its slowest transactions waited for, if its samples say which job waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowFigures>,
    /// What each agent did, if the jobs ran on agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_agent: Vec<AgentFigures>,
    /// Commit times by redo since the last commit, rising (LGWR-SIZE only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizePoint>,
    /// The parts of its window, of a test that watches the database grow old (`--aging`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aging: Vec<AgePoint>,
    /// Where its figures come from, if loadline did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

/// Tries of a test that was not measured again.
fn once() -> u32 {
    1
}

/// Skips checks that only another version makes. A test that failed such a check stays refused, with its reason.
fn known_checks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Check>, D::Error> {
    #[derive(Deserialize)]
    struct Stored {
        id: String,
        outcome: Outcome,
        detail: String,
    }
    let known = |Stored { id, outcome, detail }: Stored| {
        let id = CheckId::deserialize(IntoDeserializer::<Unknown>::into_deserializer(id)).ok()?;
        Some(Check { id, outcome, detail })
    };
    Ok(Vec::deserialize(deserializer)?.into_iter().filter_map(known).collect())
}

impl TestRecord {
    /// A record of one client job without figures: the start of every record, in code and tests.
    #[must_use]
    pub fn blank(workload: &str) -> TestRecord {
        TestRecord {
            schema: RECORD_SCHEMA,
            test: 1,
            workload: workload.to_owned(),
            nodes: 1,
            jobs: 1,
            repetition: 1,
            tries: once(),
            valid: true,
            ..TestRecord::default()
        }
    }

    /// The same with `checks`.
    #[must_use]
    pub fn with_checks(mut self, checks: Vec<Check>) -> TestRecord {
        checks.into_iter().for_each(|check| self.add_check(check));
        self
    }

    /// The variant that it measures, in a run of pairs.
    #[must_use]
    pub fn arm(&self) -> Option<Letter> {
        self.variant.as_ref().map(|window| window.arm)
    }

    /// The level and distance that its pair compares with the baseline.
    #[must_use]
    pub fn level(&self) -> Option<&LevelPoint> {
        self.variant.as_ref()?.level.as_ref()
    }

    /// What its checks say of it; `None` for an imported test, which has none.
    #[must_use]
    pub fn validity(&self) -> Option<Validity> {
        let mut failed = self.checks.iter().filter(|check| check.outcome == Outcome::Failed).peekable();
        self.imported.is_none().then(|| match self.valid {
            true => Validity::Valid,
            false if failed.peek().is_some() && failed.all(|check| check.id.is_of_disturbance()) => Validity::Disturbed,
            false => Validity::Refused,
        })
    }

    /// Whether its figures may be used. Those of a disturbed test are, where there are none of a valid one.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.validity() != Some(Validity::Refused)
    }

    /// Whether its figures are proved, but others took more of the machine than is allowed.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.validity() == Some(Validity::Disturbed)
    }

    /// The options that this test needs to be valid; empty if none.
    #[must_use]
    pub fn kept_by(&self) -> Vec<&'static str> {
        let options = [
            ("--allow-cached", self.forced.not_the_devices),
            // An arm's settings are its purpose, without an option.
            (if self.variant.is_some() { "the arm's settings" } else { "--force" }, self.forced.refused.is_some()),
        ];
        options.into_iter().filter(|(_, needed)| *needed).map(|(option, _)| option).collect()
    }

    /// Adds a check, and derives from all whether the test is valid and why not: the only place that does.
    pub fn add_check(&mut self, check: Check) {
        self.checks.push(check);
        let failed: Vec<&str> =
            self.checks.iter().filter(|c| c.outcome == Outcome::Failed).map(|c| c.detail.as_str()).collect();
        self.valid = failed.is_empty();
        self.invalid_reason = (!failed.is_empty()).then(|| failed.join("; "));
    }
}
