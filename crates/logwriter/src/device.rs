//! Where a log goes: the trait that every log device meets, and its errors.
//!
//! A device holds *log files*, numbered upwards from 0, each of the same size
//! ([`LogDevice::file_bytes`]) and laid out in blocks ([`LogDevice::block_bytes`]). The engine owns
//! the device and calls it from one thread at a time, in this order:
//!
//! ```text
//! file_maker()                            once, before anything is written
//! files(), read(file, offset, ..)*        recovery
//! open_file(n)                            then for n, n+1, n+2, ...
//!   write | write_and_sync | sync         blocks of file n, each block written once; many writes
//!                                         may come between two syncs
//! ```
//!
//! Everything written to file `n` is synced before `open_file(n + 1)` is called. The
//! [`FileMaker`] lives on a thread of its own and makes files ready ahead of their use, so that a
//! switch of files costs an `open` and no more.
//!
//! After any error from `open_file`, `write`, `sync` or `write_and_sync` the engine makes no
//! further such call on the device: what is on it is found out by recovery, after a reopening.

mod direct;
#[cfg(test)]
mod end_to_end;
mod error;
pub mod fault;
pub mod file;
mod flash;
mod mirror;
mod pmem;
mod replicas;
mod standby;
#[cfg(test)]
pub(crate) mod testing;
mod twins;
mod write_out;

pub use direct::{DirectDevice, DirectOptions, DirectSync, Via};
pub use error::DeviceError;
pub use flash::{FlashOptions, open_flash_log};
pub use mirror::{Durable, MirrorOptions, open_mirror};
pub use pmem::{PmemDevice, PmemOptions};
pub use replicas::{Member, MemberState, Opened, Position, Replicas, Scan, Watch};
pub use standby::{LinkFigures, LinkWatch, Receiver, ReceiverOptions, StandbyOptions, StandbyRule, open_standby};

/// How long the two halves of one durable write took, in nanoseconds of `CLOCK_MONOTONIC`.
///
/// A device that does both at once (`O_DSYNC`, a linked pair of io_uring entries, persistent
/// memory, a standby) reports the whole as `sync_ns` and leaves `write_ns` at what it took to hand
/// the bytes over (0 where there is no such step).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Handing the bytes over.
    pub write_ns: u64,
    /// Making them durable.
    pub sync_ns: u64,
}

/// A place for a log. See the [module's text](self) for the order of calls.
pub trait LogDevice: Send {
    /// The size of a block: a power of two from 512 B to 64 KiB. Every offset and length that the
    /// engine writes is a multiple of it, and every buffer it writes from is aligned to it (and to
    /// 4 KiB at least). A block is the least that is written.
    fn block_bytes(&self) -> usize;

    /// The size of each log file in bytes: a multiple of the block, at least 4 blocks.
    fn file_bytes(&self) -> u64;

    /// What makes log files ready ahead of their use. Called once, before the first `open_file`.
    fn file_maker(&self) -> Box<dyn FileMaker>;

    /// Makes log file `file` the one that is written to. The file has been made ready by the
    /// [`FileMaker`], in this process or in one before it; the device makes it itself if not.
    fn open_file(&mut self, file: u64) -> Result<(), DeviceError>;

    /// Writes whole blocks into the current file at `offset`. Not durable before the next `sync`
    /// (a device may make it durable earlier).
    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError>;

    /// Makes all that was written to the current file durable.
    fn sync(&mut self) -> Result<(), DeviceError>;

    /// Writes whole blocks, and makes them and all that was written before durable. `now` is the
    /// clock to time the two halves with, in nanoseconds.
    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        self.write(offset, blocks)?;
        let written = now();
        self.sync()?;
        Ok(DeviceTimes { write_ns: written.saturating_sub(begun), sync_ns: now().saturating_sub(written) })
    }

    /// The numbers of the log files there are, in any order, ready and unused ones included.
    fn files(&self) -> Result<Vec<u64>, DeviceError>;

    /// Reads from `offset` of log file `file` what is *on the device* (not what a cache holds of a
    /// write that failed), as many bytes as there are, and returns how many. 0 at the file's end.
    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError>;

    /// What the device is, in one line for people: kind, place, how it syncs, block size.
    fn describe(&self) -> String;
}

/// Makes log files ready ahead of their use. Works beside the device, on another thread.
pub trait FileMaker: Send {
    /// Makes file `file` ready: as long as [`LogDevice::file_bytes`], its blocks allocated *and*
    /// written, so that a sync of it changes no metadata, and its name durable. Takes over
    /// `recycle`, a file that nobody needs any more, where one is given. Nothing to do if the file
    /// is there and ready. What a ready file holds is of no account: the engine tells old bytes
    /// from new.
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError>;
}
