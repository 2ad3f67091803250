//! Limits of CPU and memory: the work of a transaction without a database, by as many threads as there are jobs and CPUs.

use std::hint::black_box;

use loadline_model::column;
use loadline_model::format::bytes;
use loadline_workload::sum;

use super::threads::{calls_per_s, in_huge_pages, threads, threads_of_queries};
use super::{Part, References, Sample, Subject};
use crate::test::MIB;

/// Size of all source buffers of copies, and of all target buffers, bytes: more than the caches of a CPU's own.
const COPIED_BYTES: usize = 64 << 20;
/// Maximum size of the memory that is read, bytes.
const MAX_READ_BYTES: f64 = 256.0 * MIB;

/// Loads: the rows, already parsed, are copied from one place to another.
pub(super) struct Copies;

impl Part for Copies {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        references.on_its_machine()?;
        let row_bytes = row_bytes(subject)?;
        let threads = threads(subject.request.jobs);
        let rows = (COPIED_BYTES / threads as usize / row_bytes).max(1);
        let copies_per_s = calls_per_s(threads, &references.interrupted, |_| {
            // The first call touches the pages.
            let (from, mut to) = (vec![1_u8; rows * row_bytes], vec![0_u8; rows * row_bytes]);
            move |_| copy(black_box(&from), &mut to, row_bytes)
        })?;
        Ok(Some(Sample::new(copies_per_s * rows as f64, "copies of the rows in memory")))
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(subject.request.work.program.mean_rows_changed_per_tx())
    }
}

fn copy(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes)) {
        to.copy_from_slice(from);
    }
    black_box(to);
}

fn row_bytes(subject: Subject<'_>) -> Result<usize, String> {
    let work = &subject.request.work;
    let table = work.program.bulk_tables().into_iter().next().unwrap_or(0);
    match work.workload.tables.get(table).map(|table| table.value_bytes(&work.params)) {
        Some(bytes) if bytes > 0 => Ok(bytes as usize),
        _ => Err("the workload adds no rows".to_owned()),
    }
}

/// Procedural code: the computations of a transaction, compiled.
pub(super) struct Kernel;

impl Part for Kernel {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        references.on_its_machine()?;
        let (program, threads) = (&subject.request.work.program, threads(subject.request.jobs));
        let compute = |_| {
            |_| {
                let _ = black_box(program.compute());
            }
        };
        let per_s = calls_per_s(threads, &references.interrupted, compute)?;
        Ok(Some(Sample::new(per_s, format!("the same computations, compiled, by {threads} threads"))))
    }
}

/// A scan of cached rows: as many bytes are read from memory.
#[derive(Default)]
pub(super) struct Memory {
    words: Vec<u64>,
}

impl Part for Memory {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        references.on_its_machine()?;
        if subject.figures.is_none() {
            return Ok(None);
        }
        let wanted = self.per_tx(subject)?.min(MAX_READ_BYTES) as usize;
        // Not zeros, which the system maps to one page.
        self.words.resize(wanted.div_ceil(8).max(1), 1);
        let pages = in_huge_pages(&self.words);
        let (words, threads) = (&self.words, threads_of_queries(subject));
        let read = |_| {
            |_| {
                let _ = black_box(sum(black_box(words)));
            }
        };
        let reads = calls_per_s(threads, &references.interrupted, read)?;
        let size = size_of_val(&words[..]) as f64;
        let of = format!("reads of {} of memory{pages} by {threads} threads", bytes(size));
        Ok(Some(Sample::new(reads * size, of)))
    }

    /// Bytes of the tables that a transaction reads, as stored by the database: of the columns that it reads, if these are apart.
    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(subject.figure(column::DATA_MIB_PER_S)? / subject.figure(column::COMMIT_THROUGHPUT_TPS)? * MIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_whole() {
        let from: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut to = vec![0; from.len()];
        copy(&from, &mut to, 144);
        let whole = from.len() / 144 * 144;
        assert_eq!(to[..whole], from[..whole]);
        assert!(to[whole..].iter().all(|b| *b == 0), "no part of a row");
    }
}
