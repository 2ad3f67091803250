//! The raw device: one sequential writer of the same bytes, in the same order and to files of the same kind as the log's: made
//! by the log's own maker of files, used in turn, each from its second block on.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadline_storage::{Access, AlignedBuf, open_file};
use loadline_logwriter::LogDevice as _;
use loadline_logwriter::device::file::{FileConfig, FileDevice};

use crate::harness::{Contender, Job, Outcome};

/// As many files as the log keeps.
const FILES: u64 = 4;
/// Start of the log in its files: they begin with a header of one block.
const FIRST: u64 = 4096;

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
    /// pwrite of 1 MiB with `O_DIRECT`, not made durable.
    DirectMib,
    /// pwrite of 4 MiB, about the size to which the log's groups grow.
    DirectLarge,
}

impl Raw {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Raw::Fdatasync => "pwrite + fdatasync",
            Raw::Dsync => "pwrite, O_DSYNC",
            Raw::DirectDsync => "pwrite, O_DIRECT + O_DSYNC",
            Raw::DirectFdatasync => "pwrite, O_DIRECT + fdatasync",
            Raw::DirectMib => "pwrite of 1 MiB, O_DIRECT",
            Raw::DirectLarge => "pwrite of 4 MiB, O_DIRECT",
        }
    }
}

/// One stream of writes of `bytes` each.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) raw: Raw,
    files: Vec<PathBuf>,
    file_bytes: u64,
    pub(crate) bytes: usize,
    /// Writes so far: a slice continues where the previous one ended.
    written: Arc<AtomicU64>,
}

impl Stream {
    /// A stream with files of its own in the new directory `dir`.
    pub(crate) fn new(raw: Raw, dir: &Path, bytes: usize) -> Outcome<Stream> {
        std::fs::create_dir(dir)?;
        let device = FileDevice::open(dir, &FileConfig::default())?;
        let mut maker = device.file_maker();
        for file in 0..FILES {
            maker.make(file, None)?;
        }
        let mut files = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Outcome<Vec<_>>>()?;
        files.sort();
        Ok(Stream { raw, files, file_bytes: device.file_bytes(), bytes, written: Arc::default() })
    }
}

impl Contender for Stream {
    fn jobs(&self, _: usize) -> Outcome<Vec<Job>> {
        let Stream { raw, files, file_bytes, bytes, written } = self.clone();
        let direct = !matches!(raw, Raw::Fdatasync | Raw::Dsync);
        let dsync = matches!(raw, Raw::DirectDsync | Raw::Dsync);
        let mut memory = AlignedBuf::new(bytes)?;
        let mut open: Option<(usize, File)> = None;
        Ok(vec![Box::new(move |record| {
            memory[..record.len()].copy_from_slice(record);
            let each = (file_bytes - FIRST) / bytes as u64;
            let number = written.fetch_add(1, Ordering::Relaxed);
            let wanted = (number / each) as usize % files.len();
            let file = match open.take().filter(|(current, _)| *current == wanted) {
                Some((_, file)) => file,
                None => open_file(&files[wanted], Access { direct, dsync, ..Access::default() })?,
            };
            let (_, file) = open.insert((wanted, file));
            file.write_all_at(&memory, FIRST + number % each * bytes as u64)?;
            if matches!(raw, Raw::Fdatasync | Raw::DirectFdatasync) {
                file.sync_data()?;
            }
            Ok(())
        })])
    }
}
