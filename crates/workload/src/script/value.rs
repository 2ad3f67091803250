//! Values of expressions, their conversions and their text, the variables that hold them, and errors of scripts while they run.

use std::collections::HashMap;

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
    /// In a workload file.
    #[error("{0}")]
    UnknownName(String),
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl Value {
    fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Double(_) => "a double",
        }
    }

    /// As pgbench writes it into a statement.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Double(d) => general(d),
        }
    }

    /// The value of a variable's text; `None` if it is none.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        if lower == "null" {
            Some(Self::Null)
        } else if begins("true") || begins("yes") || lower == "on" {
            Some(Self::Bool(true))
        } else if begins("false") || begins("no") || lower == "off" || lower == "of" {
            Some(Self::Bool(false))
        } else if let Ok(i) = text.trim().parse() {
            Some(Self::Int(i))
        } else {
            text.trim().parse().ok().map(Self::Double)
        }
    }

    /// As an integer; a double is rounded to even.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn int(self) -> Result<i64, EvaluationError> {
        match self {
            Self::Int(i) => Ok(i),
            Self::Double(d) => {
                let rounded = d.round_ties_even();
                // The bounds are powers of two, so exact; the upper one is no integer of 64 bits any more.
                let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded);
                if fits { Ok(rounded as i64) } else { Err(EvaluationError::OutOfRange("double to int")) }
            }
            other => Err(EvaluationError::Type { from: other.kind(), to: "an integer" }),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn double(self) -> Result<f64, EvaluationError> {
        match self {
            Self::Int(i) => Ok(i as f64),
            Self::Double(d) => Ok(d),
            other => Err(EvaluationError::Type { from: other.kind(), to: "a double" }),
        }
    }

    /// As a boolean; numbers are none.
    pub(crate) fn bool(self) -> Result<bool, EvaluationError> {
        match self {
            Self::Bool(b) => Ok(b),
            other => Err(EvaluationError::Type { from: other.kind(), to: "a boolean" }),
        }
    }

    /// Whether a condition holds: true, or a number that is not 0.
    pub(crate) fn holds(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => b,
            Self::Int(i) => i != 0,
            Self::Double(d) => d != 0.0,
        }
    }
}

/// C's `%.15g`, as PostgreSQL's own printf has it: at most 15 significant digits, in the shorter of the two notations, without trailing zeros.
fn general(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:.14e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..15).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(14 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// The variables of one client by name. What the server or the command line gave is text, and a value once an expression uses it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    held: HashMap<String, Result<Value, String>>,
}

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.held.insert(name.to_owned(), Ok(value));
    }

    /// Sets a variable to a text, which is put into statements as it is.
    pub(crate) fn set_text(&mut self, name: &str, text: &str) {
        self.held.insert(name.to_owned(), Err(text.to_owned()));
    }

    /// Text in its place in a statement.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = |value: &Result<Value, String>| value.as_ref().map_or_else(String::clone, |value| value.text());
        self.held.get(name).map(text)
    }

    pub(crate) fn value(&self, name: &str) -> Result<Value, EvaluationError> {
        let owned = || name.to_owned();
        match self.held.get(name).ok_or_else(|| EvaluationError::Undefined(owned()))? {
            Ok(value) => Ok(*value),
            Err(text) => {
                Value::of_text(text).ok_or_else(|| EvaluationError::Malformed { name: owned(), value: text.clone() })
            }
        }
    }
}

/// Whether pgbench takes it as a variable's name: letters, digits, underscores, and all beyond ASCII; no digit first.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_name_char)
}

pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}
