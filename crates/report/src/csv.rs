//! One CSV table with all tests of all runs.

use loadline_model::Column;
use loadline_model::column::{self, Cell};

use crate::{RunData, columns};

/// A header of column ids, then one line per test. A missing figure is an empty cell, and so is the validity of published tests,
/// which nobody has checked.
pub(crate) fn render(runs: &[RunData], chosen: Option<&[&'static Column]>) -> String {
    let records = || runs.iter().flat_map(|run| run.records.iter().map(move |r| (run, r)));
    let columns = chosen.map_or_else(|| columns::of_files(records().map(|(_, r)| r)), <[_]>::to_vec);
    let mut out = line(columns.iter().map(|c| c.id.to_owned()));
    for (run, record) in records() {
        out.push_str(&line(columns.iter().map(|c| match c.cell(record) {
            Cell::Number(n) if !n.is_finite() => String::new(),
            _ if *c == column::VALID && run.published.is_some() => String::new(),
            _ => c.plain(record),
        })));
    }
    out
}

/// One line.
pub(crate) fn line(cells: impl Iterator<Item = String>) -> String {
    let mut out = cells.map(|c| quoted(&c)).collect::<Vec<_>>().join(",");
    out.push('\n');
    out
}

/// `cell`, quoted as in RFC 4180.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
