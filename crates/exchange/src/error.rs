//! Why a file cannot be imported.

use thiserror::Error;

/// Why a file cannot be imported. Its text names the file and, where there is one, the line.
#[derive(Debug, Error)]
pub enum ImportError {
    /// Something in a file.
    #[error("{file}, line {line}: {what}")]
    Line {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// The file as a whole.
    #[error("{file}: {what}")]
    File {
        /// Name of the file.
        file: String,
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
