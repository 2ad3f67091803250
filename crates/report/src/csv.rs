//! One CSV table with all tests of all runs.

use loadline_model::Column;
use loadline_model::column::{self, Cell};
use loadline_model::format::csv_line;

use crate::{RunData, columns};

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
