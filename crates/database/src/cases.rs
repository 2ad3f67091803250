//! Cases of unit tests: `cases.toml` has a table for each of them.

use serde::de::DeserializeOwned;

/// The rows of a table, each a tuple.
pub(crate) fn cases<T: DeserializeOwned>(table: &str) -> Vec<T> {
    let mut all: toml::Table = toml::from_str(include_str!("cases.toml")).unwrap();
    let rows: Vec<T> = all.remove(table).unwrap_or_else(|| panic!("no table {table}")).try_into().unwrap();
    assert!(!rows.is_empty(), "{table}");
    rows
}
