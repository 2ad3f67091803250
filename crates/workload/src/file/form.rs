//! A workload file as it is written. Where a file says what the workload is, the type is the workload's own.
//!
//! A table in braces that is one of several kinds (`{ repeat = 2, steps = [] }`) has its kind among its keys. [`unify`] puts
//! it into the form of an enum before it is read.

use std::borrow::Cow;
use std::ops::Range;

use loadline_model::Capability;
use loadline_model::column::{self, COLUMNS, Column};
use loadline_model::format::did_you_mean;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::needs_quotes;
use super::intern;
use crate::instrument::{Instrument, SizeScan, Visible};
use crate::limit::Limit;
use crate::named_for::NamedFor;
use crate::params::Param;
use crate::program::Kernel;
use crate::table::Table;
use crate::workload::{Consistency, Evidence, Kpi, Sweep};

/// A workload file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Form {
    pub(super) code: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: Option<&'static str>,
    pub(super) spoiled_by: Option<&'static str>,
    pub(super) group: Option<&'static str>,
    #[serde(default)]
    pub(super) commit: Commit,
    #[serde(default, deserialize_with = "list")]
    pub(super) kpis: &'static [Kpi],
    pub(super) needs: Option<Vec<Capability>>,
    #[serde(default)]
    pub(super) sweep: Sweep,
    pub(super) redo_kib: Option<[f64; 3]>,
    #[serde(default)]
    pub(super) instruments: Vec<Instrument>,
    pub(super) limits: Option<Vec<Limit>>,
    pub(super) workers: Option<&'static str>,
    pub(super) visible: Option<Visible>,
    pub(super) size_scan: Option<SizeScan>,
    #[serde(default)]
    pub(super) data_set: Vec<&'static str>,
    pub(super) volume: Option<Volume>,
    #[serde(default)]
    pub(super) named_for: NamedFor,
    #[serde(default, deserialize_with = "list")]
    pub(super) parameter: &'static [Param],
    #[serde(default)]
    pub(super) table: Vec<Table>,
    #[serde(default)]
    pub(super) statement: Vec<Statement>,
    pub(super) program: Vec<Step>,
    pub(super) evidence: Option<Evidence>,
    #[serde(default, deserialize_with = "list")]
    pub(super) consistency: &'static [Consistency],
    #[serde(default, deserialize_with = "list")]
    pub(super) unchanged: &'static [Consistency],
}

/// A number, or an expression that gives one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a number is needed here, or an expression in quotes")]
pub(super) enum Amount {
    Number(i64),
    Expression(&'static str),
}

/// A number, or a quotient of two.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "an AMOUNT is needed here, or a quotient [AMOUNT, AMOUNT]")]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) enum Quotient {
    Of([Amount; 2]),
    Whole(Amount),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) struct Volume {
    pub(super) rows: Option<Quotient>,
    #[serde(default)]
    pub(super) tables: Vec<&'static str>,
    pub(super) share: Option<Quotient>,
    pub(super) groups: Option<Quotient>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) enum Commit {
    #[default]
    Wait,
    Nowait,
    WaitIf(Amount),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Statement {
    #[serde(deserialize_with = "name::<'-', MAX_WORD, _>")]
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) effect: Effect,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) enum Effect {
    Change(Rows),
    Read(Amount),
    ReadAny,
    Command,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "rows are an AMOUNT, or [FEWEST, MOST]")]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) enum Rows {
    Between([Amount; 2]),
    Exactly(Amount),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Step {
    Bind {
        bind: &'static str,
        to: Value,
    },
    Execute {
        execute: &'static str,
    },
    Repeat {
        repeat: Amount,
        steps: Vec<Step>,
    },
    Choose {
        choose: Vec<Arm>,
        #[serde(default)]
        by: By,
        r#as: Option<&'static str>,
        #[serde(default, deserialize_with = "salt")]
        salt: Option<u32>,
    },
    Bulk {
        bulk: &'static str,
        rows: Amount,
    },
    Compute {
        compute: Kernel,
        times: Amount,
    },
    Unroll {
        unroll: &'static str,
        #[serde(default = "one")]
        from: Amount,
        to: Amount,
        steps: Vec<Step>,
    },
    When {
        when: Amount,
        steps: Vec<Step>,
        #[serde(default)]
        otherwise: Vec<Step>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(deserialize = "'de: 'static"))]
pub(super) struct Arm {
    pub(super) share: Amount,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum By {
    #[default]
    Random,
    Turn,
}

/// A value of a variable.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub(super) enum Value {
    Sequence,
    NewKey,
    OwnRow {
        own_row: &'static str,
    },
    OwnRange {
        own_range: &'static str,
        rows: Amount,
    },
    Row {
        row: &'static str,
        #[serde(default, deserialize_with = "salt")]
        salt: Option<u32>,
    },
    Payload {
        payload: Amount,
    },
    Uniform {
        uniform: [Amount; 2],
        #[serde(default, deserialize_with = "salt")]
        salt: Option<u32>,
    },
    Constant {
        constant: Amount,
    },
    Plus {
        plus: (&'static str, Amount),
    },
}

fn one() -> Amount {
    Amount::Number(1)
}

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

fn salt<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within::<0, MAX_SALT, u32, D>(from).map(Some)
}

/// A name that needs no quotes in any database.
pub(crate) fn name<'de: 'static, const ALSO: char, const MOST: usize, D: Deserializer<'de>>(
    from: D,
) -> Result<&'static str, D::Error> {
    let name = <&'static str>::deserialize(from)?;
    needs_quotes(name, ALSO, MOST).map_or(Ok(name), |why| Err(D::Error::custom(why)))
}

/// A list that is kept.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + 'static>(
    from: D,
) -> Result<&'static [T], D::Error> {
    Ok(Vec::deserialize(from)?.leak())
}

/// The column with this id.
pub(crate) fn column<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Column, D::Error> {
    let id = <&str>::deserialize(from)?;
    column::column(id).ok_or_else(|| {
        let near = did_you_mean(id, COLUMNS.iter().map(|c| c.id));
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
pub(super) fn unify(table: &mut DeTable<'static>) -> Result<(), Misfit> {
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

fn unify_value(value: &mut Spanned<DeValue<'static>>) -> Result<(), Misfit> {
    let at = value.span();
    match value.get_mut() {
        DeValue::Table(table) => unify(table),
        DeValue::Array(array) => array.iter_mut().try_for_each(unify_value),
        DeValue::String(text) => {
            *text = Cow::Borrowed(match text {
                Cow::Borrowed(text) => text.trim(),
                Cow::Owned(text) => intern(text.trim()),
            });
            if text.is_empty() { Err((at, "this text is empty".to_owned())) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Wraps a table by its kind; a step of no kind by its first key, which the error then names.
fn kind_first(key: &str, value: &mut Spanned<DeValue<'static>>) -> Result<(), Misfit> {
    let DeValue::Table(table) = value.get_ref() else { return Ok(()) };
    let Some((_, kinds)) = KINDS.iter().find(|(of, _)| *of == key) else { return Ok(()) };
    let mut keys: Vec<_> = table.keys().collect();
    keys.sort_by_key(|key| key.span().start);
    let kind = match (kinds.iter().find(|kind| table.contains_key(**kind)), keys.as_slice()) {
        (Some(kind), _) => kind,
        (None, [first, _, ..]) if key == "program" || key == "to" => intern(first.get_ref()),
        (None, [first, second, ..]) => {
            return Err((second.span(), format!("'{}' does not go with '{}'", second.get_ref(), first.get_ref())));
        }
        (None, _) => return Ok(()),
    };
    *value = wrapped(kind, value.clone());
    Ok(())
}

fn wrapped(kind: &'static str, value: Spanned<DeValue<'static>>) -> Spanned<DeValue<'static>> {
    let at = value.span();
    let table = [(Spanned::new(at.clone(), Cow::Borrowed(kind)), value)];
    Spanned::new(at, DeValue::Table(table.into_iter().collect()))
}
