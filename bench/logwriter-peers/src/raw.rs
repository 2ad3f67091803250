//! The raw device: one sequential writer of the same bytes to a file that was written before.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadline_device::{Access, AlignedBuf, open_file};

use crate::harness::{Contender, Job, Outcome};

/// As much as the log writer's four files.
const FILE_BYTES: u64 = 256 << 20;

/// How each write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// pwrite, then fdatasync.
    Fdatasync,
    /// pwrite with `O_DSYNC`.
    Dsync,
    /// pwrite with `O_DIRECT` and `O_DSYNC`.
    DirectDsync,
    /// pwrite with `O_DIRECT`, then fdatasync.
    DirectFdatasync,
    /// pwrite with `O_DIRECT`, not made durable: the rate of sequential writes.
    Direct,
}

impl Raw {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Raw::Fdatasync => "pwrite + fdatasync",
            Raw::Dsync => "pwrite, O_DSYNC",
            Raw::DirectDsync => "pwrite, O_DIRECT + O_DSYNC",
            Raw::DirectFdatasync => "pwrite, O_DIRECT + fdatasync",
            Raw::Direct => "pwrite, O_DIRECT",
        }
    }
}

/// Creates the file of all raw streams, filled and synced.
pub(crate) fn prepare(dir: &Path) -> Outcome<()> {
    let file = File::options().create_new(true).write(true).mode(0o600).open(dir.join("raw"))?;
    let bytes = crate::harness::random(99, 1 << 20);
    for at in (0..FILE_BYTES).step_by(1 << 20) {
        file.write_all_at(&bytes, at)?;
    }
    Ok(file.sync_all()?)
}

/// One stream of writes of `bytes` each.
pub(crate) struct Stream {
    raw: Raw,
    path: PathBuf,
    bytes: usize,
    /// End of the previous slice.
    at: Arc<AtomicU64>,
}

impl Stream {
    pub(crate) fn new(raw: Raw, dir: &Path, bytes: usize) -> Stream {
        Stream { raw, path: dir.join("raw"), bytes, at: Arc::default() }
    }
}

impl Contender for Stream {
    fn jobs(&self, _: usize) -> Outcome<Vec<Job>> {
        let (raw, bytes, at) = (self.raw, self.bytes as u64, Arc::clone(&self.at));
        let direct = matches!(raw, Raw::DirectDsync | Raw::DirectFdatasync | Raw::Direct);
        let dsync = matches!(raw, Raw::DirectDsync | Raw::Dsync);
        let file = open_file(&self.path, Access { direct, dsync, ..Access::default() })?;
        let mut memory = AlignedBuf::new(self.bytes)?;
        Ok(vec![Box::new(move |record| {
            memory[..record.len()].copy_from_slice(record);
            let place = at.fetch_add(bytes, Ordering::Relaxed) % (FILE_BYTES / bytes * bytes);
            file.write_all_at(&memory, place)?;
            if matches!(raw, Raw::Fdatasync | Raw::DirectFdatasync) {
                file.sync_data()?;
            }
            Ok(())
        })])
    }
}
