//! Tables of a workload: logical types, and rows as functions of key and seed.

use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::draw::scatter;
use crate::params::Params;
use crate::pool::Pool;

mod read;

/// A column type; each target renders it in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogicalType {
    Int,
    Bytes,
    Text,
    /// A point in time, without time zone.
    Timestamp,
    /// A decimal number with two digits after the point.
    Numeric,
    Boolean,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    Key,
    /// The row's key, in a table without a primary key.
    PlainKey,
    Zero,
    Constant(i64),
    /// A random number below `range`, a function of key and salt ([`crate::scatter`]).
    Scattered {
        salt: u32,
        range: u64,
    },
    /// A payload with the size in this parameter.
    Payload(String),
    PayloadOf(u32),
    /// Text or a document of this number of characters that begins with a scattered number.
    Words {
        length: u32,
        salt: u32,
        range: u64,
    },
    /// The first half of a payload with the size in this parameter; of an odd size, the larger one.
    FirstHalf(String),
    SecondHalf(String),
}

/// A column of a table. No column may be NULL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnDef {
    pub name: String,
    pub logical: LogicalType,
    pub fill: Fill,
}

impl ColumnDef {
    pub fn value_bytes(&self, params: &Params) -> u64 {
        match (self.logical, &self.fill) {
            (LogicalType::Bytes, Fill::Payload(size)) => params.get(size).max(0) as u64,
            (LogicalType::Bytes, Fill::PayloadOf(bytes)) => u64::from(*bytes),
            (_, Fill::Words { length, .. }) => u64::from(*length),
            (LogicalType::Bytes, Fill::FirstHalf(size)) => params.get(size).max(0).cast_unsigned().div_ceil(2),
            (LogicalType::Bytes, Fill::SecondHalf(size)) => params.get(size).max(0).cast_unsigned() / 2,
            _ => 8,
        }
    }
}

/// Number of rows of a table before a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowCount {
    /// Each job owns the number of rows in this parameter: job `j` has the keys `j·rows … (j+1)·rows − 1`.
    PerJob(String),
    Total(String),
    Fixed(u64),
    /// A share of the data set's size (`--size`).
    Share {
        percent: u64,
        /// Approximate stored size of a row, bytes.
        row_bytes: u64,
    },
    /// None: the workload fills the table. It is emptied before every test.
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The workload: the table is created for it.
    Workload,
    /// The data set: the table is never changed, and shared by all workloads that read it.
    DataSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Name in templates, and (with a prefix or schema) in the database.
    pub name: String,
    /// Columns; the first is the primary key (see [`Fill::PlainKey`]).
    pub columns: Vec<ColumnDef>,
    pub rows: RowCount,
    pub scope: Scope,
    /// Whether rows are updated in place repeatedly: a target then leaves free space in its pages.
    pub updated_in_place: bool,
    pub indexes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datum<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Typed(Typed),
}

/// A value that is a function of a number, so that every database gets the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Typed {
    /// Neither [`LogicalType::Int`] nor [`LogicalType::Bytes`].
    pub logical: LogicalType,
    /// Seconds after 2000-01-01 00:00:00, hundredths, odd for true, or what a text begins with.
    pub number: i64,
    /// Characters of a text or document.
    pub length: u32,
}

/// From 1970-01-01 to 2000-01-01, s.
const SECONDS_TO_2000: u64 = 946_684_800;
/// Latest point in time, seconds after 2000-01-01 (the end of 2099).
pub(crate) const MAX_SECONDS: i64 = 3_155_759_999;
const WORDS: [&str; 8] = ["order", "customer", "is", "paid", "and", "sent", "by", "post"];

impl Typed {
    /// The value as databases read and print it: JSON in the form of `jsonb`.
    pub fn text(self) -> String {
        let (n, length) = (self.number, self.length as usize);
        match self.logical {
            LogicalType::Int | LogicalType::Bytes => n.to_string(),
            LogicalType::Text => words(n, length),
            LogicalType::Timestamp => timestamp(n),
            LogicalType::Numeric => format!("{}{}.{:02}", if n < 0 { "-" } else { "" }, n.abs() / 100, n.abs() % 100),
            LogicalType::Boolean => (n & 1).to_string(),
            LogicalType::Json => {
                let start = format!("{{\"id\": {n}, \"text\": \"");
                format!("{start}{}\"}}", words(n, length.saturating_sub(start.len() + 2)))
            }
        }
    }
}

fn words(number: i64, length: usize) -> String {
    let mut text = number.to_string();
    let mut i = 0;
    while text.len() < length {
        text.push(' ');
        text.push_str(WORDS[scatter(number, i, WORDS.len() as u64) as usize]);
        i += 1;
    }
    text.truncate(length);
    text
}

/// The point in time `seconds` after 2000-01-01 00:00:00, at most [`MAX_SECONDS`].
fn timestamp(seconds: i64) -> String {
    let since_1970 = Duration::from_secs(SECONDS_TO_2000 + seconds.clamp(0, MAX_SECONDS) as u64);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since_1970).to_string().replace('T', " ").replace('Z', "")
}

/// Rows of a batch, unless batches belong to jobs. A batch is a few 100 KiB, loaded in one transaction.
pub const BATCH_ROWS: u64 = 4096;

impl Table {
    /// Whether its rows exist before a test and do not depend on the number of jobs.
    pub fn is_whole(&self) -> bool {
        !matches!(self.rows, RowCount::PerJob(_) | RowCount::Empty)
    }

    pub fn primary_key(&self) -> Option<&str> {
        self.columns.first().filter(|c| c.fill != Fill::PlainKey).map(|c| c.name.as_str())
    }

    /// Bytes of a row's values, without the database's overhead.
    pub fn value_bytes(&self, params: &Params) -> u64 {
        self.columns.iter().map(|column| column.value_bytes(params)).sum()
    }

    /// Number of rows in a batch; if jobs own rows, those of one job.
    pub fn batch_rows(&self, params: &Params) -> u64 {
        match &self.rows {
            RowCount::PerJob(rows) => params.get(rows).max(1) as u64,
            _ => BATCH_ROWS,
        }
    }

    pub fn total_rows(&self, params: &Params, jobs: u32) -> u64 {
        match &self.rows {
            RowCount::PerJob(_) => self.batch_rows(params) * u64::from(jobs),
            RowCount::Total(rows) => params.get(rows).max(0) as u64,
            RowCount::Fixed(rows) => *rows,
            RowCount::Share { percent, row_bytes } => {
                (params.size_bytes() / 100).saturating_mul(*percent) / (*row_bytes).max(1)
            }
            RowCount::Empty => 0,
        }
    }

    /// Number of batches to load for `jobs` jobs. Each is computed from its index alone.
    pub fn batches(&self, params: &Params, jobs: u32) -> u64 {
        self.total_rows(params, jobs).div_ceil(self.batch_rows(params))
    }

    pub fn batch(&self, params: &Params, jobs: u32, batch: u64) -> Range<i64> {
        let (rows, total) = (self.batch_rows(params), self.total_rows(params, jobs));
        (batch * rows).min(total) as i64..((batch + 1) * rows).min(total) as i64
    }

    /// First key of `job`, if jobs own rows.
    pub fn first_key(&self, job: u32, params: &Params) -> i64 {
        match self.rows {
            RowCount::PerJob(_) => (u64::from(job) * self.batch_rows(params)) as i64,
            _ => 0,
        }
    }

    /// Fills `row` with the row with `key`, number `index` of its batch, with payloads from the batch's `pool`.
    pub fn row<'a>(&self, key: i64, index: u64, params: &Params, pool: &'a Pool, row: &mut Vec<Datum<'a>>) {
        let payload = |bytes: u32| pool.payload(index, bytes);
        let sized = |size: &str| payload(params.get(size).max(0) as u32);
        let number = |logical, number, length| match logical {
            LogicalType::Int | LogicalType::Bytes => Datum::Int(number),
            _ => Datum::Typed(Typed { logical, number, length }),
        };
        row.clear();
        row.extend(self.columns.iter().map(|column| match &column.fill {
            Fill::Key | Fill::PlainKey => Datum::Int(key),
            Fill::Zero => number(column.logical, 0, 0),
            Fill::Constant(value) => number(column.logical, *value, 0),
            Fill::Scattered { salt, range } => number(column.logical, scatter(key, *salt, *range), 0),
            Fill::Words { length, salt, range } => number(column.logical, scatter(key, *salt, *range), *length),
            Fill::Payload(size) => Datum::Bytes(sized(size)),
            Fill::PayloadOf(bytes) => Datum::Bytes(payload(*bytes)),
            Fill::FirstHalf(size) => Datum::Bytes(&sized(size)[..sized(size).len().div_ceil(2)]),
            Fill::SecondHalf(size) => Datum::Bytes(&sized(size)[sized(size).len().div_ceil(2)..]),
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_has_its_length_and_begins_with_its_number(number in 0_i64..1 << 40, length in 40_u32..2000) {
            for logical in [LogicalType::Text, LogicalType::Json] {
                let text = Typed { logical, number, length }.text();
                prop_assert_eq!(text.len(), length as usize);
                prop_assert!(text.trim_start_matches("{\"id\": ").starts_with(&number.to_string()), "{}", text);
            }
        }
    }

    #[test]
    fn numbers_of_other_types() {
        for (logical, number, text) in [
            (LogicalType::Timestamp, 0, "2000-01-01 00:00:00"),
            (LogicalType::Timestamp, 5_097_599, "2000-02-28 23:59:59"),
            (LogicalType::Timestamp, 68_169_600, "2002-02-28 00:00:00"),
            (LogicalType::Timestamp, 3_155_759_999, "2099-12-31 23:59:59"),
            (LogicalType::Numeric, -5, "-0.05"),
            (LogicalType::Numeric, 123_456, "1234.56"),
            (LogicalType::Boolean, 7, "1"),
        ] {
            assert_eq!(Typed { logical, number, length: 0 }.text(), text);
        }
    }

    #[test]
    fn batches_hold_every_row_once() {
        let w = crate::find("LGWR-LAT1").unwrap();
        let params = w.params(&BTreeMap::new()).unwrap();
        for (rows, total) in [
            (RowCount::PerJob("own-rows".to_owned()), 3 * 128),
            (RowCount::Fixed(10_000), 10_000),
            (RowCount::Fixed(2 * BATCH_ROWS), 2 * BATCH_ROWS),
            (RowCount::Share { percent: 50, row_bytes: 1 << 16 }, (params.size_bytes() / 100 * 50) >> 16),
            (RowCount::Empty, 0),
        ] {
            let table = Table { rows: rows.clone(), ..w.tables[0].clone() };
            let mut next = 0;
            for b in 0..table.batches(&params, 3) {
                let keys = table.batch(&params, 3, b);
                assert!(keys.start == next && !keys.is_empty(), "{rows:?}: {keys:?}");
                next = keys.end;
            }
            assert_eq!(next as u64, total, "{rows:?}");
        }
    }
}
