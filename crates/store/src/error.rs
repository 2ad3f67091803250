//! Errors of run folders.

use std::io;
use std::path::{Path, PathBuf};

use loadline_model::format::counted;

/// Why a run folder could not be created, written or read. Each text can be shown on its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("the results folder '{}' is a file: name a directory, or move the file away", .0.display())]
    ResultsIsFile(PathBuf),
    #[error("'{0}' cannot be the name of a run: use letters, digits, '-', '_' and '.', but no '/'")]
    BadName(String),
    /// `doing`: the failed action, as a verb.
    #[error("{}", io_text(.doing, .path, .cause, .advice))]
    Io { doing: &'static str, path: PathBuf, cause: io::Error, advice: &'static str },
    #[error("test {test} could not be stored: {cause} {safe}; then continue with `loadline run --resume {}`", .run.display())]
    NotStored { test: u32, run: PathBuf, cause: Box<StoreError>, safe: String },
    #[error("test {test} cannot be stored: {what}. This is an internal error: please report it")]
    Unwritable { test: u32, what: String },
    #[error("the run '{}' is in use by another loadline{}: wait until it ends, or stop it", .path.display(),
        .holder.map_or(String::new(), |pid| format!(" (process {pid})")))]
    Locked { path: PathBuf, holder: Option<u32> },
    /// `line`: from 1, where the file has lines.
    #[error("'{}'{} is damaged: {what}. {advice}", .path.display(),
        .line.map_or(String::new(), |n| format!(", line {n},")))]
    Damaged { path: PathBuf, line: Option<usize>, what: String, advice: &'static str },
    /// `known`: the newest layout that this version reads.
    #[error("'{}'{} has layout {found}, but this loadline supports layouts up to {known}: use the loadline that wrote it, \
        or a newer one", .path.display(), .line.map_or(String::new(), |n| format!(", line {n},")))]
    Newer { path: PathBuf, line: Option<usize>, found: u64, known: u32 },
    #[error("'{}' does not exist: name a run folder, such as results/2026-11-20-161530-postgres", .0.display())]
    Missing(PathBuf),
    #[error("'{}' is not a run folder: it has no manifest.json", .0.display())]
    NotARun(PathBuf),
    #[error("'{}' is not a run folder, but contains {}: name one of them, e.g. {}", .path.display(),
        counted(.runs.len(), "run"), .runs.first().map_or(String::new(), |r| .path.join(r).display().to_string()))]
    HoldsRuns { path: PathBuf, runs: Vec<String> },
    #[error("the run '{}' has no test {test}: it has {}", .run.display(),
        if *.tests == 0 { "none yet".to_owned() } else { format!("{tests}") })]
    NoSuchTest { run: PathBuf, test: u32, tests: usize },
}

impl StoreError {
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::Io { cause, .. } => fills_up(cause),
            StoreError::NotStored { cause, .. } => cause.is_full(),
            _ => false,
        }
    }
}

/// Whether a filesystem, or a quota on it, is full.
fn fills_up(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn io_text(doing: &str, path: &Path, cause: &io::Error, advice: &str) -> String {
    let path = path.display();
    if fills_up(cause) {
        let advice = "Free space on its filesystem, or choose another folder for the results.";
        return format!("no space left: cannot {doing} '{path}' ({cause}). {advice}");
    }
    format!("cannot {doing} '{path}': {cause}. {advice}")
}

pub(crate) fn io_error(doing: &'static str, path: &Path, cause: io::Error, advice: &'static str) -> StoreError {
    StoreError::Io { doing, path: path.to_owned(), cause, advice }
}

pub(crate) const RESTORE_OR_CUT: &str = "Restore it from a copy, or delete that line to continue without its test";

pub(crate) fn damaged(path: &Path, line: Option<usize>, what: impl Into<String>) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), line, what: what.into(), advice: "Restore it from a copy" }
}

/// The text of a JSON error without its 'at line 1', which would be mistaken for a line of the file.
pub(crate) fn json_text(e: &serde_json::Error) -> String {
    let text = e.to_string();
    match text.rfind(" at line ") {
        Some(at) => format!("{} (at character {})", &text[..at], e.column()),
        None => text,
    }
}
