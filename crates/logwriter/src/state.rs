//! What the log's lock guards: who writes, who waits, and who comes next.
//!
//! No I/O, no clock and no waking here: each step says what is to be done once the lock is let go.

use std::collections::VecDeque;

use crate::Lsn;
use crate::config::{LogConfig, SizeRules};
use crate::error::LogError;
use crate::gather::{Gather, Plan};
use crate::ring::{Batch, Cursor, Pending};
use crate::slot::{Slot, Waiter};
use crate::stats::Trigger;
use crate::sync::Arc;

/// What the log is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody writes.
    Idle,
    /// Nobody writes; the next write waits for jobs that are about to commit.
    Gathering(Plan),
    /// Somebody writes, or has been told to.
    Writing,
}

/// What a job that wants its records durable does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// They are.
    Durable,
    /// It writes.
    Lead,
    /// It has been queued and waits for its word; until the given time at most, if any.
    Queued(Option<u64>),
}

/// Who goes on after a group was written.
#[derive(Debug)]
pub(crate) enum Next {
    /// Whoever comes.
    Nobody,
    /// This job, which has been taken out of the queue, writes.
    Lead(Waiter),
    /// This job, which is still in the queue, keeps time for those that gather.
    KeepTime(Waiter),
    /// The background thread writes.
    Keeper,
}

/// What is to be done after a group was written.
pub(crate) struct Finished {
    pub(crate) next: Next,
    /// Their records are durable.
    pub(crate) served: Vec<Waiter>,
    /// There is room for them.
    pub(crate) room: Vec<Waiter>,
}

/// A group that is about to be written.
pub(crate) struct Group {
    pub(crate) pending: Option<Pending>,
    pub(crate) commits: u64,
    pub(crate) fill: u64,
    /// Nobody waits for it: whether it is synced at once is asked when it is written.
    pub(crate) lazy: bool,
    /// Whether it was held back, and if so whether not all came.
    pub(crate) gathered: Option<bool>,
}

/// What is to be done after a lazy group was written.
pub(crate) struct Written {
    /// There is room for them.
    pub(crate) room: Vec<Waiter>,
    /// It is to be synced.
    pub(crate) sync: bool,
}

struct RoomWaiter {
    space: u64,
    waiter: Waiter,
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) cursor: Cursor,
    rules: SizeRules,
    at_commit: bool,
    pub(crate) gather: Gather,
    phase: Phase,
    /// In the order of their records.
    waiters: VecDeque<(Lsn, Waiter)>,
    room: VecDeque<RoomWaiter>,
    /// Synced up to here; written, and free in the ring, up to the cursor's `freed`.
    durable: Lsn,
    /// The most that may be written and not synced.
    put_off_bytes: u64,
    /// Made durable up to here by the background thread, whatever the rules say, and why.
    want: (Lsn, Trigger),
    /// The size rule that sealed what is sealed.
    sealed_by: Trigger,
    commits: u64,
    commits_sealed: u64,
    commits_written: u64,
    stopped: Option<LogError>,
    /// The background thread is to end.
    pub(crate) over: bool,
}

impl State {
    pub(crate) fn new(cursor: Cursor, config: &LogConfig) -> Self {
        Self {
            rules: config.size_rules(),
            at_commit: config.at_commit,
            gather: Gather::new(config.gather),
            durable: cursor.freed(),
            put_off_bytes: config.put_off_bytes,
            phase: Phase::Idle,
            waiters: VecDeque::new(),
            room: VecDeque::new(),
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

    /// Seals by the size rules, after a record was claimed. Whether the background thread is to be
    /// woken.
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

    /// Asks for everything up to now to be written, without waiting for it.
    pub(crate) fn want_all(&mut self, why: Trigger) {
        if self.durable < self.cursor.next() {
            self.want = (self.cursor.next(), why);
        }
    }

    /// A job wants the log durable up to `upto`. `urgent`: it is not left to the rules.
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
            Phase::Idle => urgent || self.at_commit,
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

    /// Until when a job that was asked to keep time does so. Nothing if that is past.
    pub(crate) fn time_to_keep(&self) -> Option<u64> {
        match self.phase {
            Phase::Gathering(plan) => Some(plan.deadline_ns),
            Phase::Idle | Phase::Writing => None,
        }
    }

    /// A job that kept time says that it is `now`. Whether it is to write; it is then out of the
    /// queue.
    pub(crate) fn time_is_up(&mut self, slot: &Arc<Slot>, now_ns: u64) -> bool {
        let due = self.time_to_keep().is_some_and(|deadline| now_ns >= deadline);
        let queued = if due { self.waiters.iter().position(|(_, waiter)| waiter.is(slot)) } else { None };
        if let Some(at) = queued {
            self.waiters.remove(at);
        }
        queued.is_some()
    }

    /// Whether a record of `space` bytes may be claimed: it fits, and nobody waited for room
    /// before (`again`: this job has).
    pub(crate) fn has_room(&self, space: u64, again: bool) -> bool {
        self.cursor.fits(space) && (again || self.room.is_empty())
    }

    /// A job finds no room. Whether it writes itself; else it has been queued.
    pub(crate) fn want_room(&mut self, space: u64, again: bool, waiter: impl FnOnce() -> Waiter) -> bool {
        if self.phase != Phase::Writing {
            return true;
        }
        let waiter = waiter();
        waiter.slot.reset();
        let entry = RoomWaiter { space, waiter };
        if again {
            self.room.push_front(entry)
        } else {
            self.room.push_back(entry)
        }
        false
    }

    /// What the background thread has to write, if anything, and why.
    pub(crate) fn keeper_turn(&mut self) -> Option<Trigger> {
        if self.phase == Phase::Writing || self.stopped.is_some() {
            return None;
        }
        if self.cursor.sealed() > self.cursor.freed() {
            Some(self.sealed_by)
        } else if self.want.0 > self.durable {
            Some(self.want.1)
        } else if self.room.is_empty() {
            None
        } else {
            Some(Trigger::BufferFull)
        }
    }

    /// The caller writes from now on: seals what is to be part of the group and takes it.
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
        let more_wanted = self.want.0 > self.cursor.sealed() || (self.at_commit && waiting > 0);
        if !by_size || more_wanted {
            self.seal();
        }
        let commits = self.commits_sealed - self.commits_written;
        self.commits_written = self.commits_sealed;
        let lazy = (by_size || trigger == Trigger::BufferFull) && waiting == 0 && self.want.0 <= self.durable;
        Group { pending: self.cursor.take(), commits, fill: self.cursor.fill(), lazy, gathered }
    }

    /// A lazy group is written. Its sync is put off while the writer is behind, that is, while the
    /// next group is full already and nobody waits: one sync then does for both.
    pub(crate) fn written(&mut self, batch: Batch) -> Written {
        self.cursor.free(batch);
        let written = self.cursor.freed();
        let behind = self.cursor.sealed() > written && self.waiters.is_empty() && self.want.0 <= self.durable;
        let put_off = behind && written.0 - self.durable.0 < self.put_off_bytes;
        Written { room: self.grant_room(), sync: !put_off }
    }

    /// The group is written and, if `synced`, durable with all before it.
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
        let room = self.grant_room();
        let released = served.len() + usize::from(own_commit);
        Finished { next: self.succeed(released, now_ns), served, room }
    }

    /// Takes those out of the queue for room whom there is room for, all together.
    fn grant_room(&mut self) -> Vec<Waiter> {
        let mut granted = Vec::new();
        let mut sum = 0;
        while let Some(first) = self.room.front() {
            sum += first.space;
            if !self.cursor.fits(sum) {
                break;
            }
            granted.extend(self.room.pop_front().map(|entry| entry.waiter));
        }
        granted
    }

    fn succeed(&mut self, released: usize, now_ns: u64) -> Next {
        self.phase = Phase::Idle;
        let sealed = self.cursor.sealed() > self.cursor.freed();
        let may_gather = self.at_commit && self.room.is_empty() && !(sealed && self.waiters.is_empty());
        if may_gather && let Some(plan) = self.gather.plan(released, self.waiters.len(), now_ns) {
            self.phase = Phase::Gathering(plan);
            return match self.waiters.front() {
                Some((_, first)) => Next::KeepTime(first.clone()),
                None => Next::Nobody,
            };
        }
        if self.at_commit
            && let Some((_, first)) = self.waiters.pop_front()
        {
            self.phase = Phase::Writing;
            return Next::Lead(first);
        }
        if self.keeper_turn().is_some() { Next::Keeper } else { Next::Nobody }
    }

    /// The log stops. All who wait, to be told so.
    pub(crate) fn stop(&mut self, why: LogError) -> Vec<Waiter> {
        self.stopped.get_or_insert(why);
        self.phase = Phase::Idle;
        let waiters = self.waiters.drain(..).map(|(_, waiter)| waiter);
        waiters.chain(self.room.drain(..).map(|entry| entry.waiter)).collect()
    }
}
