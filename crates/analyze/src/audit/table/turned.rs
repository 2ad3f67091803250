//! Tables with a row per metric are turned into ones with a row per test; other shapes are refused by name.

use super::{Shape, Table};
use crate::audit::finding::Reason;
use crate::audit::header::{Header, is_text};
use crate::audit::number::{Number, with_point};

const MOST: usize = 200;
/// Words for a column of metrics, and for changes.
const METRICS: [&str; 7] = ["metric", "metrics", "measure", "measurement", "statistic", "kpi", "indicator"];
const CHANGES: &str = "delta δ diff difference change gain improvement speedup ratio factor vs %";

/// The table with a row per test, if it is another one.
pub(super) fn row_per_test(table: &Table) -> Result<Option<Table>, Shape> {
    let lower: Vec<String> = table.headers.iter().map(|h| h.to_lowercase()).collect();
    let has = |part: &str| lower.iter().any(|h| h.starts_with(part));
    if has("per second") && has("per trans") {
        return Err(Shape::Awr);
    }
    let is_metric = |text: &str| Header::parse(text).meaning(true).is_some_and(|found| !is_text(found.id));
    if table.headers.iter().skip(1).any(|h| is_metric(h)) || table.rows() > MOST {
        return Ok(None);
    }
    let metrics = table.cells(0, MOST).filter(|cell| is_metric(cell)).count();
    if metrics >= 2 && metrics * 2 >= table.rows() && table.headers.len() > 1 {
        return turned(table).map(Some);
    }
    if METRICS.contains(&lower[0].trim_matches('*')) { Err(Shape::MetricsAsRows) } else { Ok(None) }
}

/// Whether a column holds changes: by its name, or by signs and percentages where the metrics are no shares.
fn is_change(table: &Table, column: usize) -> bool {
    let cells = || (0..table.rows()).filter_map(|row| Some((row, with_point(table.cell(row, column))?)));
    let relative = |row: usize, n: Number<'_>| !table.cell(row, 0).contains('%') && matches!(n.unit, "%" | "x" | "×");
    let changes = cells().filter(|(row, n)| n.plus || n.value < 0.0 || relative(*row, *n)).count();
    let named = |word: &String| CHANGES.split(' ').any(|n| n == word);
    changes * 2 > cells().count() || Header::parse(&table.headers[column]).words.iter().any(named)
}

fn turned(table: &Table) -> Result<Table, Shape> {
    let units = table.headers.iter().position(|h| h.to_lowercase().starts_with("unit"));
    let (changes, tests): (Vec<usize>, Vec<usize>) =
        (1..table.headers.len()).filter(|c| Some(*c) != units).partition(|c| is_change(table, *c));
    // `8 clients`, `32 clients`: what is counted names the column; `Clients`, `8`, `32`: the first one does.
    let unit = |c: &usize| with_point(&table.headers[*c]).map(|n| n.unit);
    let counted = tests.iter().map(unit).collect::<Option<Vec<_>>>().and_then(|units| units.first().copied());
    let counted = counted.map(|unit| if unit.is_empty() { table.headers[0].as_str() } else { unit });
    let metric = |row: usize| match units.map(|unit| table.cell(row, unit)) {
        Some(unit) if !unit.is_empty() => format!("{} [{unit}]", table.cell(row, 0)),
        _ => table.cell(row, 0).to_owned(),
    };
    let label = std::iter::once(counted.unwrap_or("configuration").to_owned());
    let mut made = Table::new(&label.chain((0..table.rows()).map(metric)).collect::<Vec<_>>());
    (made.name, made.more_remarks) = (table.name.clone(), table.more_remarks);
    // What could not be used of its lines is no metric now.
    table.remarks.iter().for_each(|remark| made.remark(None, remark.odd, remark.reason.clone()));
    made.remark(None, false, Reason::Turned(tests.len()));
    changes.iter().for_each(|column| made.remark(None, false, Reason::Changes(table.headers[*column].clone())));
    for column in &tests {
        let name = table.headers[*column].as_str();
        let name = if counted.is_some() { name.trim_end_matches(|c: char| !c.is_ascii_digit()) } else { name };
        made.push(&std::iter::once(name).chain(table.cells(*column, MOST)).collect::<Vec<_>>());
    }
    if tests.is_empty() { Err(Shape::MetricsAsRows) } else { Ok(made) }
}
