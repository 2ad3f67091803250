//! Parameters and tables of a workload file.

use super::reader::{Fields, Source, Value};
use super::{MAX_ROWS, UserError, intern};
use crate::data::TABLES;
use crate::params::Param;
use crate::table::{ColumnDef, Fill, Half, LogicalType, MAX_SECONDS, RowCount, Scope, Table};

/// Largest payload, bytes: it fits a column of every database.
pub(super) const MAX_PAYLOAD: i64 = 2000;
/// Largest sum of a row's payloads, bytes: it fits a page of every database.
const MAX_ROW_BYTES: i64 = 6000;
/// Largest decimal number, hundredths: 16 digits before the point.
const MAX_HUNDREDTHS: i64 = 999_999_999_999_999_999;
/// Longest text with an index, characters: of four bytes each it fits the key of every database.
const MAX_INDEXED: u32 = 760;
/// Fewest characters of a document: its number fits.
const MIN_WORDS: i64 = 40;
/// Longest name of a table or column: an index name, which includes the workload's code, still fits every database.
const MAX_NAME: usize = 20;

/// Parameters with the values that a list allows, and pairs of which the first must not be larger than the second.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) params: Vec<Param>,
    pub(super) choices: Vec<(&'static str, &'static [i64])>,
    pub(super) at_most: Vec<(&'static str, &'static str)>,
}

pub(super) fn params(source: &Source<'_>, fields: &Fields<'_, '_>) -> Result<Parameters, UserError> {
    let mut out = Parameters::default();
    let mut limits = Vec::new();
    for value in fields.list("parameter")? {
        let keys = ["name", "default", "min", "max", "choices", "at-most", "meaning"];
        let f = source.fields(value, "a parameter", &keys)?;
        let at = f.required("name")?;
        let name = source.name(at, source.text(at, "the parameter")?, "the parameter", '-', 30)?;
        unique(source, at, "parameter", &name, out.params.iter().map(|p| p.name))?;
        let name = intern(&name);
        let all = (i64::MIN, i64::MAX);
        let number =
            |key: &str, range| source.integer(f.required(key)?, &format!("'{key}' of the parameter '{name}'"), range);
        let min = number("min", all)?;
        let max = number("max", (min, i64::MAX))?;
        let default = number("default", (min, max))?;
        if let Some(v) = f.optional("choices") {
            let list = source.list(v, "'choices'")?.into_iter();
            let list: Result<Vec<i64>, _> = list.map(|v| source.integer(v, "a choice", (min, max))).collect();
            out.choices.push((name, list?.leak()));
        }
        limits.extend(f.optional("at-most").map(|v| (name, v)));
        out.params.push(Param { name, default, min, max, meaning: intern(f.text("meaning")?) });
    }
    for (name, value) in limits {
        let limit =
            source.param(value, &format!("'at-most' of the parameter '{name}'"), &out.params, (i64::MIN, i64::MAX))?;
        out.at_most.push((name, limit.name));
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
    for value in fields.list("data-set")? {
        let name = source.text(value, "a table of the data set")?;
        let found = TABLES.iter().find(|t| t.name == name);
        out.push(
            *found.ok_or_else(|| {
                source.unknown(value, "the table of the data set", name, TABLES.iter().map(|t| t.name))
            })?,
        );
    }
    for value in fields.list("table")? {
        let f = source.fields(value, "a table", &["name", "rows", "updated-in-place", "indexes", "column"])?;
        let at = f.required("name")?;
        let name = source.name(at, source.text(at, "the table")?, "the table", '_', MAX_NAME)?;
        unique(source, at, "table", &name, out.iter().map(|t| t.name))?;
        let columns = columns(source, &f, &name, params)?;
        let mut indexes: Vec<&'static str> = Vec::new();
        for index in f.list("indexes")? {
            let column = source.text(index, "an index")?;
            let Some(found) = columns.iter().find(|c| c.name == column) else {
                let what = format!("the column of an index of '{name}'");
                return Err(source.unknown(index, &what, column, columns.iter().map(|c| c.name)));
            };
            let is_long = matches!(found.fill, Fill::Words { length, .. } if length > MAX_INDEXED);
            if found.logical == LogicalType::Json || is_long {
                let text = format!(
                    "'{column}' of '{name}' cannot have an index on every database: only text of at most {MAX_INDEXED} \
                     characters, and no json"
                );
                return Err(source.error(index.span(), text));
            }
            unique(source, index, "index", column, indexes.iter().copied())?;
            indexes.push(found.name);
        }
        let updated_in_place = match f.optional("updated-in-place") {
            None => false,
            Some(v) => source.truth(v, &format!("'updated-in-place' of the table '{name}'"))?,
        };
        out.push(Table {
            name: intern(&name),
            columns: columns.leak(),
            rows: rows(source, f.required("rows")?, &name, params)?,
            scope: Scope::Workload,
            updated_in_place,
            indexes: indexes.leak(),
        });
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
    let (kind, f) = source.kind(value, &what, &ROWS)?;
    let at = f.required(kind)?;
    Ok(match kind {
        "total" => RowCount::Total(source.param(at, &what, params, range)?.name),
        "per-job" => RowCount::PerJob(source.param(at, &what, params, (1, 1 << 20))?.name),
        _ => RowCount::Share {
            percent: source.integer(at, &what, (1, 100))? as u64,
            row_bytes: source.integer(f.required("row-bytes")?, "'row-bytes'", (16, 1 << 16))? as u64,
        },
    })
}

/// Types of columns.
const TYPES: [(&str, LogicalType); 7] = [
    ("int", LogicalType::Int),
    ("bytes", LogicalType::Bytes),
    ("text", LogicalType::Text),
    ("timestamp", LogicalType::Timestamp),
    ("numeric", LogicalType::Numeric),
    ("boolean", LogicalType::Boolean),
    ("json", LogicalType::Json),
];

const ROWS: [(&str, &[&str]); 3] =
    [("total", &["total"]), ("per-job", &["per-job"]), ("share", &["share", "row-bytes"])];

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
        let column = source.name(at, source.text(at, "the column")?, "the column", '_', MAX_NAME)?;
        unique(source, at, "column", &column, out.iter().map(|c| c.name))?;
        let what = format!("the type of the column '{column}'");
        let logical = source.one_of(f.required("type")?, &what, &TYPES)?;
        let at = f.required("fill")?;
        let fill = fill(source, at, &column, params)?;
        check_fill(logical, fill)
            .map_err(|why| source.error(at.span(), format!("the fill of the column '{column}': {why}")))?;
        if (i == 0) != matches!(fill, Fill::Key | Fill::PlainKey) {
            return Err(source.error(at.span(), no_key(name)));
        }
        payloads += match fill {
            Fill::PayloadOf(bytes) | Fill::Words { length: bytes, .. } => i64::from(bytes),
            Fill::Payload(param) | Fill::Half(param, _) => params.iter().find(|p| p.name == param).map_or(0, |p| p.max),
            _ => 0,
        };
        if payloads > MAX_ROW_BYTES {
            let text = format!(
                "the payloads of the table '{name}' add up to {payloads} bytes, but the limit of a row is {MAX_ROW_BYTES}"
            );
            return Err(source.error(at.span(), text));
        }
        out.push(ColumnDef { name: intern(&column), logical, fill });
    }
    if out.is_empty() {
        return Err(table.error(no_key(name)));
    }
    Ok(out)
}

/// Why a column of type `logical` cannot be filled so, if it cannot.
fn check_fill(logical: LogicalType, fill: Fill) -> Result<(), String> {
    let (lowest, highest) = match fill {
        Fill::Constant(value) => (value, value),
        Fill::Scattered { range, .. } => (0, range as i64 - 1),
        _ => (0, 0),
    };
    let is_number = matches!(fill, Fill::Zero | Fill::Constant(_) | Fill::Scattered { .. });
    let (fits, takes, (from, to)) = match logical {
        LogicalType::Int => {
            let fits = is_number || matches!(fill, Fill::Key | Fill::PlainKey);
            (fits, "an int takes key, zero, constant or scattered", (i64::MIN, i64::MAX))
        }
        LogicalType::Bytes => {
            let fits = matches!(fill, Fill::Payload(_) | Fill::PayloadOf(_) | Fill::Half(..));
            (fits, "bytes take a payload", (0, 0))
        }
        LogicalType::Text | LogicalType::Json => {
            (matches!(fill, Fill::Words { .. }), "text and json take words", (0, 0))
        }
        LogicalType::Timestamp => (is_number, "a timestamp takes zero, constant or scattered", (0, MAX_SECONDS)),
        LogicalType::Numeric => {
            (is_number, "a numeric takes zero, constant or scattered", (-MAX_HUNDREDTHS, MAX_HUNDREDTHS))
        }
        LogicalType::Boolean => (is_number, "a boolean takes zero, constant or scattered", (i64::MIN, i64::MAX)),
    };
    if !fits {
        return Err(format!("it does not fit the type: {takes}"));
    }
    if lowest < from || highest > to {
        return Err(format!("it must be between {from} and {to}, and is {lowest} to {highest}"));
    }
    Ok(())
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
        return source.one_of(value, &what, &[("key", Fill::Key), ("plain-key", Fill::PlainKey), ("zero", Fill::Zero)]);
    }
    let (kind, f) = source.kind(value, &what, &FILLS)?;
    let at = f.required(kind)?;
    let size = || source.param(at, &what, params, (1, MAX_PAYLOAD)).map(|p| p.name);
    Ok(match kind {
        "constant" => Fill::Constant(source.integer(at, &what, (i64::MIN, i64::MAX))?),
        "scattered" => Fill::Scattered {
            salt: f.optional("salt").map_or(Ok(0), |v| source.integer(v, "the salt", (0, 999)))? as u32,
            range: source.integer(at, &what, (1, i64::MAX))? as u64,
        },
        "words" => Fill::Words {
            length: source.integer(at, &what, (MIN_WORDS, MAX_PAYLOAD))? as u32,
            salt: f.optional("salt").map_or(Ok(0), |v| source.integer(v, "the salt", (0, 999)))? as u32,
            range: f.optional("distinct").map_or(Ok(i64::MAX), |v| source.integer(v, "'distinct'", (1, i64::MAX)))?
                as u64,
        },
        "first-half" => Fill::Half(size()?, Half::First),
        "second-half" => Fill::Half(size()?, Half::Second),
        _ if at.get_ref().is_str() => Fill::Payload(size()?),
        _ => Fill::PayloadOf(source.integer(at, &what, (1, MAX_PAYLOAD))? as u32),
    })
}

const FILLS: [(&str, &[&str]); 6] = [
    ("words", &["words", "distinct", "salt"]),
    ("constant", &["constant"]),
    ("scattered", &["scattered", "salt"]),
    ("payload", &["payload"]),
    ("first-half", &["first-half"]),
    ("second-half", &["second-half"]),
];
