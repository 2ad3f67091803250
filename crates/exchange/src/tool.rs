//! The tools whose results can be imported, and how their text is recognised.

use std::fmt;

/// A tool.
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

impl Tool {
    /// Its name as it writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Pgbench => "pgbench",
            Tool::Sysbench => "sysbench",
            Tool::HammerDb => "HammerDB",
            Tool::Fio => "fio",
        }
    }

    /// The tool that writes such a line; `None` if any may.
    pub(crate) fn of_line(line: &str) -> Option<Tool> {
        let line = line.trim();
        let begins = |marks: &[&str]| marks.iter().any(|mark| line.starts_with(mark));
        let numbered =
            |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if begins(&["pgbench (", "transaction type:", "number of transactions actually processed:"]) {
            Some(Tool::Pgbench)
        } else if numbered("sysbench ") || begins(&["SQL statistics:", "General statistics:", "File operations:"]) {
            Some(Tool::Sysbench)
        } else if line.contains("TEST RESULT : System achieved") || begins(&["HammerDB CLI"]) {
            Some(Tool::HammerDb)
        } else if numbered("fio-") || begins(&["\"fio version\""]) {
            Some(Tool::Fio)
        } else {
            None
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
