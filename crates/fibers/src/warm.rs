//! Fetches the memory of the next fibers into the CPU's caches while others run.
//!
//! With hundreds of sessions per thread, what one needs has left the caches when its answer comes, and each cache line of it would
//! be waited for in turn. Fetched ahead, they come together while other fibers run.

#![allow(unsafe_code)]

/// Cache line, bytes.
const LINE: usize = 64;
/// From the end of a fiber's stack on: the calls that return when it goes on.
const STACK: usize = 24 * LINE;
/// The beginning of an answer.
const ANSWER: usize = 2 * LINE;
/// The session's fields around its socket.
const SESSION: usize = 6 * LINE;

/// What a fiber that waits for a socket uses first, as addresses; 0 for nothing. They are hints: never read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Warm {
    stack: usize,
    answer: usize,
    session: usize,
}

impl Warm {
    /// Of the fiber that runs now, which will read to `answer` and go on with the session that `part` is a field of.
    #[inline]
    pub(crate) fn new<T>(answer: &[u8], part: &T) -> Warm {
        let here = 0_u8;
        Warm {
            stack: (&raw const here).addr(),
            answer: answer.as_ptr().addr(),
            session: std::ptr::from_ref(part).addr().wrapping_sub(SESSION / 2),
        }
    }

    /// Asks the CPU for it.
    #[inline]
    pub(crate) fn fetch(&self) {
        for (from, bytes) in [(self.stack, STACK), (self.answer, ANSWER), (self.session, SESSION)] {
            if from != 0 {
                (0..bytes).step_by(LINE).for_each(|offset| prefetch(from.wrapping_add(offset)));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch of any address, also one that is not mapped, changes nothing but caches.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch(_: usize) {}
