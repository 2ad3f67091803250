//! What a log has done so far, in figures, and where they are counted.
//!
//! Each session counts into memory of its own; who writes a group counts it. Reading sums up and
//! takes no lock that a commit takes.

// Plain atomics, also under a deterministic scheduler: no step of the protocol rests on a count.
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::{Arc, Mutex};

/// Where the time of a commit that waited went, in nanoseconds. The five add up to the time from
/// the call of `commit` to its return, plus what the transaction's `append`s took to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitTimes {
    /// For the write before, for other jobs to join, for their copies, for a switch of files.
    pub wait_ns: u64,
    /// Copying the transaction's records to the buffer, locks and checksums included. Waits for
    /// room in the buffer are not in it, but in [`Stats::buffer_full_ns`].
    pub copy_ns: u64,
    /// Writing the group that the commit was part of.
    pub write_ns: u64,
    /// Syncing it.
    pub sync_ns: u64,
    /// From the group's being durable to this job's running again.
    pub wake_ns: u64,
}

/// Why a group was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A commit that waits.
    Commit,
    /// The share of the buffer was reached.
    Fraction,
    /// The number of bytes was reached.
    Bytes,
    /// The interval was over.
    Timer,
    /// The buffer was full.
    BufferFull,
    /// A flush or a close.
    Flush,
}

impl Trigger {
    /// All of them, in the order of [`Stats::triggers`].
    pub const ALL: [Self; 6] = [Self::Commit, Self::Fraction, Self::Bytes, Self::Timer, Self::BufferFull, Self::Flush];
}

/// Buckets of [`Stats::group_sizes`].
pub const GROUP_BUCKETS: usize = 18;

/// What a log has done since it was opened. All counts only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits, of both modes, whether durable yet or not.
    pub commits: u64,
    /// Commits that waited until they were durable, and are.
    pub commits_waited: u64,
    /// Records appended, commit records not counted.
    pub records: u64,
    /// Redo: bytes of payload appended.
    pub redo_bytes: u64,
    /// What records and commits take of the log: payload, headers, and what rounds a record up; the filling up
    /// of blocks and files is not in it. The rules of [`crate::LogConfig`] count in the same bytes.
    pub record_bytes: u64,
    /// Bytes of the log that were written: redo, its headers, and the filling up of blocks and
    /// files.
    pub log_bytes: u64,
    /// Groups written.
    pub groups: u64,
    /// Calls that wrote to the device. More than groups where one went around the buffer's end or
    /// into the next file.
    pub writes: u64,
    /// Calls that made what was written durable. Fewer than groups where the size rules put them
    /// off ([`crate::LogConfig::put_off_bytes`]).
    pub syncs: u64,
    /// Blocks written, file headers included.
    pub blocks: u64,
    /// Commits in the groups that were written: `grouped_commits / groups` is the mean group.
    pub grouped_commits: u64,
    /// The largest group, in commits.
    pub group_max: u64,
    /// Groups by size: of 0 commits, 1, 2-3, 4-7, ..., 65536 and more.
    pub group_sizes: [u64; GROUP_BUCKETS],
    /// Sum of the bytes in the buffer as each group's write began: `/ groups` is the mean fill.
    pub fill_sum_bytes: u64,
    /// The most that was in it then.
    pub fill_max_bytes: u64,
    /// How often a job found the buffer full and waited.
    pub buffer_full_waits: u64,
    /// How long jobs waited for room in the buffer, in nanoseconds.
    pub buffer_full_ns: u64,
    /// Sums over the commits that waited, as they lived it.
    pub commit: CommitTimes,
    /// Time writing, once for each group, in nanoseconds.
    pub device_write_ns: u64,
    /// Time syncing, once for each group, in nanoseconds.
    pub device_sync_ns: u64,
    /// Switches to the next log file.
    pub switches: u64,
    /// Time in them, waits for a file that was not made ready in time included, in nanoseconds.
    pub switch_ns: u64,
    /// Groups by what made them be written, in the order of [`Trigger::ALL`].
    pub triggers: [u64; Trigger::ALL.len()],
    /// How often a write was held back for jobs that were about to commit.
    pub gathers: u64,
    /// How often of those not all came in time.
    pub gathers_short: u64,
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name { $(pub(crate) $field: Counter),* }

        impl $name {
            /// Adds what `other` counted.
            fn take_over(&self, other: &Self) {
                $(self.$field.add(other.$field.get());)*
            }
        }
    };
}

/// A count with one writer at a time and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds. One writer at a time: no locked instruction is needed.
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn raise(&self, to: u64) {
        if to > self.0.load(Ordering::Relaxed) {
            self.0.store(to, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    /// What one session counts, on cache lines of its own.
    #[repr(align(128))]
    SessionCounts {
        commits, waited, records, redo_bytes, record_bytes, full_waits, full_ns,
        wait_ns, copy_ns, write_ns, sync_ns, wake_ns,
    }
}

/// What is counted once for each group, by who writes it.
#[derive(Debug, Default)]
pub(crate) struct GroupCounts {
    pub(crate) log_bytes: Counter,
    pub(crate) groups: Counter,
    pub(crate) writes: Counter,
    pub(crate) syncs: Counter,
    pub(crate) blocks: Counter,
    pub(crate) commits: Counter,
    pub(crate) group_max: Counter,
    pub(crate) group_sizes: [Counter; GROUP_BUCKETS],
    pub(crate) fill_sum: Counter,
    pub(crate) fill_max: Counter,
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
        self.group_max.raise(commits);
        let bucket = (u64::BITS - commits.leading_zeros()) as usize;
        self.group_sizes[bucket.min(GROUP_BUCKETS - 1)].add(1);
        self.triggers[trigger as usize].add(1);
    }
}

/// The counts of all sessions, those that ended included.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<Vec<Arc<SessionCounts>>>,
    ended: SessionCounts,
}

impl Sessions {
    pub(crate) fn begin(&self) -> Arc<SessionCounts> {
        let counts = Arc::new(SessionCounts::default());
        crate::locked(&self.open).push(Arc::clone(&counts));
        counts
    }

    pub(crate) fn end(&self, counts: &Arc<SessionCounts>) {
        let mut open = crate::locked(&self.open);
        open.retain(|other| !Arc::ptr_eq(other, counts));
        self.ended.take_over(counts);
    }

    /// Sums up.
    pub(crate) fn stats(&self, groups: &GroupCounts) -> Stats {
        let sum = SessionCounts::default();
        {
            let open = crate::locked(&self.open);
            open.iter().for_each(|counts| sum.take_over(counts));
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
            group_max: groups.group_max.get(),
            group_sizes: std::array::from_fn(|at| groups.group_sizes[at].get()),
            fill_sum_bytes: groups.fill_sum.get(),
            fill_max_bytes: groups.fill_max.get(),
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
