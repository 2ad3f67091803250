//! The catalogue of workloads: one file each in `catalogue/`, in the language that users write too. Finds these, and those of users'
//! files, by name.
//!
//! To add a workload, write its file and list it here.

use std::sync::{Arc, LazyLock};

use loadline_model::column::TABLES;
use loadline_model::format::nearest;
use loadline_model::plan::WorkloadFile;
use thiserror::Error;

use crate::file;
use crate::source::UserError;
use crate::workload::Workload;

macro_rules! files {
    ($($code:literal),* $(,)?) => { &[$(($code, include_str!(concat!("../catalogue/", $code, ".toml")))),*] };
}

/// Codes and files, in the order in which a study runs them.
const FILES: &[(&str, &str)] = files![
    "SRV-QUERY1", "SRV-QUERY25", "SRV-SCAN", "SRV-MIXED", "STO-READ", "STO-READ-ASYNC", "STO-WRITE", "STO-SCAN",
    "STO-RANDOM", "LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR", "LGWR-MIXED", "LGWR-SIZE", "DBWR-THR",
    "DBWR-CKPT", "DBL-11", "DBL-12", "DBL-22", "DBL-STREAM", "DBL-INDEX", "DA-SCAN", "DA-AGG", "DA-JOIN", "DA-SORT",
    "DA-WINDOW", "DA-PARALLEL", "TP-LOOKUP", "TP-REPORT", "TP-LIGHT", "TP-MEDIUM", "TP-HEAVY", "TP-MIXED", "PLS-ADD",
    "PLS-FIBO", "PLS-PRIME", "PLS-STRING", "PLS-BUILTIN", "PLS-MIXED",
];
const APPENDS: &[(&str, &str)] = files!["LOG-APPENDS"];

/// The catalogue. A file that cannot be read is not in it, which its tests detect.
pub static CATALOGUE: LazyLock<Vec<Arc<Workload>>> = LazyLock::new(|| read(FILES));

/// Transactions of any redo, with which the reference log writer measures the limit of other workloads' commits.
pub static LOG_APPENDS: LazyLock<Arc<Workload>> = LazyLock::new(|| read(APPENDS).pop().unwrap_or_default());

fn read(files: &[(&str, &str)]) -> Vec<Arc<Workload>> {
    files.iter().filter_map(|(code, text)| file::read_built_in(code, text).ok()).map(Arc::new).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {0}; `loadline workloads` lists all")]
pub struct Unknown(String);

impl Unknown {
    fn new<'k>(what: &'static str, given: &str, known: impl Iterator<Item = &'k str> + Clone) -> Unknown {
        let hint = match nearest(given, known.clone()) {
            Some(near) => format!(": did you mean '{near}'?"),
            None => format!(": it must be one of {}", known.collect::<Vec<_>>().join(", ")),
        };
        Unknown(format!("{what} '{given}'{hint}"))
    }
}

/// The workload with `code` (in any case), from the catalogue.
pub fn find(code: &str) -> Result<Arc<Workload>, Unknown> {
    Workloads::default().find(code)
}

/// The workloads of group `code`.
/// A group without workloads is unknown, so that nothing is skipped silently.
pub fn find_group(code: &str) -> Result<Vec<Arc<Workload>>, Unknown> {
    let given = code.trim();
    let found: Vec<_> = CATALOGUE.iter().filter(|w| w.group.eq_ignore_ascii_case(given)).cloned().collect();
    let known = TABLES.iter().map(|t| t.group).filter(|g| CATALOGUE.iter().any(|w| w.group == *g));
    if found.is_empty() { Err(Unknown::new("group with workloads", code, known)) } else { Ok(found) }
}

/// The workload in `text`, that of a user's file; `file` is its name in messages.
/// Fails if a workload of the catalogue has its code.
pub fn read_file(file: &str, text: &str) -> Result<Arc<Workload>, UserError> {
    Workloads::default().read_one(file, text)
}

/// Workloads of users' files, beside those of the catalogue.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    /// Those of files, in their order.
    pub own: Vec<Arc<Workload>>,
}

impl Workloads {
    /// Reads `files`. Files with the same text are one workload.
    /// Fails if another workload has the same code.
    pub fn read(files: &[WorkloadFile]) -> Result<Workloads, UserError> {
        let mut all = Workloads::default();
        for file in files {
            if !all.own.iter().any(|known| known.text() == file.text) {
                let workload = all.read_one(&file.name, &file.text)?;
                all.own.push(workload);
            }
        }
        Ok(all)
    }

    fn read_one(&self, name: &str, text: &str) -> Result<Arc<Workload>, UserError> {
        let own = self.own.iter().map(|w| (w.code.as_str(), "another workload file of this run"));
        let taken = CATALOGUE.iter().map(|w| (w.code.as_str(), "the catalogue")).chain(own);
        file::read(name, text, &taken.collect::<Vec<_>>()).map(Arc::new)
    }

    pub fn find(&self, code: &str) -> Result<Arc<Workload>, Unknown> {
        let found = CATALOGUE.iter().chain(&self.own).find(|w| w.code.eq_ignore_ascii_case(code.trim()));
        found.cloned().ok_or_else(|| Unknown::new("workload", code, CATALOGUE.iter().map(|w| w.code.as_str())))
    }
}

#[cfg(test)]
mod tests;
