//! Log devices: the trait that the engine writes through, and its implementations.
//!
//! A device holds *log files*, numbered from 0, all of one size ([`LogDevice::file_bytes`]) and laid out in
//! blocks ([`LogDevice::block_bytes`]). The engine owns the device and calls it from one thread at a time, in
//! this order:
//!
//! ```text
//! file_maker()                            once, before anything is written
//! files(), read(file, offset, ..)*        recovery
//! open_file(n)                            then for n, n+1, n+2, ...
//!   write | write_and_sync | sync         blocks of file n, each block written once; many writes
//!                                         may come between two syncs
//! ```
//!
//! Everything written to file `n` is synced before `open_file(n + 1)` is called. The [`FileMaker`] runs on its
//! own thread and prepares files ahead of use, so that a switch of files costs one `open`.
//!
//! After an error from `open_file`, `write`, `sync` or `write_and_sync` the engine writes nothing more to the
//! device. What is on it is known only after the log is opened again and recovered.

mod directory;
#[cfg(test)]
mod end_to_end;
mod error;
pub mod file;
mod pmem;
mod replicas;
mod shared_disk;
mod standby;
#[cfg(test)]
pub(crate) mod testing;

pub use error::DeviceError;
pub use pmem::PmemDevice;
pub use replicas::{Member, Replicas, Rule};
pub use standby::{Standby, open_standby, over_tcp};

/// Durations of the two halves of one durable write, ns of `CLOCK_MONOTONIC`.
///
/// A device that writes and syncs in one step (`O_DSYNC`, linked io_uring entries, persistent memory, a
/// standby) reports the whole as `sync_ns`, and as `write_ns` only the time to hand over the bytes (0 if there
/// is no such step).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Handing over the bytes.
    pub write_ns: u64,
    /// Making them durable.
    pub sync_ns: u64,
}

/// A place for a log. See the [module](self) for the order of calls.
pub trait LogDevice: Send {
    /// Block size, bytes: a power of two from 512 B to 64 KiB, and the smallest write. Addresses,
    /// offsets and lengths of writes are multiples of it.
    fn block_bytes(&self) -> usize;

    /// Size of each log file, bytes: a multiple of the block, at least 4 blocks.
    fn file_bytes(&self) -> u64;

    /// The maker of log files. Called once, before the first `open_file`.
    fn file_maker(&self) -> Box<dyn FileMaker>;

    /// Makes `file` the current file. The [`FileMaker`] has usually prepared it, in this process or an earlier
    /// one; otherwise the device creates it.
    fn open_file(&mut self, file: u64) -> Result<(), DeviceError>;

    /// Writes whole blocks to the current file at `offset`. They are durable after the next `sync`, or earlier.
    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError>;

    /// Makes everything written to the current file durable.
    fn sync(&mut self) -> Result<(), DeviceError>;

    /// Writes whole blocks, and makes them and all earlier writes durable. `now` is the clock that times the
    /// two halves, ns.
    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        write_then_sync(self, offset, blocks, now(), now)
    }

    /// The numbers of all log files, in any order, including prepared and unused ones.
    fn files(&self) -> Result<Vec<u64>, DeviceError>;

    /// Reads `file` from `offset`, *from the device*, not from a cache that may hold a failed write. Returns
    /// the number of bytes read, which may be fewer than asked; 0 at the end of the file.
    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError>;

    /// One line for people: kind, place, how it syncs, block size.
    fn describe(&self) -> String;
}

/// [`LogDevice::write`], then [`LogDevice::sync`], each timed, from `start` on.
fn write_then_sync<D: LogDevice + ?Sized>(
    device: &mut D,
    offset: u64,
    blocks: &[u8],
    start: u64,
    now: &dyn Fn() -> u64,
) -> Result<DeviceTimes, DeviceError> {
    device.write(offset, blocks)?;
    let written = now();
    device.sync()?;
    Ok(DeviceTimes { write_ns: written.saturating_sub(start), sync_ns: now().saturating_sub(written) })
}

/// Prepares log files ahead of use, on a thread beside the device's.
pub trait FileMaker: Send {
    /// Prepares `file`: its full length ([`LogDevice::file_bytes`]) is allocated *and* written, so that a later
    /// sync changes no metadata, and its name is durable. Reuses `recycle`, a file that is no longer needed, if
    /// given. Does nothing if the file is ready. The contents do not matter: the engine recognises old bytes.
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError>;
}
