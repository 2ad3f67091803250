//! The rows of tables before a test, in batches: the same for every database.

use std::ops::Range;

use loadline_workload::{Arg, Datum, NEW_KEYS_PER_JOB, RowCount, Table};

use crate::work::Work;

/// Rows that are loaded in the same transaction: all of them exist, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Batch number; the job's number if jobs own rows.
    pub(crate) number: u64,
    /// Rows of the batch before the first of this part.
    pub(crate) skipped: u64,
    pub(crate) keys: Range<i64>,
}

impl Batch {
    /// `rows` rows of a bulk insert, from key `first` on. Payloads come from the job that owns these keys.
    pub(crate) fn of_bulk(first: i64, rows: u32) -> Batch {
        Batch { number: (first / NEW_KEYS_PER_JOB) as u64, skipped: 0, keys: first..first + i64::from(rows) }
    }

    /// At most `rows` of its rows, from number `from` on, with the same payloads as in the whole batch.
    pub(crate) fn part(&self, from: u64, rows: u64) -> Batch {
        let key = |n: u64| (self.keys.start + n as i64).min(self.keys.end);
        Batch { number: self.number, skipped: self.skipped + from, keys: key(from)..key(from + rows) }
    }

    pub(crate) fn len(&self) -> u64 {
        self.keys.end.saturating_sub(self.keys.start) as u64
    }
}

/// Batches of `table`: those of the first `jobs` jobs if jobs own rows, else all.
pub(crate) fn batches(work: &Work, table: &Table, jobs: u32) -> Vec<Batch> {
    if let RowCount::PerJob(_) = table.rows {
        let rows = table.batch_rows(&work.params) as i64;
        let of = |job: u32| (job, table.first_key(job, &work.params));
        let batch = |(job, first): (u32, i64)| Batch { number: job.into(), skipped: 0, keys: first..first + rows };
        return (0..jobs).map(of).map(batch).collect();
    }
    let all = 0..table.batches(&work.params, 0);
    all.map(|number| Batch { number, skipped: 0, keys: table.batch(&work.params, 0, number) }).collect()
}

pub(crate) fn rows<E>(
    work: &Work,
    table: &Table,
    batch: &Batch,
    mut each: impl FnMut(&[Datum<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let pool = work.pool(batch.number as u32);
    let mut row = Vec::with_capacity(table.columns.len());
    for (index, key) in batch.keys.clone().enumerate() {
        table.row(key, batch.skipped + index as u64, &work.params, &pool, &mut row);
        each(&row)?;
    }
    Ok(())
}

/// Calls `each` with the values of at most `most` rows of `batch` at a time, one row after the other, as arguments: values of other types
/// are the bytes of their texts. Returns the sum of what it says, the number of rows.
pub(crate) fn in_parts<E>(
    work: &Work,
    table: &Table,
    batch: &Batch,
    most: u64,
    mut each: impl FnMut(&[Arg<'_>]) -> Result<u64, E>,
) -> Result<u64, E> {
    let pool = work.pool(batch.number as u32);
    let (mut row, mut done) = (Vec::new(), 0);
    for part in (0..batch.len().div_ceil(most)).map(|i| batch.part(i * most, most)) {
        let mut data = Vec::new();
        for (index, key) in part.keys.clone().enumerate() {
            table.row(key, part.skipped + index as u64, &work.params, &pool, &mut row);
            data.append(&mut row);
        }
        let text = |datum: &Datum<'_>| if let Datum::Typed(value) = datum { value.text() } else { String::new() };
        let texts: Vec<String> = data.iter().map(text).collect();
        let arg = |(datum, text)| match (datum, text) {
            (&Datum::Int(i), _) => Arg::Int(i),
            (&Datum::Bytes(bytes), _) => Arg::Bytes(bytes),
            (Datum::Typed(_), text) => Arg::Bytes(String::as_bytes(text)),
        };
        done += each(&data.iter().zip(&texts).map(arg).collect::<Vec<_>>())?;
    }
    Ok(done)
}

/// Name of a table in the database, without the target's prefix. Tables of the data set are shared.
pub(crate) fn table_stem(work: &Work, table: &str) -> String {
    let is_shared = |t: &Table| t.name == table && t.scope == loadline_workload::Scope::DataSet;
    if work.workload.tables.iter().any(is_shared) {
        return format!("data_{table}");
    }
    crate::names::own(&work.workload, table)
}
