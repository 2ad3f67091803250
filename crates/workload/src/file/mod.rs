//! Workload files: TOML with tables and a transaction program. The catalogue and users write the same language.
//!
//! Start at [`read`]. [`crate::Workload`] is a file as it is written, with [`form`] for its program, [`check`] what its tables and parameters must be, [`facts`] completes
//! the workload, [`program`] its transaction program, [`expression`] computes numbers. Reading makes the program with the
//! default, lowest and highest parameters, so whatever is wrong with it is found before anything starts.
//!
//! Workloads live as long as the process. Texts are kept once each, so reading a file again adds nothing to them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use loadline_model::format::did_you_mean;
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::params::ParamError;
use crate::workload::Workload;

mod check;
mod expression;
mod facts;
pub(crate) mod form;
mod program;
mod scripts;

pub(crate) use check::{MAX_PAYLOAD, MAX_ROWS};
pub(crate) use form::{MAX_NAME, MAX_SALT, MAX_WORD, column_of, list, name, within};

/// Longest code: it is part of every name that loadline creates in a database.
const MAX_CODE: usize = 20;

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

impl From<UserError> for ParamError {
    fn from(error: UserError) -> ParamError {
        ParamError::Unfit { why: error.to_string() }
    }
}

/// `text` for as long as the process lives; equal texts are kept once.
fn intern(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = texts.get(text) {
        return text;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    texts.insert(kept);
    kept
}

/// The text of a file, and errors at its places. A place is a path of keys and numbers: `table.0.column.2.fill`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Source {
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
}

impl Source {
    /// An error at a place, or at the nearest one around it that is there.
    fn error(&self, at: &str, message: impl Into<String>) -> UserError {
        self.error_at(self.span(at), message)
    }

    fn error_at(&self, at: Range<usize>, message: impl Into<String>) -> UserError {
        let before = self.text.get(..at.start.min(self.text.len())).unwrap_or(self.text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        UserError { file: self.file.to_owned(), line, column, message: message.into() }
    }

    fn toml_error(&self, error: &toml::de::Error) -> UserError {
        // The words of the library for a text. It names what is given and what is allowed in backquotes.
        let message = error.message().replace("a borrowed string", "a string in quotes");
        let mut names = message.split('`').skip(1).step_by(2);
        let near = names.next().map_or(String::new(), |given| did_you_mean(given, names));
        self.error_at(error.span().unwrap_or(0..0), format!("{message}{near}"))
    }

    fn span(&self, at: &str) -> Range<usize> {
        let Ok(document) = DeTable::parse(self.text) else { return 0..0 };
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

    fn document(&self) -> Result<Spanned<DeTable<'static>>, UserError> {
        DeTable::parse(self.text).map_err(|e| self.toml_error(&e))
    }

    fn form<T: Deserialize<'static>>(&self, document: Spanned<DeTable<'static>>) -> Result<T, UserError> {
        T::deserialize(Deserializer::from(document)).map_err(|e| self.toml_error(&e))
    }
}

/// Reads a user's file; `taken` are codes of other workloads, with who has them.
pub(crate) fn read(file: &str, text: &str, taken: &[(&str, &str)]) -> Result<&'static Workload, UserError> {
    let source = Source { file: intern(file), text: intern(text) };
    let workload = workload(source, true)?;
    check_code(workload.code, taken).map_err(|why| source.error("code", why))?;
    Ok(workload)
}

/// Reads a file of the catalogue.
pub(crate) fn read_built_in(code: &'static str, text: &'static str) -> Result<&'static Workload, UserError> {
    workload(Source { file: code, text }, false)
}

fn workload(source: Source, is_own: bool) -> Result<&'static Workload, UserError> {
    let mut document = source.document()?;
    if document.get_ref().contains_key("script") {
        return Ok(Box::leak(Box::new(scripts::read(&source, document)?)));
    }
    form::unify(document.get_mut()).map_err(|(at, why)| source.error_at(at, why))?;
    let mut workload: Workload = source.form(document)?;
    workload.source = source;
    workload.complete(is_own)?;
    Ok(Box::leak(Box::new(workload)))
}

/// Checks the code of a user's workload.
fn check_code(code: &str, taken: &[(&str, &str)]) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    if !code.starts_with(|c: char| c.is_ascii_uppercase()) || !code.chars().all(plain) || code.len() > MAX_CODE {
        return Err(format!(
            "the code '{code}' is not allowed: use letters A to Z, digits and '-', a letter first, at most {MAX_CODE} \
             characters (for example ORDER-QUEUE), because names in the database start with it"
        ));
    }
    // Names of the data set's tables start with it.
    if code == "DATA" || code.starts_with("DATA-") {
        return Err(format!("the code '{code}' is not allowed: names that start with data belong to the data set"));
    }
    match taken.iter().find(|(other, _)| *other == code) {
        Some((_, owner)) => Err(format!("{owner} has a workload {code}: use another code")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
