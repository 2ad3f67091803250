//! What is constant for an opened target.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use loadline_model::Snapshot;

/// What is constant for an opened target. There is no default: each database states every fact.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Nodes over which jobs are spread: job `j` runs on node `j mod nodes`.
    pub nodes: u32,
    /// Size of a block of the data files, bytes; `None` if unknown.
    pub block_bytes: Option<u64>,
    /// Whether rows are stored in the tree of the primary key, which then takes no space beside them.
    pub rows_in_primary_key: bool,
    /// Share of its pages that is filled when a table of rows which are updated in place is loaded, %.
    pub in_place_pct: u64,
    /// Whether the database runs inside the loadline process: its CPU time is then part of loadline's own.
    pub in_process: bool,
    /// Why this target's commits have no limit to be compared with; `None` for every database.
    pub no_limit: Option<&'static str>,
    /// Why no session of the client driver sees when the commit of a transaction of one statement begins;
    /// `None` if it is seen, at least for a sample.
    pub commit_unseen: Option<&'static str>,
    /// Why the commits counted are more than the jobs' transactions while parallel workers run a query;
    /// `None` if they are the same.
    pub commits_of_workers: Option<&'static str>,
    /// Whether sessions keep their counts to themselves until they publish them (at window start and end, see
    /// [`ClientSession::publish_counters`](crate::ClientSession::publish_counters)). If not, counters move all
    /// the time.
    pub publishes_counters: bool,
    /// How far the counters that an observer reads may lag behind what sessions have done and published, s.
    pub counter_lag_s: f64,
    /// Wait events of a session that waits for the log writer.
    pub log_sync_events: &'static [&'static str],
    /// Wait events of a session that waits for a buffer of the block cache, if the time of that is not counted.
    pub buffer_wait_events: &'static [&'static str],
    /// The files of the data, if the data directory holds other files too, or files that must not be opened by
    /// name.
    pub own_files: Option<OwnFiles>,
    /// What a record says if the blocks by which a table grows are counted as written in addition to the
    /// writes of their content.
    pub growth_is_written: Option<&'static str>,
    /// What a record says of counters between two snapshots that no column shows, in whole sentences.
    pub remarks: Option<fn(&Snapshot, &Snapshot) -> Vec<String>>,
}

impl Facts {
    /// Facts of an engine in this process that keeps no data files.
    pub(crate) const fn without_data(no_limit: &'static str) -> Facts {
        Facts {
            nodes: 1,
            block_bytes: None,
            rows_in_primary_key: false,
            in_place_pct: 100,
            in_process: true,
            no_limit: Some(no_limit),
            commit_unseen: None,
            commits_of_workers: None,
            publishes_counters: false,
            counter_lag_s: 0.0,
            log_sync_events: &[],
            buffer_wait_events: &[],
            own_files: None,
            growth_is_written: None,
            remarks: None,
        }
    }
}

/// The files of a database, all of them.
#[derive(Debug, Clone)]
pub struct OwnFiles {
    /// Open ones, for those on which this process holds locks: closing any other descriptor of them would give up
    /// these locks (fcntl_locking(2)).
    pub open: Vec<Arc<File>>,
    /// Files that hold none; they need not exist.
    pub named: Vec<PathBuf>,
}
