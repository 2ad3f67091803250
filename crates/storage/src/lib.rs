//! Low-level storage access: aligned buffers, `O_DIRECT` files, io_uring, mapped persistent memory, facts about the
//! filesystem and device under a directory, the memory that control groups allow, huge pages, and the priority of a thread.
//! [`probe`] measures what this storage allows, and [`now_ns`] is the clock of all that loadline measures.

mod buffer;
mod cached;
mod clock;
mod error;
mod facts;
mod file;
mod flush;
mod huge;
mod identical;
mod memory;
mod mounts;
mod pmem;
mod priority;
pub mod probe;
mod ring;
mod sync_ring;
mod sysfs;

pub use buffer::{AlignedBuf, PAGE};
pub use cached::{cached_bytes, cached_in, drop_cached, drop_range, start_writing};
pub use clock::{now_ns, process_cpu_ns, thread_cpu_ns};
pub use error::{DeviceError, Step};
pub use facts::{Kind, StorageFacts};
pub use file::{Access, DirectAlignment, direct_alignment, open_file, preallocate, set_direct};
pub use flush::Flush;
pub use huge::use_huge_pages;
pub use identical::IdenticalBlocks;
pub use memory::{control_groups, groups_in, memory_limit};
pub use pmem::{Backing, PmemMap};
pub use priority::{before_others, run_only_when_idle};
pub use ring::{Completion, Direction, Ring, io_uring_available};
pub use sync_ring::SyncRing;
