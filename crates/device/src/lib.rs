//! What touches storage closely: aligned buffers, files past the page cache, io_uring, mapped
//! persistent memory, and what the kernel says of the filesystem and the device under a directory.
//!
//! Depends on nothing of loadline. Nothing here reads a clock: whoever measures brings one.

mod buffer;
mod cached;
mod error;
mod facts;
mod file;
mod flush;
mod mounts;
mod pmem;
mod ring;
mod sync_ring;
mod sysfs;

pub use buffer::{AlignedBuf, PAGE};
pub use cached::{cached_bytes, drop_cached};
pub use error::{DeviceError, Step};
pub use facts::{Kind, StorageFacts};
pub use file::{Access, DirectAlignment, direct_alignment, open_file, preallocate, set_direct};
pub use flush::Flush;
pub use pmem::{Backing, PmemMap};
pub use ring::{Completion, Direction, Ring, io_uring_available};
pub use sync_ring::SyncRing;
