//! Tables for scripts: one with all tests of all runs, and any other in CSV and JSON.

use loadline_model::Column;
use loadline_model::column::{self, Cell};
use loadline_model::format::csv_line;
use serde_json::{Map, Value};

use crate::doc::Document;
use crate::{Format, ReportError, RunData, columns, templates, text};

/// A column of a table: its name, and what it holds of a row.
pub(crate) type Named<'a, T> = (&'static str, &'a dyn Fn(&T) -> String);

/// A header of the columns' names, then a line per row.
pub(crate) fn table<T>(columns: &[Named<'_, T>], rows: impl IntoIterator<Item = T>) -> String {
    let line = |row: T| csv_line(columns.iter().map(|(_, cell)| cell(&row)));
    csv_line(columns.iter().map(|(name, _)| name)) + &rows.into_iter().map(line).collect::<String>()
}

/// A cell as text.
pub(crate) fn cell(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        cell => number(cell.as_f64()),
    }
}

/// For scripts `rows` of `columns`, for people the document.
pub(crate) fn written<const N: usize>(
    format: Format,
    columns: [&str; N],
    rows: &[[Value; N]],
    document: impl FnOnce() -> Document,
) -> Result<String, ReportError> {
    let object = |row: &[Value; N]| columns.iter().map(|id| (*id).to_owned()).zip(row.clone()).collect();
    Ok(match format {
        Format::Csv => csv_line(columns) + &rows.iter().map(|row| csv_line(row.iter().map(cell))).collect::<String>(),
        Format::Json => serde_json::to_string_pretty(&rows.iter().map(object).collect::<Vec<Map<_, _>>>())? + "\n",
        Format::Html => templates::html(&document(), false),
        Format::Markdown => templates::markdown(&document()),
        Format::Text => text::render(&document()),
    })
}

/// A number as files have it; empty if it is missing.
pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or_else(String::new, |v| v.to_string())
}

/// A header of column ids, then one line per test. A missing figure is an empty cell, and so is the validity of published tests,
/// which nobody has checked.
pub(crate) fn render(runs: &[RunData], chosen: Option<&[&'static Column]>) -> String {
    let records = || runs.iter().flat_map(|run| run.records.iter().map(move |r| (run, r)));
    let columns = chosen.map_or_else(|| columns::of_files(records().map(|(_, r)| r)), <[_]>::to_vec);
    let mut out = csv_line(columns.iter().map(|c| c.id));
    for (run, record) in records() {
        out.push_str(&csv_line(columns.iter().map(|c| match c.cell(record) {
            Cell::Number(n) if !n.is_finite() => String::new(),
            _ if *c == column::VALID && run.published.is_some() => String::new(),
            _ => c.plain(record),
        })));
    }
    out
}
