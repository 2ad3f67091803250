//! What loadline knows about DuckDB: `duckdb.toml`, in the language of [`crate::dialect`].

use loadline_model::activity::Topic;
use serde::Deserialize;

use crate::descriptor::Embedded;
use crate::dialect::Dialect;
use crate::facts::WaitEvents;

pub(super) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/duckdb.toml", include_str!("../duckdb.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Knowledge {
    pub(super) conflicts: Vec<String>,
    pub(super) full_disk: Vec<String>,
    pub(super) absent: Vec<(Topic, String)>,
    pub(super) settings: String,
    pub(super) objects: String,
    pub(super) columns: String,
    pub(super) events: WaitEvents,
    pub(super) dialect: Dialect,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read() {
        assert!(!KNOWLEDGE.checked(|_| &[]).absent.is_empty());
    }
}
