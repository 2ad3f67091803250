//! The manifest of a run: plan, versions, target with what the doctor finds, machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::RateLooks;
use crate::machine::{Machine, Storage};
use crate::plan::Plan;
use crate::probe::ProbedDir;
use crate::variant::Letter;

/// Version of the manifest's layout. From 2 on, a plan has variants.
pub const MANIFEST_SCHEMA: u32 = 2;

/// `manifest.json` of a run folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: u32,
    /// Run id: the folder's name.
    pub run: String,
    pub loadline_version: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    pub command: Vec<String>,
    pub plan: Plan,
    /// The target; of variants that of the first.
    pub target: TargetInfo,
    pub doctor: Vec<Finding>,
    /// The variants of `loadline ab`; empty in older versions.
    #[serde(default, alias = "arms", skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantFound>,
    /// Machine that ran loadline (and the database, if `target.local`).
    pub machine: Machine,
    pub overhead: Overhead,
    #[serde(default)]
    pub calibration: BTreeMap<String, Calibration>,
    /// Probe of the storage under log and data before the first test, by role (`log`, `data`).
    #[serde(default)]
    pub probes: BTreeMap<String, ProbedDir>,
    /// Tables of the data set that this run loaded, in order.
    #[serde(default)]
    pub data_set: Vec<TableLoad>,
    /// Windows that were begun, also those that were interrupted or made anew: each draws with a seed of its own.
    #[serde(default)]
    pub windows: u32,
    /// The search for a rate that is under way: a resumed run goes on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateLooks>,
    pub state: RunState,
}

/// A variant as it was found when it was first in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantFound {
    /// The target, with the settings as they were read back.
    pub target: TargetInfo,
    pub doctor: Vec<Finding>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableLoad {
    pub table: String,
    /// The variant that it belongs to, if some have a target of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<Letter>,
    pub rows: u64,
    /// Rows loaded by this run; an interrupted load had loaded the others.
    pub rows_loaded: u64,
    /// Bytes of the values of these rows, without the database's overhead.
    pub bytes_loaded: u64,
    pub load_s: f64,
    /// Time to build keys, indexes and statistics after that, s.
    pub finish_s: f64,
    pub loaders: u32,
    /// Load path: `COPY, binary`.
    pub path: String,
    /// Fingerprint of the rows, in hexadecimal.
    pub fingerprint: String,
    pub version: u32,
}

impl TableLoad {
    /// Rows loaded per second, without keys, indexes and statistics ([`TableLoad::finish_s`]).
    pub fn rows_per_s(&self) -> f64 {
        self.rows_loaded as f64 / self.load_s.max(1e-9)
    }

    /// MiB of values loaded per second.
    pub fn mib_per_s(&self) -> f64 {
        self.bytes_loaded as f64 / (1024.0 * 1024.0) / self.load_s.max(1e-9)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Running, or killed.
    #[default]
    Started,
    /// Interrupted by the user; can be resumed.
    Interrupted,
    /// Ended by an error; can be resumed.
    Failed,
    Complete,
}

impl Manifest {
    /// The target of the variant `arm` as it was found; of a test without one, that of the run. `None` if it is not known, in a run of
    /// an older version whose arms had a target each.
    pub fn target_of(&self, arm: Option<Letter>) -> Option<&TargetInfo> {
        let Some((arm, paired)) = arm.zip(self.plan.arms()) else { return Some(&self.target) };
        if !self.variants.is_empty() {
            return self.variants.get(arm.index()).map(|found| &found.target);
        }
        let target = |letter: Letter| paired.variants.get(letter.index()).map(|variant| &variant.target);
        (target(arm) == target(Letter::A)).then_some(&self.target)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    pub kind: String,
    pub product: String,
    pub version: String,
    pub url: String,
    pub nodes: u32,
    /// Whether the database runs on the machine that runs loadline.
    pub local: bool,
    /// Whether the database runs in loadline's own process.
    #[serde(default)]
    pub in_process: bool,
    /// Host name of the server's machine, if the server states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Memory of the server's machine, bytes, if the server states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Settings that matter, by name.
    pub settings: BTreeMap<String, String>,
    pub log_dir: Option<String>,
    pub data_dir: Option<String>,
    /// Filesystem and device under log and data, by role (`log`, `data`); local targets only.
    #[serde(default)]
    pub storage: BTreeMap<String, Storage>,
    /// Notes for the reader (e.g. where a private server was placed and why).
    #[serde(default)]
    pub notes: Vec<String>,
}

impl TargetInfo {
    /// The block device under `role` (`log`, `data`), if it is on this machine.
    pub fn device(&self, role: &str) -> Option<&str> {
        if self.local { self.storage.get(role)?.device.as_deref() } else { None }
    }
}

/// Cost of loadline itself, measured on the `null:` target before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Wall time of the client driver's loop per transaction of the first workload, ns.
    pub client_ns_per_tx: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_absent: Option<String>,
    /// Time of the in-database driver's clock and histogram code per transaction, ns.
    pub in_database_ns_per_tx: Option<f64>,
    pub workload: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub parameters: BTreeMap<String, i64>,
    /// Redo bytes per transaction seen with them.
    pub redo_bytes_per_tx: Option<f64>,
    /// Redo bytes per transaction that the catalogue asks for: lowest, nominal, highest.
    pub nominal: Option<[f64; 3]>,
    /// Why there is no figure, or why the nominal size could not be met.
    pub note: Option<String>,
}

/// Between a workload and the variant in which it was calibrated as well.
const IN_ARM: &str = " in arm ";

impl Calibration {
    /// Key of a workload that was calibrated in variant `arm` as well.
    pub fn key(code: &str, arm: Letter) -> String {
        if arm == Letter::A { code.to_owned() } else { format!("{code}{IN_ARM}{arm}") }
    }

    pub fn of_key(key: &str) -> (&str, Letter) {
        let all = (1..Letter::MOST).map(Letter::nth);
        let arm = all.map(|arm| (format!("{IN_ARM}{arm}"), arm)).find(|(end, _)| key.ends_with(end));
        arm.map_or((key, Letter::A), |(end, arm)| (&key[..key.len() - end.len()], arm))
    }
}

crate::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity {
        /// Correct, or plain information.
        Ok: "ok";
        /// A figure will be missing or less reliable.
        Warning: "warning";
        /// The figures would be wrong: a run refuses it unless forced.
        Refused: "REFUSED";
        /// Nothing can be measured: a run refuses it, forced or not.
        Impossible: "IMPOSSIBLE";
    }
    pub fn word;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable identifier, e.g. `fsync`.
    pub id: String,
    pub severity: Severity,
    pub subject: String,
    pub value: String,
    /// Effect on the figures and what to do next; empty if `severity` is `Ok`.
    pub advice: String,
}

impl Finding {
    pub fn new(
        id: &str,
        severity: Severity,
        subject: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { id: id.to_owned(), severity, subject: subject.into(), value: value.into(), advice: advice.into() }
    }
}
