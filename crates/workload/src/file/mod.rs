//! Workload files: TOML with tables and a transaction program. The catalogue and users write the same language.
//!
//! Start at [`read`]. [`program`] makes the transaction program, [`tables`] reads tables and parameters, [`facts`] all else
//! that a workload states, [`reader`] reads values and places errors, [`expression`] computes numbers.
//!
//! Workloads live as long as the process. Texts are kept once each, so reading a file again adds nothing to them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use toml::Spanned;
use toml::de::DeTable;

use crate::params::{ParamError, Params};
use crate::program::Program;
use crate::table::Table;
use crate::workload::{Definition, Volume, Workload};

mod expression;
mod facts;
mod program;
mod reader;
mod scripts;
mod tables;
mod words;

use reader::{Fields, Source};

/// Most rows of a table.
const MAX_ROWS: i64 = 1 << 40;
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

/// A file from which programs are made.
#[derive(Debug)]
struct WorkloadFile {
    source: Source<'static>,
    document: Spanned<DeTable<'static>>,
    tables: &'static [Table],
    /// Whether a user wrote it: messages then name its lines.
    is_own: bool,
}

impl WorkloadFile {
    fn fields(&self) -> Result<Fields<'_, 'static>, UserError> {
        // Missing keys are reported at the start of the file.
        self.source.fields_of(self.document.get_ref(), 0..0, "a workload file", facts::KEYS)
    }
}

impl Definition for WorkloadFile {
    fn text(&self) -> &'static str {
        self.source.text
    }

    fn program(&self, params: &Params) -> Result<Program, ParamError> {
        let program = program::program(&self.source, &self.fields()?, params, self.tables, self.is_own)?;
        Ok(program)
    }

    fn volume(&self, params: &Params) -> Result<Option<Volume>, ParamError> {
        Ok(facts::volume(&self.source, &self.fields()?, params, self.tables)?)
    }
}

/// Reads a user's file; `taken` are codes of other workloads, with who has them.
pub(crate) fn read(file: &str, text: &str, taken: &[(&str, &str)]) -> Result<&'static Workload, UserError> {
    let (source, document) = parse(file, text)?;
    let Some(code_at) = document.get_ref().iter().find(|(key, _)| key.get_ref().as_ref() == "code") else {
        return Err(source.error(0..0, "a workload file needs the key 'code'"));
    };
    let code = intern(source.text(code_at.1, "the code")?);
    check_code(code, taken).map_err(|why| source.error(code_at.1.span(), why))?;
    workload(source, document, code, true)
}

/// Reads a file of the catalogue.
pub(crate) fn read_built_in(code: &'static str, text: &'static str) -> Result<&'static Workload, UserError> {
    let (source, document) = parse(code, text)?;
    workload(source, document, code, false)
}

type Document = Spanned<DeTable<'static>>;

fn parse(file: &str, text: &str) -> Result<(Source<'static>, Document), UserError> {
    let source = Source { file: intern(file), text: intern(text) };
    let parsed = DeTable::parse(source.text);
    let document = parsed.map_err(|e| source.error(e.span().unwrap_or(0..0), e.message().to_owned()))?;
    Ok((source, document))
}

fn workload(
    source: Source<'static>,
    document: Document,
    code: &'static str,
    is_own: bool,
) -> Result<&'static Workload, UserError> {
    if document.get_ref().iter().any(|(key, _)| key.get_ref().as_ref() == "script") {
        let fields = source.fields_of(document.get_ref(), 0..0, "a file of scripts", scripts::KEYS)?;
        return Ok(Box::leak(Box::new(scripts::read(&source, &fields, code)?)));
    }
    let fields = source.fields_of(document.get_ref(), 0..0, "a workload file", facts::KEYS)?;
    let parameters = tables::params(&source, &fields)?;
    let params = parameters.params.leak();
    let tables: &'static [Table] = tables::tables(&source, &fields, params)?.leak();
    let file = Box::leak(Box::new(WorkloadFile { source, document, tables, is_own }));
    let workload = Workload {
        code,
        tables,
        params,
        choices: parameters.choices.leak(),
        at_most: parameters.at_most.leak(),
        file: Some(file),
        ..Workload::BASE
    };
    Ok(Box::leak(Box::new(facts::read(&source, &file.fields()?, workload, is_own)?)))
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

impl From<UserError> for ParamError {
    fn from(error: UserError) -> ParamError {
        ParamError::Unfit { why: error.to_string() }
    }
}

#[cfg(test)]
mod tests;
