//! Workload files: TOML with tables and a transaction program. The catalogue and users write the same language.
//!
//! Start at [`read`]. [`crate::Workload`] is a file as it is written, with [`crate::form`] for its program, [`check`] what its tables and parameters must be, [`facts`] completes
//! the workload, [`program`] its transaction program, [`expression`] computes numbers. Reading makes the program with the
//! default, lowest and highest parameters, so whatever is wrong with it is found before anything starts.

use crate::form;
use crate::params::ParamError;
use crate::source::{Source, UserError};
use crate::workload::Workload;

mod check;
mod expression;
mod facts;
mod program;
mod scripts;

/// Longest code: it is part of every name that loadline creates in a database.
const MAX_CODE: usize = 20;

impl From<UserError> for ParamError {
    fn from(error: UserError) -> ParamError {
        ParamError::Unfit { why: error.to_string() }
    }
}

/// Reads a user's file; `taken` are codes of other workloads, with who has them.
pub(crate) fn read(file: &str, text: &str, taken: &[(&str, &str)]) -> Result<Workload, UserError> {
    let workload = workload(file, text, true)?;
    check_code(&workload.code, taken).map_err(|why| workload.source.error("code", why))?;
    Ok(workload)
}

/// Reads a file of the catalogue.
pub(crate) fn read_built_in(code: &str, text: &str) -> Result<Workload, UserError> {
    workload(code, text, false)
}

fn workload(file: &str, text: &str, is_own: bool) -> Result<Workload, UserError> {
    let source = Source { file: file.to_owned(), text: text.to_owned() };
    let mut document = source.document()?;
    if document.get_ref().contains_key("script") {
        let scripts = scripts::read(&source, document)?;
        return Ok(Workload { source, ..scripts });
    }
    form::unify(document.get_mut()).map_err(|(at, why)| source.error_at(at, why))?;
    let mut workload: Workload = source.form(document)?;
    workload.source = source;
    workload.complete(is_own)?;
    Ok(workload)
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
