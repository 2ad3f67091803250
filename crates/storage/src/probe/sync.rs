//! Durable writes one by one, like those of a log: of a file, or stores to mapped memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{AlignedBuf, DeviceError, PmemMap, SyncRing};

use crate::clock::{now_ns, process_cpu_ns};
use crate::probe::data::Data;
use crate::probe::plan::Tally;
use crate::probe::queue::{Slice, SliceError};

#[derive(Debug)]
pub(crate) enum WriteAt<'a> {
    /// The next block of a file of `bytes` bytes, wrapping around.
    Preallocated { next: &'a mut u64, bytes: u64 },
    /// The end of the file, which is truncated to 0 when it reaches `limit` bytes.
    Growing { limit: u64 },
}

#[derive(Debug)]
pub(crate) struct SyncWrites<'a> {
    pub(crate) file: &'a File,
    pub(crate) dir: &'a Path,
    pub(crate) size: u64,
    /// Call fdatasync after each write. Otherwise the file was opened with `O_DSYNC`.
    pub(crate) fdatasync: bool,
    pub(crate) stop: &'a AtomicBool,
}

impl SyncWrites<'_> {
    /// A slice. The window consists of whole writes and the preparation of the next block between them. Truncating a grown
    /// file is not counted.
    pub(crate) fn slice(
        &self,
        mut ring: Option<&mut SyncRing>,
        mut place: WriteAt<'_>,
        data: &mut Data,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), SliceError> {
        let mut buffer = AlignedBuf::new(self.size as usize).map_err(std::io::Error::other)?;
        data.fill(&mut buffer);
        let mut end_of_file = 0;
        if let WriteAt::Growing { .. } = place {
            self.truncate()?;
        }
        let begin = now_ns();
        let (mut opened, mut paused, mut counted, mut cpu) = (0, 0, 0_u64, 0);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(SliceError::Interrupted);
            }
            let offset = match &mut place {
                WriteAt::Preallocated { next, bytes } => {
                    let at = if **next + self.size > *bytes { 0 } else { **next };
                    **next = at + self.size;
                    at
                }
                WriteAt::Growing { limit } => {
                    if end_of_file + self.size > *limit {
                        let (before, cpu_before) = (now_ns(), process_cpu_ns());
                        self.truncate()?;
                        paused += now_ns() - before;
                        cpu += process_cpu_ns() - cpu_before;
                        end_of_file = 0;
                    }
                    end_of_file += self.size;
                    end_of_file - self.size
                }
            };
            data.stamp(&mut buffer);
            let before = now_ns();
            self.write(ring.as_deref_mut(), &buffer, offset)?;
            let now = now_ns();
            if opened > 0 {
                tally.latencies.record(now - before);
                counted += 1;
                if now >= opened + paused + slice.window_ns {
                    tally.cpu_ns += process_cpu_ns().saturating_sub(cpu);
                    tally.cpu_ops += counted;
                    tally.window_ns += now - opened - paused;
                    return Ok(());
                }
            } else if now >= begin + slice.warm_ns {
                (opened, paused, cpu) = (now.max(1), 0, process_cpu_ns());
            }
        }
    }

    #[inline]
    fn write(&self, ring: Option<&mut SyncRing>, bytes: &[u8], offset: u64) -> Result<(), SliceError> {
        let result = match (ring, self.fdatasync) {
            (Some(ring), true) => ring.write_sync(self.file, self.dir, bytes, offset),
            (Some(ring), false) => ring.write(self.file, self.dir, bytes, offset),
            (None, fdatasync) => {
                self.file.write_all_at(bytes, offset)?;
                if fdatasync {
                    self.file.sync_data()?;
                }
                return Ok(());
            }
        };
        result.map_err(|e| match e {
            DeviceError::Io { cause, .. } => SliceError::Io(cause),
            other => SliceError::Io(std::io::Error::other(other)),
        })
    }

    /// Truncates the file to 0, durably, so that the next write does not pay for it.
    fn truncate(&self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.sync_all()
    }
}

/// A slice of stores of `block` bytes, consecutive through the whole mapping. Each store starts when the previous one ends,
/// so each latency includes one clock reading.
pub(crate) fn store_slice(
    map: &mut PmemMap,
    block: &[u8],
    slice: Slice,
    stop: &AtomicBool,
    tally: &mut Tally,
) -> Result<(), SliceError> {
    let (size, end) = (block.len() as u64, map.size() as u64);
    let begin = now_ns();
    let (mut opened, mut offset, mut counted, mut cpu) = (0, 0, 0_u64, 0);
    let mut before = begin;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(SliceError::Interrupted);
        }
        if offset + size > end {
            offset = 0;
        }
        map.store(offset, block).map_err(std::io::Error::other)?;
        map.persist(offset, size).map_err(std::io::Error::other)?;
        offset += size;
        let now = now_ns();
        if opened > 0 {
            tally.latencies.record(now - before);
            counted += 1;
            if now >= opened + slice.window_ns {
                tally.cpu_ns += process_cpu_ns().saturating_sub(cpu);
                tally.cpu_ops += counted;
                tally.window_ns += now - opened;
                return Ok(());
            }
        } else if now >= begin + slice.warm_ns {
            (opened, cpu) = (now.max(1), process_cpu_ns());
        }
        before = now;
    }
}
