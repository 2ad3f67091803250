//! Parameters and tables of a workload file.

use super::reader::{Fields, Source, Value};
use super::{MAX_ROWS, UserError, leak};
use crate::params::Param;
use crate::table::{ColumnDef, Fill, LogicalType, RowCount, Scope, Table};

/// Largest payload, bytes: it fits a column of every database.
pub(super) const MAX_PAYLOAD: i64 = 2000;
/// Largest sum of a row's payloads, bytes: it fits a page of every database.
const MAX_ROW_BYTES: i64 = 6000;
/// Longest name of a table or column: an index name, which includes the workload's code, still fits every database.
const MAX_NAME: usize = 20;

pub(super) fn params(source: &Source<'_>, fields: &Fields<'_, '_>) -> Result<Vec<Param>, UserError> {
    let mut out: Vec<Param> = Vec::new();
    for value in fields.list("parameter")? {
        let f = source.fields(value, "a parameter", &["name", "default", "min", "max", "meaning"])?;
        let at = f.required("name")?;
        let name = source.name(at, "the parameter", '-', 30)?;
        unique(source, at, "parameter", &name, out.iter().map(|p| p.name))?;
        let all = (i64::MIN, i64::MAX);
        let number =
            |key: &str, range| source.integer(f.required(key)?, &format!("'{key}' of the parameter '{name}'"), range);
        let min = number("min", all)?;
        let max = number("max", (min, i64::MAX))?;
        let default = number("default", (min, max))?;
        out.push(Param { name: leak(name.clone()), default, min, max, meaning: leak(f.text("meaning")?) });
    }
    Ok(out)
}

pub(super) fn unique<'k>(
    source: &Source<'_>,
    at: &Value<'_>,
    what: &str,
    name: &str,
    mut known: impl Iterator<Item = &'k str>,
) -> Result<(), UserError> {
    if known.any(|k| k == name) {
        return Err(source.error(at.span(), format!("the {what} '{name}' is defined twice: remove or rename one")));
    }
    Ok(())
}

pub(super) fn tables(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    params: &'static [Param],
) -> Result<Vec<Table>, UserError> {
    let mut out: Vec<Table> = Vec::new();
    for value in fields.list("table")? {
        let f = source.fields(value, "a table", &["name", "rows", "updated-in-place", "indexes", "column"])?;
        let at = f.required("name")?;
        let name = source.name(at, "the table", '_', MAX_NAME)?;
        unique(source, at, "table", &name, out.iter().map(|t| t.name))?;
        let columns = columns(source, &f, &name, params)?;
        let mut indexes: Vec<&'static str> = Vec::new();
        for index in f.list("indexes")? {
            let column = source.text(index, "an index")?;
            let Some(found) = columns.iter().find(|c| c.name == column) else {
                let what = format!("the column of an index of '{name}'");
                return Err(source.unknown(index, &what, column, columns.iter().map(|c| c.name)));
            };
            unique(source, index, "index", column, indexes.iter().copied())?;
            indexes.push(found.name);
        }
        let updated_in_place = match f.optional("updated-in-place") {
            None => false,
            Some(v) => v.get_ref().as_bool().ok_or_else(|| {
                source.error(v.span(), format!("'updated-in-place' of the table '{name}' must be true or false"))
            })?,
        };
        out.push(Table {
            name: leak(&name),
            columns: columns.leak(),
            rows: rows(source, f.required("rows")?, &name, params)?,
            scope: Scope::Workload,
            updated_in_place,
            indexes: indexes.leak(),
        });
    }
    if out.is_empty() {
        return Err(fields.error("the workload has no table: add one with [[table]]".to_owned()));
    }
    Ok(out)
}

fn rows(source: &Source<'_>, value: &Value<'_>, table: &str, params: &[Param]) -> Result<RowCount, UserError> {
    let what = format!("'rows' of the table '{table}'");
    let range = (1, MAX_ROWS);
    if value.get_ref().is_str() {
        source.word(value, &what, &["empty"])?;
        return Ok(RowCount::Empty);
    }
    if value.get_ref().is_integer() {
        return Ok(RowCount::Fixed(source.integer(value, &what, range)? as u64));
    }
    let f = source.fields(value, &what, &["total", "per-job"])?;
    match (f.optional("total"), f.optional("per-job")) {
        (Some(v), None) => Ok(RowCount::Total(source.param(v, &what, params, range)?.name)),
        (None, Some(v)) => Ok(RowCount::PerJob(source.param(v, &what, params, (1, 1 << 20))?.name)),
        _ => Err(source.error(
            value.span(),
            format!("{what} must be a number, \"empty\", {{ total = \"PARAMETER\" }} or {{ per-job = \"PARAMETER\" }}"),
        )),
    }
}

fn columns(
    source: &Source<'_>,
    table: &Fields<'_, '_>,
    name: &str,
    params: &[Param],
) -> Result<Vec<ColumnDef>, UserError> {
    let mut out: Vec<ColumnDef> = Vec::new();
    let mut payloads = 0;
    for (i, value) in table.list("column")?.into_iter().enumerate() {
        let f = source.fields(value, &format!("a column of the table '{name}'"), &["name", "type", "fill"])?;
        let at = f.required("name")?;
        let column = source.name(at, "the column", '_', MAX_NAME)?;
        unique(source, at, "column", &column, out.iter().map(|c| c.name))?;
        let what = format!("the type of the column '{column}'");
        let logical = match source.word(f.required("type")?, &what, &["int", "bytes"])? {
            "int" => LogicalType::Int,
            _ => LogicalType::Bytes,
        };
        let at = f.required("fill")?;
        let fill = fill(source, at, &column, params)?;
        let of = match fill {
            Fill::Payload(_) | Fill::PayloadOf(_) => LogicalType::Bytes,
            _ => LogicalType::Int,
        };
        if of != logical {
            let text = format!(
                "the fill does not fit the type of the column '{column}': an int takes key, zero, constant or scattered, \
                 bytes take a payload"
            );
            return Err(source.error(at.span(), text));
        }
        if (i == 0) != (fill == Fill::Key) {
            return Err(source.error(at.span(), no_key(name)));
        }
        payloads += match fill {
            Fill::PayloadOf(bytes) => i64::from(bytes),
            Fill::Payload(param) => params.iter().find(|p| p.name == param).map_or(0, |p| p.max),
            _ => 0,
        };
        if payloads > MAX_ROW_BYTES {
            let text = format!(
                "the payloads of the table '{name}' add up to {payloads} bytes, but the limit of a row is {MAX_ROW_BYTES}"
            );
            return Err(source.error(at.span(), text));
        }
        out.push(ColumnDef { name: leak(column), logical, fill });
    }
    if out.is_empty() {
        return Err(table.error(no_key(name)));
    }
    Ok(out)
}

fn no_key(table: &str) -> String {
    format!(
        "the table '{table}' needs a primary key: its first column, and only this one, must be {{ name = …, type = \"int\", \
         fill = \"key\" }}"
    )
}

fn fill(source: &Source<'_>, value: &Value<'_>, column: &str, params: &[Param]) -> Result<Fill, UserError> {
    let what = format!("'fill' of the column '{column}'");
    if value.get_ref().is_str() {
        return Ok(match source.word(value, &what, &["key", "zero"])? {
            "key" => Fill::Key,
            _ => Fill::Zero,
        });
    }
    let f = source.fields(value, &what, &["constant", "scattered", "salt", "payload"])?;
    let salt = f.optional("salt").map_or(Ok(0), |v| source.integer(v, "the salt", (0, 999)))?;
    match (f.optional("constant"), f.optional("scattered"), f.optional("payload")) {
        (Some(v), None, None) => Ok(Fill::Constant(source.integer(v, &what, (i64::MIN, i64::MAX))?)),
        (None, Some(v), None) => {
            let range = source.integer(v, &what, (1, i64::MAX))? as u64;
            Ok(Fill::Scattered { salt: salt as u32, range })
        }
        (None, None, Some(v)) if v.get_ref().is_str() => {
            Ok(Fill::Payload(source.param(v, &what, params, (1, MAX_PAYLOAD))?.name))
        }
        (None, None, Some(v)) => Ok(Fill::PayloadOf(source.integer(v, &what, (1, MAX_PAYLOAD))? as u32)),
        _ => Err(source.error(
            value.span(),
            format!(
                "{what} must be \"key\", \"zero\", {{ constant = NUMBER }}, {{ scattered = HOW_MANY, salt = N }} or {{ payload = BYTES }}"
            ),
        )),
    }
}
