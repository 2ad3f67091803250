//! The stacks of all fibers of a thread, in one mapping.

#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::ptr;
use std::rc::Rc;

use corosensei::stack::{Stack, StackPointer};

/// Address space of a stack, bytes, with its guard page. Memory is used only where a session has been: some KiB.
///
/// An odd number of pages: with a power of two the ends of all stacks, where their fibers are, would share a few sets of the
/// CPU's caches, and each switch between fibers would miss them.
const STACK_BYTES: usize = 65 * 4096;
const PAGE: usize = 4096;
/// Stacks that follow each other begin this much deeper in their last page, bytes, for the same reason.
const SHIFT: usize = 5 * 64;
/// `MADV_GUARD_INSTALL` (Linux 6.13): a guard page without a mapping of its own. See madvise(2).
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// One mapping for so many stacks.
#[derive(Debug)]
pub(crate) struct Stacks {
    base: *mut libc::c_void,
    count: usize,
}

impl Stacks {
    /// Maps `count` stacks.
    ///
    /// # Errors
    /// When the kernel refuses the address space or the guard pages.
    pub(crate) fn map(count: usize) -> io::Result<Rc<Stacks>> {
        let count = count.max(1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let bytes = count.checked_mul(STACK_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new anonymous mapping at an address that the kernel chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stacks = Stacks { base, count };
        // Huge pages would make a stack of a few KiB take 2 MiB. An old kernel that refuses has none.
        // SAFETY: the range is this mapping.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        (0..count).try_for_each(|i| stacks.guard(i))?;
        Ok(Rc::new(stacks))
    }

    /// Makes the lowest page of stack `i` a guard page.
    fn guard(&self, i: usize) -> io::Result<()> {
        // SAFETY: `i` is below `count`, so the page is in this mapping, and no stack uses it.
        let refused = unsafe {
            let page = self.base.byte_add(i * STACK_BYTES);
            libc::madvise(page, PAGE, MADV_GUARD_INSTALL) != 0 && libc::mprotect(page, PAGE, libc::PROT_NONE) != 0
        };
        if !refused {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        Err(io::Error::new(
            e.kind(),
            format!("no guard page for stack {i} ({e}): raise vm.max_map_count to more than twice the jobs (sysctl)"),
        ))
    }

    /// Stack `i`.
    ///
    /// # Safety
    /// Nobody else uses it meanwhile.
    pub(crate) unsafe fn get(self: &Rc<Stacks>, i: usize) -> Option<OneStack> {
        let limit = NonZeroUsize::new(self.base as usize + i * STACK_BYTES).filter(|_| i < self.count)?;
        let base = limit.saturating_add(STACK_BYTES - i * SHIFT % (PAGE / 2));
        Some(OneStack { limit, base, _mapping: Rc::clone(self) })
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and every stack keeps it alive.
        unsafe { libc::munmap(self.base, self.count * STACK_BYTES) };
    }
}

/// A stack of [`Stacks`], which it keeps mapped.
pub(crate) struct OneStack {
    limit: NonZeroUsize,
    base: NonZeroUsize,
    _mapping: Rc<Stacks>,
}

// SAFETY: the memory from `limit` to `base` is mapped as long as this value lives, is used by nobody else (the contract of
// `Stacks::get`), begins with a guard page, and `base` is a multiple of 64.
unsafe impl Stack for OneStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
