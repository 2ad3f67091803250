//! Files that come in, and the tests that they become.

use std::io::BufRead;

use crate::draft::ImportedTest;
use crate::error::ImportError;
use crate::lines::{Lines, plain};

/// A file to import.
pub struct Source<'a> {
    /// Its name, for messages.
    pub name: String,
    /// Its contents.
    pub input: Box<dyn BufRead + 'a>,
}

/// Tests whose files belong together.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Numbers of the files, from 0.
    pub files: Vec<usize>,
    /// Version of the tool, if a file states it.
    pub version: Option<String>,
    /// What was measured: `PostgreSQL`; empty if no file says it.
    pub product: String,
    /// The tests in the order of the file.
    pub tests: Vec<ImportedTest>,
}

impl Group {
    /// Takes in the version that a report states; reports of two versions are an error.
    pub(crate) fn set_version(&mut self, version: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let version = plain(version);
        if self.version.as_ref().is_some_and(|known| *known != version) {
            return Err(lines.wrong(format!("version {version} after a report of another version: import them apart")));
        }
        self.version = Some(version);
        Ok(())
    }

    /// The group of a file that was read to its end. Without a test the file is empty, or `what`.
    pub(crate) fn complete(self, lines: &Lines<'_>, what: &str) -> Result<Group, ImportError> {
        if self.tests.is_empty() { Err(lines.nothing(what)) } else { Ok(self) }
    }
}
