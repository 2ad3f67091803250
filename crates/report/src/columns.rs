//! Selects the columns of tables and formats numbers in a column's format.

use loadline_model::column::{COLUMNS, column};
use loadline_model::format::{self, Format, nearest};
use loadline_model::{Column, Table, TestRecord};

use crate::ReportError;
use crate::words::distinct;

/// The columns named by `ids`; `None` without `ids`.
pub(crate) fn chosen(ids: Option<&[String]>) -> Result<Option<Vec<&'static Column>>, ReportError> {
    let Some(ids) = ids else { return Ok(None) };
    let wanted: Vec<&str> = ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty()).collect();
    if wanted.is_empty() {
        return Err(ReportError::NoColumn);
    }
    let all = || COLUMNS.iter().map(|c| c.id);
    let find = |id: &&str| {
        column(id).ok_or_else(|| {
            let nearest = nearest(id, all());
            let others = all().filter(|c| c.contains(&id.to_lowercase()) && nearest != Some(*c));
            ReportError::UnknownColumn {
                given: (*id).to_owned(),
                near: nearest.into_iter().chain(others).take(4).collect(),
            }
        })
    };
    wanted.iter().map(find).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Columns of files that hold `records`: those of every group's table, each once.
pub(crate) fn of_files<'a>(records: impl Iterator<Item = &'a TestRecord>) -> Vec<&'static Column> {
    let mut groups: Vec<&str> = records.map(|r| r.group.as_str()).collect();
    groups.dedup();
    if groups.is_empty() {
        groups.push("");
    }
    distinct(groups.iter().flat_map(|g| Table::for_group(g).file_columns()))
}

/// `n` (in the column's stored unit) in the format of the column.
pub(crate) fn value(column: &Column, n: f64) -> String {
    match column.format {
        Format::Integer => format::whole(n),
        Format::Fixed(decimals) => format::number(n, decimals),
        Format::NsAsMs => format::number(n / 1e6, 3),
        Format::Text | Format::YesNo => n.to_string(),
    }
}

/// By what a stored value of `column` is multiplied to have the unit that is shown.
pub(crate) fn scale(column: &Column) -> f64 {
    if column.format == Format::NsAsMs { 1e-6 } else { 1.0 }
}

/// Whether cells of `column` are aligned right.
pub(crate) fn is_numeric(column: &Column) -> bool {
    !matches!(column.format, Format::Text | Format::YesNo)
}
