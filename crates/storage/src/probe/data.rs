//! Written data: random, with a compressible share and a repeated share.

use loadline_model::Random;

use crate::PAGE;

/// Unit that gets a unique number, bytes.
const SECTOR: usize = 512;
/// Unit of compressible bytes: so small that every block of a compressing array contains the same share, bytes.
const GRANULE: usize = 64;

/// Generates the contents of blocks.
///
/// A share `compressibility` of every 64 bytes is zero, the rest is random. Every sector of 512 bytes ends with a unique
/// number, so nothing repeats. Exception: a share `dedup` of the 4 KiB pages (or of smaller blocks) has a constant number
/// instead, so these pages are equal at the same position in a block.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    random: Random,
    seed: u64,
    zeros: usize,
    /// Pages whose random number is below this repeat.
    repeat_below: u64,
    unique: u64,
}

impl Data {
    /// Both shares from 0 to 1.
    pub(crate) fn new(seed: u64, compressibility: f64, dedup: f64) -> Data {
        let mut random = Random::new(seed);
        let unique = random.next();
        Data {
            random,
            seed,
            zeros: (compressibility.clamp(0.0, 1.0) * GRANULE as f64).round() as usize,
            repeat_below: (dedup.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
            unique,
        }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.random.next()
    }

    pub(crate) fn other(&self, seed: u64) -> Data {
        Data { random: Random::new(seed), unique: seed, ..self.clone() }
    }

    /// Fills a new buffer with the common bytes; [`Data::stamp`] makes it unique.
    pub(crate) fn fill(&self, buffer: &mut [u8]) {
        let mut random = Random::new(self.seed ^ 0x6c6f_6164);
        for chunk in buffer.chunks_mut(8) {
            let bytes = random.next().to_le_bytes();
            chunk.copy_from_slice(bytes.get(..chunk.len()).unwrap_or_default());
        }
        for granule in buffer.chunks_mut(GRANULE) {
            let end = self.zeros.min(granule.len());
            granule.iter_mut().take(end).for_each(|b| *b = 0);
        }
    }

    /// Makes a filled buffer different from all earlier ones, except for the repeated share.
    #[inline]
    pub(crate) fn stamp(&mut self, buffer: &mut [u8]) {
        for page in buffer.chunks_mut(PAGE) {
            let repeats = self.repeat_below > 0 && self.random.next() <= self.repeat_below;
            for sector in page.chunks_mut(SECTOR) {
                self.unique = self.unique.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let number = if repeats { 0 } else { self.unique };
                if let Some(end) = sector.last_chunk_mut::<8>() {
                    *end = number.to_le_bytes();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn blocks(compressibility: f64, dedup: f64, size: usize, count: usize) -> Vec<Vec<u8>> {
        let mut data = Data::new(7, compressibility, dedup);
        let mut buffer = vec![0; size];
        data.fill(&mut buffer);
        let next = |_| {
            data.stamp(&mut buffer);
            buffer.clone()
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn nothing_repeats_unless_asked_for() {
        let mut sectors = HashSet::new();
        for block in blocks(0.0, 0.0, 64 * 1024, 100) {
            assert!(block.chunks(SECTOR).all(|s| sectors.insert(s.to_vec())));
        }
        assert_eq!(sectors.len(), 100 * 128);
    }

    #[test]
    fn the_share_of_repeated_pages_is_as_asked() {
        for (share, size) in [(0.25, 128 * 1024), (0.5, 4096), (0.75, 1024), (1.0, 4096)] {
            let unit = size.min(PAGE);
            let all: Vec<Vec<u8>> = blocks(0.0, share, size, 4 * 1024 * 1024 / size)
                .iter()
                .flat_map(|b| b.chunks(unit).map(<[u8]>::to_vec).collect::<Vec<_>>())
                .collect();
            let distinct = all.iter().collect::<HashSet<_>>().len() as f64;
            // Of those that repeat, one at each place in a block is the original.
            let repeated = 1.0 - (distinct - (size / unit) as f64) / all.len() as f64;
            assert!((repeated - share).abs() < 0.06, "{share} at {size}: {repeated}");
        }
    }

    #[test]
    fn the_share_of_zeros_is_as_asked_in_every_granule() {
        for share in [0.0, 0.5, 1.0] {
            let block = blocks(share, 0.0, 1024 * 1024, 1).remove(0);
            let zeros = block.iter().filter(|b| **b == 0).count() as f64 / block.len() as f64;
            // 8 of 512 bytes are the number, and 1/256 of random bytes are zero as well.
            assert!((zeros - share).abs() < 0.03, "{share}: {zeros}");
            if share == 0.5 {
                assert!(block.chunks(GRANULE).all(|g| g[..32].iter().all(|b| *b == 0)));
            }
        }
    }

    #[test]
    fn random_data_has_all_bytes_alike() {
        let block = blocks(0.0, 0.0, 1024 * 1024, 1).remove(0);
        let mut counts = [0_u32; 256];
        block.iter().for_each(|b| counts[*b as usize] += 1);
        assert!(counts.iter().all(|c| (3600..4600).contains(c)), "{counts:?}");
    }
}
