//! Files to tests: the tools, their files, and the groups of tests that the files become.

use std::fmt;
use std::io::BufRead;

use crate::draft::ImportedTest;
use crate::error::ImportError;
use crate::lines::{Lines, plain};
use crate::{fio, hammerdb, pgbench, sysbench};

/// A tool whose results can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// PostgreSQL's pgbench.
    Pgbench,
    /// sysbench.
    Sysbench,
    /// HammerDB.
    HammerDb,
    /// fio.
    Fio,
}

/// How lines of tools begin; those of other tools than the four are known so that they are refused by name.
const MARKS: &[(&str, &str)] = &[
    ("pgbench (", "pgbench"),
    ("transaction type:", "pgbench"),
    ("number of transactions actually processed:", "pgbench"),
    ("SQL statistics:", "sysbench"),
    ("General statistics:", "sysbench"),
    ("File operations:", "sysbench"),
    ("HammerDB CLI", "HammerDB"),
    ("\"fio version\"", "fio"),
    ("[OVERALL], ", "YCSB"),
    ("Average number of seconds to run all queries", "mysqlslap"),
    ("<TpmC>", "tpcc-mysql"),
    ("[Summary] ", "go-tpc"),
];

impl Tool {
    /// The tool's name as it writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Pgbench => "pgbench",
            Tool::Sysbench => "sysbench",
            Tool::HammerDb => "HammerDB",
            Tool::Fio => "fio",
        }
    }

    /// The name of the tool that writes such a line; `None` if any may.
    pub(crate) fn of_line(line: &str) -> Option<&'static str> {
        let line = line.trim();
        let numbered =
            |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        match MARKS.iter().find(|(mark, _)| line.starts_with(mark)) {
            Some((_, tool)) => Some(tool),
            None if numbered("sysbench ") => Some("sysbench"),
            None if numbered("fio-") => Some("fio"),
            None if line.contains("TEST RESULT : System achieved") => Some("HammerDB"),
            None => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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
        Tool::HammerDb => hammerdb::import(sources),
    }?;
    groups.iter_mut().flat_map(|g| &mut g.tests).for_each(|test| test.complete(tool));
    Ok(groups)
}
