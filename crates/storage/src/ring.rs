//! Many reads or writes of one file in flight, through io_uring.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, types};

use crate::buffer::AlignedBuf;
use crate::error::DeviceError;

/// Checks that this process may use io_uring, with a ring that completes one operation. The error is a sentence for the user.
pub fn io_uring_available() -> Result<(), String> {
    try_out().map_err(|cause| match cause.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring, or a container's seccomp profile hides it".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "io_uring is forbidden, by the sysctl kernel.io_uring_disabled or by a container's seccomp profile"
                .to_owned()
        }
        Some(libc::ENOMEM) => "io_uring got no memory: raise the limit on locked memory (ulimit -l)".to_owned(),
        _ => format!("io_uring failed: {cause}"),
    })
}

fn try_out() -> io::Result<()> {
    let mut ring = IoUring::new(2)?;
    // SAFETY: a no-op refers to no memory.
    unsafe { ring.submission().push(&opcode::Nop::new().build()) }.map_err(io::Error::other)?;
    loop {
        match ring.submit_and_wait(1) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
            Ok(_) => break,
        }
    }
    let result = ring.completion().next().map(|c| c.result());
    match result {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("an operation was not completed")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

#[derive(Debug)]
pub struct Completion {
    /// Slot, which is free again.
    pub slot: usize,
    /// Bytes transferred (perhaps fewer than a block), or the system's error.
    pub result: io::Result<usize>,
}

/// An io_uring on one file: `depth` slots, each with a buffer and at most one operation in flight. File and buffers are
/// registered with the kernel, which saves look-ups per operation.
///
/// Stays on the thread that created it, so the kernel needs no locks.
pub struct Ring {
    ring: IoUring,
    buffers: ManuallyDrop<Vec<AlignedBuf>>,
    busy: Vec<bool>,
    in_flight: usize,
    registered: bool,
    one_thread: PhantomData<*mut ()>,
}

impl Ring {
    /// A ring on `file` with `depth` buffers of `block` bytes.
    /// `ErrorKind::OutOfMemory`: none for the buffers. If the kernel refuses, [`io_uring_available`] says why.
    pub fn new(file: &File, depth: usize, block: usize) -> io::Result<Ring> {
        let entries = u32::try_from(depth.max(1)).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let ring = build(entries)?;
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let buffers: Result<Vec<AlignedBuf>, DeviceError> = (0..depth).map(|_| AlignedBuf::new(block)).collect();
        let buffers = buffers.map_err(|e| io::Error::new(io::ErrorKind::OutOfMemory, e))?;
        let slices: Vec<libc::iovec> =
            buffers.iter().map(|b| libc::iovec { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() }).collect();
        // Optional: registered memory counts against the limit on locked memory.
        // SAFETY: the buffers live as long as the ring; `drop` frees them when it is idle.
        let registered = unsafe { ring.submitter().register_buffers(&slices) }.is_ok();
        Ok(Ring {
            ring,
            buffers: ManuallyDrop::new(buffers),
            busy: vec![false; depth],
            in_flight: 0,
            registered,
            one_thread: PhantomData,
        })
    }

    /// The buffer of `slot`; `None` while an operation uses it, or if the slot does not exist.
    pub fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        match self.busy.get(slot) {
            Some(false) => self.buffers.get_mut(slot).map(|b| &mut **b),
            _ => None,
        }
    }

    /// Queues a transfer of the whole buffer of `slot` at `offset`. [`Ring::submit_and_wait`] submits it.
    /// `ErrorKind::InvalidInput` if the slot is in use or does not exist.
    pub fn queue(&mut self, direction: Direction, slot: usize, offset: u64) -> io::Result<()> {
        let buffer = match (self.busy.get(slot), self.buffers.get_mut(slot)) {
            (Some(false), Some(buffer)) => buffer,
            _ => return Err(io::Error::from(io::ErrorKind::InvalidInput)),
        };
        let (start, length) = (buffer.as_mut_ptr(), buffer.len() as u32);
        let (file, index) = (types::Fixed(0), slot as u16);
        let entry = match (direction, self.registered) {
            (Direction::Read, true) => opcode::ReadFixed::new(file, start, length, index).offset(offset).build(),
            (Direction::Read, false) => opcode::Read::new(file, start, length).offset(offset).build(),
            (Direction::Write, true) => opcode::WriteFixed::new(file, start, length, index).offset(offset).build(),
            (Direction::Write, false) => opcode::Write::new(file, start, length).offset(offset).build(),
        }
        .user_data(slot as u64);
        // SAFETY: the buffer has `length` bytes and belongs to this slot; `buffer` hands it out only while the slot is
        // free, and it is not freed before the operation has completed.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        if let Some(busy) = self.busy.get_mut(slot) {
            *busy = true;
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Submits the queue and waits until `at_least` operations have completed or a signal arrives.
    pub fn submit_and_wait(&mut self, at_least: usize) -> io::Result<()> {
        match self.ring.submit_and_wait(at_least.min(self.in_flight)) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted || e.raw_os_error() == Some(libc::EBUSY) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Lets the kernel post what has completed, without waiting and without submitting.
    pub fn poll(&mut self) -> io::Result<()> {
        /// `IORING_ENTER_GETEVENTS`: a ring of one thread posts completions only to a call that asks for them.
        const GET_EVENTS: u32 = 1;
        // SAFETY: nothing is submitted, and there is no argument.
        match unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 0, GET_EVENTS, None) } {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted || e.raw_os_error() == Some(libc::EBUSY) => Ok(()),
            Err(e) => Err(e),
        }
    }

    pub fn completed(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let slot = entry.user_data() as usize;
        if let Some(busy) = self.busy.get_mut(slot) {
            *busy = false;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        Some(Completion { slot, result: outcome(entry.result()) })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.submit_and_wait(1).is_err() {
                // The kernel may still write to the buffers, so they are leaked.
                return;
            }
            while self.completed().is_some() {}
        }
        // The kernel frees a closed ring later. Until then a registered file would stay open, and with it the space of a
        // deleted file.
        let _ = self.ring.submitter().unregister_files();
        if self.registered {
            let _ = self.ring.submitter().unregister_buffers();
        }
        // SAFETY: nothing is in flight, and the buffers are not used again.
        unsafe { ManuallyDrop::drop(&mut self.buffers) }
    }
}

pub(crate) fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.saturating_neg()))
}

/// A ring that completes operations in the waiting thread, if the kernel supports it (6.1).
fn build(entries: u32) -> io::Result<IoUring> {
    let cheap = IoUring::builder().setup_coop_taskrun().setup_single_issuer().setup_defer_taskrun().build(entries);
    match cheap {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, PAGE, open_file};

    /// Fails with the reason if io_uring is forbidden, e.g. on a CI machine.
    fn ring(file: &File, depth: usize) -> Ring {
        io_uring_available().unwrap();
        Ring::new(file, depth, PAGE).unwrap()
    }

    #[test]
    fn blocks_go_out_and_come_back_in_any_order() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let access = Access { direct: true, create_new: true, ..Access::default() };
        let file = open_file(&dir.path().join("f"), access).unwrap();
        let mut ring = ring(&file, 4);
        for slot in 0..4 {
            ring.buffer(slot).unwrap().fill(slot as u8 + 1);
            ring.queue(Direction::Write, slot, (slot * PAGE) as u64).unwrap();
        }
        assert!(ring.buffer(0).is_none(), "a buffer in flight was handed out");
        assert!(ring.queue(Direction::Read, 0, 0).is_err() && ring.queue(Direction::Read, 4, 0).is_err());
        let all = |ring: &mut Ring| {
            let mut ended = Vec::new();
            while ring.in_flight > 0 {
                ring.submit_and_wait(1).unwrap();
                while let Some(done) = ring.completed() {
                    assert_eq!(done.result.unwrap(), PAGE);
                    ended.push(done.slot);
                }
            }
            ended.sort_unstable();
            ended
        };
        assert_eq!(all(&mut ring), [0, 1, 2, 3]);
        for slot in 0..4 {
            ring.queue(Direction::Read, slot, ((3 - slot) * PAGE) as u64).unwrap();
        }
        assert_eq!(all(&mut ring), [0, 1, 2, 3]);
        for slot in 0..4 {
            assert!(ring.buffer(slot).unwrap().iter().all(|b| *b == 4 - slot as u8), "slot {slot}");
        }
    }

    #[test]
    fn failures_belong_to_their_operation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, [7; 10]).unwrap();
        let mut ring = ring(&File::open(&path).unwrap(), 2);
        ring.queue(Direction::Read, 0, 0).unwrap();
        ring.queue(Direction::Write, 1, 0).unwrap();
        ring.submit_and_wait(2).unwrap();
        let mut ended: Vec<Completion> = std::iter::from_fn(|| ring.completed()).collect();
        ended.sort_by_key(|c| c.slot);
        assert_eq!(ended[0].result.as_ref().unwrap(), &10, "a short read is reported as such");
        assert_eq!(ended[1].result.as_ref().unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_ring_dropped_in_mid_flight_waits_for_its_operations() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("f");
        let access = Access { direct: true, create_new: true, ..Access::default() };
        let mut ring = ring(&open_file(&path, access).unwrap(), 8);
        for slot in 0..8 {
            ring.buffer(slot).unwrap().fill(9);
            ring.queue(Direction::Write, slot, (slot * PAGE) as u64).unwrap();
        }
        drop(ring);
        assert!(std::fs::read(&path).unwrap().iter().filter(|b| **b == 9).count() == 8 * PAGE);
    }
}
