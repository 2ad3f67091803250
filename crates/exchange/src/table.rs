//! Exports of a run: tables whose columns have a type. `tests` has a row for each test, `series` one for each
//! second or tenth of one, `histograms` one for each bucket, `kinds` one for each script of a mix.

#[cfg(feature = "parquet")]
mod parquet;

use loadline_model::column::{COLUMNS, Cell, VALID};
use loadline_model::format::{Format, csv_line};
use loadline_model::group::distinct;
use loadline_model::{Column, Latencies, Letter, Series, TestRecord};
use serde_json::{Map, Value, json};
use thiserror::Error;

#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub name: &'static str,
    /// Names and types of its columns.
    pub columns: Vec<(String, Kind)>,
    /// Rows with a cell for each column; a missing one is null.
    pub rows: Vec<Vec<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Whole,
    Truth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// RFC 4180 with LF: a header, then a line for each row.
    Csv,
    /// An array with an object for each row.
    Json,
    /// One group of rows, not compressed.
    Parquet,
}

#[derive(Debug, Error)]
pub enum TableError {
    #[error("this loadline was built without Parquet: build it with --features parquet, or export --format csv")]
    WithoutParquet,
    #[error("internal error: the table could not be encoded: {0}; please report it")]
    Encoding(Box<dyn std::error::Error + Send + Sync>),
}

#[derive(Debug, Clone)]
pub struct TestData {
    pub record: TestRecord,
    /// A row for each second, or tenth of one.
    pub series: Series,
    pub histograms: Vec<(String, Latencies)>,
}

pub const TABLES: [&str; 4] = ["tests", "series", "histograms", "kinds"];
const MAKE: [fn(&[TestData]) -> Table; 4] = [tests_table, series_table, histograms_table, kinds_table];

impl Table {
    pub fn new(name: &str, tests: &[TestData]) -> Option<Table> {
        TABLES.iter().zip(MAKE).find(|(known, _)| **known == name).map(|(_, make)| make(tests))
    }

    /// A table of parts of tests: columns that say the test stand before its `own`.
    fn of_parts(name: &'static str, own: &[(&str, Kind)]) -> Table {
        let columns = [("run", Kind::Text), ("test", Kind::Whole)];
        let columns = columns.iter().chain(own).map(|(name, kind)| ((*name).to_owned(), *kind));
        Table { name, columns: columns.collect(), rows: Vec::new() }
    }

    fn push(&mut self, record: &TestRecord, cells: impl IntoIterator<Item = Value>) {
        self.rows.push([json!(record.run), json!(record.test)].into_iter().chain(cells).collect());
    }

    pub fn write(&self, form: Form) -> Result<Vec<u8>, TableError> {
        let names = || self.columns.iter().map(|(name, _)| name.clone());
        match form {
            Form::Csv => {
                let rows = self.rows.iter().map(|row| csv_line(row.iter().map(plain)));
                Ok((csv_line(names()) + &rows.collect::<String>()).into_bytes())
            }
            Form::Json => {
                let row = |row: &Vec<Value>| names().zip(row.iter().cloned()).collect::<Map<_, _>>();
                let text = serde_json::to_vec_pretty(&self.rows.iter().map(row).collect::<Vec<_>>());
                text.map_err(|e| TableError::Encoding(e.into()))
            }
            #[cfg(feature = "parquet")]
            Form::Parquet => parquet::encoded(self).map_err(|e| TableError::Encoding(e.into())),
            #[cfg(not(feature = "parquet"))]
            Form::Parquet => Err(TableError::WithoutParquet),
        }
    }
}

/// A cell as text that reads back as the same value; empty if it is missing.
fn plain(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => n.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

/// Validity, every column that a test has a value in, of three arms or more the one beside a window of A, and why figures are missing.
fn tests_table(tests: &[TestData]) -> Table {
    let has = |column: &&&Column| **column == VALID || tests.iter().any(|t| column.cell(&t.record) != Cell::Absent);
    let columns: Vec<(&Column, Kind)> = COLUMNS.iter().filter(has).map(|column| (*column, kind(column))).collect();
    let beside = |t: &TestData| t.record.variant.as_ref().map(|window| window.beside);
    let are_several = tests.iter().filter_map(beside).any(|arm| arm != Letter::B);
    let row = |t: &TestData| {
        let beside = are_several.then(|| json!(beside(t)));
        let absent = serde_json::to_string(&t.record.absent).map_or(Value::Null, Value::from);
        let cells = columns.iter().map(|(column, kind)| cell(column.cell(&t.record), *kind));
        cells.chain(beside).chain([absent]).collect()
    };
    let rows = tests.iter().map(row).collect();
    let named = columns.iter().map(|(column, kind)| (column.id.to_owned(), *kind));
    let own = are_several.then_some("beside").into_iter().chain(["absent"]);
    Table { name: "tests", columns: named.chain(own.map(|name| (name.to_owned(), Kind::Text))).collect(), rows }
}

/// Numbers are the cells that a column's format shows as such.
fn kind(column: &Column) -> Kind {
    match column.format {
        Format::Text => Kind::Text,
        Format::YesNo => Kind::Truth,
        Format::Integer if !column.is_figure() => Kind::Whole,
        _ => Kind::Number,
    }
}

fn cell(cell: Cell, kind: Kind) -> Value {
    match (cell, kind) {
        (Cell::Text(text), Kind::Text) => json!(text),
        (Cell::Text(text), Kind::Truth) => text.parse::<bool>().map_or(Value::Null, Value::from),
        (Cell::Number(n), Kind::Text) => json!(n.to_string()),
        (Cell::Number(n), Kind::Number) => json!(n),
        (Cell::Number(n), Kind::Whole) => json!(n as i64),
        _ => Value::Null,
    }
}

fn series_table(tests: &[TestData]) -> Table {
    let ids = distinct(tests.iter().flat_map(|t| &t.series.columns));
    let own: Vec<(&str, Kind)> = ids.iter().map(|id| (id.as_str(), Kind::Number)).collect();
    let mut table = Table::of_parts("series", &own);
    for TestData { record, series, .. } in tests {
        let at = |id: &&String| series.columns.iter().position(|known| known == *id);
        let at: Vec<Option<usize>> = ids.iter().map(at).collect();
        for row in &series.rows {
            table.push(record, at.iter().map(|at| json!(at.and_then(|at| row.get(at).copied().flatten()))));
        }
    }
    table
}

/// Buckets with the highest value in each, ns.
fn histograms_table(tests: &[TestData]) -> Table {
    let own = [("kind", Kind::Text), ("up_to_ns", Kind::Whole), ("count", Kind::Whole)];
    let mut table = Table::of_parts("histograms", &own);
    for TestData { record, histograms, .. } in tests {
        for (kind, latencies) in histograms {
            for bucket in latencies.histogram().iter_recorded() {
                let numbers = [bucket.value_iterated_to(), bucket.count_at_value()];
                let [up_to, count] = numbers.map(|n| json!(i64::try_from(n).unwrap_or(i64::MAX)));
                table.push(record, [json!(kind), up_to, count]);
            }
        }
    }
    table
}

/// Kinds of transactions: weight, transactions, throughput, and times of its transactions, ms.
fn kinds_table(tests: &[TestData]) -> Table {
    let [mean, p50, p99, p95] = ["mean_ms", "p50_ms", "p99_ms", "p95_ms"].map(|name| (name, Kind::Number));
    let [weight, transactions] = ["weight", "transactions"].map(|name| (name, Kind::Whole));
    let own = [("kind", Kind::Text), weight, transactions, ("tps", Kind::Number), mean, p50, p99, p95];
    let mut table = Table::of_parts("kinds", &own);
    for TestData { record, .. } in tests {
        for kind in record.kinds() {
            // Null for a kind of which none completed.
            let times = kind.transaction_ns.map(|times| times.map(|ns| json!(ns / 1e6))).unwrap_or_default();
            let own = [json!(kind.name), json!(kind.weight), json!(kind.transactions), json!(kind.tps)];
            table.push(record, own.into_iter().chain(times).chain([json!(kind.p95_ns.map(|ns| ns / 1e6))]));
        }
    }
    table
}
