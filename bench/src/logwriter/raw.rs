//! The raw device: one sequential writer of the same bytes, in the same order and to files of the same kind as the log's: made
//! by the log's own maker of files, used in turn, each from its second block on.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadline_logwriter::LogDevice as _;
use loadline_logwriter::device::file::{FileConfig, FileDevice};
use loadline_storage::{Access, AlignedBuf, open_file};

use super::harness::{Contender, Job};
use crate::arena::Outcome;

/// As many files as the log keeps.
const FILES: u64 = 4;
/// Start of the log in its files: they begin with a header of one block.
const FIRST: u64 = 4096;

/// One stream of writes of `bytes` each.
#[derive(Clone)]
pub(super) struct Stream {
    access: Access,
    /// fdatasync after each write.
    fdatasync: bool,
    files: Vec<PathBuf>,
    file_bytes: u64,
    pub(super) bytes: usize,
    /// Writes so far: a slice continues where the previous one ended.
    written: Arc<AtomicU64>,
}

impl Stream {
    /// A stream with files of its own in the empty folder `dir`.
    pub(super) fn new(access: Access, fdatasync: bool, dir: &Path, bytes: usize) -> Outcome<Stream> {
        let device = FileDevice::open(dir, &FileConfig::default())?;
        let mut maker = device.file_maker();
        for file in 0..FILES {
            maker.make(file, None)?;
        }
        let mut files = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Outcome<Vec<_>>>()?;
        files.sort();
        Ok(Stream { access, fdatasync, files, file_bytes: device.file_bytes(), bytes, written: Arc::default() })
    }
}

impl Contender for Stream {
    fn jobs(&self, _: u32) -> Outcome<Vec<Job>> {
        let Stream { access, fdatasync, files, file_bytes, bytes, written } = self.clone();
        let mut memory = AlignedBuf::new(bytes)?;
        let mut open: Option<(usize, File)> = None;
        Ok(vec![Box::new(move |record| {
            memory[..record.len()].copy_from_slice(record);
            let each = (file_bytes - FIRST) / bytes as u64;
            let number = written.fetch_add(1, Ordering::Relaxed);
            let wanted = (number / each) as usize % files.len();
            let file = match open.take().filter(|(current, _)| *current == wanted) {
                Some((_, file)) => file,
                None => open_file(&files[wanted], access)?,
            };
            let (_, file) = open.insert((wanted, file));
            file.write_all_at(&memory, FIRST + number % each * bytes as u64)?;
            if fdatasync {
                file.sync_data()?;
            }
            Ok(())
        })])
    }

    fn durable_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed) * self.bytes as u64
    }
}
