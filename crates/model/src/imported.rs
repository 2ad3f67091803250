//! Tests that another tool measured: where their figures come from. loadline has checked none of them.

use serde::{Deserialize, Deserializer, Serialize};

/// Source of a test that another tool measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub files: Vec<ImportedFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    /// Name without folders; `-` is standard input.
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Imported {
    /// `pgbench 15.18`.
    pub fn tool_and_version(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.tool),
            None => format!("{}, version unknown", self.tool),
        }
    }

    /// Words in place of the validity of a test: `imported from pgbench 15.18, not checked by loadline`.
    pub fn unchecked(&self) -> String {
        format!("imported from {}, not checked by loadline", self.tool_and_version())
    }
}

/// Reads the field `valid` of a record: `null` is that of an imported test.
pub(crate) fn valid_or_unchecked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(deserializer)?.unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_is_said() {
        let imported = Imported { tool: "fio".to_owned(), ..Imported::default() };
        assert_eq!(imported.unchecked(), "imported from fio, version unknown, not checked by loadline");
    }
}
