//! A job's session on a log: append, commit, flush.

use crate::engine::{Engine, Job};
use crate::error::LogError;
use crate::slot::{Served, Slot};
use crate::stats::CommitTimes;
use crate::sync::Arc;
use crate::{CommitMode, Lsn};

/// The session of one job (thread). What it appends between two commits is one transaction. Sessions share only the
/// buffer.
pub struct LogSession {
    engine: Arc<Engine>,
    job: Job,
    most: u64,
    /// Time copying in the current transaction.
    copy_ns: u64,
    /// When the last commit that waited was durable.
    durable_ns: Option<u64>,
}

impl LogSession {
    pub(crate) fn new(engine: Arc<Engine>, session: u32, most: u64) -> Self {
        let job =
            Job { port: engine.ring.port(), slot: Arc::new(Slot::default()), counts: engine.sessions.begin(), session };
        Self { engine, job, most, copy_ns: 0, durable_ns: None }
    }

    /// Appends a record of redo to the transaction and returns its position. Waits while the buffer is full. The
    /// record is durable with the next commit of this session.
    ///
    /// # Errors
    /// [`LogError::RecordTooBig`]; [`LogError::Stopped`] or [`LogError::Closed`] after the log has stopped.
    pub fn append(&mut self, record: &[u8]) -> Result<Lsn, LogError> {
        self.append_parts(&[record])
    }

    /// Like [`LogSession::append`], for a record in pieces.
    ///
    /// # Errors
    /// As [`LogSession::append`].
    pub fn append_parts(&mut self, parts: &[&[u8]]) -> Result<Lsn, LogError> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let len = if bytes <= self.most { u32::try_from(bytes).ok() } else { None };
        let len = len.ok_or(LogError::RecordTooBig { bytes, most: self.most })?;
        let begun = (self.engine.clock)();
        let full = self.job.counts.full_ns.get();
        let lsn = self.engine.append(&mut self.job, parts, len)?;
        self.copied_since(begun, full);
        self.job.counts.records.add(1);
        self.job.counts.redo_bytes.add(bytes);
        self.job.counts.record_bytes.add(crate::record::space(len as usize));
        Ok(lsn)
    }

    /// Ends the transaction. With [`CommitMode::Wait`] it is durable when this returns. With [`CommitMode::Nowait`] it
    /// becomes durable with a later group, unless the log stops before.
    ///
    /// # Errors
    /// [`LogError::Stopped`] if this or an earlier write or sync failed: the transaction may or may not be durable.
    /// [`LogError::Closed`].
    pub fn commit(&mut self, mode: CommitMode) -> Result<CommitTimes, LogError> {
        let begun = (self.engine.clock)();
        let back = self.durable_ns.take().map(|durable| begun.saturating_sub(durable));
        let full = self.job.counts.full_ns.get();
        let engine = Arc::clone(&self.engine);
        let (guard, upto, wake_keeper) = engine.append_commit(&mut self.job)?;
        if mode == CommitMode::Nowait {
            drop(guard);
            if wake_keeper {
                engine.wake_keeper();
            }
            self.copied_since(begun, full);
            let times = CommitTimes { copy_ns: std::mem::take(&mut self.copy_ns), ..CommitTimes::default() };
            self.job.counts.commits.add(1);
            self.job.counts.record_bytes.add(crate::record::space(0));
            self.job.counts.copy_ns.add(times.copy_ns);
            return Ok(times);
        }
        let joined = self.copied_since(begun, full);
        let served = engine.durable(guard, &self.job, upto, false, back);
        let copy_ns = std::mem::take(&mut self.copy_ns);
        self.job.counts.commits.add(1);
        self.job.counts.record_bytes.add(crate::record::space(0));
        self.job.counts.copy_ns.add(copy_ns);
        let times = self.times(served?, joined, copy_ns);
        let counts = &self.job.counts;
        counts.waited.add(1);
        counts.wait_ns.add(times.wait_ns);
        counts.write_ns.add(times.write_ns);
        counts.sync_ns.add(times.sync_ns);
        counts.wake_ns.add(times.wake_ns);
        Ok(times)
    }

    /// Makes everything that any session appended before this call durable, regardless of the rules.
    ///
    /// # Errors
    /// As [`LogSession::commit`].
    pub fn flush(&mut self) -> Result<(), LogError> {
        let guard = crate::locked(&self.engine.state);
        let upto = guard.cursor.next();
        self.engine.durable(guard, &self.job, upto, true, None).map(|_| ())
    }

    /// Adds the time since `begun`, without waits for buffer space, to the copying. Returns the current time.
    fn copied_since(&mut self, begun: u64, full_before: u64) -> u64 {
        let now = (self.engine.clock)();
        let waited = self.job.counts.full_ns.get() - full_before;
        self.copy_ns += now.saturating_sub(begun).saturating_sub(waited);
        now
    }

    fn times(&mut self, served: Served, joined: u64, copy_ns: u64) -> CommitTimes {
        let now = (self.engine.clock)();
        self.durable_ns = Some(served.done_ns);
        // If the group was already being written when this job joined, only the rest counts.
        let left = served.done_ns.saturating_sub(joined);
        let sync_ns = served.sync_ns.min(left);
        let write_ns = served.write_ns.min(left - sync_ns);
        CommitTimes {
            wait_ns: left - sync_ns - write_ns,
            copy_ns,
            write_ns,
            sync_ns,
            wake_ns: now.saturating_sub(served.done_ns.max(joined)),
        }
    }
}

impl Drop for LogSession {
    fn drop(&mut self) {
        self.engine.sessions.end(&self.job.counts);
    }
}
