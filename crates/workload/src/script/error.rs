//! Errors of scripts while they run.

/// A command that failed while the script ran. pgbench aborts the client, and so must who drives the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
