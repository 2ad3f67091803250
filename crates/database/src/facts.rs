//! Constants of an opened target.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

/// Constants of an opened target.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Nodes over which jobs can be spread (see [`Work::node`](crate::Work::node)).
    pub nodes: u32,
    /// Those of the nodes, the last ones, that take no writes: standbys of the first.
    pub read_only_nodes: u32,
    /// Block size of the data files, bytes; `None` if unknown.
    pub block_bytes: Option<u64>,
    /// Whether rows are stored in the primary key's tree (index-organized): the key then takes no extra space.
    pub rows_in_primary_key: bool,
    /// Whether columns are stored apart, so that a query reads those only that it needs: a loop over whole rows bounds none then.
    pub columns_apart: bool,
    /// Fill factor of a table whose rows are updated in place, %; `None`: it is full.
    pub in_place_pct: Option<u64>,
    pub runs: Runs,
    /// Why the client driver cannot see when the commit of a single-statement transaction begins; `None` if it can,
    /// at least for a sample of the transactions.
    pub commit_unseen: Option<&'static str>,
    /// Why the database counts more commits than transactions while parallel workers run a query; `None` if it does
    /// not.
    pub commits_of_workers: Option<&'static str>,
    pub counts_failed_commits: bool,
    /// Whether the in-database driver tries a transaction again that lost against another one; if not, that is an error.
    pub retries_inside: bool,
    /// Whether a session's counts become visible only when it publishes them (at window start and window end, see
    /// [`ClientSession::publish_counters`](crate::ClientSession::publish_counters)). If not, they are visible at once.
    pub publishes_counters: bool,
    /// Maximum delay until published counts show in the counters that an observer reads, s.
    pub counter_lag_s: f64,
    pub waits: &'static WaitEvents,
    /// The database's files, if the data directory also holds other files, or files that must not be opened by name.
    pub own_files: Option<OwnFiles>,
    /// Note for the record if the database counts a new block of a growing table as written, in addition to the
    /// write of its content.
    pub growth_is_written: Option<&'static str>,
    /// How the database itself syncs the blocks that [`loadline_model::snapshot::counter::SYNCED_WRITES`] counts; half a
    /// sentence. `None` if it need not sync them soon.
    pub synced_writes: Option<&'static str>,
    /// A query that reads nothing and returns one row: the cost of a statement without its work.
    pub empty_query: &'static str,
}

impl Facts {
    /// Facts of an engine of one node with nothing else of all this.
    pub(crate) fn for_runs(runs: Runs) -> Facts {
        Facts { nodes: 1, runs, ..Facts::default() }
    }
}

/// Wait events of sessions, by what they wait for, as the database's descriptor names them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WaitEvents {
    pub log_sync: Events,
    /// It waits for a place in the log's buffers, or makes a new log file.
    pub log_write: Events,
    /// Those of `log_write` in which it makes a new log file.
    pub log_file: Events,
    /// It waits for a buffer of the block cache, if the database does not count that time.
    pub buffer: Events,
    /// It waits for a lock or latch, if the database does not count that time. Events of the log and of buffers are none of them.
    pub lock: Events,
    pub replica: Events,
    pub idle: Events,
    /// A process of a query does not work on it: it waits for a client or another process of the query, or is idle.
    pub resting: Events,
    /// Those of `resting` in which it has worked, and waits to send its rows.
    pub sending: Events,
}

impl Default for &'static WaitEvents {
    fn default() -> &'static WaitEvents {
        static NONE: LazyLock<WaitEvents> = LazyLock::new(WaitEvents::default);
        &NONE
    }
}

/// Names of wait events; `Lock:*` stands for all that begin so.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Events(Vec<String>);

impl Events {
    pub fn has(&self, event: &str) -> bool {
        self.0.iter().any(|known| match known.strip_suffix('*') {
            Some(begin) => event.starts_with(begin),
            None => known == event,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const N: usize> From<[&str; N]> for Events {
    fn from(names: [&str; N]) -> Events {
        Events(names.map(str::to_owned).into())
    }
}

/// Where a database runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Runs {
    /// In processes of its own, perhaps on another machine.
    #[default]
    Apart,
    /// In the jobs' threads: its CPU time is part of the loadline process's.
    InProcess,
    /// Nowhere: there is only loadline's own loop.
    Nowhere,
}

/// The files of a database, all of them.
#[derive(Debug, Clone)]
pub struct OwnFiles {
    /// Open descriptors of files on which this process holds locks: closing any other descriptor of such a file
    /// releases the locks (fcntl_locking(2)).
    pub open: Vec<Arc<File>>,
    /// Files without locks; they need not exist.
    pub named: Vec<PathBuf>,
}
