//! Writes that are durable one by one, as a log's are.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_device::{AlignedBuf, DeviceError, SyncRing};

use crate::clock::{cpu_ns, now_ns};
use crate::data::Data;
use crate::queue::{Cut, Slice};
use crate::tally::Tally;

/// How a write reaches the kernel.
#[derive(Debug)]
pub(crate) enum Writer {
    /// io_uring: the write with its fdatasync linked to it.
    Ring(Box<SyncRing>),
    /// pwrite and fdatasync.
    Calls,
}

/// Where the next write goes.
#[derive(Debug)]
pub(crate) enum Place<'a> {
    /// The next block of a file of so many bytes, and again from its start.
    Preallocated { next: &'a mut u64, bytes: u64 },
    /// The end of the file, which is cut to nothing when it has so many bytes.
    Growing { limit: u64 },
}

/// What is written.
#[derive(Debug)]
pub(crate) struct SyncWrites<'a> {
    pub(crate) file: &'a File,
    pub(crate) dir: &'a Path,
    pub(crate) size: u64,
    /// Follow each write with fdatasync; else the file was opened with `O_DSYNC`.
    pub(crate) fdatasync: bool,
    pub(crate) stop: &'a AtomicBool,
}

impl SyncWrites<'_> {
    /// A slice. The window holds whole writes, and what lies between them: making the next block
    /// unlike the others. Cutting a grown file is not counted.
    pub(crate) fn slice(
        &self,
        writer: &mut Writer,
        mut place: Place<'_>,
        data: &mut Data,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), Cut> {
        let mut buffer = AlignedBuf::new(self.size as usize).map_err(std::io::Error::other)?;
        data.fill(&mut buffer);
        let mut end_of_file = 0;
        if let Place::Growing { .. } = place {
            self.cut()?;
        }
        let begin = now_ns();
        let (mut opened, mut paused, mut counted, mut cpu) = (0, 0, 0_u64, 0);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Cut::Interrupted);
            }
            let offset = match &mut place {
                Place::Preallocated { next, bytes } => {
                    let at = if **next + self.size > *bytes { 0 } else { **next };
                    **next = at + self.size;
                    at
                }
                Place::Growing { limit } => {
                    if end_of_file + self.size > *limit {
                        let (before, cpu_before) = (now_ns(), cpu_ns());
                        self.cut()?;
                        paused += now_ns() - before;
                        cpu += cpu_ns() - cpu_before;
                        end_of_file = 0;
                    }
                    end_of_file += self.size;
                    end_of_file - self.size
                }
            };
            data.stamp(&mut buffer);
            let before = now_ns();
            self.write(writer, &buffer, offset)?;
            let now = now_ns();
            if opened > 0 {
                tally.latencies.record(now - before);
                counted += 1;
                if now >= opened + paused + slice.window_ns {
                    tally.cpu_ns += cpu_ns().saturating_sub(cpu);
                    tally.cpu_ops += counted;
                    tally.window_ns += now - opened - paused;
                    return Ok(());
                }
            } else if now >= begin + slice.warm_ns {
                (opened, paused, cpu) = (now.max(1), 0, cpu_ns());
            }
        }
    }

    #[inline]
    fn write(&self, writer: &mut Writer, bytes: &[u8], offset: u64) -> Result<(), Cut> {
        let result = match (writer, self.fdatasync) {
            (Writer::Ring(ring), true) => ring.write_sync(self.file, self.dir, bytes, offset),
            (Writer::Ring(ring), false) => ring.write(self.file, self.dir, bytes, offset),
            (Writer::Calls, fdatasync) => {
                self.file.write_all_at(bytes, offset)?;
                if fdatasync {
                    self.file.sync_data()?;
                }
                return Ok(());
            }
        };
        result.map_err(|e| match e {
            DeviceError::Io { cause, .. } => Cut::Io(cause),
            other => Cut::Io(std::io::Error::other(other)),
        })
    }

    /// Empties the file, durably: the next write shall not pay for it.
    fn cut(&self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.sync_all()
    }
}
