//! Instruments: what a workload measures or proves in addition to its jobs.

use serde::{Deserialize, Serialize};

/// An instrument in [`crate::Workload::instruments`]. Those with parameters are fields of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instrument {
    /// At least 99.9 % of the blocks must come from the database's own cache, which is filled before each test.
    CacheHit,
    /// Blocks must come from the storage device, and changed blocks must reach it. Data files are kept out of the
    /// operating system's page cache.
    Device,
    /// Requests a checkpoint in the window and splits transaction times by it.
    Checkpoint,
}

/// Transactions start at a rate, and another session polls for their rows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visible {
    /// Parameter: transactions started per second.
    pub rate: String,
    /// Parameter: rows with new keys ([`crate::Generator::NewKey`]) per transaction.
    pub rows: String,
    /// Portable SQL with the variable `:id`; returns one row if the row with this key is visible, else none.
    pub query: String,
}

/// One session commits transactions of many sizes in random order. The fields name the parameters. Such a workload
/// runs only if named by code or group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all(deserialize = "kebab-case"))]
pub struct SizeScan {
    /// Redo of the largest transaction, KiB. The smallest changes one row.
    pub most_kib: String,
    /// Step between sizes, KiB.
    pub step_kib: String,
    /// Maximum redo rate within a transaction, MiB/s; 0 for no limit.
    pub pace_mib: String,
    pub samples: String,
    /// Parameter of [`crate::Workload::redo`] that sets the size: number of rows changed.
    pub rows: String,
}
