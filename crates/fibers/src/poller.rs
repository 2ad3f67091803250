//! epoll(7), edge-triggered: one call says what came for all sockets.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

/// Events of one call, at least; there is space for one of each socket.
const LEAST: usize = 64;
const READ: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLRDHUP).union(EpollFlags::EPOLLET);

/// The sockets of a loop.
pub(crate) struct Poller {
    epoll: Epoll,
    events: Vec<libc::epoll_event>,
    /// The kernel has epoll_pwait2 (Linux 5.11).
    precise: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(LEAST), precise: true })
    }

    /// Reports from now on when something can be read from `fd`.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(READ, token))?)
    }

    /// Reports when `fd` can be written to as well, or no longer. Not always: the kernel would report each time that the
    /// other side reads.
    pub(crate) fn with_writes(&self, fd: BorrowedFd<'_>, token: u64, writes: bool) -> io::Result<()> {
        let flags = if writes { READ | EpollFlags::EPOLLOUT } else { READ };
        Ok(self.epoll.modify(fd, &mut EpollEvent::new(flags, token))?)
    }

    /// Waits at most `ns` and returns the tokens of all that is ready, of at most `sockets`.
    pub(crate) fn wait(&mut self, ns: u64, sockets: usize) -> io::Result<impl Iterator<Item = u64> + '_> {
        self.events.clear();
        self.events.reserve(sockets.max(LEAST));
        let found = self.wait_for(ns);
        let found = match found {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) && self.precise => {
                self.precise = false;
                self.wait_for(ns)
            }
            other => other,
        };
        let n = match found {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        // SAFETY: the kernel has filled the first `n` of the reserved events.
        unsafe { self.events.set_len(n) };
        Ok(self.events.iter().map(|e| e.u64))
    }

    fn wait_for(&mut self, ns: u64) -> io::Result<usize> {
        let most = libc::c_int::try_from(self.events.capacity()).unwrap_or(libc::c_int::MAX);
        let fd = self.epoll.0.as_raw_fd();
        let n = if self.precise {
            let limit = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
            // By its number: glibc has had the function since 2.35 only.
            // SAFETY: the buffer has space for `most` events; `limit` lives during the call; no signal mask.
            unsafe {
                let (events, limit, no_mask) =
                    (self.events.as_mut_ptr(), &raw const limit, ptr::null::<libc::sigset_t>());
                libc::syscall(libc::SYS_epoll_pwait2, fd, events, most, limit, no_mask, 0_usize)
            }
        } else {
            let ms = libc::c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
            // SAFETY: as above.
            i64::from(unsafe { libc::epoll_wait(fd, self.events.as_mut_ptr(), most, ms) }) as libc::c_long
        };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }
}
