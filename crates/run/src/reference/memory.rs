//! The limit of a scan of cached rows: reads of as many bytes from memory.

use std::hint::black_box;

use loadline_model::column;
use loadline_model::format::bytes;
use loadline_workload::sum;

use super::threads::{calls_per_s, in_huge_pages, threads};
use super::{Part, References, Subject};
use crate::storage_size::MIB;

/// Maximum size of the buffer, bytes.
const MAX_BYTES: f64 = 256.0 * MIB;

#[derive(Default)]
pub(super) struct Memory {
    words: Vec<u64>,
    threads: u32,
    /// A note if they are not in huge pages.
    pages: String,
}

/// Bytes of the tables that a transaction reads, as stored by the database.
fn bytes_per_tx(subject: Subject<'_>) -> Result<f64, String> {
    Ok(subject.figure(column::DATA_MIB_PER_S)? / subject.figure(column::COMMIT_THROUGHPUT_TPS)? * MIB)
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
        self.pages = in_huge_pages(&self.words);
        self.threads = threads(subject.request.jobs);
        let words = &self.words;
        let read = |_| {
            |_| {
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
        let size = bytes(size_of_val(&self.words[..]) as f64);
        format!("reads of {size} of memory{} by {} threads", self.pages, self.threads)
    }
}
