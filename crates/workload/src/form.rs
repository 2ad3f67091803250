//! A workload file as it is written. Where a file says what the workload is, the type is the workload's own.
//!
//! A table in braces that is one of several kinds (`{ repeat = 2, steps = [] }`) has its kind among its keys. [`unify`] puts
//! it into the form of an enum before it is read.

use std::borrow::Cow;
use std::ops::Range;

use loadline_model::column::{self, COLUMNS, Column};
use loadline_model::format::did_you_mean;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::program::Kernel;

/// Most rows of a table.
pub(crate) const MAX_ROWS: i64 = 1 << 40;
/// Largest payload, bytes: it fits a column of every database.
pub(crate) const MAX_PAYLOAD: i64 = 2000;

/// Why a name would need quotes in a database, if it would. Allowed are letters a–z, digits and `also`, a letter first.
pub(crate) fn needs_quotes(name: &str, also: char, most: usize) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == also;
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        return Some(format!(
            "the name '{name}' is not allowed: use letters a to z, digits and '{also}', a letter first, so that no \
             database needs quotes"
        ));
    }
    (name.len() > most).then(|| format!("the name '{name}' has {} characters, but the limit is {most}", name.len()))
}

/// A number, or an expression that gives one.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a number is needed here, or an expression in quotes")]
pub(crate) enum Amount {
    Number(i64),
    Expression(String),
}

/// A number, or a quotient of two.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "an AMOUNT is needed here, or a quotient [AMOUNT, AMOUNT]")]
pub(crate) enum Quotient {
    Of([Amount; 2]),
    Whole(Amount),
}

/// What a transaction processes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Volume {
    pub(crate) rows: Option<Quotient>,
    #[serde(default)]
    pub(crate) tables: Vec<String>,
    pub(crate) share: Option<Quotient>,
    pub(crate) groups: Option<Quotient>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Commit {
    #[default]
    Wait,
    Nowait,
    WaitIf(Amount),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    #[serde(deserialize_with = "name::<'-', MAX_WORD, _>")]
    pub(crate) name: String,
    pub(crate) sql: String,
    pub(crate) effect: Effect,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Effect {
    Change(Rows),
    Read(Amount),
    ReadAny,
    Command,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "rows are an AMOUNT, or [FEWEST, MOST]")]
pub(crate) enum Rows {
    Between([Amount; 2]),
    Exactly(Amount),
}

/// A step of a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    Bind { bind: String, to: Value },
    Execute { execute: String },
    Repeat { repeat: Amount, steps: Vec<Step> },
    Choose { choose: Vec<Arm>, by: Option<By>, r#as: Option<String>, salt: Option<Salt> },
    Bulk { bulk: String, rows: Amount },
    Compute { compute: Kernel, times: Amount },
    Unroll { unroll: String, from: Option<Amount>, to: Amount, steps: Vec<Step> },
    When { when: Amount, steps: Vec<Step>, otherwise: Option<Vec<Step>> },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arm {
    pub(crate) share: Amount,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    Random,
    Turn,
}

/// A value of a variable.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub(crate) enum Value {
    Sequence,
    NewKey,
    OwnRow { own_row: String },
    OwnRange { own_range: String, rows: Amount },
    Row { row: String, salt: Option<Salt> },
    Payload { payload: Amount },
    Uniform { uniform: [Amount; 2], salt: Option<Salt> },
    Constant { constant: Amount },
    Plus { plus: (String, Amount) },
}

/// What makes a random number differ from others.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Salt(#[serde(deserialize_with = "within::<0, MAX_SALT, _, _>")] pub(crate) u32);

/// Longest name of a parameter, variable or statement.
pub(crate) const MAX_WORD: usize = 30;
/// Longest name of a table or column: an index name, which includes the workload's code, still fits every database.
pub(crate) const MAX_NAME: usize = 20;
/// Largest salt of random numbers.
pub(crate) const MAX_SALT: i64 = 999;

/// A number from `LEAST` to `MOST`.
pub(crate) fn within<'de, const LEAST: i64, const MOST: i64, T: TryFrom<i64>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let number = i64::deserialize(from)?;
    let fits = Some(number).filter(|n| (LEAST..=MOST).contains(n)).and_then(|n| T::try_from(n).ok());
    fits.ok_or_else(|| D::Error::custom(format!("it is {number}, but must be between {LEAST} and {MOST}")))
}

/// A name that needs no quotes in any database.
pub(crate) fn name<'de, const ALSO: char, const MOST: usize, D: Deserializer<'de>>(
    from: D,
) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    needs_quotes(&name, ALSO, MOST).map_or(Ok(name), |why| Err(D::Error::custom(why)))
}

/// The column with this id.
pub(crate) fn column_of<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Column, D::Error> {
    let id = String::deserialize(from)?;
    column::column(&id).ok_or_else(|| {
        let near = did_you_mean(&id, COLUMNS.iter().map(|c| c.id));
        D::Error::custom(format!("there is no column '{id}'{near} (`loadline columns` lists all)"))
    })
}

/// Keys that give the kind of a table in braces, by the key that it is the value of.
const KINDS: [(&str, &[&str]); 5] = [
    ("program", &["bind", "execute", "repeat", "choose", "bulk", "compute", "unroll", "when"]),
    ("to", &["own-row", "own-range", "row", "payload", "uniform", "constant", "plus"]),
    ("fill", &["words", "scattered"]),
    ("rows", &["share"]),
    ("sweep", &["parameter"]),
];

/// Place and reason of what cannot be unified.
type Misfit = (Range<usize>, String);

/// Keys of one form, texts without blanks around them, and tables of kinds as `{ KIND = { … } }`.
pub(crate) fn unify(table: &mut DeTable<'_>) -> Result<(), Misfit> {
    let is_table = table.contains_key("column");
    for (key, value) in table.iter_mut() {
        let key = match key.get_ref().as_ref() {
            "steps" | "otherwise" => "program",
            key => key,
        };
        unify_value(value)?;
        let number = value.get_ref().is_integer();
        match value.get_mut() {
            DeValue::Array(array) if key == "program" => {
                array.iter_mut().try_for_each(|value| kind_first(key, value))?;
            }
            DeValue::Table(fill) if key == "fill" && fill.get("payload").is_some_and(|v| v.get_ref().is_integer()) => {
                let of = fill.remove_entry("payload");
                fill.extend(of.map(|(at, bytes)| (Spanned::new(at.span(), Cow::Borrowed("payload-of")), bytes)));
            }
            _ if key == "rows" && is_table && number => *value = wrapped("fixed", value.clone()),
            _ => kind_first(key, value)?,
        }
    }
    Ok(())
}

fn unify_value(value: &mut Spanned<DeValue<'_>>) -> Result<(), Misfit> {
    let at = value.span();
    match value.get_mut() {
        DeValue::Table(table) => unify(table),
        DeValue::Array(array) => array.iter_mut().try_for_each(unify_value),
        DeValue::String(text) => {
            *text = match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
                Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
            };
            if text.is_empty() { Err((at, "this text is empty".to_owned())) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Wraps a table by its kind; a step of no kind by its first key, which the error then names.
fn kind_first(key: &str, value: &mut Spanned<DeValue<'_>>) -> Result<(), Misfit> {
    let DeValue::Table(table) = value.get_ref() else { return Ok(()) };
    let Some((_, kinds)) = KINDS.iter().find(|(of, _)| *of == key) else { return Ok(()) };
    let mut keys: Vec<_> = table.keys().collect();
    keys.sort_by_key(|key| key.span().start);
    let kind = match (kinds.iter().find(|kind| table.contains_key(**kind)), keys.as_slice()) {
        (Some(kind), _) => (*kind).to_owned(),
        (None, [first, _, ..]) if key == "program" || key == "to" => first.get_ref().to_string(),
        (None, [first, second, ..]) => {
            return Err((second.span(), format!("'{}' does not go with '{}'", second.get_ref(), first.get_ref())));
        }
        (None, _) => return Ok(()),
    };
    *value = wrapped(kind, value.clone());
    Ok(())
}

fn wrapped<'t>(kind: impl Into<Cow<'t, str>>, value: Spanned<DeValue<'t>>) -> Spanned<DeValue<'t>> {
    let at = value.span();
    let table = [(Spanned::new(at.clone(), kind.into()), value)];
    Spanned::new(at, DeValue::Table(table.into_iter().collect()))
}
