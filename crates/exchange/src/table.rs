//! What is exported of a run: tables whose columns have a type. `tests` has a row for each test, `series` one for each second,
//! `histograms` one for each bucket.

use loadline_model::column::{COLUMNS, Cell, VALID};
use loadline_model::format::{Format, csv_line};
use loadline_model::{Column, Latencies, Series, TestRecord};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
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

/// Names of the tables.
pub const TABLES: [&str; 3] = ["tests", "series", "histograms"];

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Text(all) => all.len(),
            Values::Number(all) => all.len(),
            Values::Whole(all) => all.len(),
            Values::Truth(all) => all.len(),
        }
    }

    /// The cell in `row` as text that reads back as the same value; empty if it is missing.
    fn plain(&self, row: usize) -> String {
        fn shown<T: ToString>(all: &[Option<T>], row: usize) -> String {
            all.get(row).and_then(Option::as_ref).map_or_else(String::new, T::to_string)
        }
        match self {
            Values::Text(all) => shown(all, row),
            Values::Number(all) => shown(all, row),
            Values::Whole(all) => shown(all, row),
            Values::Truth(all) => shown(all, row),
        }
    }
}

impl Exported {
    /// The table called `name`; `None` if there is none.
    #[must_use]
    pub fn of(name: &str, tests: &[TestData]) -> Option<Exported> {
        match name {
            "tests" => Some(of_tests(tests)),
            "series" => Some(of_series(tests)),
            "histograms" => Some(of_histograms(tests)),
            _ => None,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }

    /// As CSV (RFC 4180 with LF): a header, then a line for each row.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = csv_line(self.columns.iter().map(|(name, _)| name));
        for row in 0..self.rows() {
            out.push_str(&csv_line(self.columns.iter().map(|(_, values)| values.plain(row))));
        }
        out
    }
}

/// Run and number of the test for each row.
fn keys<'a>(rows: impl Iterator<Item = &'a TestRecord> + Clone) -> Vec<(String, Values)> {
    let runs = Values::Text(rows.clone().map(|r| Some(r.run.clone())).collect());
    let tests = Values::Whole(rows.map(|r| Some(i64::from(r.test))).collect());
    vec![("run".to_owned(), runs), ("test".to_owned(), tests)]
}

/// Validity, and every column that a test has a value in, in the order of `loadline columns`; then why figures are missing, as JSON.
fn of_tests(tests: &[TestData]) -> Exported {
    let records = || tests.iter().map(|t| &t.record);
    let has = |column: &&&Column| **column == VALID || records().any(|r| column.cell(r) != Cell::Absent);
    let mut columns: Vec<(String, Values)> =
        COLUMNS.iter().filter(has).map(|column| (column.id.to_owned(), values(column, records()))).collect();
    let absent = records().map(|r| serde_json::to_string(&r.absent).ok()).collect();
    columns.push(("absent".to_owned(), Values::Text(absent)));
    Exported { name: "tests", columns }
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

fn of_series(tests: &[TestData]) -> Exported {
    let mut ids: Vec<&String> = Vec::new();
    for id in tests.iter().flat_map(|t| &t.series.columns) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let rows = tests.iter().flat_map(|t| t.series.rows.iter().map(move |_| &t.record));
    let mut columns = keys(rows);
    for id in ids {
        let of = |t: &TestData| t.series.column(id).unwrap_or_else(|| vec![None; t.series.rows.len()]);
        columns.push((id.clone(), Values::Number(tests.iter().flat_map(of).collect())));
    }
    Exported { name: "series", columns }
}

/// Buckets with the highest value in each, ns.
fn of_histograms(tests: &[TestData]) -> Exported {
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
    columns
        .push(("kind".to_owned(), Values::Text(rows.iter().map(|(_, kind, ..)| Some((*kind).to_owned())).collect())));
    columns.push(("up_to_ns".to_owned(), Values::Whole(rows.iter().map(|(.., value, _)| Some(*value)).collect())));
    columns.push(("count".to_owned(), Values::Whole(rows.iter().map(|(.., count)| Some(*count)).collect())));
    Exported { name: "histograms", columns }
}
