//! Flags of the commands that ask of stored figures what follows from them: `forecast`, `audit`.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, ValueHint};
use loadline_report::Format;

use super::{ListArgs, cpu_pct, job_count, objective_ms, positive};
use crate::value_args::one_of;

/// `loadline forecast`.
#[derive(Debug, Args)]
pub(crate) struct ForecastArgs {
    /// A run, or reference:ID for a published table; several are forecast together
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Job counts to forecast, e.g. 64,128 [default: 1.5 and 2 times the most that were measured]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_delimiter = ',', value_parser = job_count)]
    pub(crate) jobs: Option<Vec<u32>>,
    /// Which load does this throughput need, e.g. 15000
    #[arg(long, value_name = "TPS", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) tps: Option<f64>,
    /// At how many jobs is the 99th percentile above this, with its unit, e.g. 5ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = objective_ms)]
    pub(crate) p99: Option<f64>,
    /// At how many jobs is the mean transaction time above this, with its unit, e.g. 2ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = objective_ms)]
    pub(crate) latency: Option<f64>,
    /// At how many jobs are the CPUs busier than this, e.g. 80%
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = cpu_pct)]
    pub(crate) cpu: Option<f64>,
    /// Instead, hold out the upper half of each series, forecast it from the lower half, and print errors and coverage
    #[arg(long, conflicts_with_all = ["jobs", "tps", "p99", "latency", "cpu"])]
    pub(crate) evaluate: bool,
    /// Workload to forecast, e.g. LGWR-LAT1; repeatable, or separated by commas [default: all]
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format
    #[arg(long, value_parser = forecast_format(), default_value = "text")]
    pub(crate) format: Format,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Formats of a forecast.
fn forecast_format() -> impl TypedValueParser<Value = Format> {
    one_of([
        ("html", "One self-contained page", Format::Html),
        ("md", "Markdown", Format::Markdown),
        ("csv", "One table with all tests", Format::Csv),
        ("json", "Everything", Format::Json),
        ("text", "Plain text", Format::Text),
    ])
}

/// `loadline audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// File with tables that have a row per test (CSV, Markdown, boxed text), - for standard input, a run, or reference:ID for a published
    /// table. Exit code 1 says that there are errors, 2 that a table is not read
    #[arg(value_name = "FILE|RUN", value_hint = ValueHint::AnyPath, required_unless_present = "laws")]
    pub(crate) file: Option<PathBuf>,
    /// What columns are, header = id (see `loadline columns`), e.g. 'tps=commit_throughput_tps,lat=commit_latency_ms'
    /// [default: by their names and units]
    #[arg(long, value_name = "HEADER=ID,…")]
    pub(crate) columns: Option<String>,
    /// Ratio of two rows that is claimed, e.g. 'tps: new / old = 2.5'; a row is a cell of the first column, or its number; repeatable
    #[arg(long, value_name = "COLUMN: ROW / ROW = FACTOR")]
    pub(crate) claim: Vec<String>,
    /// List the laws instead: formula, columns, severity and meaning of each
    #[arg(long, conflicts_with_all = ["file", "columns", "claim"])]
    pub(crate) laws: bool,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}
