//! Reads tables of workload files, and checks that every database can have them.

use super::{ColumnDef, Fill, LogicalType, MAX_SECONDS, RowCount, Scope, Table};
use crate::params::Param;
use crate::source::{ANY, MAX_ROWS, Node, PAYLOADS, SALTS, UserError};

/// Longest name of a table or column: an index name, which includes the workload's code, still fits every database.
const MAX_NAME: usize = 20;
/// Largest sum of a row's payloads, bytes: it fits a page of every database.
const MAX_ROW_BYTES: i64 = 6000;
/// Fewest characters of a document: its number fits.
const MIN_WORDS: i64 = 40;
/// Largest decimal number, hundredths: 16 digits before the point.
const MAX_HUNDREDTHS: i64 = 999_999_999_999_999_999;
/// Longest text with an index, characters: of four bytes each it fits the key of every database.
const MAX_INDEXED: u32 = 760;

impl Table {
    /// Reads the tables of a file, which `scope` owns.
    pub(crate) fn read_all(file: Node<'_>, params: &[Param], scope: Scope) -> Result<Vec<Table>, UserError> {
        file.all_named("table", |node| Table::read(node, params, scope), |table| &table.name)
    }

    fn read(node: Node<'_>, params: &[Param], scope: Scope) -> Result<Table, UserError> {
        node.fields(&["name", "column", "rows", "updated-in-place", "indexes"])?;
        let name = node.need("name").and_then(|node| node.operand(node.name('_', MAX_NAME)?))?;
        let rows = RowCount::read(node.need("rows")?, params)?;
        let no_key = |at: Node<'_>| {
            at.error(format!(
                "the table '{name}' needs a primary key: its first column, and only this one, must be {{ name = …, type = \
                 \"int\", fill = \"key\" }}"
            ))
        };
        let (mut is_first, mut row_bytes) = (true, 0);
        let read = |node: Node<'_>| {
            let (column, most_bytes) = ColumnDef::read(node, params)?;
            let fill = node.need("fill")?;
            if matches!(column.fill, Fill::Key | Fill::PlainKey) != std::mem::take(&mut is_first) {
                return Err(no_key(fill));
            }
            if let Some(why) = column.does_not_fit() {
                return Err(fill.error(format!("the fill of the column '{}' {why}", column.name)));
            }
            row_bytes += most_bytes;
            if row_bytes > MAX_ROW_BYTES {
                let text =
                    format!("the row has {row_bytes} bytes of payloads and texts, but the limit is {MAX_ROW_BYTES}");
                return Err(fill.error(text));
            }
            Ok(column)
        };
        let columns = node.all_named("column", read, |column| &column.name)?;
        if columns.is_empty() {
            return Err(no_key(node));
        }
        let indexes = node.all_named("indexes", |index| indexed(index, &columns), |name| name)?;
        let updated_in_place = node.opt("updated-in-place", Node::flag)?.unwrap_or_default();
        Ok(Table { name, columns, rows, scope, updated_in_place, indexes })
    }
}

fn indexed(node: Node<'_>, columns: &[ColumnDef]) -> Result<String, UserError> {
    let name = node.owned()?;
    let (_, column) = node.find("the column of an index", &name, columns, |c| &c.name)?;
    let is_long = matches!(column.fill, Fill::Words { length, .. } if length > MAX_INDEXED);
    if column.logical == LogicalType::Json || is_long {
        let text = format!(
            "'{name}' cannot have an index on every database: only text of at most {MAX_INDEXED} characters, and no json"
        );
        return Err(node.error(text));
    }
    Ok(name)
}

impl RowCount {
    fn read(node: Node<'_>, params: &[Param]) -> Result<RowCount, UserError> {
        if node.integer().is_some() {
            return Ok(RowCount::Fixed(node.number(1..=MAX_ROWS)?.cast_unsigned()));
        }
        let kinds: [(_, &[&str]); 3] = [("per-job", &[]), ("total", &[]), ("share", &["row-bytes"])];
        let kind = node.kind(&["empty"], &kinds)?;
        let param = |most| node.need(kind)?.param(params, 1..=most).map(|param| param.name.clone());
        Ok(match kind {
            "per-job" => RowCount::PerJob(param(1 << 20)?),
            "total" => RowCount::Total(param(MAX_ROWS)?),
            "share" => RowCount::Share {
                percent: node.need("share")?.number(1..=100)?.cast_unsigned(),
                row_bytes: node.need("row-bytes")?.number(16..=65_536)?.cast_unsigned(),
            },
            _ => RowCount::Empty,
        })
    }
}

impl ColumnDef {
    /// Reads a column. Returns the most bytes of its payload or text as well.
    fn read(node: Node<'_>, params: &[Param]) -> Result<(ColumnDef, i64), UserError> {
        node.fields(&["name", "type", "fill"])?;
        let (name, logical) = (node.need("name")?.name('_', MAX_NAME)?, node.need("type")?.read()?);
        let (fill, most_bytes) = Fill::read(node.need("fill")?, params)?;
        Ok((ColumnDef { name, logical, fill }, most_bytes))
    }

    /// Why a column of its type cannot be filled so, if it cannot.
    fn does_not_fit(&self) -> Option<String> {
        let is_key = matches!(self.fill, Fill::Key | Fill::PlainKey);
        let is_text = matches!(self.fill, Fill::Words { .. });
        // The lowest and highest number.
        let number = match self.fill {
            Fill::Zero => Some([0, 0]),
            Fill::Constant(value) => Some([value, value]),
            Fill::Scattered { range, .. } => Some([0, range as i64 - 1]),
            _ => None,
        };
        const NUMBERS: &str = "zero, constant or scattered";
        let (fits, takes, [from, to]) = match self.logical {
            LogicalType::Int => (is_key || number.is_some(), "key, zero, constant or scattered", [i64::MIN, i64::MAX]),
            LogicalType::Bytes => (!is_key && !is_text && number.is_none(), "a payload", [0, 0]),
            LogicalType::Text | LogicalType::Json => (is_text, "words", [0, 0]),
            LogicalType::Timestamp => (number.is_some(), NUMBERS, [0, MAX_SECONDS]),
            LogicalType::Numeric => (number.is_some(), NUMBERS, [-MAX_HUNDREDTHS, MAX_HUNDREDTHS]),
            LogicalType::Boolean => (number.is_some(), NUMBERS, [i64::MIN, i64::MAX]),
        };
        if !fits {
            return Some(format!("does not fit the type, which takes {takes}"));
        }
        let [lowest, highest] = number.filter(|[lowest, highest]| *lowest < from || *highest > to)?;
        Some(format!("must be between {from} and {to}, and is {lowest} to {highest}"))
    }
}

impl Fill {
    /// Reads a fill. Returns the most bytes of its payload or text as well.
    fn read(node: Node<'_>, params: &[Param]) -> Result<(Fill, i64), UserError> {
        let kinds: [(_, &[&str]); 6] = [
            ("constant", &[]),
            ("scattered", &["salt"]),
            ("payload", &[]),
            ("words", &["salt", "distinct"]),
            ("first-half", &[]),
            ("second-half", &[]),
        ];
        let kind = node.kind(&["key", "plain-key", "zero"], &kinds)?;
        let value = node.get(kind).unwrap_or(node);
        let salt = || node.opt("salt", |salt| salt.number(SALTS)).map(|salt| salt.unwrap_or_default() as u32);
        let sized = |fill: fn(String) -> Fill| -> Result<(Fill, i64), UserError> {
            let param = value.param(params, PAYLOADS)?;
            Ok((fill(param.name.clone()), param.max))
        };
        let fill = match kind {
            "key" => Fill::Key,
            "plain-key" => Fill::PlainKey,
            "constant" => Fill::Constant(value.number(ANY)?),
            "scattered" => Fill::Scattered { salt: salt()?, range: value.number(1..=i64::MAX)?.cast_unsigned() },
            "payload" if value.integer().is_some() => {
                let bytes = value.number(PAYLOADS)?;
                return Ok((Fill::PayloadOf(bytes as u32), bytes));
            }
            "words" => {
                let length = value.number(MIN_WORDS..=*PAYLOADS.end())?;
                let range = node.opt("distinct", |n| n.number(1..=i64::MAX))?.unwrap_or(i64::MAX).cast_unsigned();
                return Ok((Fill::Words { length: length as u32, salt: salt()?, range }, length));
            }
            "payload" => return sized(Fill::Payload),
            "first-half" => return sized(Fill::FirstHalf),
            "second-half" => return sized(Fill::SecondHalf),
            _ => Fill::Zero,
        };
        Ok((fill, 0))
    }
}
