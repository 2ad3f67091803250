//! What the parameters and tables of a workload file must be, beside what their types say; and the errors for it.

use std::ops::RangeInclusive;

use loadline_model::format::did_you_mean;

use super::expression::Scope;
use crate::data::TABLES;
use crate::form::{Amount, MAX_PAYLOAD, MAX_ROWS};
use crate::params::Param;
use crate::source::{Source, UserError};
use crate::table::{ColumnDef, Fill, LogicalType, MAX_SECONDS, RowCount, Table};
use crate::workload::Workload;

/// Any number.
pub(super) const ANY: RangeInclusive<i64> = i64::MIN..=i64::MAX;
/// Largest sum of a row's payloads, bytes: it fits a page of every database.
const MAX_ROW_BYTES: i64 = 6000;
/// Largest decimal number, hundredths: 16 digits before the point.
const MAX_HUNDREDTHS: i64 = 999_999_999_999_999_999;
/// Longest text with an index, characters: of four bytes each it fits the key of every database.
const MAX_INDEXED: u32 = 760;

impl Source {
    /// The error for a name that is none of `known`.
    pub(super) fn unknown<'k>(
        &self,
        at: &str,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> UserError {
        let near = did_you_mean(name, known.clone());
        let known: Vec<&str> = known.collect();
        let known = if known.is_empty() { "there is none".to_owned() } else { format!("known: {}", known.join(", ")) };
        self.error(at, format!("{what} '{name}' is not known{near} ({known})"))
    }

    /// The one of `all` that has this name, with its number.
    pub(super) fn find<'t, T>(
        &self,
        at: &str,
        what: &str,
        name: &str,
        all: &'t [T],
        name_of: fn(&T) -> &str,
    ) -> Result<(usize, &'t T), UserError> {
        let found = all.iter().enumerate().find(|(_, one)| name_of(one) == name);
        found.ok_or_else(|| self.unknown(at, what, name, all.iter().map(name_of)))
    }

    /// Checks that all names of a list differ; `key` is that of the name.
    pub(super) fn unique<T>(&self, list: &str, key: &str, all: &[T], name_of: fn(&T) -> &str) -> Result<(), UserError> {
        for (i, one) in all.iter().enumerate() {
            let name = name_of(one);
            if all[..i].iter().any(|other| name_of(other) == name) {
                let text = format!("the {} '{name}' is defined twice: remove or rename one", last_key(list));
                return Err(self.error(&format!("{list}.{i}{key}"), text));
            }
        }
        Ok(())
    }

    /// Checks a number at a place whose last key says what it is.
    pub(super) fn within(&self, at: &str, number: i64, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        out_of(last_key(at), number.into(), "", range).map_err(|why| self.error(at, why))
    }

    /// The number, or what the expression gives, within `range`.
    pub(super) fn amount(
        &self,
        at: &str,
        amount: &Amount,
        scope: &Scope<'_>,
        range: RangeInclusive<i64>,
    ) -> Result<i64, UserError> {
        let of = match amount {
            Amount::Number(_) => String::new(),
            Amount::Expression(text) => format!(" ('{text}' with some parameters)"),
        };
        out_of(last_key(at), self.number(at, amount, scope)?, &of, range).map_err(|why| self.error(at, why))
    }

    /// The number, or what the expression gives.
    pub(super) fn number(&self, at: &str, amount: &Amount, scope: &Scope<'_>) -> Result<i128, UserError> {
        match amount {
            Amount::Number(number) => Ok((*number).into()),
            Amount::Expression(text) => {
                scope.number(text).map_err(|e| self.error(at, format!("'{}': {e}", last_key(at))))
            }
        }
    }

    /// Checks that there is a parameter of this name, with all its values within `range`.
    pub(super) fn param<'p>(
        &self,
        at: &str,
        name: &str,
        params: &'p [Param],
        range: RangeInclusive<i64>,
    ) -> Result<&'p Param, UserError> {
        let key = last_key(at);
        let (_, param) = self.find(at, &format!("'{key}': the parameter"), name, params, |p| &p.name)?;
        if range.contains(&param.min) && range.contains(&param.max) {
            return Ok(param);
        }
        let (least, most, min, max) = (range.start(), range.end(), param.min, param.max);
        let text = format!(
            "'{key}' must be between {least} and {most}, but the parameter '{name}' can be {min} to {max}: narrow its \
             min and max"
        );
        Err(self.error(at, text))
    }
}

/// The last key of a place, which says what is there.
fn last_key(at: &str) -> &str {
    at.rsplit('.').find(|key| key.parse::<usize>().is_err()).unwrap_or(at)
}

/// `number` as one within `range`, or why it is not.
fn out_of(what: &str, number: i128, of: &str, range: RangeInclusive<i64>) -> Result<i64, String> {
    let fits = i64::try_from(number).ok().filter(|n| range.contains(n));
    let (least, most) = range.into_inner();
    fits.ok_or_else(|| format!("'{what}' is {number}{of}, but must be between {least} and {most}"))
}

/// Checks the parameters.
pub(super) fn params(source: &Source, params: &[Param]) -> Result<(), UserError> {
    source.unique("parameter", ".name", params, |p| &p.name)?;
    for (i, param) in params.iter().enumerate() {
        let at = |key: &str| format!("parameter.{i}.{key}");
        source.within(&at("max"), param.max, param.min..=i64::MAX)?;
        source.within(&at("default"), param.default, param.min..=param.max)?;
        for (n, choice) in param.choices.iter().enumerate() {
            source.within(&at(&format!("choices.{n}")), *choice, param.min..=param.max)?;
        }
        if let Some(limit) = &param.at_most {
            source.param(&at("at-most"), limit, params, ANY)?;
        }
    }
    Ok(())
}

/// The tables: those of the data set, then the file's own, which are checked.
pub(super) fn tables(form: &Workload) -> Result<Vec<Table>, UserError> {
    let (source, mut all) = (&form.source, Vec::new());
    for (i, name) in form.data_set.iter().enumerate() {
        let (_, table) =
            source.find(&format!("data-set.{i}"), "the table of the data set", name, &TABLES, |t| &t.name)?;
        all.push(table.clone());
    }
    source.unique("table", ".name", &form.tables, |t| &t.name)?;
    for (i, table) in form.tables.iter().enumerate() {
        let at = |key: &str| format!("table.{i}.{key}");
        if all.iter().any(|other: &Table| other.name == table.name) {
            return Err(
                source.error(&at("name"), format!("the data set has a table '{}': rename this one", table.name))
            );
        }
        match &table.rows {
            RowCount::Total(param) => drop(source.param(&at("rows.total"), param, &form.params, 1..=MAX_ROWS)?),
            RowCount::PerJob(param) => drop(source.param(&at("rows.per-job"), param, &form.params, 1..=1 << 20)?),
            RowCount::Fixed(_) | RowCount::Share { .. } | RowCount::Empty => {}
        }
        columns(source, &at("column"), table, &form.params)?;
        source.unique(&at("indexes"), "", &table.indexes, |name| name)?;
        for (i, name) in table.indexes.iter().enumerate() {
            let at = at(&format!("indexes.{i}"));
            let (_, column) = source.find(&at, "the column of an index", name, &table.columns, |c| &c.name)?;
            let is_long = matches!(column.fill, Fill::Words { length, .. } if length > MAX_INDEXED);
            if column.logical == LogicalType::Json || is_long {
                let text = format!(
                    "'{name}' cannot have an index on every database: only text of at most {MAX_INDEXED} characters, and \
                     no json"
                );
                return Err(source.error(&at, text));
            }
        }
    }
    all.extend(form.tables.iter().cloned());
    Ok(all)
}

fn columns(source: &Source, at: &str, table: &Table, params: &[Param]) -> Result<(), UserError> {
    source.unique(at, ".name", &table.columns, |c| &c.name)?;
    let is_key = |column: &ColumnDef| matches!(column.fill, Fill::Key | Fill::PlainKey);
    let wrong = table.columns.iter().enumerate().find(|(i, column)| is_key(column) != (*i == 0));
    if let Some(wrong) = wrong.map(|(i, _)| i).or(table.columns.is_empty().then_some(0)) {
        let text = format!(
            "the table '{}' needs a primary key: its first column, and only this one, must be {{ name = …, type = \
             \"int\", fill = \"key\" }}",
            table.name
        );
        return Err(source.error(&format!("{at}.{wrong}.fill"), text));
    }
    let mut row_bytes = 0;
    for (i, column) in table.columns.iter().enumerate() {
        let at = format!("{at}.{i}.fill");
        let size =
            |key: &str, param: &str| Ok(source.param(&format!("{at}.{key}"), param, params, 1..=MAX_PAYLOAD)?.max);
        row_bytes += match &column.fill {
            Fill::PayloadOf(bytes) | Fill::Words { length: bytes, .. } => (*bytes).into(),
            Fill::Payload(param) => size("payload", param)?,
            Fill::FirstHalf(param) => size("first-half", param)?,
            Fill::SecondHalf(param) => size("second-half", param)?,
            _ => 0,
        };
        if let Some(why) = does_not_fit(column) {
            return Err(source.error(&at, format!("the fill of the column '{}' {why}", column.name)));
        }
        if row_bytes > MAX_ROW_BYTES {
            let text = format!("the row has {row_bytes} bytes of payloads and texts, but the limit is {MAX_ROW_BYTES}");
            return Err(source.error(&at, text));
        }
    }
    Ok(())
}

/// Why a column of its type cannot be filled so, if it cannot.
fn does_not_fit(column: &ColumnDef) -> Option<String> {
    let is_key = matches!(column.fill, Fill::Key | Fill::PlainKey);
    let is_text = matches!(column.fill, Fill::Words { .. });
    // The lowest and highest number.
    let number = match column.fill {
        Fill::Zero => Some([0, 0]),
        Fill::Constant(value) => Some([value, value]),
        Fill::Scattered { range, .. } => Some([0, range as i64 - 1]),
        _ => None,
    };
    let (fits, takes, [from, to]) = match column.logical {
        LogicalType::Int => (is_key || number.is_some(), "key, zero, constant or scattered", [i64::MIN, i64::MAX]),
        LogicalType::Bytes => (!is_key && !is_text && number.is_none(), "a payload", [0, 0]),
        LogicalType::Text | LogicalType::Json => (is_text, "words", [0, 0]),
        LogicalType::Timestamp => (number.is_some(), "zero, constant or scattered", [0, MAX_SECONDS]),
        LogicalType::Numeric => (number.is_some(), "zero, constant or scattered", [-MAX_HUNDREDTHS, MAX_HUNDREDTHS]),
        LogicalType::Boolean => (number.is_some(), "zero, constant or scattered", [i64::MIN, i64::MAX]),
    };
    if !fits {
        return Some(format!("does not fit the type, which takes {takes}"));
    }
    let [lowest, highest] = number.filter(|[lowest, highest]| *lowest < from || *highest > to)?;
    Some(format!("must be between {from} and {to}, and is {lowest} to {highest}"))
}
