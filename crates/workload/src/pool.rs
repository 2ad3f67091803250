//! The bytes that payloads are cut from.

use std::ops::Deref;

use loadline_model::Random;
use loadline_model::plan::Payload;

use crate::payload_offset;

/// Size of a job's pool: much larger than any payload, small enough for the CPU's cache.
pub const POOL_BYTES: usize = 64 * 1024;

/// Of so many payloads in turn, the first ones are new and the others copies of these.
pub const PAYLOAD_CYCLE: u64 = 1000;

/// Granule of compressible bytes: so small that every database page and every block of a compressing array contains the
/// same share.
const GRANULE: usize = 64;

/// The bytes from which a job, or a batch of rows, takes its payloads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pool {
    bytes: Vec<u8>,
    /// New payloads of each [`PAYLOAD_CYCLE`], at least 1.
    new: u64,
}

impl Pool {
    /// The pool of `job`: a pure function of its arguments. A share of every 64 bytes is zero, the rest is random.
    pub fn new(seed: u64, job: u32, payload: Payload) -> Pool {
        let zeros = (payload.compressibility.clamp(0.0, 1.0) * GRANULE as f64).round() as usize;
        let mut random = Random::new(seed ^ (u64::from(job) + 1).wrapping_mul(0xd1b5_4a32_d192_ed03));
        let mut bytes = Vec::with_capacity(POOL_BYTES);
        while bytes.len() < POOL_BYTES {
            bytes.extend_from_slice(&random.next().to_le_bytes());
        }
        for granule in bytes.chunks_mut(GRANULE) {
            granule[..zeros].fill(0);
        }
        Pool { bytes, new: new_payloads(payload) }
    }

    /// Offset of the payload of `bytes` bytes for sequence number `seq`: that of the payload of which it is a copy, or its own.
    #[inline]
    pub fn offset(&self, seq: u64, bytes: u32) -> usize {
        let of = if self.new == PAYLOAD_CYCLE {
            seq
        } else {
            let turn = seq % PAYLOAD_CYCLE;
            seq - turn + turn % self.new.max(1)
        };
        payload_offset(of, bytes)
    }

    pub fn payload(&self, seq: u64, bytes: u32) -> &[u8] {
        let start = self.offset(seq, bytes).min(self.bytes.len());
        &self.bytes[start..(start + bytes as usize).min(self.bytes.len())]
    }
}

impl Deref for Pool {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// New payloads of each [`PAYLOAD_CYCLE`]: at least 1, of which all others are copies.
pub fn new_payloads(payload: Payload) -> u64 {
    let new = (1.0 - payload.duplicates.unwrap_or(0.0).clamp(0.0, 1.0)) * PAYLOAD_CYCLE as f64;
    (new.round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn compressibility_is_the_share_of_zeros() {
        for share in [0.0, 0.25, 0.5, 1.0] {
            let pool = Pool::new(1, 0, Payload { compressibility: share, duplicates: None });
            let zeros = pool.iter().filter(|b| **b == 0).count() as f64 / POOL_BYTES as f64;
            // 1/256 of random bytes are zero as well.
            assert!((zeros - (share + (1.0 - share) / 256.0)).abs() < 0.01, "{share}: {zeros}");
        }
    }

    #[test]
    fn the_share_of_copies_is_as_asked_and_without_it_there_are_none() {
        for (share, copies) in
            [(None, 0), (Some(0.0), 0), (Some(0.5), 10_000), (Some(0.9), 18_000), (Some(1.0), 19_980)]
        {
            let pool = Pool::new(1, 0, Payload { compressibility: 0.0, duplicates: share });
            let distinct: HashSet<&[u8]> = (0..20_000).map(|seq| pool.payload(seq, 950)).collect();
            assert_eq!(20_000 - distinct.len(), copies, "{share:?}");
        }
    }
}
