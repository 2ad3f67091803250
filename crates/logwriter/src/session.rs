//! A job's hold on a log.

use crate::engine::{Engine, Seat};
use crate::error::LogError;
use crate::slot::{Served, Slot};
use crate::stats::CommitTimes;
use crate::sync::Arc;
use crate::{Commit, Lsn};

/// One job's transactions: what is appended between two commits is one. Each job (thread) has its
/// own; sessions share nothing but the buffer.
pub struct Session {
    engine: Arc<Engine>,
    seat: Seat,
    most: u64,
    /// Copying of the transaction so far.
    copy_ns: u64,
    /// When the last commit that waited was durable.
    durable_ns: Option<u64>,
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, session: u32, most: u64) -> Self {
        let seat = Seat {
            port: engine.ring.port(),
            slot: Arc::new(Slot::default()),
            counts: engine.sessions.begin(),
            session,
        };
        Self { engine, seat, most, copy_ns: 0, durable_ns: None }
    }

    /// Appends a record of redo to the transaction and returns its position. Waits while the
    /// buffer is full. The record is durable when a later commit of this session is.
    ///
    /// # Errors
    /// [`LogError::RecordTooBig`]; [`LogError::Stopped`] and [`LogError::Closed`] once the log is.
    pub fn append(&mut self, record: &[u8]) -> Result<Lsn, LogError> {
        self.append_parts(&[record])
    }

    /// Like [`Session::append`], for a record that lies in pieces.
    ///
    /// # Errors
    /// As [`Session::append`].
    pub fn append_parts(&mut self, parts: &[&[u8]]) -> Result<Lsn, LogError> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let len = u32::try_from(bytes).ok().filter(|_| bytes <= self.most);
        let len = len.ok_or(LogError::RecordTooBig { bytes, most: self.most })?;
        let begun = self.engine.clock.now_ns();
        let full = self.seat.counts.full_ns.get();
        let lsn = self.engine.append(&mut self.seat, parts, len)?;
        self.copied_since(begun, full);
        self.seat.counts.records.add(1);
        self.seat.counts.redo_bytes.add(bytes);
        self.seat.counts.record_bytes.add(crate::record::space(len as usize));
        Ok(lsn)
    }

    /// Ends the transaction. With [`Commit::Wait`] it is durable when this returns; with
    /// [`Commit::Nowait`] it will be after a later group, unless the log stops before.
    ///
    /// # Errors
    /// [`LogError::Stopped`] if the write or sync failed, this time or before: the transaction may
    /// or may not be durable. [`LogError::Closed`].
    pub fn commit(&mut self, mode: Commit) -> Result<CommitTimes, LogError> {
        let begun = self.engine.clock.now_ns();
        let back = self.durable_ns.take().map(|durable| begun.saturating_sub(durable));
        let full = self.seat.counts.full_ns.get();
        let engine = Arc::clone(&self.engine);
        let (guard, upto, wake_keeper) = engine.append_commit(&mut self.seat)?;
        if mode == Commit::Nowait {
            drop(guard);
            if wake_keeper {
                engine.wake_keeper();
            }
            self.copied_since(begun, full);
            let times = CommitTimes { copy_ns: std::mem::take(&mut self.copy_ns), ..CommitTimes::default() };
            self.seat.counts.commits.add(1);
            self.seat.counts.record_bytes.add(crate::record::space(0));
            self.seat.counts.copy_ns.add(times.copy_ns);
            return Ok(times);
        }
        let joined = self.copied_since(begun, full);
        let served = engine.durable(guard, &self.seat, upto, false, back);
        let copy_ns = std::mem::take(&mut self.copy_ns);
        self.seat.counts.commits.add(1);
        self.seat.counts.record_bytes.add(crate::record::space(0));
        self.seat.counts.copy_ns.add(copy_ns);
        let times = self.times(served?, joined, copy_ns);
        let counts = &self.seat.counts;
        counts.waited.add(1);
        counts.wait_ns.add(times.wait_ns);
        counts.write_ns.add(times.write_ns);
        counts.sync_ns.add(times.sync_ns);
        counts.wake_ns.add(times.wake_ns);
        Ok(times)
    }

    /// Waits until everything that any session appended before this call is durable, whatever the
    /// rules say.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub fn flush(&mut self) -> Result<(), LogError> {
        let guard = crate::locked(&self.engine.state);
        let upto = guard.cursor.next();
        self.engine.durable(guard, &self.seat, upto, true, None).map(|_| ())
    }

    /// Counts the copying since `begun`, without the waits for room in it, and returns the time.
    fn copied_since(&mut self, begun: u64, full_before: u64) -> u64 {
        let now = self.engine.clock.now_ns();
        let waited = self.seat.counts.full_ns.get() - full_before;
        self.copy_ns += now.saturating_sub(begun).saturating_sub(waited);
        now
    }

    fn times(&mut self, served: Served, joined: u64, copy_ns: u64) -> CommitTimes {
        let now = self.engine.clock.now_ns();
        self.durable_ns = Some(served.done_ns);
        // A group that was under way or done before this job joined cost it only what was left.
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

impl Drop for Session {
    fn drop(&mut self) {
        self.engine.sessions.end(&self.seat.counts);
    }
}
