//! Files that come in, and the tests that they become.

use std::io::BufRead;

use loadline_model::{Latencies, Series, TestRecord};

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

/// What one file is: tests, or a part of a test such as a log of its transactions.
pub(crate) enum Read<P> {
    Tests(Group),
    Part(P),
}
