//! Flags of listings.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// How a listing is written.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Format
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Formats of listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Plain text
    Text,
    /// Markdown
    #[value(alias = "markdown")]
    Md,
    /// CSV
    Csv,
    /// JSON
    Json,
}
