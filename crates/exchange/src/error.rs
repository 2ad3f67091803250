//! Why a file cannot be imported.

use thiserror::Error;

/// Why a file cannot be imported. Its text names the file and, where there is one, the line.
#[derive(Debug, Error)]
pub enum ImportError {
    /// What a file says.
    #[error("{place}: {what}")]
    Wrong {
        /// Name of the file, with the line if it is about one: `a.txt, line 3`.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// It cannot be read.
    #[error("{file} cannot be read: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
}

impl ImportError {
    /// About the file as a whole.
    pub(crate) fn of_file(file: &str, what: impl Into<String>) -> ImportError {
        ImportError::Wrong { place: file.to_owned(), what: what.into() }
    }
}
