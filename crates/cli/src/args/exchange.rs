//! The command lines of results that come in from other tools, and of those that go out to other programs.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum, ValueHint};
use loadline_exchange::Tool;

use super::report::one_line;
use crate::value_args::one_of;

/// `loadline import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Tool that wrote the files
    #[arg(value_name = "TOOL", value_parser = tool())]
    pub(crate) tool: Tool,
    /// Files, - for standard input; each is a run. A log of transactions (pgbench -l) belongs to the one printed report that is named
    /// with it
    #[arg(required = true, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// All files are tests of one run, such as a sweep over jobs
    #[arg(long)]
    pub(crate) one_run: bool,
    /// Name of the platform in tables and charts; '(imported)' is added [default: the tool and the name of the file]
    #[arg(long, value_name = "TEXT", value_parser = one_line)]
    pub(crate) title: Option<String>,
    /// Folder that holds the runs
    #[arg(long, visible_alias = "runs", value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
}

/// The tools.
fn tool() -> impl TypedValueParser<Value = Tool> {
    one_of([
        ("pgbench", "Printed report, with or without logs (-l)", Tool::Pgbench),
        ("sysbench", "Printed report of the oltp scripts", Tool::Sysbench),
        ("fio", "JSON (--output-format=json or json+)", Tool::Fio),
    ])
}

/// `loadline export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Run folder or run id
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format
    #[arg(long, value_enum)]
    pub(crate) format: ExportAs,
    /// Only this table, as one file [default: all, as files in a folder]
    #[arg(long, value_name = "TABLE", value_parser = loadline_exchange::table::TABLES)]
    pub(crate) table: Option<String>,
    /// File to write, - for standard output; without --table a folder, which is made [default: RUN.FORMAT here; with --table standard
    /// output]
    #[arg(long, value_name = "FILE|-|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
}

/// Formats of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportAs {
    /// Tables as Parquet files
    Parquet,
    /// Latencies of all tests as one log of HdrHistogram, version 1.3: an interval for each test and kind, named by its tag
    Hlog,
    /// Tables as CSV files
    Csv,
    /// Tables as JSON files: an array with an object for each row
    Json,
}
