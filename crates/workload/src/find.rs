//! Finds workloads and groups by name.

use loadline_model::format::nearest;
use thiserror::Error;

use crate::catalogue::CATALOGUE;
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
        .or_else(|| crate::file::find(code))
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
