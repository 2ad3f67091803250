//! What is exported of a run: tables whose columns have a type. `tests` has a row for each test, `series` one for each
//! second, `histograms` one for each bucket, `kinds` one for each script of a mix.

use loadline_model::column::{COLUMNS, Cell, VALID};
use loadline_model::format::Format;
use loadline_model::{Column, Latencies, Series, TestRecord};
use serde_json::{Value, json};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name, also of its file.
    pub name: &'static str,
    /// Names and types of its columns.
    pub columns: Vec<(String, Kind)>,
    /// Rows with a cell for each column; a missing one is null.
    pub rows: Vec<Vec<Value>>,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Its names say what each is.
pub enum Kind {
    Text,
    Number,
    Whole,
    Truth,
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

/// Names of the tables.
pub const TABLES: [&str; 4] = ["tests", "series", "histograms", "kinds"];

impl Table {
    /// The table called `name`; `None` if there is none.
    #[must_use]
    pub fn new(name: &str, tests: &[TestData]) -> Option<Table> {
        match name {
            "tests" => Some(tests_table(tests)),
            "series" => Some(series_table(tests)),
            "histograms" => Some(histograms_table(tests)),
            "kinds" => Some(kinds_table(tests)),
            _ => None,
        }
    }
}

fn keys() -> Vec<(String, Kind)> {
    vec![("run".to_owned(), Kind::Text), ("test".to_owned(), Kind::Whole)]
}

/// Validity, and every column that a test has a value in, in the order of `loadline columns`; then why figures are missing, as JSON.
fn tests_table(tests: &[TestData]) -> Table {
    let has = |column: &&&Column| **column == VALID || tests.iter().any(|t| column.cell(&t.record) != Cell::Absent);
    let columns: Vec<(&Column, Kind)> = COLUMNS.iter().filter(has).map(|column| (*column, kind(column))).collect();
    let row = |t: &TestData| {
        let mut row: Vec<Value> = columns.iter().map(|(column, kind)| cell(column.cell(&t.record), *kind)).collect();
        row.push(serde_json::to_string(&t.record.absent).map_or(Value::Null, Value::from));
        row
    };
    let rows = tests.iter().map(row).collect();
    let named = columns.iter().map(|(column, kind)| (column.id.to_owned(), *kind));
    Table { name: "tests", columns: named.chain([("absent".to_owned(), Kind::Text)]).collect(), rows }
}

/// What a column's format shows as a number is one.
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
    let mut columns = keys();
    for id in tests.iter().flat_map(|t| &t.series.columns) {
        if !columns.iter().any(|(known, _)| known == id) {
            columns.push((id.clone(), Kind::Number));
        }
    }
    let mut rows = Vec::new();
    for TestData { record, series, .. } in tests {
        let at = |id: &String| series.columns.iter().position(|known| known == id);
        let at: Vec<Option<usize>> = columns.iter().skip(2).map(|(id, _)| at(id)).collect();
        for row in &series.rows {
            let cells = at.iter().map(|at| json!(at.and_then(|at| row.get(at).copied().flatten())));
            rows.push([json!(record.run), json!(record.test)].into_iter().chain(cells).collect());
        }
    }
    Table { name: "series", columns, rows }
}

/// Buckets with the highest value in each, ns.
fn histograms_table(tests: &[TestData]) -> Table {
    let mut rows = Vec::new();
    for TestData { record, histograms, .. } in tests {
        for (kind, latencies) in histograms {
            for bucket in latencies.histogram().iter_recorded() {
                let [up_to, count] =
                    [bucket.value_iterated_to(), bucket.count_at_value()].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
                rows.push(vec![json!(record.run), json!(record.test), json!(kind), json!(up_to), json!(count)]);
            }
        }
    }
    let own = [("kind", Kind::Text), ("up_to_ns", Kind::Whole), ("count", Kind::Whole)];
    let own = own.map(|(name, kind)| (name.to_owned(), kind));
    Table { name: "histograms", columns: keys().into_iter().chain(own).collect(), rows }
}

/// What each script of a mix did: weight, throughput, and times of its transactions, ms.
fn kinds_table(tests: &[TestData]) -> Table {
    let mut rows = Vec::new();
    for TestData { record, .. } in tests {
        for kind in &record.kinds {
            // Null for a script of which none completed.
            let times = kind.transaction_ns.map(|times| times.map(|ns| json!(ns / 1e6))).unwrap_or_default();
            let did = [json!(record.run), json!(record.test), json!(kind.name), json!(kind.weight), json!(kind.tps)];
            rows.push(did.into_iter().chain(times).collect());
        }
    }
    let own = [("kind", Kind::Text), ("weight", Kind::Whole), ("tps", Kind::Number)];
    let times = ["mean_ms", "p50_ms", "p99_ms"].map(|name| (name, Kind::Number));
    let own = own.into_iter().chain(times).map(|(name, kind)| (name.to_owned(), kind));
    Table { name: "kinds", columns: keys().into_iter().chain(own).collect(), rows }
}
