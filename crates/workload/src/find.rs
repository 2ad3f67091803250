//! Finds workloads and groups by name: those of the catalogue, and those of files that are registered.

use std::sync::{PoisonError, RwLock};

use loadline_model::format::nearest;
use thiserror::Error;

use crate::catalogue::CATALOGUE;
use crate::file::read;
use crate::source::UserError;
use crate::workload::{GROUPS, Workload};

/// An unknown name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {what} '{given}'{hint}; `loadline workloads` lists all")]
pub struct Unknown {
    what: &'static str,
    given: String,
    hint: String,
}

impl Unknown {
    fn new(what: &'static str, given: &str, known: impl Iterator<Item = &'static str> + Clone) -> Unknown {
        let hint = match nearest(given, known.clone()) {
            Some(near) => format!(": did you mean '{near}'?"),
            None => format!(": it must be one of {}", known.collect::<Vec<_>>().join(", ")),
        };
        Unknown { what, given: given.to_owned(), hint }
    }
}

/// The workload with `code` (in any case), from the catalogue or from a registered file.
///
/// # Errors
/// [`Unknown`], with the nearest code.
pub fn find(code: &str) -> Result<&'static Workload, Unknown> {
    let found = CATALOGUE.iter().find(|w| w.code.eq_ignore_ascii_case(code.trim()));
    found
        .copied()
        .or_else(|| registered(code))
        .ok_or_else(|| Unknown::new("workload", code, CATALOGUE.iter().map(|w| w.code)))
}

/// The workloads of group `code`.
///
/// # Errors
/// [`Unknown`], with the nearest group. A group without workloads is unknown, too, so that nothing is skipped silently.
pub fn find_group(code: &str) -> Result<Vec<&'static Workload>, Unknown> {
    let given = code.trim();
    let found: Vec<_> = CATALOGUE.iter().copied().filter(|w| w.group.eq_ignore_ascii_case(given)).collect();
    let known = GROUPS.iter().map(|g| g.code).filter(|g| CATALOGUE.iter().any(|w| w.group == *g));
    if found.is_empty() { Err(Unknown::new("group with workloads", code, known)) } else { Ok(found) }
}

/// Workloads of files with their texts. Never removed.
static REGISTERED: RwLock<Vec<(&'static Workload, String)>> = RwLock::new(Vec::new());

fn registered(code: &str) -> Option<&'static Workload> {
    let all = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(w, _)| *w).find(|w| w.code.eq_ignore_ascii_case(code.trim()))
}

/// Reads the workload in `text` and registers it for [`find`]; `file` is its name in messages. The same text again gives the
/// same workload.
///
/// # Errors
/// [`UserError`] with the position of the error; also if another workload has the same code.
pub fn register(file: &str, text: &str) -> Result<&'static Workload, UserError> {
    add(file, text, false)
}

/// As [`register`], for a process that works for one run after the other: a workload of the same code is replaced.
///
/// # Errors
/// [`UserError`] with the position of the error.
pub fn register_anew(file: &str, text: &str) -> Result<&'static Workload, UserError> {
    add(file, text, true)
}

fn add(file: &str, text: &str, replaces: bool) -> Result<&'static Workload, UserError> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some((workload, _)) = registered.iter().find(|(_, t)| t == text) {
        return Ok(workload);
    }
    let others = registered.iter().filter(|_| !replaces).map(|(w, _)| (w.code, "another workload file of this run"));
    let taken: Vec<_> = CATALOGUE.iter().map(|w| (w.code, "the catalogue")).chain(others).collect();
    let workload = read(file, text, &taken)?;
    registered.retain(|(of, _)| of.code != workload.code);
    registered.push((workload, text.to_owned()));
    Ok(workload)
}
