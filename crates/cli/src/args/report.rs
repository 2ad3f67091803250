//! Flags of `report` and `note`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// `loadline report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run folders or run ids; the others are compared with the first
    #[arg(required = true, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format
    #[arg(long, value_enum, default_value_t = ReportAs::Html)]
    pub(crate) format: ReportAs,
    /// Columns of the tables, by id and in this order (see `loadline columns`)
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// Compare figures that were measured with different drivers as well; each comparison says so
    #[arg(long)]
    pub(crate) across_drivers: bool,
    /// The page of this test of one run instead: load profile, waits, statements, I/O, over time. Several, separated by commas,
    /// are set side by side
    #[arg(long, value_name = "N,…", value_delimiter = ',', conflicts_with_all = ["columns", "across_drivers"])]
    pub(crate) test: Vec<u32>,
    /// Only key figures, what bounds them, load lines and charts: a few pages on paper
    #[arg(long, conflicts_with = "test")]
    pub(crate) summary: bool,
    /// Title of the report [default: the platforms' names]
    #[arg(long, value_name = "TEXT", value_parser = one_line, conflicts_with = "test")]
    pub(crate) title: Option<String>,
    /// Customer for whom the report is made
    #[arg(long, value_name = "TEXT", value_parser = one_line, conflicts_with = "test")]
    pub(crate) customer: Option<String>,
    /// Replace what identifies the owner of the platforms: names, labels, addresses, paths, URLs, and all free text. For reports that
    /// leave the house
    #[arg(long, conflicts_with = "test")]
    pub(crate) redact: bool,
    /// Replace products by letters (Database A, B, …), and leave out what identifies them: versions, settings, names of waits.
    /// Includes --redact
    #[arg(long, conflicts_with_all = ["test", "with"])]
    pub(crate) anonymous: bool,
    /// Published platform to set beside the runs, e.g. reference:exadata-x9m; repeatable (see `loadline references`)
    #[arg(long = "with", value_name = "reference:ID", conflicts_with = "test")]
    pub(crate) with: Vec<String>,
    /// File to write, - for standard output [default: html of one run: its report/index.html; html of several:
    /// loadline-report.html; pdf: loadline-report.pdf; else standard output]
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Formats of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportAs {
    /// One self-contained page
    Html,
    /// The same on paper: A4, with footers, through an installed Chromium, Chrome, Edge or Brave
    Pdf,
    /// Markdown
    Md,
    /// One table with all tests
    Csv,
    /// Everything
    Json,
    /// Plain text
    Text,
}

/// `loadline note`.
#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// Run folder or run id
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// The note, in Markdown; without it the notes are printed
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// File with the note, - for standard input
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, conflicts_with = "text")]
    pub(crate) file: Option<PathBuf>,
    /// Workload that it is about [default: the whole run]
    #[arg(long, value_name = "CODE")]
    pub(crate) workload: Option<String>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
}

/// A text of one line, with something in it.
pub(super) fn one_line(text: &str) -> Result<String, String> {
    /// Most characters: it is on one line of each page.
    const MOST: usize = 200;
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        line if line.chars().any(char::is_control) => {
            Err("it has more than one line, or control characters".to_owned())
        }
        line if line.chars().count() > MOST => Err(format!("it has more than {MOST} characters")),
        line => Ok(line.to_owned()),
    }
}
