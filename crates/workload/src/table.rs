//! Tables of a workload: logical types and rows that are a pure function of key and seed.

use crate::payload_offset;
use crate::workload::Params;

/// A column type that every target renders in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogicalType {
    /// 64-bit signed integer.
    Int,
    /// Binary string.
    Bytes,
}

/// What a column holds when the row is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The row's key.
    Key,
    /// Zero.
    Zero,
    /// A payload of the size that the named parameter gives.
    Payload(&'static str),
}

/// A column of a table. No column may be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDef {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub logical: LogicalType,
    /// Initial contents.
    pub fill: Fill,
}

/// A table of which each job owns a range of rows: job `j` has the keys `j·rows … (j+1)·rows − 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Name in templates, and (with a prefix or schema) in the database.
    pub name: &'static str,
    /// Columns; the first is the primary key.
    pub columns: &'static [ColumnDef],
    /// The parameter that says how many rows a job owns.
    pub rows_per_job: &'static str,
    /// Whether rows are updated in place over and over: a target then leaves room in its pages.
    pub updated_in_place: bool,
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datum<'a> {
    /// Of [`LogicalType::Int`].
    Int(i64),
    /// Of [`LogicalType::Bytes`].
    Bytes(&'a [u8]),
}

impl Table {
    /// Number of rows that a job owns.
    #[must_use]
    pub fn rows(&self, params: &Params) -> u64 {
        params.get(self.rows_per_job).max(1) as u64
    }

    /// First key of `job`.
    #[must_use]
    pub fn first_key(&self, job: u32, params: &Params) -> i64 {
        (u64::from(job) * self.rows(params)) as i64
    }

    /// Row number `index` of `job`, cut from the job's `pool`.
    pub fn row<'a>(&self, job: u32, index: u64, params: &Params, pool: &'a [u8]) -> Vec<Datum<'a>> {
        self.columns
            .iter()
            .map(|column| match column.fill {
                Fill::Key => Datum::Int(self.first_key(job, params) + index as i64),
                Fill::Zero => Datum::Int(0),
                Fill::Payload(size) => {
                    let bytes = params.get(size).max(0) as u32;
                    let start = payload_offset(index, bytes).min(pool.len());
                    let end = (start + bytes as usize).min(pool.len());
                    Datum::Bytes(&pool[start..end])
                }
            })
            .collect()
    }
}
