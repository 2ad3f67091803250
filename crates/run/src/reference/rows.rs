//! The limit of queries that read whole tables: the same queries as loops over the same rows in memory.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::Work;
use loadline_workload::{Loop, LoopRows, Looping, Stream};

use super::threads::{calls_per_s, in_huge_pages, threads_of_queries};
use super::{Part, References, Sample, Subject};

/// Maximum size of the rows of a table in memory, bytes.
const MAX_BYTES: u64 = 128 << 20;
const NO_ROWS: &str = "the table has no rows";

/// Rows of the last workload that was measured: the next one usually needs the same.
#[derive(Default)]
pub(crate) struct LastRows(Mutex<Option<(Work, Rows)>>);

#[derive(Clone)]
struct Rows {
    of: Arc<LoopRows>,
    /// A note if they are not in huge pages.
    pages: String,
}

impl LastRows {
    fn for_work(&self, work: &Work) -> Rows {
        let names = |of: &Work| of.workload.tables.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        let is_same = |of: &Work| {
            (&of.params, of.seed, of.payload) == (&work.params, work.seed, work.payload) && names(of) == names(work)
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, rows)) if is_same(of) => rows.clone(),
            _ => {
                // First frees the others.
                *last = None;
                let of = LoopRows::new(&work.workload.tables, &work.params, work.seed, work.payload, MAX_BYTES);
                let pages = of.memory().map(in_huge_pages).find(|note| !note.is_empty()).unwrap_or_default();
                let rows = Rows { of: Arc::new(of), pages };
                *last = Some((work.clone(), rows.clone()));
                rows
            }
        }
    }
}

pub(super) struct Loops {
    pub(super) of: Loop,
    /// Rows of the large table in the database, once they are known.
    pub(super) all_rows: u64,
}

impl Part for Loops {
    /// Work of the loop ([`Loop::work`]) per second.
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        references.on_its_machine()?;
        let (work, threads) = (subject.request.work.as_ref(), threads_of_queries(subject));
        let Rows { of: rows, pages } = references.rows.for_work(work);
        let (held, all) = (rows.rows(), rows.of_all);
        self.all_rows = all;
        if held == 0 {
            return Err(NO_ROWS.to_owned());
        }
        let streams: Result<Vec<Stream>, _> = (0..threads).map(|job| work.stream(job)).collect();
        let streams = streams.map_err(|e| e.to_string())?;
        let query = |thread: u32| {
            let (start, mut looping) = (&streams[thread as usize], Looping::new(self.of, &rows));
            let (mut stream, mut first) = (start.clone(), true);
            move |call| {
                if call == 0 {
                    stream = start.clone();
                }
                // A wrong number of rows would be an error of the database as well.
                let _ = black_box(stream.transaction(black_box(&mut looping)));
                black_box(&looping);
                if std::mem::take(&mut first) {
                    // What it keeps of the first query, the next ones fill again.
                    let _ = in_huge_pages(looping.memory());
                }
            }
        };
        let transactions = calls_per_s(threads, &references.interrupted, query)?;
        let which =
            if held < all { format!("the first {held} of {all} rows") } else { format!("the same {held} rows") };
        let of = format!("the same queries as loops over {which} in memory{pages}, by {threads} threads");
        Ok(Some(Sample::new(transactions * self.of.work(held), of)))
    }

    fn per_tx(&self, _: Subject<'_>) -> Result<f64, String> {
        // No rows: nothing was measured, which has another reason.
        if self.all_rows == 0 { Err(NO_ROWS.to_owned()) } else { Ok(self.of.work(self.all_rows)) }
    }
}
