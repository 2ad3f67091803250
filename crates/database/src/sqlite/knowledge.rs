//! What loadline knows about SQLite: `sqlite.toml`, in the language of [`crate::dialect`].

use std::collections::BTreeMap;

use loadline_model::activity::Topic;
use serde::Deserialize;

use crate::descriptor::Embedded;
use crate::dialect::Dialect;

pub(super) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/sqlite.toml", include_str!("../sqlite.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    pub(super) absent: Vec<(Topic, String)>,
    pub(super) defaults: BTreeMap<String, String>,
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
