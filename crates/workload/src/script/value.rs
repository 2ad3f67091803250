//! Values of expressions and their conversions.

use crate::script::error::EvaluationError;
use crate::script::format::general;

/// The value of an expression.
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

    /// As pgbench writes it into a statement: 15 significant digits of a double.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Double(d) => general(d, 15),
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

    /// As a double.
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
