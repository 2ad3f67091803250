//! Flags of the commands that ask of stored figures what follows from them: `forecast`, `simulate`, `audit`.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum, ValueHint};
use loadline_report::Format;

use super::{ListArgs, cpu_pct, job_count, microseconds, objective_ms, positive};
use crate::value_args::one_of;

/// `loadline forecast`.
#[derive(Debug, Args)]
pub(crate) struct ForecastArgs {
    /// A run, a file with a table of results (CSV, Markdown, HTML), - for standard input, or reference:ID for a published table: jobs and
    /// throughput, and as far as known platform, workload, latency, log file sync, redo and CPU
    #[arg(value_name = "RUN|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) input: PathBuf,
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
    /// What columns of a table mean, e.g. clients=jobs; repeatable, or separated by commas [default: by their headers]
    #[arg(long, value_name = "HEADER=ID,…", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
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

/// `loadline simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Run folder or run id to calibrate on: a sweep over jobs of a workload whose commits wait for the log
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Workload to calibrate on [default: the first that fits]
    #[arg(long, value_name = "CODE")]
    pub(crate) workload: Option<String>,
    /// Job counts, over all nodes, e.g. 1,2,4 or 1,…,10000, which doubles [default: those measured; with --sweep also twice and four
    /// times as many]
    #[arg(long, value_name = "LIST")]
    pub(crate) jobs: Option<String>,
    /// What if: a write of the log with its sync took so many µs
    #[arg(long, value_name = "µs", allow_hyphen_values = true, value_parser = microseconds, conflicts_with = "device")]
    pub(crate) sync_us: Option<f64>,
    /// What if: another log device: pmem or nvme (as assumed), the output of `loadline probe DIR --format json`, or another run
    #[arg(long, value_name = "NAME|FILE|RUN", value_hint = ValueHint::AnyPath)]
    pub(crate) device: Option<String>,
    /// Operation of that probe with which the log would be written, e.g. pmem-persist [default: that of the run's log]
    #[arg(long, value_name = "NAME", requires = "device")]
    pub(crate) device_operation: Option<String>,
    /// What if: commits waited for a standby at this round trip, e.g. 1ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) standby_rtt: Option<String>,
    /// How far they wait for it
    #[arg(long, value_enum, default_value_t = StandbyLevel::Written, requires = "standby_rtt")]
    pub(crate) standby_level: StandbyLevel,
    /// What if: CPUs of each node: a number, or a factor such as 2x
    #[arg(long, value_name = "N|Nx", allow_hyphen_values = true)]
    pub(crate) cpus: Option<String>,
    /// What if: so many nodes, each with CPUs, log and device as measured; jobs are spread over them
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Option<u32>,
    /// What if: the log writer waited so long for more commits before each write, e.g. 100us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) group_commit_delay: Option<String>,
    /// Probe of the run's own log device, by `loadline probe LOG_DIR --format json --output FILE` [default: that of the run]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) probe: Option<PathBuf>,
    /// Run that measured what the last line simulates: its throughput is set beside it, with the error
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) against: Option<PathBuf>,
    /// Draw lines: each what-if by itself and all together; without any, a usual set
    #[arg(long)]
    pub(crate) sweep: bool,
    /// Commits to simulate per node and point after the warm-up, and say how long that took [default: as many as an interval of ±1 %
    /// takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(20..=1_000_000_000))]
    pub(crate) commits: Option<u64>,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u64,
    /// Format
    #[arg(long, value_parser = simulate_format(), default_value = "text")]
    pub(crate) format: Format,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// How far a commit waits for a simulated standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StandbyLevel {
    /// Until the standby has it on its device
    Written,
    /// Until the standby has received it
    Received,
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

/// Formats of a simulation.
fn simulate_format() -> impl TypedValueParser<Value = Format> {
    one_of([
        ("text", "Plain text", Format::Text),
        ("csv", "CSV: a row per line and number of jobs", Format::Csv),
        ("json", "Everything", Format::Json),
        ("md", "Markdown", Format::Markdown),
        ("html", "One self-contained page, with charts", Format::Html),
    ])
}

/// `loadline audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// File with tables (CSV, Markdown, HTML), - for standard input, a run, or reference:ID for a published table. Exit code 1 says that
    /// there are errors
    #[arg(value_name = "FILE|RUN", value_hint = ValueHint::AnyPath, required_unless_present = "laws")]
    pub(crate) file: Option<PathBuf>,
    /// What columns are, header = id (see `loadline columns`), e.g. 'tps=commit_throughput_tps,lat=commit_latency_ms'
    /// [default: by their names and units]
    #[arg(long, value_name = "HEADER=ID,…")]
    pub(crate) columns: Option<String>,
    /// Claim to hold against the table, e.g. 'latency factor 6' or 'up to 70 % faster'; repeatable
    #[arg(long, value_name = "TEXT")]
    pub(crate) claim: Vec<String>,
    /// List the laws instead: formula, columns, tolerance and meaning of each
    #[arg(long, conflicts_with_all = ["file", "columns", "claim"])]
    pub(crate) laws: bool,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}
