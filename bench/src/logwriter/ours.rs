//! loadline's reference log writer.

use std::path::Path;
use std::sync::Arc;

use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync};
use loadline_logwriter::{CommitMode, LogConfig, LogWriter};

use super::Way;
use super::harness::{Contender, Job};
use crate::arena::Outcome;

/// An open log, and the commit mode of its jobs.
pub(super) struct Ours {
    writer: Arc<LogWriter>,
    mode: CommitMode,
}

impl Ours {
    /// A log with all of its files, as after a while of normal use.
    pub(super) fn open(Way { direct, dsync, .. }: Way, dir: &Path) -> Outcome<Ours> {
        let sync = if dsync { FileSync::Dsync } else { FileSync::Fdatasync };
        let device = FileDevice::open(dir, &FileConfig { sync, direct, ..FileConfig::default() })?;
        let (writer, _) = LogWriter::open(&LogConfig::default(), Box::new(device))?;
        let mut session = writer.session()?;
        let record = vec![7; 1 << 20];
        while writer.stats().switches < 6 {
            session.append(&record)?;
            session.commit(CommitMode::Nowait)?;
        }
        session.flush()?;
        Ok(Ours { writer: Arc::new(writer), mode: CommitMode::Wait })
    }

    /// This log for jobs that do not wait.
    pub(super) fn nowait(&self) -> Ours {
        Ours { writer: Arc::clone(&self.writer), mode: CommitMode::Nowait }
    }
}

impl Contender for Ours {
    fn jobs(&self, count: u32) -> Outcome<Vec<Job>> {
        let job = |_| {
            let (mut session, mode) = (self.writer.session()?, self.mode);
            Ok(Box::new(move |record: &[u8]| {
                session.append(record)?;
                session.commit(mode)?;
                Ok(())
            }) as Job)
        };
        (0..count).map(job).collect()
    }

    fn durable_bytes(&self) -> u64 {
        self.writer.stats().log_bytes
    }
}
