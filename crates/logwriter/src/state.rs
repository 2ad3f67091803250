//! The state under the log's lock: who writes, who waits, and who is next.
//!
//! No I/O, no clock and no waking here: each method returns what to do after the lock is released.

use std::collections::VecDeque;

use crate::Lsn;
use crate::config::{LogConfig, SizeRules};
use crate::error::LogError;
use crate::gather::{Gather, Plan};
use crate::ring::{Batch, Cursor, Pending};
use crate::slot::{Slot, Waiter};
use crate::stats::Trigger;
use crate::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody writes.
    Idle,
    /// Nobody writes; the next write is delayed for jobs that are about to commit.
    Gathering(Plan),
    /// Somebody writes, or was asked to.
    Writing,
}

/// Next step of a job that needs its records durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Nothing: they are durable.
    Durable,
    Lead,
    /// Wait for a signal, at most until the given time, if any. The job is in the queue.
    Queued(Option<u64>),
}

/// Who writes the next group.
#[derive(Debug)]
pub(crate) enum Next {
    /// The next job that arrives.
    Nobody,
    /// This job, which was removed from the queue.
    Lead(Waiter),
    /// Undecided: this job, which is still in the queue, watches the deadline of a delayed write.
    KeepTime(Waiter),
    /// The background thread.
    Keeper,
}

/// Next step after a group is written.
pub(crate) struct Finished {
    pub(crate) next: Next,
    /// Jobs whose records are durable.
    pub(crate) served: Vec<Waiter>,
    /// Jobs for which there is buffer space.
    pub(crate) space: Vec<Waiter>,
}

/// A group that is about to be written.
pub(crate) struct Group {
    pub(crate) pending: Option<Pending>,
    pub(crate) commits: u64,
    pub(crate) fill: u64,
    /// Nobody waits for it: [`State::written`] decides whether to sync it at once.
    pub(crate) lazy: bool,
    /// If it was delayed: whether some expected commits did not come.
    pub(crate) gathered: Option<bool>,
}

/// Next step after a lazy group is written.
pub(crate) struct Written {
    /// Jobs for which there is buffer space.
    pub(crate) space: Vec<Waiter>,
    /// Whether to sync it now.
    pub(crate) sync: bool,
}

struct SpaceWaiter {
    space: u64,
    waiter: Waiter,
}

/// The state under the log's lock.
pub(crate) struct State {
    pub(crate) cursor: Cursor,
    rules: SizeRules,
    pub(crate) gather: Gather,
    phase: Phase,
    /// Committing jobs, in the order of their records.
    waiters: VecDeque<(Lsn, Waiter)>,
    space_waiters: VecDeque<SpaceWaiter>,
    /// Synced up to here. Written, and free in the ring, up to the cursor's `freed`.
    durable: Lsn,
    /// Most bytes written and not synced.
    put_off_bytes: u64,
    /// The background thread makes the log durable up to here, for this reason.
    want: (Lsn, Trigger),
    /// The size rule that sealed what is sealed.
    sealed_by: Trigger,
    commits: u64,
    commits_sealed: u64,
    commits_written: u64,
    stopped: Option<LogError>,
    /// Asks the background thread to end.
    pub(crate) over: bool,
}

impl State {
    pub(crate) fn new(cursor: Cursor, config: &LogConfig) -> Self {
        Self {
            rules: config.size_rules(),
            gather: Gather::new(),
            durable: cursor.freed(),
            put_off_bytes: config.put_off_bytes,
            phase: Phase::Idle,
            waiters: VecDeque::new(),
            space_waiters: VecDeque::new(),
            want: (cursor.freed(), Trigger::Timer),
            sealed_by: Trigger::Bytes,
            commits: 0,
            commits_sealed: 0,
            commits_written: 0,
            stopped: None,
            over: false,
            cursor,
        }
    }

    /// Whether the log still takes records.
    pub(crate) fn alive(&self) -> Result<(), LogError> {
        self.stopped.clone().map_or(Ok(()), Err)
    }

    /// Applies the size rules after a record was claimed. Returns whether to wake the background thread.
    pub(crate) fn claimed(&mut self, commit: bool) -> bool {
        self.commits += u64::from(commit);
        let open = self.cursor.next().0.saturating_sub(self.cursor.sealed().0);
        let reached = |rule: Option<u64>| rule.filter(|least| open >= *least);
        let by = match (reached(self.rules.fraction), reached(self.rules.bytes)) {
            (None, None) => return false,
            (Some(fraction), Some(bytes)) if bytes <= fraction => Trigger::Bytes,
            (None, Some(_)) => Trigger::Bytes,
            (Some(_), _) => Trigger::Fraction,
        };
        if self.cursor.sealed() == self.cursor.freed() {
            self.sealed_by = by;
        }
        self.seal();
        self.phase != Phase::Writing
    }

    fn seal(&mut self) {
        self.cursor.seal();
        self.commits_sealed = self.commits;
    }

    /// Asks the background thread to make everything up to now durable.
    pub(crate) fn want_all(&mut self, why: Trigger) {
        if self.durable < self.cursor.next() {
            self.want = (self.cursor.next(), why);
        }
    }

    /// A job needs the log durable up to `upto`. `urgent`: regardless of the rules.
    pub(crate) fn arrive(
        &mut self,
        upto: Lsn,
        urgent: bool,
        now_ns: u64,
        waiter: impl FnOnce() -> Waiter,
    ) -> Result<Arrival, LogError> {
        self.alive()?;
        if self.durable >= upto {
            return Ok(Arrival::Durable);
        }
        let lead = match self.phase {
            Phase::Idle => true,
            Phase::Gathering(plan) => self.waiters.len() + 1 >= plan.goal || now_ns >= plan.deadline_ns,
            Phase::Writing => false,
        };
        if lead {
            return Ok(Arrival::Lead);
        }
        if urgent {
            self.want_all(Trigger::Flush);
        }
        let waiter = waiter();
        waiter.slot.reset();
        let first = self.waiters.is_empty();
        self.waiters.push_back((upto, waiter));
        Ok(Arrival::Queued(match self.phase {
            Phase::Gathering(plan) if first => Some(plan.deadline_ns),
            _ => None,
        }))
    }

    /// The deadline of a delayed write, if there is one.
    pub(crate) fn time_to_keep(&self) -> Option<u64> {
        match self.phase {
            Phase::Gathering(plan) => Some(plan.deadline_ns),
            Phase::Idle | Phase::Writing => None,
        }
    }

    /// Called by the job that keeps time. Returns whether it must write; it is then removed from the queue.
    pub(crate) fn time_is_up(&mut self, slot: &Arc<Slot>, now_ns: u64) -> bool {
        let due = self.time_to_keep().is_some_and(|deadline| now_ns >= deadline);
        let queued = if due { self.waiters.iter().position(|(_, waiter)| waiter.is(slot)) } else { None };
        if let Some(at) = queued {
            self.waiters.remove(at);
        }
        queued.is_some()
    }

    /// Whether a record of `space` bytes may be claimed: it fits, and no other job waits for space (`again`: this job
    /// has waited).
    pub(crate) fn has_space(&self, space: u64, again: bool) -> bool {
        self.cursor.fits(space) && (again || self.space_waiters.is_empty())
    }

    /// A job finds no space. Returns whether it must write; otherwise it is queued.
    pub(crate) fn queue_for_space(&mut self, space: u64, again: bool, waiter: impl FnOnce() -> Waiter) -> bool {
        if self.phase != Phase::Writing {
            return true;
        }
        let waiter = waiter();
        waiter.slot.reset();
        let entry = SpaceWaiter { space, waiter };
        if again {
            self.space_waiters.push_front(entry)
        } else {
            self.space_waiters.push_back(entry)
        }
        false
    }

    /// Whether the background thread must write, and why.
    pub(crate) fn keeper_turn(&mut self) -> Option<Trigger> {
        if self.phase == Phase::Writing || self.stopped.is_some() {
            return None;
        }
        if self.cursor.sealed() > self.cursor.freed() {
            Some(self.sealed_by)
        } else if self.want.0 > self.durable {
            Some(self.want.1)
        } else if self.space_waiters.is_empty() {
            None
        } else {
            Some(Trigger::BufferFull)
        }
    }

    /// Starts a group: the caller writes it. Seals its blocks and takes them.
    pub(crate) fn begin(&mut self, trigger: Trigger, own_commit: bool) -> Group {
        let waiting = self.waiters.len() + usize::from(own_commit);
        let gathered = match self.phase {
            Phase::Gathering(plan) => {
                self.gather.went(plan, waiting);
                Some(waiting < plan.goal)
            }
            Phase::Idle | Phase::Writing => None,
        };
        self.phase = Phase::Writing;
        let by_size = matches!(trigger, Trigger::Bytes | Trigger::Fraction);
        let more_wanted = self.want.0 > self.cursor.sealed() || waiting > 0;
        if !by_size || more_wanted {
            self.seal();
        }
        let commits = self.commits_sealed - self.commits_written;
        self.commits_written = self.commits_sealed;
        let lazy = (by_size || trigger == Trigger::BufferFull) && waiting == 0 && self.want.0 <= self.durable;
        Group { pending: self.cursor.take(), commits, fill: self.cursor.fill(), lazy, gathered }
    }

    /// A lazy group is written. Its sync is put off while the writer is behind (the next group is full, and nobody
    /// waits): one sync then serves both.
    pub(crate) fn written(&mut self, batch: Batch) -> Written {
        self.cursor.free(batch);
        let written = self.cursor.freed();
        let behind = self.cursor.sealed() > written && self.waiters.is_empty() && self.want.0 <= self.durable;
        let put_off = behind && written.0 - self.durable.0 < self.put_off_bytes;
        Written { space: self.grant_space(), sync: !put_off }
    }

    /// Ends a group. If `synced`, it and everything before it is durable.
    pub(crate) fn finish(&mut self, batch: Option<Batch>, synced: bool, own_commit: bool, now_ns: u64) -> Finished {
        if let Some(batch) = batch {
            self.cursor.free(batch);
        }
        if synced {
            self.durable = self.cursor.freed();
        }
        let durable = self.durable;
        let end = self.waiters.partition_point(|(upto, _)| *upto <= durable);
        let served: Vec<Waiter> = self.waiters.drain(..end).map(|(_, waiter)| waiter).collect();
        let space = self.grant_space();
        let released = served.len() + usize::from(own_commit);
        Finished { next: self.succeed(released, now_ns), served, space }
    }

    /// Removes from the queue for space the jobs whose records now fit together.
    fn grant_space(&mut self) -> Vec<Waiter> {
        let mut granted = Vec::new();
        let mut sum = 0;
        while let Some(first) = self.space_waiters.front() {
            sum += first.space;
            if !self.cursor.fits(sum) {
                break;
            }
            granted.extend(self.space_waiters.pop_front().map(|entry| entry.waiter));
        }
        granted
    }

    fn succeed(&mut self, released: usize, now_ns: u64) -> Next {
        self.phase = Phase::Idle;
        let sealed = self.cursor.sealed() > self.cursor.freed();
        let may_gather = self.space_waiters.is_empty() && !(sealed && self.waiters.is_empty());
        if may_gather && let Some(plan) = self.gather.plan(released, self.waiters.len(), now_ns) {
            self.phase = Phase::Gathering(plan);
            return match self.waiters.front() {
                Some((_, first)) => Next::KeepTime(first.clone()),
                None => Next::Nobody,
            };
        }
        if let Some((_, first)) = self.waiters.pop_front() {
            self.phase = Phase::Writing;
            return Next::Lead(first);
        }
        if self.keeper_turn().is_some() { Next::Keeper } else { Next::Nobody }
    }

    pub(crate) fn stop(&mut self, why: LogError) -> Vec<Waiter> {
        self.stopped.get_or_insert(why);
        self.phase = Phase::Idle;
        let waiters = self.waiters.drain(..).map(|(_, waiter)| waiter);
        waiters.chain(self.space_waiters.drain(..).map(|entry| entry.waiter)).collect()
    }
}
