//! Snapshots of a database's counters, samples of its waits, and figures per second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters of a database at one moment, under its own names (`pg_stat_wal.wal_sync`). Counters of several nodes
/// are added up; but what each node of a cluster does for all of it (redo, changed rows) is that of the mean node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken, in ns on loadline's monotonic clock (origin: start of the process).
    pub at_ns: u64,
    pub counters: BTreeMap<String, f64>,
    /// Those of each node by itself, in the order of the nodes; empty if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<BTreeMap<String, f64>>,
    /// `/proc/stat` of the database's machine, if read through the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc_stat: Option<String>,
}

impl Snapshot {
    /// Growth of counter `name` from `self` to `later`; `None` if either lacks it or it was reset in between.
    pub fn delta(&self, later: &Snapshot, name: &str) -> Option<f64> {
        let grown = later.counters.get(name)? - self.counters.get(name)?;
        (grown >= 0.0).then_some(grown)
    }

    /// Views of which somebody reset the statistics between `self` and `later`: the time of their last reset differs or is new.
    pub fn reset_until<'a>(&self, later: &'a Snapshot) -> impl Iterator<Item = &'a str> {
        let differs = |(name, at): &(&String, &f64)| self.counters.get(*name) != Some(*at);
        later.counters.iter().filter(differs).filter_map(|(name, _)| name.strip_suffix(counter::STATS_RESET))
    }

    pub fn seconds_until(&self, later: &Snapshot) -> f64 {
        later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9
    }
}

/// Number of job sessions in each wait at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSample {
    /// Sessions by wait event (`IO:WALSync`); `CPU` counts running sessions.
    pub sessions: BTreeMap<String, u32>,
    /// Numbers of the jobs whose sessions these are, by wait event, as far as known. Not stored.
    #[serde(skip)]
    pub jobs: BTreeMap<String, Vec<u32>>,
    /// Time from the question to the answer, ns. Not stored.
    #[serde(skip)]
    pub took_ns: u64,
    /// Sessions of others at work; `None` if unknown.
    pub others: Option<u32>,
    /// Background work that runs (`checkpoint`, [`AUTOVACUUM`]); `None` if unknown.
    pub background: Option<Vec<String>>,
}

/// Background work that cleans up after changed rows.
pub const AUTOVACUUM: &str = "autovacuum";

/// Sum of the wait samples of one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitProfile {
    pub samples: u32,
    /// Sessions by wait event, summed over the samples.
    pub sessions: BTreeMap<String, u64>,
    /// Sessions of others at work, summed over the samples; `None` if unknown in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
}

impl WaitProfile {
    pub fn add(&mut self, sample: &WaitSample) {
        let before = if self.samples == 0 { Some(0) } else { self.others };
        self.others = before.zip(sample.others).map(|(sum, n)| sum + u64::from(n));
        self.samples += 1;
        for (event, n) in &sample.sessions {
            *self.sessions.entry(event.clone()).or_default() += u64::from(*n);
        }
    }

    /// Mean number of sessions in the events for which `is_one` is true, `None` without samples.
    pub fn mean_sessions(&self, is_one: impl Fn(&str) -> bool) -> Option<f64> {
        let n = self.sessions.iter().filter(|(event, _)| is_one(event)).map(|(_, n)| *n).fold(0, u64::saturating_add);
        (self.samples > 0).then(|| n as f64 / f64::from(self.samples))
    }
}

/// Figures over time. Column 0 is `t_s`, seconds since the window start (negative during warm-up).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Column ids, e.g. `t_s`, `commit_throughput_tps`, `redo_mib_per_s`, `cpu_busy_pct`.
    pub columns: Vec<String>,
    /// Rows; a cell that was not measured is `None`.
    pub rows: Vec<Vec<Option<f64>>>,
}

impl Series {
    /// All cells of column `id`, or `None` if there is no such column.
    pub fn column(&self, id: &str) -> Option<Vec<Option<f64>>> {
        let at = self.columns.iter().position(|c| c == id)?;
        Some(self.rows.iter().map(|row| row.get(at).copied().flatten()).collect())
    }
}

/// A mean time below this is of no reads or writes of a file, ns: a copy of 8 KiB from the page cache takes about 1 µs.
pub const LEAST_IO_NS: f64 = 300.0;

/// Neutral counters that targets fill beside the database's own, so that figures and checks are computed in one place.
pub mod counter {
    /// End of the database's own counters that are the time of the last reset of a view.
    pub const STATS_RESET: &str = ".stats_reset";
    /// Those that describe the moment, and also fall.
    pub const GAUGES: [&str; 5] = [CLUSTER_SIZE, CLUSTER_VIEW, APPLY_QUEUE, REPLICA_BEHIND_BYTES, REPLICA_BEHIND_NS];

    /// Declares each counter: a constant, whose name in small letters is that of the counter. What it counts is in `counters.toml`.
    macro_rules! counters {
        ($($counter:ident),+ $(,)?) => {
            $(pub const $counter: &str = $crate::named::small!(concat!("loadline.", stringify!($counter)));)+

            #[cfg(test)]
            pub(super) const ALL: &[&str] = &[$($counter),+];
        };
    }

    counters! {
        COMMITS, JOBS_BEFORE, JOBS_AFTER, FAILED_COMMITS, OTHER_SESSIONS_CPU_NS, OTHER_SESSIONS_AT_NS, REDO_BYTES,
        REDO_PAGE_IMAGES, REDO_WRITES, REDO_SYNCS, LOG_WAIT_NS, REDO_BLOCKS, LOG_SWITCHES, UNDO_BYTES, OLD_ROWS,
        LOG_PART_WAIT_NS, LOG_PART_COPY_NS, LOG_PART_WRITE_NS, LOG_PART_SYNC_NS, LOG_PART_WAKE_NS, LOG_GROUPS,
        LOG_FILL_BYTES, LOG_FULL_NS, WRITES, FLASH_WRITES, BLOCK_GETS, BLOCK_READS, READ_BYTES, READ_CALLS, READ_NS,
        BLOCK_WRITES, SYNCED_WRITES, WRITE_CALLS, WRITE_BYTES, REDO_WRITE_NS, REDO_SYNC_NS, BUFFER_WAIT_NS,
        LOCK_WAIT_NS, WRITER_WAIT_NS, ROWS_READ, ROWS_CHANGED, CLUSTER_SIZE, CLUSTER_VIEW, APPLY_QUEUE, CERT_FAILURES,
        APPLY_ABORTS, REPLICATED_BYTES, FLOW_PAUSED_NS, REPLICA_BEHIND_BYTES, REPLICA_BEHIND_NS, CHECKPOINTS,
        WORKERS_PLANNED, WORKERS_CAME, PARALLEL_WHOLE, PARALLEL_LESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_text() {
        let texts: BTreeMap<String, String> = toml::from_str(include_str!("../counters.toml")).unwrap();
        let mut all = counter::ALL.to_vec();
        all.sort_unstable();
        assert_eq!(texts.keys().map(|name| format!("loadline.{name}")).collect::<Vec<_>>(), all);
    }
}
