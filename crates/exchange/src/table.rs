//! What is exported of a run: tables whose columns have a type, and their forms. `tests` has a row for each test, `series` one for each
//! second, `histograms` one for each bucket.

use loadline_model::column::{COLUMNS, Cell, VALID};
use loadline_model::format::{Format, csv_line};
use loadline_model::{Column, Latencies, Series, TestRecord};
use serde_json::{Map, Value};
use thiserror::Error;

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name, also of its file.
    pub name: &'static str,
    /// Columns, all of one length.
    pub columns: Vec<(String, Values)>,
}

/// Values of a column; `None` is a missing one.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Text.
    Text(Vec<Option<String>>),
    /// Numbers in the column's unit.
    Number(Vec<Option<f64>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// True or false.
    Truth(Vec<Option<bool>>),
}

/// All of one test.
#[derive(Debug, Clone)]
pub struct TestData {
    /// Its record.
    pub record: TestRecord,
    /// A row for each second.
    pub series: Series,
    /// Latencies in ns by kind.
    pub histograms: Vec<(String, Latencies)>,
}

/// A form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// RFC 4180 with LF: a header, then a line for each row.
    Csv,
    /// An array with an object for each row.
    Json,
    /// One group of rows, not compressed.
    Parquet,
}

/// A table could not be written.
#[derive(Debug, Error)]
pub enum TableError {
    /// This loadline lacks the form.
    #[error("this loadline was built without Parquet: build it with --features parquet, or export --format csv")]
    WithoutParquet,
    /// A bug in loadline.
    #[error("the table '{table}' could not be written; this is a bug in loadline, please report it: {source}")]
    Encoding {
        /// Name of the table.
        table: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Names of the tables.
pub const TABLES: [&str; 3] = ["tests", "series", "histograms"];

/// Cells of a table are read by row.
macro_rules! each_kind {
    ($values:expr, $all:ident => $what:expr) => {
        match $values {
            Values::Text($all) => $what,
            Values::Number($all) => $what,
            Values::Whole($all) => $what,
            Values::Truth($all) => $what,
        }
    };
}

impl Values {
    /// The cell in `row` as text that reads back as the same value; empty if it is missing.
    fn plain(&self, row: usize) -> String {
        each_kind!(self, all => all.get(row).and_then(Option::as_ref).map_or_else(String::new, ToString::to_string))
    }

    fn json(&self, row: usize) -> Value {
        each_kind!(self, all => all.get(row).cloned().flatten().map_or(Value::Null, Value::from))
    }
}

impl Table {
    /// The table called `name`; `None` if there is none.
    #[must_use]
    pub fn new(name: &str, tests: &[TestData]) -> Option<Table> {
        match name {
            "tests" => Some(tests_table(tests)),
            "series" => Some(series_table(tests)),
            "histograms" => Some(histograms_table(tests)),
            _ => None,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| each_kind!(values, all => all.len()))
    }

    /// The table as a file.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn write(&self, form: Form) -> Result<Vec<u8>, TableError> {
        match form {
            Form::Csv => {
                let mut out = csv_line(self.columns.iter().map(|(name, _)| name));
                for row in 0..self.rows() {
                    out.push_str(&csv_line(self.columns.iter().map(|(_, values)| values.plain(row))));
                }
                Ok(out.into_bytes())
            }
            Form::Json => {
                let row = |row| {
                    let cells = self.columns.iter().map(|(name, values)| (name.clone(), values.json(row)));
                    Value::Object(cells.collect::<Map<_, _>>())
                };
                let rows: Vec<Value> = (0..self.rows()).map(row).collect();
                let text = serde_json::to_string_pretty(&rows);
                let wrong = |e: serde_json::Error| TableError::Encoding { table: self.name, source: e.into() };
                text.map(|text| (text + "\n").into_bytes()).map_err(wrong)
            }
            #[cfg(feature = "parquet")]
            Form::Parquet => {
                crate::parquet::encoded(self).map_err(|e| TableError::Encoding { table: self.name, source: e.into() })
            }
            #[cfg(not(feature = "parquet"))]
            Form::Parquet => Err(TableError::WithoutParquet),
        }
    }
}

/// Run and number of the test for each row.
fn keys<'a>(rows: impl Iterator<Item = &'a TestRecord> + Clone) -> Vec<(String, Values)> {
    let runs = Values::Text(rows.clone().map(|r| Some(r.run.clone())).collect());
    let tests = Values::Whole(rows.map(|r| Some(i64::from(r.test))).collect());
    vec![("run".to_owned(), runs), ("test".to_owned(), tests)]
}

/// Validity, and every column that a test has a value in, in the order of `loadline columns`; then why figures are missing, as JSON.
fn tests_table(tests: &[TestData]) -> Table {
    let records = || tests.iter().map(|t| &t.record);
    let has = |column: &&&Column| **column == VALID || records().any(|r| column.cell(r) != Cell::Absent);
    let mut columns: Vec<(String, Values)> =
        COLUMNS.iter().filter(has).map(|column| (column.id.to_owned(), values(column, records()))).collect();
    let absent = records().map(|r| serde_json::to_string(&r.absent).ok()).collect();
    columns.push(("absent".to_owned(), Values::Text(absent)));
    Table { name: "tests", columns }
}

/// The cells of `column`: what its format shows as a number is one.
fn values<'a>(column: &Column, records: impl Iterator<Item = &'a TestRecord>) -> Values {
    let text = |cell: Cell| match cell {
        Cell::Text(text) => Some(text),
        Cell::Number(n) => Some(n.to_string()),
        Cell::Absent => None,
    };
    let number = |cell: Cell| match cell {
        Cell::Number(n) if n.is_finite() => Some(n),
        _ => None,
    };
    let cells = records.map(|r| column.cell(r));
    match column.format {
        Format::Text => Values::Text(cells.map(text).collect()),
        Format::YesNo => Values::Truth(cells.map(|cell| text(cell)?.parse().ok()).collect()),
        Format::Integer if !column.is_figure() => {
            Values::Whole(cells.map(|cell| number(cell).map(|n| n as i64)).collect())
        }
        _ => Values::Number(cells.map(number).collect()),
    }
}

fn series_table(tests: &[TestData]) -> Table {
    let mut ids: Vec<&String> = Vec::new();
    for id in tests.iter().flat_map(|t| &t.series.columns) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let mut columns = keys(tests.iter().flat_map(|t| t.series.rows.iter().map(move |_| &t.record)));
    for id in ids {
        let cells = |t: &TestData| t.series.column(id).unwrap_or_else(|| vec![None; t.series.rows.len()]);
        columns.push((id.clone(), Values::Number(tests.iter().flat_map(cells).collect())));
    }
    Table { name: "series", columns }
}

/// Buckets with the highest value in each, ns.
fn histograms_table(tests: &[TestData]) -> Table {
    let mut rows: Vec<(&TestRecord, &str, i64, i64)> = Vec::new();
    for test in tests {
        for (kind, latencies) in &test.histograms {
            for bucket in latencies.histogram().iter_recorded() {
                let [value, count] =
                    [bucket.value_iterated_to(), bucket.count_at_value()].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
                rows.push((&test.record, kind, value, count));
            }
        }
    }
    let mut columns = keys(rows.iter().map(|(record, ..)| *record));
    let kinds = Values::Text(rows.iter().map(|(_, kind, ..)| Some((*kind).to_owned())).collect());
    let values = Values::Whole(rows.iter().map(|(.., value, _)| Some(*value)).collect());
    let counts = Values::Whole(rows.iter().map(|(.., count)| Some(*count)).collect());
    columns
        .extend([("kind", kinds), ("up_to_ns", values), ("count", counts)].map(|(name, all)| (name.to_owned(), all)));
    Table { name: "histograms", columns }
}
