//! Blocks that repeat, as a device that deduplicates sees them.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::os::unix::fs::FileExt as _;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::{AlignedBuf, PAGE, cached_in, drop_range};

const PART: usize = 1 << 20;

/// Hashes of the blocks of [`PAGE`] bytes of files. Blocks of zeros are not counted: no array stores them, and files are full of them
/// before they are used.
#[derive(Debug, Default)]
pub struct IdenticalBlocks {
    seen: HashSet<u64>,
    blocks: u64,
    pub read_bytes: u64,
}

impl IdenticalBlocks {
    /// Adds the whole aligned blocks of `file`, at most `most` bytes from its beginning. What was not in the page cache before is
    /// dropped from it again.
    pub fn add(&mut self, file: &File, most: u64) -> io::Result<()> {
        // O_DIRECT reads into aligned memory.
        let mut buffer = AlignedBuf::new(PART).map_err(io::Error::other)?;
        // Nothing is read ahead, so what is cached of a part was so before.
        let _ = posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
        let mut at = 0;
        while at < most {
            let part = at..at + PART as u64;
            let was_cached = cached_in(file, &part) != Some(0);
            let wanted = (most - at).min(PART as u64) as usize;
            let read = file.read_at(buffer.get_mut(..wanted).unwrap_or_default(), at)?;
            if !was_cached {
                let _ = drop_range(file, &part);
            }
            for block in buffer.get(..read).unwrap_or_default().chunks_exact(PAGE) {
                if block.iter().any(|byte| *byte != 0) {
                    let mut hash = DefaultHasher::new();
                    hash.write(block);
                    self.seen.insert(hash.finish());
                    self.blocks += 1;
                }
            }
            at += read as u64;
            self.read_bytes += read as u64;
            if read < wanted {
                break;
            }
        }
        Ok(())
    }

    /// Share of the blocks that repeat another one, 0 to 1; `None` without blocks.
    pub fn share(&self) -> Option<f64> {
        (self.blocks > 0).then(|| 1.0 - self.seen.len() as f64 / self.blocks as f64)
    }
}
