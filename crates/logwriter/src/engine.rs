//! Group commit: the protocol between jobs and the background thread.
//!
//! ```text
//! job      claim space (lock) - copy (no lock) - commit record (lock) -+- nobody writes: write the
//!                                                                      |  group at once
//!                                                                      +- else queue, park
//! leader   seal the block (lock) - wait for copies - write and sync - remove the served jobs from
//!          the queue, choose the next leader (lock) - wake the next leader first, then the served
//! keeper   writes what the size rules sealed, and at the interval
//! ```
//!
//! The device is never idle while a job waits, except when [`crate::gather`] delays a write. A job that commits
//! alone needs no other thread.

use crate::Lsn;
use crate::device::{DeviceError, DeviceTimes};
use crate::error::LogError;
use crate::files::Files;
use crate::output::Output;
use crate::record::Kind;
use crate::ring::{Batch, Claim, Port, Ring};
use crate::slot::{Served, Signal, Slot, Waiter};
use crate::state::{Arrival, Group, Next, State};
use crate::stats::{GroupCounts, SessionCounts, Sessions, Trigger};
use crate::sync::{Arc, Mutex, MutexGuard, park_for, thread};

/// Nanoseconds since some moment, which never go back. Injected, so that tests are deterministic.
pub type Clock = dyn Fn() -> u64 + Send + Sync;

/// State shared by all sessions of a log.
pub(crate) struct Engine {
    pub(crate) ring: Arc<Ring>,
    pub(crate) state: Mutex<State>,
    pub(crate) output: Mutex<Output>,
    pub(crate) files: Files,
    pub(crate) clock: Box<Clock>,
    pub(crate) groups: GroupCounts,
    pub(crate) sessions: Sessions,
    pub(crate) keeper: std::sync::OnceLock<thread::Thread>,
    pub(crate) every_ns: Option<u64>,
}

/// State of one job (session) in the engine.
pub(crate) struct Job {
    pub(crate) port: Port,
    pub(crate) slot: Arc<Slot>,
    pub(crate) counts: Arc<SessionCounts>,
    pub(crate) session: u32,
}

fn waiter(slot: &Arc<Slot>) -> impl FnOnce() -> Waiter {
    || Waiter { slot: Arc::clone(slot), thread: thread::current() }
}

impl Engine {
    /// Appends one record, given in pieces. Returns its position.
    pub(crate) fn append(&self, job: &mut Job, parts: &[&[u8]], len: u32) -> Result<Lsn, LogError> {
        let sum = crate::record::payload_sum(parts.iter().copied());
        let mut guard = self.lock_with_space(job, crate::record::space(len as usize))?;
        let header = guard.cursor.header(guard.cursor.next(), Kind::Data, job.session, len);
        let mut claim = claim(&mut guard, &mut job.port, header.len)?;
        let header = crate::record::Header { lsn: claim.start, ..header };
        let wake_keeper = guard.claimed(false);
        drop(guard);
        crate::sync::switch_point();
        claim.put(0, &header.encode(sum));
        let mut at = crate::record::HEADER as u64;
        for part in parts {
            claim.put(at, part);
            at += part.len() as u64;
        }
        let start = claim.start;
        drop(claim);
        if wake_keeper {
            self.wake_keeper();
        }
        Ok(start)
    }

    /// Appends a commit record. Returns its end: the transaction is durable when the log is durable up to it.
    pub(crate) fn append_commit<'e>(&'e self, job: &mut Job) -> Result<(MutexGuard<'e, State>, Lsn, bool), LogError> {
        let mut guard = self.lock_with_space(job, crate::record::space(0))?;
        let header = guard.cursor.header(guard.cursor.next(), Kind::Commit, job.session, 0);
        let mut claim = claim(&mut guard, &mut job.port, 0)?;
        let header = crate::record::Header { lsn: claim.start, ..header };
        claim.put(0, &header.encode(crate::record::payload_sum([])));
        drop(claim);
        let upto = guard.cursor.next();
        let wake_keeper = guard.claimed(true);
        Ok((guard, upto, wake_keeper))
    }

    /// Takes the lock once the buffer has `space` free bytes; waits for them, or writes the buffer.
    fn lock_with_space(&self, job: &Job, space: u64) -> Result<MutexGuard<'_, State>, LogError> {
        let mut guard = crate::locked(&self.state);
        guard.alive()?;
        if guard.has_space(space, false) {
            return Ok(guard);
        }
        let begun = (self.clock)();
        let mut again = false;
        while !guard.has_space(space, again) {
            if guard.queue_for_space(space, again, waiter(&job.slot)) {
                self.write_group(guard, Trigger::BufferFull, false)?;
            } else {
                drop(guard);
                // Ignore other signals: one for an earlier wait may come late.
                while !matches!(job.slot.read(), Signal::Space | Signal::Stopped) {
                    thread::park();
                }
            }
            again = true;
            guard = crate::locked(&self.state);
            guard.alive()?;
        }
        job.counts.full_waits.add(1);
        job.counts.full_ns.add((self.clock)().saturating_sub(begun));
        Ok(guard)
    }

    /// Waits until the log is durable up to `upto`, or writes it. `back_ns`: time since this job's previous commit
    /// was durable, if known.
    pub(crate) fn durable(
        &self,
        mut guard: MutexGuard<'_, State>,
        job: &Job,
        upto: Lsn,
        urgent: bool,
        back_ns: Option<u64>,
    ) -> Result<Served, LogError> {
        let now = (self.clock)();
        if let Some(back) = back_ns {
            guard.gather.came_back(back);
        }
        let mut deadline = match guard.arrive(upto, urgent, now, waiter(&job.slot))? {
            // Of a flush alone, which asks for no times: nobody has written a commit that was appended under this lock.
            Arrival::Durable => return Ok(Served::default()),
            Arrival::Lead => {
                let trigger = if urgent { Trigger::Flush } else { Trigger::Commit };
                return self.write_group(guard, trigger, true);
            }
            Arrival::Queued(deadline) => deadline,
        };
        drop(guard);
        loop {
            match job.slot.read() {
                Signal::Durable => return Ok(job.slot.served()),
                Signal::Lead => return self.write_group(crate::locked(&self.state), Trigger::Commit, true),
                Signal::Stopped => {
                    crate::locked(&self.state).alive()?;
                    return Err(LogError::Closed);
                }
                Signal::KeepTime => deadline = crate::locked(&self.state).time_to_keep(),
                Signal::Wait | Signal::Space => match deadline {
                    None => thread::park(),
                    Some(at) => {
                        let now = (self.clock)();
                        if now < at {
                            park_for(at - now);
                        } else {
                            deadline = None;
                            let mut guard = crate::locked(&self.state);
                            if guard.time_is_up(&job.slot, now) {
                                return self.write_group(guard, Trigger::Commit, true);
                            }
                        }
                    }
                },
            }
        }
    }

    /// Writes everything pending as one group, and hands over to the next leader.
    fn write_group(
        &self,
        mut guard: MutexGuard<'_, State>,
        trigger: Trigger,
        own_commit: bool,
    ) -> Result<Served, LogError> {
        guard.alive()?;
        let group = guard.begin(trigger, own_commit);
        drop(guard);
        let unwinding = StopOnUnwind(self);
        let begun = (self.clock)();
        let put = match self.put(group, trigger) {
            Ok(put) => put,
            Err(cause) => return Err(self.stop(LogError::from(cause))),
        };
        drop(unwinding);
        let done_ns = (self.clock)();
        let served = Served { done_ns, write_ns: put.times.write_ns, sync_ns: put.times.sync_ns };
        self.groups.write_ns.add(served.write_ns);
        self.groups.sync_ns.add(served.sync_ns);
        let mut guard = crate::locked(&self.state);
        if own_commit {
            guard.gather.wrote(done_ns.saturating_sub(begun));
        }
        let finished = guard.finish(put.batch, put.synced, own_commit, done_ns);
        drop(guard);
        match finished.next {
            Next::Lead(next) => next.signal(Signal::Lead),
            Next::KeepTime(next) => next.keep_time(),
            Next::Keeper => self.wake_keeper(),
            Next::Nobody => {}
        }
        finished.served.iter().for_each(|waiter| waiter.durable(served));
        finished.space.iter().for_each(|waiter| waiter.signal(Signal::Space));
        Ok(served)
    }

    fn put(&self, group: Group, trigger: Trigger) -> Result<Put, DeviceError> {
        let clock = &*self.clock;
        let Some(pending) = group.pending else {
            // Everything is written; sync what was put off.
            let times = crate::locked(&self.output).sync(clock, &self.groups)?;
            return Ok(Put { batch: None, synced: true, times });
        };
        let bytes = pending.to.0 - pending.from.0;
        let batch = self.ring.settle(pending);
        let mut output = crate::locked(&self.output);
        let mut times = output.write(&self.ring, &batch, !group.lazy, &self.files, clock, &self.groups)?;
        self.count(trigger, &group.gathered, group.commits, group.fill, bytes);
        if !group.lazy {
            return Ok(Put { batch: Some(batch), synced: true, times });
        }
        let written = crate::locked(&self.state).written(batch);
        written.space.iter().for_each(|waiter| waiter.signal(Signal::Space));
        if written.sync {
            times.sync_ns += output.sync(clock, &self.groups)?.sync_ns;
        }
        Ok(Put { batch: None, synced: written.sync, times })
    }

    fn count(&self, trigger: Trigger, gathered: &Option<bool>, commits: u64, fill: u64, bytes: u64) {
        let groups = &self.groups;
        groups.group(trigger, commits);
        groups.log_bytes.add(bytes);
        groups.fill_sum.add(fill);
        if let Some(short) = gathered {
            groups.gathers.add(1);
            groups.gathers_short.add(u64::from(*short));
        }
    }

    /// Stops the log and signals all waiting jobs. Returns the first cause of the stop.
    pub(crate) fn stop(&self, why: LogError) -> LogError {
        let mut guard = crate::locked(&self.state);
        let waiters = guard.stop(why.clone());
        let why = guard.alive().err().unwrap_or(why);
        drop(guard);
        waiters.iter().for_each(|waiter| waiter.signal(Signal::Stopped));
        why
    }

    pub(crate) fn wake_keeper(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }

    /// The background thread: writes what no job waits for.
    pub(crate) fn keep(&self) {
        let mut due = self.every_ns.map(|every| (self.clock)().saturating_add(every));
        loop {
            let now = if due.is_some() { (self.clock)() } else { 0 };
            let mut guard = crate::locked(&self.state);
            if guard.over {
                return;
            }
            if let Some(every) = self.every_ns
                && due.is_some_and(|due| due <= now)
            {
                due = Some(now.saturating_add(every));
                guard.want_all(Trigger::Timer);
            }
            if let Some(trigger) = guard.keeper_turn() {
                // A failure stops the log; the next caller gets the error.
                let _ = self.write_group(guard, trigger, false);
                continue;
            }
            drop(guard);
            match due {
                Some(due) => park_for(due.saturating_sub(now)),
                None => thread::park(),
            }
        }
    }
}

/// Result of writing a group.
struct Put {
    /// Still to be freed.
    batch: Option<Batch>,
    synced: bool,
    times: DeviceTimes,
}

/// Stops the log if the device panics, so that no job waits for ever.
struct StopOnUnwind<'e>(&'e Engine);

impl Drop for StopOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(LogError::Panicked);
        }
    }
}

/// Claims the space of a record of `len` bytes, which must be free.
fn claim<'p>(state: &mut State, port: &'p mut Port, len: u32) -> Result<Claim<'p>, LogError> {
    let space = crate::record::space(len as usize);
    state.cursor.claim(port, space).ok_or(LogError::RecordTooBig { bytes: u64::from(len), most: 0 })
}
