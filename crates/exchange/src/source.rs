//! Files that come in, and the tools that write them.

use std::io::{BufRead, Error as Os};

use thiserror::Error;

loadline_model::named! {
    /// A tool whose results can be imported.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Tool {
        Pgbench: "pgbench";
        Sysbench: "sysbench";
        Fio: "fio";
    }
    /// The name as the tool writes it.
    pub fn name;
}

/// How lines of tools begin; those of other tools than these are known so that they are refused by name.
const MARKS: &[(&str, &str)] = &[
    ("pgbench (", "pgbench"),
    ("transaction type:", "pgbench"),
    ("number of transactions actually processed:", "pgbench"),
    ("SQL statistics:", "sysbench"),
    ("General statistics:", "sysbench"),
    ("File operations:", "sysbench"),
    ("HammerDB CLI", "HammerDB"),
    ("\"fio version\"", "fio"),
    ("\"NEWORD\"", "HammerDB"),
    ("\"Benchmark Type\"", "BenchBase"),
    ("Transaction Type Index,", "BenchBase"),
    ("[OVERALL], ", "YCSB"),
    ("Average number of seconds to run all queries", "mysqlslap"),
    ("<TpmC>", "tpcc-mysql"),
    ("[Summary] ", "go-tpc"),
];

impl Tool {
    /// The name of the tool that writes such a line; `None` if any may.
    pub(crate) fn of_line(line: &str) -> Option<&'static str> {
        let line = line.trim();
        let is_digit = |c: char| c.is_ascii_digit();
        let numbered = |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(is_digit));
        match MARKS.iter().find(|(mark, _)| line.starts_with(mark)) {
            Some((_, tool)) => Some(tool),
            None if numbered("sysbench ") => Some("sysbench"),
            None if numbered("fio-") => Some("fio"),
            None if line.contains("TEST RESULT : System achieved") => Some("HammerDB"),
            None => None,
        }
    }
}

/// A file to import.
pub struct Source<'a> {
    pub name: String,
    pub input: Box<dyn BufRead + 'a>,
}

/// Why a file cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// Fault in a line of a file, from 1, or in the file as a whole.
    #[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(", line {line}")))]
    Wrong { file: String, line: Option<u64>, what: String },
    #[error("{file} cannot be read: {error}")]
    Read { file: String, error: Os },
}
