//! Why a file cannot be imported.

use thiserror::Error;

/// Why a file cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// What a file says.
    #[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(", line {line}")))]
    Wrong {
        /// Name of the file.
        file: String,
        /// Number of the line from 1; `None` if it is about the file as a whole.
        line: Option<u64>,
        /// What is wrong.
        what: String,
    },
    /// The file cannot be read.
    #[error("{file} cannot be read: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
}
