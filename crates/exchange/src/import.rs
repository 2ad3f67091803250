//! Files that come in, and the tests that they become.

use std::io::BufRead;

use crate::draft::ImportedTest;
use crate::error::ImportError;
use crate::lines::{Lines, plain};
use crate::tool::Tool;
use crate::{fio, pgbench, sysbench};

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

/// Reads the results of `tool`. Each file is a group of its own; a part of a test, such as a log of transactions, belongs to the
/// result before it.
///
/// # Errors
/// A file that is of another tool, of a format that is not read, cut off, empty or no text, that contradicts the others, or that
/// cannot be read.
pub fn import(tool: Tool, sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut each = |read: fn(&mut Lines<'_>) -> Result<Group, ImportError>| {
        let one = |(n, source): (usize, &mut Source<'_>)| {
            let group = read(&mut Lines::new(tool, &source.name, &mut *source.input))?;
            Ok(Group { files: vec![n], ..group })
        };
        sources.iter_mut().enumerate().map(one).collect()
    };
    let mut groups = match tool {
        Tool::Sysbench => each(sysbench::read),
        Tool::Fio => each(fio::read),
        Tool::Pgbench => pgbench::import(sources),
    }?;
    groups.iter_mut().flat_map(|g| &mut g.tests).for_each(|test| test.complete(tool));
    Ok(groups)
}
