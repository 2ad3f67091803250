//! loadline's reference log writer.

use std::path::Path;
use std::sync::Arc;

use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync};
use loadline_logwriter::device::{DirectDevice, DirectOptions, DirectSync, Via};
use loadline_logwriter::{CommitMode, LogConfig, LogDevice, LogWriter};

use crate::harness::{Contender, Job, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// Through the page cache, fdatasync.
    Fdatasync,
    /// Through the page cache, `O_DSYNC`.
    Dsync,
    /// `O_DIRECT` and `O_DSYNC`, by system calls or io_uring.
    DirectDsync(Via),
    /// `O_DIRECT` and fdatasync, by system calls or linked in io_uring.
    DirectFdatasync(Via),
}

impl Device {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Device::Fdatasync => "fdatasync",
            Device::Dsync => "O_DSYNC",
            Device::DirectDsync(Via::SystemCalls) => "O_DIRECT + O_DSYNC, pwrite",
            Device::DirectDsync(_) => "O_DIRECT + O_DSYNC, io_uring",
            Device::DirectFdatasync(Via::SystemCalls) => "O_DIRECT + fdatasync, pwrite",
            Device::DirectFdatasync(_) => "O_DIRECT + fdatasync, io_uring",
        }
    }

    fn open(self, dir: &Path) -> Outcome<Box<dyn LogDevice>> {
        let file = |sync| {
            FileDevice::open(dir, &FileConfig { sync, ..FileConfig::default() })
                .map(|d| Box::new(d) as Box<dyn LogDevice>)
        };
        let direct = |sync, via| {
            let options = DirectOptions { sync, via, block_bytes: Some(4096), ..DirectOptions::default() };
            DirectDevice::open(dir, options).map(|d| Box::new(d) as Box<dyn LogDevice>)
        };
        Ok(match self {
            Device::Fdatasync => file(FileSync::Fdatasync),
            Device::Dsync => file(FileSync::Dsync),
            Device::DirectDsync(via) => direct(DirectSync::Dsync, via),
            Device::DirectFdatasync(via) => direct(DirectSync::Fdatasync, via),
        }?)
    }
}

/// An open log, and the commit mode of its jobs.
pub(crate) struct Ours {
    writer: Arc<LogWriter>,
    mode: CommitMode,
}

impl Ours {
    pub(crate) fn open(device: Device, dir: &Path) -> Outcome<Ours> {
        let (writer, _) = LogWriter::open(&LogConfig::default(), device.open(dir)?)?;
        Ok(Ours { writer: Arc::new(writer), mode: CommitMode::Wait })
    }

    /// This log for jobs that do not wait.
    pub(crate) fn nowait(&self) -> Ours {
        Ours { writer: Arc::clone(&self.writer), mode: CommitMode::Nowait }
    }

    /// Writes until every log file exists, as after a while of normal use.
    pub(crate) fn fill(&self) -> Outcome<()> {
        let mut session = self.writer.session()?;
        let record = vec![7; 1 << 20];
        while self.writer.stats().switches < 6 {
            session.append(&record)?;
            session.commit(CommitMode::Nowait)?;
        }
        Ok(session.flush()?)
    }
}

impl Contender for Ours {
    fn jobs(&self, count: usize) -> Outcome<Vec<Job>> {
        let mut jobs: Vec<Job> = Vec::new();
        for _ in 0..count {
            let (mut session, mode) = (self.writer.session()?, self.mode);
            jobs.push(Box::new(move |record| {
                session.append(record)?;
                session.commit(mode)?;
                Ok(())
            }));
        }
        Ok(jobs)
    }

    fn gauge(&self) -> u64 {
        self.writer.stats().log_bytes
    }
}
