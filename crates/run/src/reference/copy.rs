//! The limit of loads in memory: the rows, already parsed, are copied from one place to another.

use std::hint::black_box;

use super::threads::{calls_per_s, threads};
use super::{Part, References, Subject};

/// Size of all source buffers, and of all target buffers, bytes: more than the caches of a CPU's own.
const BUFFER_BYTES: usize = 64 << 20;

pub(super) struct Copies;

impl Part for Copies {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<f64>, String> {
        references.on_its_machine()?;
        let row_bytes = row_bytes(subject)?;
        let threads = threads(subject.request.jobs);
        let rows = (BUFFER_BYTES / threads as usize / row_bytes).max(1);
        let copies_per_s = calls_per_s(threads, &references.interrupted, |_| {
            // The first call touches the pages.
            let (from, mut to) = (vec![1_u8; rows * row_bytes], vec![0_u8; rows * row_bytes]);
            move |_| copy(black_box(&from), &mut to, row_bytes)
        })?;
        Ok(Some(copies_per_s * rows as f64))
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(subject.request.work.program.mean_rows_changed_per_tx())
    }

    fn of(&self, _: &References) -> String {
        "copies of the rows in memory".to_owned()
    }
}

fn copy(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes)) {
        to.copy_from_slice(from);
    }
    black_box(to);
}

/// Bytes of a row that a transaction adds.
fn row_bytes(subject: Subject<'_>) -> Result<usize, String> {
    let work = &subject.request.work;
    let table = work.program.bulk_tables().into_iter().next().unwrap_or(0);
    match work.workload.tables.get(table).map(|table| table.value_bytes(&work.params)) {
        Some(bytes) if bytes > 0 => Ok(bytes as usize),
        _ => Err("the workload adds no rows".to_owned()),
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
