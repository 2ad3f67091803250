//! The limit of loads in memory: the rows, already parsed, are copied from one place to another.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use loadline_workload::Table;

use super::{Part, References, Subject};

/// Length of one measurement.
const SAMPLE: Duration = Duration::from_millis(200);
/// Size of all source buffers, and of all target buffers, bytes: more than the caches of a CPU's own.
const BUFFER_BYTES: usize = 64 << 20;
/// Bytes copied between two looks at the clock.
const SLICE_BYTES: usize = 1 << 20;

/// Copies of rows.
pub(super) struct Copies;

impl Part for Copies {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<f64>, String> {
        if let Some(elsewhere) = &references.elsewhere {
            return Err(elsewhere.clone());
        }
        let row_bytes = row_bytes(subject)?;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(subject.request.jobs as usize).max(1);
        let each = (BUFFER_BYTES / threads).max(row_bytes);
        // Written once, so that no page is missing when it is copied.
        let (from, mut to) = (vec![1_u8; each * threads], vec![2_u8; each * threads]);
        let per_s: Result<f64, String> = thread::scope(|scope| {
            let pairs = from.chunks_exact(each).zip(to.chunks_exact_mut(each));
            let started: Result<Vec<_>, String> = pairs
                .map(|(from, to)| {
                    let copied = move || copy(from, to, row_bytes);
                    thread::Builder::new().spawn_scoped(scope, copied).map_err(|e| format!("no thread: {e}"))
                })
                .collect();
            started?.into_iter().map(|t| t.join().map_err(|_| "a copying thread panicked".to_owned())).sum()
        });
        per_s.map(Some)
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(subject.request.work.program.mean_rows_changed_per_tx())
    }

    fn of(&self, _: &References) -> String {
        "copies of the rows in memory".to_owned()
    }
}

/// Copies row by row for as long as a measurement lasts. Returns rows per second.
fn copy(from: &[u8], to: &mut [u8], row_bytes: usize) -> f64 {
    let per_slice = (SLICE_BYTES / row_bytes).max(1);
    let mut rows = 0_u64;
    let begin = Instant::now();
    loop {
        let mut pairs = from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes));
        loop {
            let before = rows;
            for (from, to) in pairs.by_ref().take(per_slice) {
                to.copy_from_slice(black_box(from));
                rows += 1;
            }
            let elapsed = begin.elapsed();
            if elapsed >= SAMPLE {
                black_box(&to);
                return rows as f64 / elapsed.as_secs_f64();
            }
            if rows == before {
                break;
            }
        }
    }
}

/// Bytes of a row that a transaction adds.
fn row_bytes(subject: Subject<'_>) -> Result<usize, String> {
    let work = &subject.request.work;
    let table = work.program.bulk_tables().into_iter().next().unwrap_or(0);
    let bytes = work.workload.tables.get(table).map(|table: &Table| table.value_bytes(&work.params));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(bytes as usize),
        _ => Err("the workload adds no rows".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_whole_and_counted() {
        let from: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut to = vec![0; from.len()];
        let per_s = copy(&from, &mut to, 144);
        assert!(per_s > 0.0);
        let whole = from.len() / 144 * 144;
        assert_eq!(to[..whole], from[..whole]);
        assert!(to[whole..].iter().all(|b| *b == 0), "no part of a row");
    }
}
