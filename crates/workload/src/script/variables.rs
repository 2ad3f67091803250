//! The variables of one client.

use std::collections::HashMap;

use crate::script::error::EvaluationError;
use crate::script::value::Value;

#[derive(Debug, Clone)]
enum Held {
    Value(Value),
    Text(String),
}

/// Variables by name. What the server or the command line gave is text, and a value once an expression uses it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    held: HashMap<String, Held>,
}

impl Variables {
    /// Sets a variable to a value.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.held.insert(name.to_owned(), Held::Value(value));
    }

    /// Sets a variable to a text, which is put into statements as it is.
    pub(crate) fn set_text(&mut self, name: &str, text: &str) {
        self.held.insert(name.to_owned(), Held::Text(text.to_owned()));
    }

    /// What stands for it in a statement.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.held.get(name)? {
            Held::Value(value) => Some(value.text()),
            Held::Text(text) => Some(text.clone()),
        }
    }

    /// Its value in an expression.
    pub(crate) fn value(&self, name: &str) -> Result<Value, EvaluationError> {
        match self.held.get(name) {
            None => Err(EvaluationError::Undefined(name.to_owned())),
            Some(Held::Value(value)) => Ok(*value),
            Some(Held::Text(text)) => Value::of_text(text)
                .ok_or_else(|| EvaluationError::Malformed { name: name.to_owned(), value: text.clone() }),
        }
    }
}

/// Whether pgbench takes it as a variable's name: letters, digits, underscores, and all beyond ASCII; no digit first.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_name_char)
}

pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}
