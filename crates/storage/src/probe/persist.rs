//! Stores to mapped memory, each written back.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::PmemMap;

use crate::clock::{now_ns, process_cpu_ns};
use crate::probe::queue::{Slice, SliceError};
use crate::probe::tally::Tally;

/// A slice of stores of `block` bytes, consecutive through the whole mapping. Each store starts when the previous one ends,
/// so each latency includes one clock reading.
pub(crate) fn slice(
    map: &mut PmemMap,
    block: &[u8],
    slice: Slice,
    stop: &AtomicBool,
    tally: &mut Tally,
) -> Result<(), SliceError> {
    let (size, end) = (block.len() as u64, map.size() as u64);
    let begin = now_ns();
    let (mut opened, mut offset, mut counted, mut cpu) = (0, 0, 0_u64, 0);
    let mut before = begin;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(SliceError::Interrupted);
        }
        if offset + size > end {
            offset = 0;
        }
        map.store(offset, block).map_err(std::io::Error::other)?;
        map.persist(offset, size).map_err(std::io::Error::other)?;
        offset += size;
        let now = now_ns();
        if opened > 0 {
            tally.latencies.record(now - before);
            counted += 1;
            if now >= opened + slice.window_ns {
                tally.cpu_ns += process_cpu_ns().saturating_sub(cpu);
                tally.cpu_ops += counted;
                tally.window_ns += now - opened;
                return Ok(());
            }
        } else if now >= begin + slice.warm_ns {
            (opened, cpu) = (now.max(1), process_cpu_ns());
        }
        before = now;
    }
}
