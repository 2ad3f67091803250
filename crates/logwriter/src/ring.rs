//! The buffer: a ring of bytes that jobs copy into in parallel and that the device writes from.
//!
//! Contains unsafe code. Four types, which only this module can make, keep it sound:
//!
//! - [`Cursor`] (under the log's lock) hands out each range of the ring at most once between two frees, as a
//!   [`Claim`], which borrows its job's [`Port`].
//! - A [`Port`] publishes the start of its claim until the claim is dropped, that is, until its bytes are copied.
//! - [`Pending`] is a range of whole blocks in which nothing more is claimed. [`Ring::settle`] waits until no port's
//!   claim is inside it and turns it into a [`Batch`], whose bytes are initialised and do not change.
//! - [`Cursor::free`] takes the batch back; only then can its range be claimed again.
#![allow(unsafe_code)]

use std::alloc::{self, Layout as Allocation};
use std::ptr::NonNull;

use crate::Lsn;
use crate::layout::Layout;
use crate::record::{self, Header, Kind};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, back_off};

/// Position of a port without a claim.
const NO_CLAIM: u64 = u64::MAX;

/// Least alignment of buffers, for `O_DIRECT`.
const ALIGN: usize = 4096;

/// Large buffers are aligned to huge pages: copying and DMA are then cheaper.
const HUGE: usize = 2 << 20;

/// The bytes. The module's text says who may access which.
pub(crate) struct Ring {
    bytes: NonNull<u8>,
    allocation: Allocation,
    ports: Mutex<Vec<Arc<ClaimStart>>>,
}

// SAFETY: the pointer is owned, and every access goes through `Claim` (exclusive ranges, handed out once by the only
// `Cursor`) or `Batch` (ranges without a claim), on any thread.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// Start of a port's claim. On its own cache line: the job writes it for each record.
#[repr(align(128))]
struct ClaimStart(AtomicU64);

/// A job's access to the ring: one claim at a time.
pub(crate) struct Port {
    claim_start: Arc<ClaimStart>,
    ring: Arc<Ring>,
}

/// A range of the ring that belongs to one job until the claim is dropped.
pub(crate) struct Claim<'p> {
    pub(crate) start: Lsn,
    space: u64,
    port: &'p Port,
}

/// Whole blocks, completely claimed, perhaps still being copied to.
pub(crate) struct Pending {
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

/// Whole blocks whose bytes are complete and do not change.
pub(crate) struct Batch {
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

/// Hands out the ring's space. Each ring has one.
pub(crate) struct Cursor {
    ring: Arc<Ring>,
    layout: Layout,
    log: u32,
    epoch: u32,
    /// Position of the next record.
    next: Lsn,
    /// End of the padded blocks, which may be written.
    sealed: Lsn,
    /// End of the written part, whose space in the ring is free.
    freed: Lsn,
    batch_is_out: bool,
}

/// A ring of `len` bytes (a multiple of the block) and its cursor, which starts at `start` (the start of a block).
/// `None` if memory is short.
pub(crate) fn ring(len: usize, layout: Layout, log: u32, epoch: u32, start: Lsn) -> Option<(Arc<Ring>, Cursor)> {
    let huge = if len >= HUGE { HUGE } else { ALIGN };
    let align = huge.max(usize::try_from(layout.block).ok()?);
    let allocation = Allocation::from_size_align(len, align).ok().filter(|allocation| allocation.size() > 0)?;
    // SAFETY: the allocation's size is not 0.
    let bytes = NonNull::new(unsafe { alloc::alloc(allocation) })?;
    if huge == HUGE {
        // SAFETY: the range is whole pages of this allocation, and the advice changes no contents. Failure does not
        // matter.
        let _ = unsafe { libc::madvise(bytes.as_ptr().cast(), len / ALIGN * ALIGN, libc::MADV_HUGEPAGE) };
    }
    // SAFETY: `len` is the size of the allocation; nothing refers to it yet.
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
        // SAFETY: allocated in `ring` with this layout. No claim or batch exists any more: a claim's port holds the
        // ring, and a batch's bytes are borrowed from it.
        unsafe { alloc::dealloc(self.bytes.as_ptr(), self.allocation) };
    }
}

impl Ring {
    fn len(&self) -> u64 {
        self.allocation.size() as u64
    }

    pub(crate) fn port(self: &Arc<Self>) -> Port {
        let claim_start = Arc::new(ClaimStart(AtomicU64::new(NO_CLAIM)));
        crate::locked(&self.ports).push(Arc::clone(&claim_start));
        Port { claim_start, ring: Arc::clone(self) }
    }

    /// Waits until all bytes of `pending` are copied.
    pub(crate) fn settle(&self, pending: Pending) -> Batch {
        let ports = crate::locked(&self.ports);
        let mut round = 0;
        for port in ports.iter() {
            // Acquire: pairs with the release in `Claim::drop`, which makes the copied bytes visible here.
            while port.0.load(Ordering::Acquire) < pending.to.0 {
                back_off(round);
                round += 1;
            }
        }
        Batch { from: pending.from, to: pending.to }
    }

    /// The longest contiguous piece of the batch from `from` on, at most `limit` bytes.
    pub(crate) fn piece<'b>(&'b self, batch: &'b Batch, from: Lsn, limit: u64) -> &'b [u8] {
        let from = from.clamp(batch.from, batch.to);
        let at = from.0 % self.len();
        let len = limit.min(batch.to.0 - from.0).min(self.len() - at);
        // SAFETY: [from, from + len) is inside the batch and [at, at + len) inside the allocation;
        // nobody writes a batch's bytes until `Cursor::free` takes the batch, which the borrow rules out.
        #[expect(clippy::cast_possible_truncation, reason = "both are within the allocation's usize")]
        unsafe {
            std::slice::from_raw_parts(self.bytes.as_ptr().add(at as usize), len as usize)
        }
    }

    /// Copies `bytes` to position `at`, wrapping around the ring's end.
    ///
    /// # Safety
    /// The caller exclusively owns the range `[at, at + bytes.len())`, which is no longer than the ring.
    #[expect(clippy::cast_possible_truncation, reason = "both are within the allocation's usize")]
    unsafe fn put(&self, at: Lsn, bytes: &[u8]) {
        let at = (at.0 % self.len()) as usize;
        let first = bytes.len().min(self.len() as usize - at);
        // SAFETY: both copies stay inside the allocation (`first` ends at its end at the latest, the rest starts at
        // its start and is shorter). The caller owns the ranges, so they cannot overlap `bytes`, a live reference.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.as_ptr().add(at), first);
            std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), self.bytes.as_ptr(), bytes.len() - first);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        crate::locked(&self.ring.ports).retain(|other| !Arc::ptr_eq(other, &self.claim_start));
    }
}

impl Claim<'_> {
    /// Copies `bytes` to `offset` within the claim, cut off at its end.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let left = self.space.saturating_sub(offset);
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        // SAFETY: the range is inside the claim, which belongs to this job; `&mut self` excludes a second copy into it.
        unsafe { self.port.ring.put(Lsn(self.start.0 + offset), bytes) };
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Release: who sees the end of the claim also sees the copied bytes.
        self.port.claim_start.0.store(NO_CLAIM, Ordering::Release);
    }
}

impl Cursor {
    /// Position of the next record.
    pub(crate) fn next(&self) -> Lsn {
        self.next
    }

    /// End of what may be written.
    pub(crate) fn sealed(&self) -> Lsn {
        self.sealed
    }

    /// End of what is written and free in the ring.
    pub(crate) fn freed(&self) -> Lsn {
        self.freed
    }

    /// Bytes in use.
    pub(crate) fn fill(&self) -> u64 {
        self.next.0 - self.freed.0
    }

    /// A record's header at `lsn`, of this log and opening.
    pub(crate) fn header(&self, lsn: Lsn, kind: Kind, session: u32, len: u32) -> Header {
        Header { len, lsn, log: self.log, epoch: self.epoch, session, kind }
    }

    /// Whether [`Cursor::claim`] has `space` free bytes.
    pub(crate) fn fits(&self, space: u64) -> bool {
        let left = self.layout.left_in_file(self.next);
        let padding = if space > left { left } else { 0 };
        self.next.0 + padding + space <= self.freed.0 + self.ring.len()
    }

    /// Claims the next `space` bytes (a multiple of 32, at most half the ring and a file). Pads the current file first
    /// if they do not fit into it. `None` if the ring is full.
    pub(crate) fn claim<'p>(&mut self, port: &'p mut Port, space: u64) -> Option<Claim<'p>> {
        if !self.fits(space) {
            return None;
        }
        let left = self.layout.left_in_file(self.next);
        self.pad(if space > left { left } else { 0 });
        let start = self.next;
        self.next = Lsn(start.0 + space);
        // Release: who reads this start, and so misses the end of the claim before, must still see what that one
        // copied.
        port.claim_start.0.store(start.0, Ordering::Release);
        Some(Claim { start, space, port })
    }

    /// Pads the block, so that everything up to here may be written.
    pub(crate) fn seal(&mut self) {
        // The ring and its free part are whole blocks, so there is always space for the padding.
        let end = self.layout.block_up(self.next);
        self.pad(end.0 - self.next.0);
        self.sealed = end;
    }

    /// Writes a padding record of `len` bytes including its header: 0 or at least 32.
    fn pad(&mut self, len: u64) {
        let Some(body) = len.checked_sub(record::HEADER as u64) else { return };
        let header = self.header(self.next, Kind::Pad, 0, u32::try_from(body).unwrap_or(u32::MAX));
        let bytes = header.encode(record::payload_sum([]));
        let zeros = [0; 4096];
        let to_block = self.layout.block_up(self.next).0 - self.next.0;
        // Zeros up to the block's end are enough: only the header is read back.
        let mut blank = body.min(to_block.saturating_sub(record::HEADER as u64));
        let mut at = self.next.0 + record::HEADER as u64;
        // SAFETY: [next, next + len) is free (checked by the caller) and not claimed yet; only `&mut self` can claim
        // it, and `next` moves past it below.
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

    /// The sealed part that is not written yet; `None` if it is empty or another batch is being written.
    pub(crate) fn take(&mut self) -> Option<Pending> {
        if self.batch_is_out || self.sealed == self.freed {
            return None;
        }
        self.batch_is_out = true;
        Some(Pending { from: self.freed, to: self.sealed })
    }

    /// Takes back a written batch: its space in the ring is free.
    pub(crate) fn free(&mut self, batch: Batch) {
        self.freed = batch.to;
        self.batch_is_out = false;
    }
}
