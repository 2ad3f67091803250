//! Figures of a log, and their counters.
//!
//! Each session counts in its own memory; the writer of a group counts the group. Reading adds them up without a
//! lock that commits take.

// Always std's atomics, also under the deterministic scheduler: the protocol depends on no counter.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::{Arc, Mutex};

/// Parts of the time of a commit that waited, ns. Their sum is the duration of the call of `commit`, plus the copying
/// in the transaction's `append`s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// Waiting for the previous write, for other jobs to join, for their copies, for a switch of files.
    pub wait_ns: u64,
    /// Copying the transaction's records to the buffer, with locks and checksums. Without waits for buffer space,
    /// which are in [`Stats::buffer_full_ns`].
    pub copy_ns: u64,
    /// Writing the commit's group.
    pub write_ns: u64,
    /// Making it durable.
    pub sync_ns: u64,
    /// From the durable group to this job running again.
    pub wake_ns: u64,
}

/// Why a group was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A job committed and waits.
    Commit,
    /// The buffer reached [`crate::LogConfig::buffer_fraction`].
    Fraction,
    /// The buffer reached [`crate::LogConfig::at_bytes`].
    Bytes,
    /// The interval [`crate::LogConfig::every`] was over.
    Timer,
    /// A job found no space in the buffer.
    BufferFull,
    /// The program asked for it.
    Flush,
}

impl Trigger {
    /// All of them, in the order of [`Stats::triggers`].
    pub const ALL: [Self; 6] = [Self::Commit, Self::Fraction, Self::Bytes, Self::Timer, Self::BufferFull, Self::Flush];
}

/// Buckets of [`Stats::group_sizes`].
pub const GROUP_BUCKETS: usize = 18;

/// Figures of a log since it was opened. They never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits of both modes, durable or not.
    pub commits: u64,
    /// Commits that waited until they were durable.
    pub commits_waited: u64,
    /// Records appended, commit records not counted.
    pub records: u64,
    /// Redo: bytes of payload appended.
    pub redo_bytes: u64,
    /// Bytes of records and commits in the log: payload, headers, and rounding up, without the padding of blocks and
    /// files. The rules of [`crate::LogConfig`] count these bytes.
    pub record_bytes: u64,
    /// Bytes of the log written: redo, headers, and the padding of blocks and files.
    pub log_bytes: u64,
    /// Groups written.
    pub groups: u64,
    /// Write calls to the device. More than groups if a group wraps around the buffer's end or continues in the next
    /// file.
    pub writes: u64,
    /// Sync calls. Fewer than groups if the size rules put some off ([`crate::LogConfig::put_off_bytes`]).
    pub syncs: u64,
    /// Blocks written, file headers included.
    pub blocks: u64,
    /// Commits in all groups: `grouped_commits / groups` is the mean group size.
    pub grouped_commits: u64,
    /// Groups by size: 0 commits, 1, 2-3, 4-7, ..., 65536 and more.
    pub group_sizes: [u64; GROUP_BUCKETS],
    /// Sum over groups of the bytes in the buffer at the start of the write: `/ groups` is the mean fill.
    pub fill_sum_bytes: u64,
    /// How often a job waited because the buffer was full.
    pub buffer_full_waits: u64,
    /// Time of these waits, ns.
    pub buffer_full_ns: u64,
    /// Sums over the commits that waited.
    pub commit: CommitTimes,
    /// Time writing, counted once per group, ns.
    pub device_write_ns: u64,
    /// Time syncing, counted once per group, ns.
    pub device_sync_ns: u64,
    /// Switches to the next log file.
    pub switches: u64,
    /// Time in switches, including waits for files not ready in time, ns.
    pub switch_ns: u64,
    /// Groups by trigger, in the order of [`Trigger::ALL`].
    pub triggers: [u64; Trigger::ALL.len()],
    /// How often a write was delayed for jobs about to commit.
    pub gathers: u64,
    /// How often some of these jobs did not come in time.
    pub gathers_short: u64,
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name { $(pub(crate) $field: Counter),* }

        impl $name {
            /// Adds the counts of `other`.
            fn take_over(&self, other: &Self) {
                $(self.$field.add(other.$field.get());)*
            }
        }
    };
}

/// A counter with one writer at a time and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds. With one writer at a time, no atomic read-modify-write is needed.
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    /// Counters of one session, on their own cache lines.
    #[repr(align(128))]
    SessionCounts {
        commits, waited, records, redo_bytes, record_bytes, full_waits, full_ns,
        wait_ns, copy_ns, write_ns, sync_ns, wake_ns,
    }
}

/// Counters of groups, updated by the writer.
#[derive(Debug, Default)]
pub(crate) struct GroupCounts {
    pub(crate) log_bytes: Counter,
    pub(crate) groups: Counter,
    pub(crate) writes: Counter,
    pub(crate) syncs: Counter,
    pub(crate) blocks: Counter,
    pub(crate) commits: Counter,
    pub(crate) group_sizes: [Counter; GROUP_BUCKETS],
    pub(crate) fill_sum: Counter,
    pub(crate) write_ns: Counter,
    pub(crate) sync_ns: Counter,
    pub(crate) switches: Counter,
    pub(crate) switch_ns: Counter,
    pub(crate) triggers: [Counter; Trigger::ALL.len()],
    pub(crate) gathers: Counter,
    pub(crate) gathers_short: Counter,
}

impl GroupCounts {
    /// Counts a group of `commits`.
    pub(crate) fn group(&self, trigger: Trigger, commits: u64) {
        self.groups.add(1);
        self.commits.add(commits);
        let bucket = (u64::BITS - commits.leading_zeros()) as usize;
        self.group_sizes[bucket.min(GROUP_BUCKETS - 1)].add(1);
        self.triggers[trigger as usize].add(1);
    }
}

/// Counters of all sessions, ended ones included.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// By address, which one of many thousands is found by.
    open: Mutex<BTreeMap<usize, Arc<SessionCounts>>>,
    ended: SessionCounts,
}

impl Sessions {
    pub(crate) fn begin(&self) -> Arc<SessionCounts> {
        let counts = Arc::new(SessionCounts::default());
        crate::locked(&self.open).insert(Arc::as_ptr(&counts) as usize, Arc::clone(&counts));
        counts
    }

    pub(crate) fn end(&self, counts: &Arc<SessionCounts>) {
        let mut open = crate::locked(&self.open);
        open.remove(&(Arc::as_ptr(counts) as usize));
        self.ended.take_over(counts);
    }

    /// The figures so far.
    pub(crate) fn stats(&self, groups: &GroupCounts) -> Stats {
        let sum = SessionCounts::default();
        {
            let open = crate::locked(&self.open);
            open.values().for_each(|counts| sum.take_over(counts));
            sum.take_over(&self.ended);
        }
        Stats {
            commits: sum.commits.get(),
            commits_waited: sum.waited.get(),
            records: sum.records.get(),
            redo_bytes: sum.redo_bytes.get(),
            record_bytes: sum.record_bytes.get(),
            log_bytes: groups.log_bytes.get(),
            groups: groups.groups.get(),
            writes: groups.writes.get(),
            syncs: groups.syncs.get(),
            blocks: groups.blocks.get(),
            grouped_commits: groups.commits.get(),
            group_sizes: std::array::from_fn(|at| groups.group_sizes[at].get()),
            fill_sum_bytes: groups.fill_sum.get(),
            buffer_full_waits: sum.full_waits.get(),
            buffer_full_ns: sum.full_ns.get(),
            commit: CommitTimes {
                wait_ns: sum.wait_ns.get(),
                copy_ns: sum.copy_ns.get(),
                write_ns: sum.write_ns.get(),
                sync_ns: sum.sync_ns.get(),
                wake_ns: sum.wake_ns.get(),
            },
            device_write_ns: groups.write_ns.get(),
            device_sync_ns: groups.sync_ns.get(),
            switches: groups.switches.get(),
            switch_ns: groups.switch_ns.get(),
            triggers: std::array::from_fn(|at| groups.triggers[at].get()),
            gathers: groups.gathers.get(),
            gathers_short: groups.gathers_short.get(),
        }
    }
}
