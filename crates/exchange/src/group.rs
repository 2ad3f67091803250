//! Files that come in, and the tests that they become.

use std::io::BufRead;

use loadline_model::{Latencies, Series, TestRecord};

use crate::error::ImportError;
use crate::lines::{Lines, plain};
use crate::tool::Tool;

/// A file to import.
pub struct Source<'a> {
    /// Its name, for messages.
    pub name: String,
    /// Its contents.
    pub input: Box<dyn BufRead + 'a>,
}

/// A test of another tool.
#[derive(Debug, Clone)]
pub struct ImportedTest {
    /// Its figures. Platform, run, number and source are left to the caller.
    pub record: TestRecord,
    /// Throughput over time, if the files have it.
    pub series: Series,
    /// Latencies in ns by kind, if the files have them.
    pub histograms: Vec<(String, Latencies)>,
    /// Start, s since 1970, if the files state it.
    pub started_s: Option<f64>,
}

/// Tests whose files belong together.
#[derive(Debug, Clone)]
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
    /// Without tests.
    pub(crate) fn of(product: &str) -> Group {
        Group { files: Vec::new(), version: None, product: product.to_owned(), tests: Vec::new() }
    }

    /// Takes in the version that a report states; reports of two versions are an error.
    pub(crate) fn set_version(&mut self, tool: Tool, version: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let version = plain(version);
        if self.version.as_ref().is_some_and(|known| *known != version) {
            return Err(lines.wrong(format!("{tool} {version} after a report of another version: import them apart")));
        }
        self.version = Some(version);
        Ok(())
    }

    /// Adds the test of a report that ended, if there was one.
    pub(crate) fn add(&mut self, test: Option<Result<ImportedTest, ImportError>>) -> Result<(), ImportError> {
        self.tests.extend(test.transpose()?);
        Ok(())
    }

    /// The group of a file that was read to its end. Without a test it is empty, or `what`.
    pub(crate) fn complete(self, lines: &Lines<'_>, what: &str) -> Result<Group, ImportError> {
        if self.tests.is_empty() { Err(lines.nothing(what)) } else { Ok(self) }
    }
}

/// What one file is: tests, or a part of a test such as a log of its transactions.
pub(crate) enum Read<P> {
    Tests(Group),
    Part(P),
}
