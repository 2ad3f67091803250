//! Page-aligned memory, as `O_DIRECT` needs it.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::error::DeviceError;

/// Alignment of every buffer, bytes: enough for every device.
pub const PAGE: usize = 4096;

/// Zeroed, page-aligned memory. Dereferences to its bytes.
#[derive(Debug)]
pub struct AlignedBuf {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is owned by this value alone, as a Vec's is.
unsafe impl Send for AlignedBuf {}
// SAFETY: a shared reference allows only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// `bytes` zeroed bytes. Fails for 0.
    pub fn new(bytes: usize) -> Result<AlignedBuf, DeviceError> {
        let no = DeviceError::NoMemory { bytes };
        let layout = match Layout::from_size_align(bytes, PAGE) {
            Ok(layout) if bytes > 0 => layout,
            _ => return Err(no),
        };
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(no)?;
        Ok(AlignedBuf { start, layout })
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `layout.size()` initialised bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_writable_or_an_error() {
        let mut buffer = AlignedBuf::new(513).unwrap();
        assert_eq!((buffer.len(), buffer.as_ptr() as usize % PAGE), (513, 0));
        assert!(buffer.iter().all(|b| *b == 0));
        buffer[512] = 7;
        assert_eq!(buffer[512], 7);
        for bytes in [0, usize::MAX, isize::MAX as usize] {
            let error = AlignedBuf::new(bytes).unwrap_err().to_string();
            assert!(error.contains(&format!("{bytes} bytes")), "{error}");
        }
    }
}
