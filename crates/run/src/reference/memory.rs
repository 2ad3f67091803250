//! The limit of a scan of cached rows: reads of as many bytes from memory.

use std::hint::black_box;

use loadline_model::column;
use loadline_model::format::bytes;

use super::threads::{calls_per_s, threads};
use super::{Part, References, Subject};
use crate::figures::MIB;

/// Maximum size of the buffer, bytes.
const MAX_BYTES: f64 = 256.0 * MIB;
/// Words that are added at a time, so that additions do not wait for each other.
const LANES: usize = 8;

/// Reads of a buffer.
#[derive(Default)]
pub(super) struct Memory {
    words: Vec<u64>,
    threads: u32,
}

/// Bytes of the tables that a transaction reads, as stored by the database.
fn bytes_per_tx(subject: Subject<'_>) -> Result<f64, String> {
    Ok(subject.figure(column::DATA_MIB_PER_S)? / subject.figure(column::COMMIT_THROUGHPUT_TPS)? * MIB)
}

/// The sum of `words`: every byte is read.
fn sum(words: &[u64]) -> u64 {
    let (lanes, rest) = words.as_chunks::<LANES>();
    let mut sums = [0_u64; LANES];
    for lane in lanes {
        for (sum, word) in sums.iter_mut().zip(lane) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |all, word| all.wrapping_add(*word))
}

impl Part for Memory {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<f64>, String> {
        references.on_its_machine()?;
        if subject.figures.is_none() {
            return Ok(None);
        }
        let wanted = bytes_per_tx(subject)?.min(MAX_BYTES) as usize;
        // Not zeros, which the system maps to one page.
        self.words.resize(wanted.div_ceil(8).max(1), 1);
        self.threads = threads(subject.request.jobs);
        let words = &self.words;
        let read = |_| {
            || {
                let _ = black_box(sum(black_box(words)));
            }
        };
        let reads = calls_per_s(self.threads, &references.interrupted, read)?;
        Ok(Some(reads * size_of_val(&words[..]) as f64))
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        bytes_per_tx(subject)
    }

    fn of(&self, _: &References) -> String {
        format!("reads of {} of memory by {} threads", bytes(size_of_val(&self.words[..]) as f64), self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_added() {
        for words in [0, 1, 7, 8, 9, 1000] {
            let numbers: Vec<u64> = (1..=words).collect();
            assert_eq!(sum(&numbers), words * (words + 1) / 2);
        }
    }
}
