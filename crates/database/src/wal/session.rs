//! A job's session with the log, and the session that reads its counters.

use std::sync::Arc;

use loadline_logwriter::{CommitMode, LogError, LogSession, LogWriter};
use loadline_model::Snapshot;
use loadline_model::snapshot::counter;
use loadline_workload::{Arg, Commit, Pool};

use crate::error::TargetError;
use crate::pause::pause;
use crate::role::{ClientSession, Observer};
use crate::work::Work;

const MAX_PARTS: usize = 16;

/// A failure of the log: no further commit is durable until it is opened again.
pub(super) fn failed(e: LogError) -> TargetError {
    TargetError::Lost(format!("the log writer: {e}"))
}

pub(super) struct WalSession {
    session: LogSession,
    mode: CommitMode,
    /// Time by which each commit is made longer, ns.
    pause_ns: u64,
    /// Rows that each statement would touch in a database, and bytes of new content that the database would make for each
    /// row (0: the content is among the arguments).
    rows: Vec<(u64, u32)>,
    /// Source of that content, and how many rows have got some.
    pool: Arc<Pool>,
    made: u64,
    numbers: [[u8; 8]; MAX_PARTS],
}

impl WalSession {
    pub(super) fn open(
        writer: &Arc<LogWriter>,
        work: &Work,
        job: u32,
        pause_ns: u64,
    ) -> Result<WalSession, TargetError> {
        let mode = match work.program.commit {
            Commit::Wait => CommitMode::Wait,
            Commit::Nowait => CommitMode::Nowait,
        };
        let rows = work.program.statements.iter();
        let rows = rows.map(|s| (s.effect.most_rows(), work.renewed_bytes(&s.template))).collect();
        let session = writer.session().map_err(failed)?;
        Ok(WalSession {
            session,
            mode,
            pause_ns,
            rows,
            pool: work.pool_of_job(job),
            made: 0,
            numbers: [[0; 8]; MAX_PARTS],
        })
    }

    /// Appends a record for each of `rows` rows from key `first` on: its key and `bytes` bytes of content.
    fn append_rows(&mut self, first: i64, rows: u64, bytes: u32) -> Result<(), TargetError> {
        for key in first..first.saturating_add_unsigned(rows) {
            let content = self.pool.payload(self.made, bytes);
            self.made += 1;
            self.session.append_parts(&[content, &key.to_le_bytes()]).map_err(failed)?;
        }
        Ok(())
    }
}

impl ClientSession for WalSession {
    /// Appends one record with all arguments; of a statement whose content the database makes, one for each row.
    #[inline]
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let (rows, made) = self.rows.get(statement).copied().unwrap_or_default();
        if made > 0 {
            let first = args.iter().find_map(|arg| if let Arg::Int(i) = arg { Some(*i) } else { None });
            return self.append_rows(first.unwrap_or(0), rows, made).map(|()| rows);
        }
        let n = args.len();
        if n > MAX_PARTS {
            return Err(TargetError::Unsupported(format!("a record of {n} arguments (at most {MAX_PARTS})")));
        }
        for (number, arg) in self.numbers.iter_mut().zip(args) {
            if let Arg::Int(i) = arg {
                *number = i.to_le_bytes();
            }
        }
        let mut parts: [&[u8]; MAX_PARTS] = [&[]; MAX_PARTS];
        for ((part, number), arg) in parts.iter_mut().zip(&self.numbers).zip(args) {
            *part = match arg {
                Arg::Int(_) => number,
                Arg::Bytes(bytes) => bytes,
            };
        }
        self.session.append_parts(&parts[..n]).map_err(failed)?;
        Ok(rows)
    }

    fn bulk(&mut self, _: usize, _: i64, _: u32) -> Result<u64, TargetError> {
        Err(TargetError::Unsupported("the reference log writer has a log and no tables".into()))
    }

    #[inline]
    fn commit(&mut self) -> Result<(), TargetError> {
        self.session.commit(self.mode).map_err(failed)?;
        pause(self.pause_ns);
        Ok(())
    }

    /// Records without a commit record have no effect, so there is nothing to undo.
    fn rollback(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

pub(super) struct WalObserver(pub(super) Arc<LogWriter>);

impl Observer for WalObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let s = self.0.stats();
        // Redo is the jobs' records and commits with their headers. Padding of blocks and files is not redo.
        let redo = s.record_bytes;
        let c = s.commit;
        let counters = [
            (counter::COMMITS, s.commits),
            (counter::REDO_BYTES, redo),
            (counter::REDO_BLOCKS, s.blocks),
            (counter::REDO_WRITES, s.writes),
            (counter::REDO_SYNCS, s.syncs),
            (counter::LOG_WAIT_NS, c.wait_ns + c.write_ns + c.sync_ns + c.wake_ns),
            (counter::LOG_PART_WAIT_NS, c.wait_ns),
            (counter::LOG_PART_COPY_NS, c.copy_ns),
            (counter::LOG_PART_WRITE_NS, c.write_ns),
            (counter::LOG_PART_SYNC_NS, c.sync_ns),
            (counter::LOG_PART_WAKE_NS, c.wake_ns),
            (counter::LOG_GROUPS, s.groups),
            (counter::LOG_FILL_BYTES, s.fill_sum_bytes),
            (counter::LOG_FULL_NS, s.buffer_full_ns),
            ("wal.log_bytes", s.log_bytes),
            ("wal.buffer_full_waits", s.buffer_full_waits),
            ("wal.switches", s.switches),
            ("wal.switch_ns", s.switch_ns),
            ("wal.device_write_ns", s.device_write_ns),
            ("wal.device_sync_ns", s.device_sync_ns),
        ];
        let counters = counters.into_iter().map(|(name, value)| (name.to_owned(), value as f64)).collect();
        Ok(Snapshot { at_ns: loadline_storage::now_ns(), counters, ..Snapshot::default() })
    }
}
