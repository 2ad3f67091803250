//! Errors of run folders.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run folder could not be created, written or read. Each text can be shown on its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The results folder is not a directory.
    #[error("the results folder '{}' is a file: name a directory, or move the file away", .0.display())]
    ResultsIsFile(PathBuf),
    /// The name of a run is not a valid folder name.
    #[error("'{0}' cannot be the name of a run: use letters, digits, '-', '_' and '.', but no '/'")]
    BadName(String),
    /// The filesystem (or a quota on it) is full.
    #[error("no space left: cannot {doing} '{}' ({cause}). {advice}", .path.display())]
    Full {
        /// The failed action, as a verb.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
        /// What to do next.
        advice: String,
    },
    /// Any other I/O error.
    #[error("cannot {doing} '{}': {cause}. {advice}", .path.display())]
    Io {
        /// The failed action, as a verb.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
        /// What to do next.
        advice: String,
    },
    /// A finished test could not be stored; earlier ones are safe.
    #[error("test {test} could not be stored: {cause} {safe}; then continue with `loadline run --resume {}`", .run.display())]
    NotStored {
        /// Number of the test.
        test: u32,
        /// The run folder.
        run: PathBuf,
        /// What went wrong.
        cause: Box<StoreError>,
        /// Which tests are safe.
        safe: String,
    },
    /// A value does not fit the file format: a defect of loadline.
    #[error("test {test} cannot be stored: {what}. This is a defect of loadline: please report it")]
    Unwritable {
        /// Number of the test.
        test: u32,
        /// What is wrong with it.
        what: String,
    },
    /// Another live process writes to the run.
    #[error("the run '{}' is in use by another loadline{}: wait until it ends, or stop it", .path.display(),
        .holder.map_or(String::new(), |pid| format!(" (process {pid})")))]
    Locked {
        /// The run folder.
        path: PathBuf,
        /// Process that holds the lock, if known.
        holder: Option<u32>,
    },
    /// A file of a run is damaged.
    #[error("'{}'{} is damaged: {what}. {advice}", .path.display(),
        .line.map_or(String::new(), |n| format!(", line {n},")))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, from 1, where the file has lines.
        line: Option<usize>,
        /// What is wrong.
        what: String,
        /// What to do next.
        advice: &'static str,
    },
    /// A file was written by a newer loadline.
    #[error("'{}'{} has layout {found}, but this loadline supports layouts up to {known}: use the loadline that wrote it, \
        or a newer one", .path.display(), .line.map_or(String::new(), |n| format!(", line {n},")))]
    Newer {
        /// The file.
        path: PathBuf,
        /// Line, from 1, where the file has lines.
        line: Option<usize>,
        /// Layout found.
        found: u64,
        /// Newest layout that this version reads.
        known: u32,
    },
    /// The path does not exist.
    #[error("'{}' does not exist: name a run folder, such as results/2026-11-20-161530-postgres", .0.display())]
    Missing(PathBuf),
    /// The path is not a run folder.
    #[error("'{}' is not a run folder: it has no manifest.json", .0.display())]
    NotARun(PathBuf),
    /// The path is a directory of run folders.
    #[error("'{}' is not a run folder, but contains {}: name one of them, e.g. {}", .path.display(), listed(.runs),
        .runs.first().map_or(String::new(), |r| .path.join(r).display().to_string()))]
    HoldsRuns {
        /// The directory.
        path: PathBuf,
        /// Names of the run folders in it, in order.
        runs: Vec<String>,
    },
    /// The run has no test with this number.
    #[error("the run '{}' has no test {test}: it has {}", .run.display(),
        if *.tests == 0 { "none yet".to_owned() } else { format!("{tests}") })]
    NoSuchTest {
        /// The run folder.
        run: PathBuf,
        /// The requested number.
        test: u32,
        /// Number of tests in the run.
        tests: usize,
    },
}

impl StoreError {
    /// Whether a full filesystem (or quota) is the cause.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::Full { .. } => true,
            StoreError::NotStored { cause, .. } => cause.is_full(),
            _ => false,
        }
    }
}

/// At most ten names, and the number of the others.
fn listed(runs: &[String]) -> String {
    const SHOWN: usize = 10;
    let names = runs.iter().take(SHOWN).map(|r| format!("'{r}'")).collect::<Vec<_>>().join(", ");
    let more = runs.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} {names}{rest}", if runs.len() == 1 { "the run" } else { "the runs" })
}

/// Wraps an I/O error. A full disk has its own variant, because it needs other advice.
pub(crate) fn io_error(doing: &'static str, path: &Path, cause: io::Error, advice: &str) -> StoreError {
    let path = path.to_owned();
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let advice = "Free space on its filesystem, or choose another folder for the results.".to_owned();
            StoreError::Full { doing, path, cause, advice }
        }
        _ => StoreError::Io { doing, path, cause, advice: advice.to_owned() },
    }
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
