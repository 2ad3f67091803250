//! Tables with a row per metric are turned into ones with a row per test; other shapes are refused by name.

use super::{ReadError, Remark, Shape, Table};
use crate::audit::header::Header;
use crate::audit::number::{self, Cell, Style};
use crate::audit::reason::reason;
use crate::audit::words::is_text;

/// Metrics looked at to recognise the shape.
const SAMPLE: usize = 200;

/// Words for a column of metrics.
const METRICS: [&str; 8] =
    ["metric", "metrics", "measure", "measurement", "statistic", "kpi", "indicator", "parameter"];

/// The table with a row per test.
pub(super) fn row_per_test(table: Table) -> Result<Table, ReadError> {
    let lower: Vec<String> = table.headers.iter().map(|h| h.to_lowercase()).collect();
    let has = |part: &str| lower.iter().any(|h| h.trim_start_matches("column ").starts_with(part));
    if has("per second") && has("per trans") {
        return Err(Shape::Awr.into());
    }
    let is_metric = |text: &str| Header::parse(text).meaning(true).is_some_and(|m| !is_text(m.id));
    let rows = table.rows().min(SAMPLE);
    let metrics = table.cells(0, SAMPLE).filter(|cell| is_metric(cell)).count();
    let named = lower.first().is_some_and(|h| METRICS.contains(&h.trim_matches('*')));
    let tests = table.headers.iter().skip(1).filter(|h| is_metric(h)).count();
    if metrics >= 2 && metrics * 2 >= rows && tests == 0 && table.rows() <= SAMPLE && table.headers.len() > 1 {
        return turned(&table);
    }
    if named && tests == 0 { Err(Shape::MetricsAsRows.into()) } else { Ok(table) }
}

/// Whether a column holds changes: signs or percentages where the metrics are no shares.
fn is_change(table: &Table, column: usize) -> bool {
    let words = Header::parse(&table.headers[column]).words;
    const NAMES: &str = "delta δ diff difference change gain improvement speedup ratio factor vs %";
    if words.iter().any(|word| NAMES.split(' ').any(|n| n == word)) {
        return true;
    }
    let (mut all, mut changes) = (0, 0);
    for row in 0..table.rows() {
        let share = table.cell(row, 0).contains('%');
        if let Cell::Number(n) = number::read(table.cell(row, column), Some(Style::Point)) {
            all += 1;
            changes += usize::from(n.plus || n.value < 0.0 || !share && matches!(n.unit, "%" | "x" | "×"));
        }
    }
    changes * 2 > all
}

fn turned(table: &Table) -> Result<Table, ReadError> {
    let is_units = |h: &String| matches!(h.to_lowercase().as_str(), "unit" | "units");
    let units = table.headers.iter().position(is_units);
    let (changes, tests): (Vec<usize>, Vec<usize>) =
        (1..table.headers.len()).filter(|c| Some(*c) != units).partition(|c| is_change(table, *c));
    let count = |header: &str| match number::read(header, Some(Style::Point)) {
        Cell::Number(n) => Some(n.unit.to_owned()),
        _ => None,
    };
    // `8 clients`, `32 clients`: what is counted names the column.
    let counted = tests.iter().map(|c| count(&table.headers[*c])).collect::<Option<Vec<String>>>();
    let counted = counted.and_then(|all| all.into_iter().next_back()).filter(|unit| !unit.is_empty());
    let label = counted.clone().unwrap_or_else(|| "configuration".to_owned());
    let header = |row: usize| match units {
        Some(unit) if !table.cell(row, unit).is_empty() => {
            format!("{} [{}]", table.cell(row, 0), table.cell(row, unit))
        }
        _ => table.cell(row, 0).to_owned(),
    };
    let mut made = Table::new(std::iter::once(label).chain((0..table.rows()).map(header)));
    made.name.clone_from(&table.name);
    made.remarks.push(Remark { row: None, odd: false, reason: reason!(Turned, tests.len()) });
    for column in changes {
        let reason = reason!(Changes, &table.headers[column]);
        made.remarks.push(Remark { row: None, odd: false, reason });
    }
    for column in tests {
        let name = table.headers[column].as_str();
        let name = if counted.is_some() { name.trim_end_matches(|c: char| !c.is_ascii_digit()) } else { name };
        let cells: Vec<&str> = std::iter::once(name).chain(table.cells(column, usize::MAX)).collect();
        made.push(cells.into_iter())?;
    }
    if made.rows() == 0 { Err(Shape::MetricsAsRows.into()) } else { Ok(made) }
}
