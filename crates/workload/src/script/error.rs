//! What can be wrong with a script, and where.

/// A place in a script. Both count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl Place {
    /// The place of the byte `at` of `text`.
    pub(crate) fn at(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        Self { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }
}

/// A script that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{}:{}: {what}", place.line, place.column)]
pub struct ReadError {
    /// The script's name or path.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong.
    pub what: String,
}

/// A command that failed while the script ran. pgbench aborts the client, and so must who drives the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // Its text says what each is.
pub enum EvaluationError {
    #[error("{0} is out of range for a 64-bit integer")]
    OutOfRange(&'static str),
    #[error("division by zero")]
    DivisionByZero,
    #[error("cannot use {from} as {to}")]
    Type { from: &'static str, to: &'static str },
    #[error("undefined variable \"{0}\"")]
    Undefined(String),
    #[error("variable \"{name}\" has the value {value:?}, which is no number, boolean or null")]
    Malformed { name: String, value: String },
    #[error("{function}: {what}")]
    Argument { function: &'static str, what: String },
    #[error("\\gset expects one row, the statement returned {0}")]
    Rows(usize),
    #[error("the column {0:?} cannot become a variable: name it with AS, in letters, digits and underscores")]
    Name(String),
    #[error("the script has no such command")]
    Program,
}
