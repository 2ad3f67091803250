//! The text of a workload file, and errors at its places.

use std::ops::Range;

use loadline_model::format::did_you_mean;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// An error in a workload file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct UserError {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// The text of a file, and errors at its places. A place is a path of keys and numbers: `table.0.column.2.fill`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Source {
    /// An error at a place, or at the nearest one around it that is there.
    pub(crate) fn error(&self, at: &str, message: impl Into<String>) -> UserError {
        self.error_at(self.span(at), message)
    }

    pub(crate) fn error_at(&self, at: Range<usize>, message: impl Into<String>) -> UserError {
        let before = self.text.get(..at.start.min(self.text.len())).unwrap_or(&self.text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        UserError { file: self.file.clone(), line, column, message: message.into() }
    }

    pub(crate) fn toml_error(&self, error: &toml::de::Error) -> UserError {
        // The words of the library for a text. It names what is given and what is allowed in backquotes.
        let message = error.message().replace("expected a string", "expected a string in quotes");
        let mut names = message.split('`').skip(1).step_by(2);
        let near = names.next().map_or(String::new(), |given| did_you_mean(given, names));
        self.error_at(error.span().unwrap_or(0..0), format!("{message}{near}"))
    }

    fn span(&self, at: &str) -> Range<usize> {
        let Ok(document) = DeTable::parse(&self.text) else { return 0..0 };
        // What is missing in the file as a whole is missing at its start.
        let document = Spanned::new(0..0, DeValue::Table(document.into_inner()));
        let mut value = &document;
        for key in at.split('.') {
            let next = match value.get_ref() {
                DeValue::Table(table) => table.get(key),
                DeValue::Array(array) => key.parse::<usize>().ok().and_then(|i| array.get(i)),
                _ => None,
            };
            let Some(next) = next else { break };
            value = next;
        }
        value.span()
    }

    pub(crate) fn document(&self) -> Result<Spanned<DeTable<'_>>, UserError> {
        DeTable::parse(&self.text).map_err(|e| self.toml_error(&e))
    }

    pub(crate) fn form<T: DeserializeOwned>(&self, document: Spanned<DeTable<'_>>) -> Result<T, UserError> {
        T::deserialize(Deserializer::from(document)).map_err(|e| self.toml_error(&e))
    }
}
