//! The bytes that payloads are cut from.

use loadline_model::Random;

/// Size of a job's pool: much larger than any payload, small enough for the CPU's cache.
pub const POOL_BYTES: usize = 64 * 1024;

/// Granule of compressible bytes: so small that every database page and every block of a compressing array contains the
/// same share.
const GRANULE: usize = 64;

/// The pool of `job`: a pure function of its arguments. A share `compressibility` (0…1) of every
/// 64 bytes is zero, the rest is random.
#[must_use]
pub fn pool(seed: u64, job: u32, compressibility: f64) -> Vec<u8> {
    let zeros = (compressibility.clamp(0.0, 1.0) * GRANULE as f64).round() as usize;
    let mut random = Random::new(seed ^ (u64::from(job) + 1).wrapping_mul(0xd1b5_4a32_d192_ed03));
    let mut bytes = Vec::with_capacity(POOL_BYTES);
    while bytes.len() < POOL_BYTES {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    for granule in bytes.chunks_mut(GRANULE) {
        granule[..zeros].fill(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressibility_is_the_share_of_zeros() {
        for share in [0.0, 0.25, 0.5, 1.0] {
            let zeros = pool(1, 0, share).iter().filter(|b| **b == 0).count() as f64 / POOL_BYTES as f64;
            // 1/256 of random bytes are zero as well.
            assert!((zeros - (share + (1.0 - share) / 256.0)).abs() < 0.01, "{share}: {zeros}");
        }
    }
}
