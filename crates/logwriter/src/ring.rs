//! The buffer: a ring of bytes that jobs copy into side by side and that the device writes from.
//!
//! The one place with unsafe code. What makes it sound is here, in four types that only this
//! module can make:
//!
//! - [`Cursor`] (held under the log's lock) hands out each range of the ring at most once between
//!   two frees: a [`Claim`], which borrows its job's [`Port`].
//! - A [`Port`] publishes where its claim begins until the claim is dropped, that is, until its
//!   bytes are copied.
//! - [`Pending`] is a range of whole blocks ahead of which nothing is claimed any more;
//!   [`Ring::settle`] waits until no port stands inside it and makes it a [`Batch`], whose bytes
//!   are initialised and change no more.
//! - [`Cursor::free`] takes the batch back; only then may its range be claimed again.
#![allow(unsafe_code)]

use std::alloc::{self, Layout as Allocation};
use std::ptr::NonNull;

use crate::Lsn;
use crate::layout::Layout;
use crate::record::{self, Header, Kind};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, back_off};

/// No claim.
const NOWHERE: u64 = u64::MAX;

/// Buffers are aligned to this at least, for devices that write past the page cache.
const ALIGN: usize = 4096;

/// Large buffers are aligned to large pages, which makes copying into them and handing them to a
/// device that reads memory directly cheaper.
const HUGE: usize = 2 << 20;

/// The bytes. See the module's text for who may touch which.
pub(crate) struct Ring {
    bytes: NonNull<u8>,
    allocation: Allocation,
    ports: Mutex<Vec<Arc<Standing>>>,
}

// SAFETY: the pointer is owned, and every access goes through `Claim` (exclusive ranges, handed out
// once by the one `Cursor`) or `Batch` (ranges that no claim stands in), whatever thread holds them.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// Where a port's claim begins. On a cache line of its own: its job writes it at each record.
#[repr(align(128))]
struct Standing(AtomicU64);

/// A job's end of the ring: it makes one claim at a time.
pub(crate) struct Port {
    standing: Arc<Standing>,
    ring: Arc<Ring>,
}

/// A range of the ring that is this job's alone until it is dropped.
pub(crate) struct Claim<'p> {
    pub(crate) start: Lsn,
    space: u64,
    port: &'p Port,
}

/// Whole blocks, claimed to their end, perhaps still being copied to.
pub(crate) struct Pending {
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

/// Whole blocks whose bytes are all there and stay as they are.
pub(crate) struct Batch {
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

/// Hands out the ring. There is one for each ring.
pub(crate) struct Cursor {
    ring: Arc<Ring>,
    layout: Layout,
    log: u32,
    epoch: u32,
    /// Where the next record goes.
    next: Lsn,
    /// The end of what is filled up to a block and may be written.
    sealed: Lsn,
    /// The end of what is durable, whose place in the ring may be used again.
    freed: Lsn,
    batch_is_out: bool,
}

/// A ring of `len` bytes (a multiple of the block) and its cursor, which begins at `start` (a
/// block's beginning). Nothing if there is no memory for it.
pub(crate) fn ring(len: usize, layout: Layout, log: u32, epoch: u32, start: Lsn) -> Option<(Arc<Ring>, Cursor)> {
    let huge = if len >= HUGE { HUGE } else { ALIGN };
    let align = huge.max(usize::try_from(layout.block).ok()?);
    let allocation = Allocation::from_size_align(len, align).ok().filter(|allocation| allocation.size() > 0)?;
    // SAFETY: the allocation's size is not 0.
    let bytes = NonNull::new(unsafe { alloc::alloc(allocation) })?;
    if huge == HUGE {
        // SAFETY: the range is this allocation, page by page from a page's beginning; the advice
        // changes no contents. That it may not be taken is of no account.
        let _ = unsafe { libc::madvise(bytes.as_ptr().cast(), len / ALIGN * ALIGN, libc::MADV_HUGEPAGE) };
    }
    // SAFETY: as long as the allocation; nothing refers to it yet.
    unsafe { bytes.as_ptr().write_bytes(0, len) };
    let ring = Arc::new(Ring { bytes, allocation, ports: Mutex::new(Vec::new()) });
    let cursor = Cursor {
        ring: Arc::clone(&ring),
        layout,
        log,
        epoch,
        next: start,
        sealed: start,
        freed: start,
        batch_is_out: false,
    };
    Some((ring, cursor))
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: allocated in `ring` with this allocation, and nobody holds a claim or batch any
        // more: a claim's port holds the ring, and a batch's bytes are borrowed from it.
        unsafe { alloc::dealloc(self.bytes.as_ptr(), self.allocation) };
    }
}

impl Ring {
    fn len(&self) -> u64 {
        self.allocation.size() as u64
    }

    /// A new port.
    pub(crate) fn port(self: &Arc<Self>) -> Port {
        let standing = Arc::new(Standing(AtomicU64::new(NOWHERE)));
        crate::locked(&self.ports).push(Arc::clone(&standing));
        Port { standing, ring: Arc::clone(self) }
    }

    /// Waits until all bytes of `pending` are copied.
    pub(crate) fn settle(&self, pending: Pending) -> Batch {
        let ports = crate::locked(&self.ports);
        let mut round = 0;
        for port in ports.iter() {
            // Acquire: pairs with the release in `Claim::drop`, so the bytes are seen here.
            while port.0.load(Ordering::Acquire) < pending.to.0 {
                back_off(round);
                round += 1;
            }
        }
        Batch { from: pending.from, to: pending.to }
    }

    /// The longest piece of the batch from `from` that lies in one piece, `most` bytes at most.
    pub(crate) fn piece<'b>(&'b self, batch: &'b Batch, from: Lsn, most: u64) -> &'b [u8] {
        let from = from.clamp(batch.from, batch.to);
        let at = from.0 % self.len();
        let len = most.min(batch.to.0 - from.0).min(self.len() - at);
        // SAFETY: [from, from + len) is inside the batch and [at, at + len) inside the allocation;
        // a batch's bytes are written by nobody until `Cursor::free` takes the batch, which the
        // borrow of it rules out.
        #[expect(clippy::cast_possible_truncation, reason = "both are within the allocation's usize")]
        unsafe {
            std::slice::from_raw_parts(self.bytes.as_ptr().add(at as usize), len as usize)
        }
    }

    /// Copies `bytes` to the position `at`, around the ring's end if need be.
    ///
    /// # Safety
    /// The caller owns the range `[at, at + bytes.len())` alone, and it is no longer than the ring.
    #[expect(clippy::cast_possible_truncation, reason = "both are within the allocation's usize")]
    unsafe fn put(&self, at: Lsn, bytes: &[u8]) {
        let at = (at.0 % self.len()) as usize;
        let first = bytes.len().min(self.len() as usize - at);
        // SAFETY: both copies stay inside the allocation (`first` reaches its end at most, the rest
        // begins at its start and is shorter than it); the ranges are the caller's alone, so they
        // cannot overlap `bytes`, a live reference.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.as_ptr().add(at), first);
            std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), self.bytes.as_ptr(), bytes.len() - first);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        crate::locked(&self.ring.ports).retain(|other| !Arc::ptr_eq(other, &self.standing));
    }
}

impl Claim<'_> {
    /// Copies `bytes` to `offset` within the claim. What does not fit into it is left out.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let room = self.space.saturating_sub(offset);
        let bytes = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        // SAFETY: the range is inside the claim, which is this job's alone; `&mut self` keeps a
        // second copy into it off.
        unsafe { self.port.ring.put(Lsn(self.start.0 + offset), bytes) };
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Release: what was copied is seen by whoever sees that the claim is gone.
        self.port.standing.0.store(NOWHERE, Ordering::Release);
    }
}

impl Cursor {
    /// Where the next record goes.
    pub(crate) fn next(&self) -> Lsn {
        self.next
    }

    /// The end of what may be written.
    pub(crate) fn sealed(&self) -> Lsn {
        self.sealed
    }

    /// The end of what is durable.
    pub(crate) fn freed(&self) -> Lsn {
        self.freed
    }

    /// Bytes that are not durable yet.
    pub(crate) fn fill(&self) -> u64 {
        self.next.0 - self.freed.0
    }

    /// A record's header at `lsn`, of this log and opening.
    pub(crate) fn header(&self, lsn: Lsn, kind: Kind, session: u32, len: u32) -> Header {
        Header { len, lsn, log: self.log, epoch: self.epoch, session, kind }
    }

    /// Whether [`Cursor::claim`] has room for `space` bytes.
    pub(crate) fn fits(&self, space: u64) -> bool {
        let left = self.layout.left_in_file(self.next);
        let filling = if space > left { left } else { 0 };
        self.next.0 + filling + space <= self.freed.0 + self.ring.len()
    }

    /// Claims the next `space` bytes (a multiple of 32, at most half the ring and a file), after
    /// filling up the file if they do not fit into it. Nothing if the ring has no room.
    pub(crate) fn claim<'p>(&mut self, port: &'p mut Port, space: u64) -> Option<Claim<'p>> {
        if !self.fits(space) {
            return None;
        }
        let left = self.layout.left_in_file(self.next);
        self.fill_up(if space > left { left } else { 0 });
        let start = self.next;
        self.next = Lsn(start.0 + space);
        // Release: a later claim's start, read in place of the end of the one before, must also
        // show what that one copied.
        port.standing.0.store(start.0, Ordering::Release);
        Some(Claim { start, space, port })
    }

    /// Fills up the block, so that everything up to here may be written.
    pub(crate) fn seal(&mut self) {
        // The ring and what is free of it are whole blocks, so there is always room for this.
        let end = self.layout.block_up(self.next);
        self.fill_up(end.0 - self.next.0);
        self.sealed = end;
    }

    /// A record without meaning, `len` bytes long, header and all: 0 or at least 32.
    fn fill_up(&mut self, len: u64) {
        let Some(body) = len.checked_sub(record::HEADER as u64) else { return };
        let header = self.header(self.next, Kind::Pad, 0, u32::try_from(body).unwrap_or(u32::MAX));
        let bytes = header.encode(record::payload_sum([]));
        let zeros = [0; 4096];
        let to_block = self.layout.block_up(self.next).0 - self.next.0;
        // Not the whole of a long filling: only its header has a meaning.
        let mut blank = body.min(to_block.saturating_sub(record::HEADER as u64));
        let mut at = self.next.0 + record::HEADER as u64;
        // SAFETY: [next, next + len) is claimed by nobody yet and there is room for it (the caller
        // made sure), `&mut self` is the only way to claim it, and `next` moves past it below.
        unsafe { self.ring.put(self.next, &bytes) };
        while blank > 0 {
            let step = blank.min(zeros.len() as u64);
            #[expect(clippy::cast_possible_truncation, reason = "at most 4096")]
            // SAFETY: as above.
            unsafe {
                self.ring.put(Lsn(at), &zeros[..step as usize]);
            }
            at += step;
            blank -= step;
        }
        self.next = Lsn(self.next.0 + len);
    }

    /// What is sealed and not written yet, if there is any and no other batch is under way.
    pub(crate) fn take(&mut self) -> Option<Pending> {
        if self.batch_is_out || self.sealed == self.freed {
            return None;
        }
        self.batch_is_out = true;
        Some(Pending { from: self.freed, to: self.sealed })
    }

    /// Takes back a batch that is durable: its place in the ring is free.
    pub(crate) fn free(&mut self, batch: Batch) {
        self.freed = batch.to;
        self.batch_is_out = false;
    }
}
