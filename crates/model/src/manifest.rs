//! What a run was made of: plan, versions, target, machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::machine::{Machine, Storage};
use crate::plan::Plan;
use crate::probe::ProbedDir;

/// Version of the manifest's layout.
pub const MANIFEST_SCHEMA: u32 = 1;

/// `manifest.json` of a run folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: u32,
    /// Run id: the folder's name.
    pub run: String,
    /// Version of loadline that made it.
    pub loadline_version: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// The plan.
    pub plan: Plan,
    /// The target as found.
    pub target: TargetInfo,
    /// What the doctor said before the run.
    pub doctor: Vec<Finding>,
    /// Machine that ran loadline (and the database, if `target.local`).
    pub machine: Machine,
    /// What loadline itself costs.
    pub overhead: Overhead,
    /// Calibrated parameters by workload code: payload size, rows per transaction, redo seen.
    #[serde(default)]
    pub calibration: BTreeMap<String, Calibration>,
    /// What the storage under log and data allows, measured before the first test, by role (`log`, `data`).
    #[serde(default)]
    pub probes: BTreeMap<String, ProbedDir>,
    /// Tables of the data set that this run loaded, in order.
    #[serde(default)]
    pub data_set: Vec<TableLoad>,
    /// How it ended so far.
    pub state: RunState,
}

/// How a table of the data set was loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableLoad {
    /// Its name.
    pub table: String,
    /// Rows that it has.
    pub rows: u64,
    /// Rows that were loaded; the others were there (a load that had been cut off).
    pub rows_loaded: u64,
    /// Bytes of these rows' values, without what the database adds to them.
    pub bytes_loaded: u64,
    /// Time in which they were loaded, s.
    pub load_s: f64,
    /// Time that keys, indexes and statistics took after that, s.
    pub finish_s: f64,
    /// Sessions that loaded at the same time.
    pub loaders: u32,
    /// By which path rows came in: `COPY, binary`.
    pub path: String,
    /// Fingerprint of the rows, in hexadecimal.
    pub fingerprint: String,
    /// Version of the data.
    pub version: u32,
}

impl TableLoad {
    /// Rows per second while they came in; keys, indexes and statistics follow ([`TableLoad::finish_s`]).
    #[must_use]
    pub fn rows_per_s(&self) -> f64 {
        self.rows_loaded as f64 / self.load_s.max(1e-9)
    }

    /// MiB of values per second while they came in.
    #[must_use]
    pub fn mib_per_s(&self) -> f64 {
        self.bytes_loaded as f64 / (1024.0 * 1024.0) / self.load_s.max(1e-9)
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Under way, or cut off.
    Started,
    /// Interrupted by the user; can be resumed.
    Interrupted,
    /// Ended by an error; can be resumed.
    Failed,
    /// All tests of the plan are there.
    Complete,
}

/// A database as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// Kind, e.g. `postgres`.
    pub kind: String,
    /// Product name, e.g. `PostgreSQL`.
    pub product: String,
    /// Version as the database states it.
    pub version: String,
    /// URL without secrets.
    pub url: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Whether the database runs on the machine that runs loadline.
    pub local: bool,
    /// Settings that matter, by name.
    pub settings: BTreeMap<String, String>,
    /// Directory of the log (WAL, redo), if it is known.
    pub log_dir: Option<String>,
    /// Directory of the data, if it is known.
    pub data_dir: Option<String>,
    /// Filesystem and device under log and data, by role (`log`, `data`); local targets only.
    #[serde(default)]
    pub storage: BTreeMap<String, Storage>,
    /// What else a reader should know (e.g. where a throwaway server was placed and why).
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What loadline itself costs, measured on the `null:` engine before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Wall time of the client driver's loop per transaction of the first workload, ns.
    pub client_ns_per_tx: Option<f64>,
    /// Why there is no such time, where it was to be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_absent: Option<String>,
    /// Time that the in-database driver's clock and histogram code takes per transaction, ns.
    pub in_database_ns_per_tx: Option<f64>,
    /// The workload the cost was measured with.
    pub workload: Option<String>,
}

/// Result of calibrating a workload on a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Parameters chosen.
    pub parameters: BTreeMap<String, i64>,
    /// Redo bytes per transaction seen with them.
    pub redo_bytes_per_tx: Option<f64>,
    /// What the catalogue wants, bytes: lowest, nominal, highest.
    pub nominal: Option<[f64; 3]>,
    /// Why there is no figure, or why the nominal size could not be met.
    pub note: Option<String>,
}
