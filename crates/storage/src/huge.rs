//! Huge pages under memory that is read again and again.

#![allow(unsafe_code)]

use std::io;
use std::mem::size_of_val;

/// Size and alignment of a huge page of most processors, bytes.
const HUGE_PAGE: usize = 2 << 20;

/// `MADV_COLLAPSE` of `asm-generic/mman-common.h`, which crate libc lacks with musl.
const MADV_COLLAPSE: libc::c_int = 25;

/// Moves `memory` into huge pages, all at once (`MADV_COLLAPSE`, Linux 6.1): otherwise the kernel decides which parts of it are
/// in pages of 4 KiB, anew in each process. Its ends, and memory below the size of a huge page, stay where they are.
/// After an error all or a part of the memory is in the pages that the kernel chose, with the same contents.
pub fn use_huge_pages<T>(memory: &[T]) -> io::Result<()> {
    let start = memory.as_ptr().addr();
    let (from, end) = (start.next_multiple_of(HUGE_PAGE), (start + size_of_val(memory)) / HUGE_PAGE * HUGE_PAGE);
    let (from, bytes) = (memory.as_ptr().with_addr(from).cast_mut().cast(), end.saturating_sub(from));
    for advice in [libc::MADV_HUGEPAGE, MADV_COLLAPSE] {
        // SAFETY: the range is within `memory`, and the call changes neither its contents nor its addresses.
        if bytes > 0 && unsafe { libc::madvise(from, bytes, advice) } != 0 {
            return Err(match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::EINVAL) => io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this kernel has no huge pages on request, as Linux 6.1 has",
                ),
                e => e,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_stay_and_small_memory_is_left_alone() {
        let numbers: Vec<u64> = (0..1 << 20).collect();
        // Whether the kernel does it is its own affair.
        let _ = use_huge_pages(&numbers);
        assert!(numbers.iter().copied().eq(0..1 << 20));
        use_huge_pages(&numbers[..1000]).unwrap();
        use_huge_pages::<u64>(&[]).unwrap();
    }
}
