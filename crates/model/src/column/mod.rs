//! Every column, defined once: all outputs and docs are drawn from this table. Constants are in `list.rs`, texts in `columns.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::format::{self, Format};
use crate::load::{JobLoad, Keys, RateObjective};
use crate::record::TestRecord;

mod list;
mod tables;

pub use list::*;
pub use tables::*;

/// One column of a result table. Each is a constant of this module, named by its id in capitals. Two columns are equal if their ids are.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Column {
    /// Stable id, the same in `tests.jsonl`, CSV and `--columns`. It ends with the unit.
    pub id: &'static str,
    /// Reads the value from a field of the record; `None` for a figure.
    field: Option<fn(&TestRecord) -> Cell>,
}

/// Statements of `columns.toml` about a column, which gives them by [`Deref`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnText {
    #[serde(deserialize_with = "kept")]
    pub title: Kept,
    /// Unit as shown, empty if it has none.
    #[serde(default, deserialize_with = "kept")]
    pub unit: Kept,
    pub format: Format,
    #[serde(deserialize_with = "kept")]
    pub meaning: Kept,
    /// Source by target kind; `*` stands for every other kind.
    #[serde(default, deserialize_with = "kept_sources")]
    pub sources: &'static [(Kept, Kept)],
}

/// A text of a file that stays until the process ends.
pub type Kept = &'static str;

pub(crate) fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kept, D::Error> {
    String::deserialize(deserializer).map(|text| &*text.leak())
}

fn kept_sources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static [(Kept, Kept)], D::Error> {
    let sources = Vec::<(String, String)>::deserialize(deserializer)?;
    let kept: Vec<(Kept, Kept)> = sources.into_iter().map(|(kind, text)| (&*kind.leak(), &*text.leak())).collect();
    Ok(kept.leak())
}

/// The texts of all columns by id. None if the file cannot be read, which the tests detect.
static TEXTS: LazyLock<BTreeMap<String, ColumnText>> =
    LazyLock::new(|| toml::from_str(include_str!("../../columns.toml")).unwrap_or_default());

impl Deref for Column {
    type Target = ColumnText;

    fn deref(&self) -> &ColumnText {
        const NONE: &ColumnText = &ColumnText { title: "", unit: "", format: Format::Text, meaning: "", sources: &[] };
        TEXTS.get(self.id).unwrap_or(NONE)
    }
}

impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        self.id == other.id
    }
}

impl Eq for Column {}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id)
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id)
    }
}

impl<'de> Deserialize<'de> for &'static Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = String::deserialize(deserializer)?;
        column(&id).ok_or_else(|| D::Error::custom(format!("there is no column '{id}'")))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// A number in the column's own unit.
    Number(f64),
    Absent,
}

pub static COLUMNS: LazyLock<Vec<&'static Column>> = LazyLock::new(|| {
    [list::BASE, list::LOG, list::WORK, list::STORAGE, list::COST, list::SHARES, list::REPLICATION, list::DISTURBANCE]
        .concat()
});

pub fn column(id: &str) -> Option<&'static Column> {
    COLUMNS.iter().copied().find(|c| c.id == id)
}

/// Reason for a figure whose value is not a number.
pub const NOT_FINITE: &str = "its value could not be computed from the counters";

impl TestRecord {
    /// Sets the figure of `column`; a value that is not finite is left out with a reason.
    pub fn set(&mut self, column: &Column, value: f64) {
        if value.is_finite() {
            self.absent.remove(column.id);
            self.figures.insert(column.id.to_owned(), value);
        } else {
            self.leave_out(column, NOT_FINITE);
        }
    }

    /// Removes the figure of `column` and records the reason.
    pub fn leave_out(&mut self, column: &Column, reason: impl Into<String>) {
        self.figures.remove(column.id);
        self.absent.insert(column.id.to_owned(), reason.into());
    }

    pub fn figure(&self, column: &Column) -> Option<f64> {
        self.figures.get(column.id).copied()
    }

    pub fn load(&self) -> JobLoad {
        let objective = RateObjective::from_figures(self.figure(RATE_OBJECTIVE_MS), self.figure(RATE_OBJECTIVE_PCT));
        JobLoad {
            // A rate that was found is a result: tests with the same objective have the same load.
            rate_tps: if objective.is_none() { self.figure(RATE_TPS) } else { None },
            objective,
            think_s: self.figure(THINK_TIME_MS).map(|ms| ms / 1e3),
            reconnect_every: self.figure(RECONNECT_EVERY).map(|n| n as u64),
            keys: Keys::from_figures(KEYS.map(|column| self.figure(column))),
            populations: self.populations().iter().map(|p| p.population.clone()).collect(),
        }
    }

    /// Why the figure of `column` is missing, if recorded.
    pub fn why_absent(&self, column: &Column) -> Option<&str> {
        self.absent.get(column.id).map(String::as_str)
    }
}

impl Column {
    /// Whether it is measured, and no field of the record.
    pub fn is_figure(&self) -> bool {
        self.field.is_none()
    }

    pub fn cell(&self, record: &TestRecord) -> Cell {
        if let Some(field) = self.field {
            return field(record);
        }
        // The swept value is a parameter; not every record has a figure for it.
        let swept = || if record.swept() == Some(self.id) { record.parameters.get(self.id) } else { None };
        record.figure(self).or_else(|| swept().map(|v| *v as f64)).map_or(Cell::Absent, Cell::Number)
    }

    pub fn shown(&self, record: &TestRecord) -> String {
        match (self.cell(record), self.format) {
            (Cell::Absent, _) => format::ABSENT.to_owned(),
            (Cell::Text(t), Format::YesNo) => if t == "true" { "yes" } else { "NO" }.to_owned(),
            (Cell::Text(t), _) => t,
            (Cell::Number(n), Format::Integer) => format::whole(n),
            (Cell::Number(n), Format::Fixed(d)) => format::number(n, d),
            (Cell::Number(n), Format::NsAsMs) => format::number(n / 1e6, 3),
            (Cell::Number(n), _) => n.to_string(),
        }
    }

    /// The cell as files hold it: full precision, empty when absent.
    pub fn plain(&self, record: &TestRecord) -> String {
        match self.cell(record) {
            Cell::Absent => String::new(),
            Cell::Text(t) => t,
            Cell::Number(n) => n.to_string(),
        }
    }

    /// Heading with its unit: `Redo data [MiB/s]`.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.to_owned() } else { format!("{} [{}]", self.title, self.unit) }
    }

    pub fn source(&self, kind: &str) -> Option<&'static str> {
        // A private server (`postgres-temp`) has the sources of its kind.
        let kind = kind.strip_suffix("-temp").unwrap_or(kind);
        let find = |k: &str| self.sources.iter().find(|(s, _)| *s == k).map(|(_, text)| *text);
        find(kind).or_else(|| find("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imported_test_is_neither_valid_nor_invalid() {
        let mut record = TestRecord::blank("X");
        assert_eq!((VALIDITY.plain(&record).as_str(), VALID.plain(&record).as_str()), ("valid", "true"));
        record.details.push(crate::Detail::Imported(crate::Imported::default()));
        assert_eq!((record.validity(), VALID.cell(&record)), (None, Cell::Absent));
        assert_eq!(VALID.shown(&record), format::ABSENT);
        assert!([NODES, DRIVER, JOB_LOAD].iter().all(|c| c.cell(&record) == Cell::Absent), "no file states them");
    }

    fn assert_each_once<T: PartialEq + fmt::Display>(all: &[T]) {
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "{one} twice");
        }
    }

    #[test]
    fn every_column_has_its_text_and_is_in_the_files_of_some_group() {
        assert_each_once(&COLUMNS.iter().map(|c| c.id).collect::<Vec<_>>());
        for c in COLUMNS.iter() {
            assert!(!c.title.is_empty(), "{}: has no title in columns.toml", c.id);
            assert!(c.meaning.ends_with('.'), "{}: the meaning is not a sentence", c.id);
            assert!(TABLES.iter().any(|t| t.file_columns().any(|f| f.id == c.id)), "{} is in no file", c.id);
        }
        assert_eq!(TEXTS.len(), COLUMNS.len(), "columns.toml has no other ids");
    }

    #[test]
    fn every_group_has_its_table_which_shows_columns_of_its_files() {
        assert_each_once(&TABLES.iter().map(|t| t.group).collect::<Vec<_>>());
        for table in TABLES.iter() {
            assert_eq!(Table::for_group(table.group).group, table.group);
            let in_files: Vec<_> = table.file_columns().collect();
            assert!(table.shown().iter().all(|c| in_files.contains(c)), "{}: shown but not in files", table.group);
        }
    }

    #[test]
    fn columns_begin_as_in_the_published_studies() {
        for (group, study, next) in [
            ("log-writer", include_str!("../../../../references/log-writer-exadata.csv"), "commit_time_ns_p50"),
            ("data-load", include_str!("../../../../references/data-load-exadata-x4-2.csv"), ""),
        ] {
            let published = format!(
                "{},target,driver,valid,validity,invalid_reason,errors,{next}",
                study.lines().next().unwrap_or_default()
            );
            let ids = Table::for_group(group).file_columns().map(|c| c.id).collect::<Vec<_>>().join(",");
            assert!(ids.starts_with(&published), "{ids}");
        }
    }
}
