//! The command line.

mod exchange;
mod models;
mod report;

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use loadline_model::Driver;
use loadline_model::plan::OnNodeLoss;
use loadline_report::Format;
use loadline_run::plans::{self, NamedPlan};

pub(crate) use exchange::{ExportArgs, ExportAs, ImportArgs};
pub(crate) use models::{AuditArgs, ForecastArgs};
pub(crate) use report::{NoteArgs, ReportArgs, ReportAs};

use crate::hub_args::{AgentArgs, AgentsArgs, AgentsListArgs};
pub(crate) use crate::list_args::{ListArgs, ListFormat};
use crate::live_args::{ServeArgs, WatchArgs, address};
use crate::value_args::one_of;

/// Finds the load line of a database platform: how fast it commits, loads, reads, writes and computes, how that grows
/// with load, and where it goes under. Each test is checked against the database's own counters; a test that fails a
/// check is refused.
#[derive(Debug, Parser)]
#[command(name = "loadline", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// More messages on standard error (-vv, -vvv: even more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a platform: by default the plan 'quick' on embedded SQLite, in three to four minutes
    Run(Box<RunArgs>),
    /// Measure two settings, targets, drivers or states in turns, and say which is faster, by how much and how sure that is
    Ab(Box<AbArgs>),
    /// Measure the cost of synchronous replication for a commit: levels over distances and jobs, each in turns with a baseline
    /// that waits for no replica
    ReplicaCost(Box<ReplicaCostArgs>),
    /// Say what a run of two arms shows, or which of two runs is faster, as a table for people or scripts
    Compare(CompareArgs),
    /// Follow the figures of many runs, such as nightly ones: where did a level change, and between which runs
    Trend(TrendArgs),
    /// Check a table of results, any published one or a run, by operational laws: what cannot be, and what it likely means
    Audit(AuditArgs),
    /// Forecast a sweep beyond its measured jobs: throughput, latency, redo, CPU, and where an objective breaks, each with a 90 %
    /// interval; or show what such forecasts of a run are worth
    Forecast(ForecastArgs),
    /// Rebuild the report of stored runs, or set several runs side by side as platforms
    Report(ReportArgs),
    /// Add a note in Markdown to a run, or to a workload in it: it is in every report of the run
    Note(NoteArgs),
    /// Import results of pgbench, sysbench or fio as runs, to set them beside loadline's own: marked as theirs, and not
    /// checked by loadline
    Import(ImportArgs),
    /// Export a run for other programs: tests, seconds and latencies as CSV or Parquet, latencies as a log of HdrHistogram
    Export(ExportArgs),
    /// Look at a run while it goes on, on the terminal: tests, throughput, latency, waits, CPU, device, checks, time left
    Watch(WatchArgs),
    /// Look at runs in a browser, while they go on and when they are stored: reports, tests, any of them side by side, comparisons,
    /// trends, forecasts
    Serve(ServeArgs),
    /// Watch a running database without any load, read only, and make a page of what it does; or set such pages side by side
    Snapshot(SnapshotArgs),
    /// List the workloads, or show one in full
    Workloads(WorkloadsArgs),
    /// List the plans that come with loadline, or print one to copy and change
    Plans(PlansArgs),
    /// List the published measurements that come with loadline, or print one: `loadline report RUN --with reference:ID` sets a run
    /// beside it
    References(ReferencesArgs),
    /// List the columns of the tables: what each means and where it comes from
    Columns(ListArgs),
    /// List the checks that a test must pass to be valid: what each compares, and what is allowed
    Checks(ListArgs),
    /// List the kinds of targets and the forms of their URLs
    Targets(ListArgs),
    /// Connect to a target and say what would spoil its figures, without measuring
    Doctor(DoctorArgs),
    /// Measure what the storage under directories allows: sync writes, reads, persistent memory
    Probe(ProbeArgs),
    /// Show the agents that wait at a hub for the jobs of `loadline run --hub`
    Agents {
        /// What to do
        #[command(subcommand)]
        command: AgentsCommand,
    },
    /// Remove everything that loadline has made on a target, and what dead runs left on this machine
    Clean(CleanArgs),
    /// Wait at a hub for jobs of runs with --agents, and run them
    Agent(AgentArgs),
    /// Print shell completions
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write man pages, one for each command, into a directory; packages hold them
    #[command(hide = true)]
    Man {
        /// Directory that exists
        #[arg(value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

/// The database under test.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Database under test [default: sqlite:], e.g. postgres://user@host/db,
    /// 'postgres://user@/db?host=/run/postgresql&port=5433', postgres-temp:, null: (see `loadline targets`)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) target: Option<String>,
    /// Another instance of the same cluster; repeatable. Jobs are spread over all instances in turn
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) node: Vec<String>,
    /// Setting of a private server or database that loadline makes itself (postgres-temp:, sqlite:); repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) setting: Vec<(String, String)>,
}

/// `loadline run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Plan file of your own (TOML); flags override its keys. `loadline plans quick` prints one to start from
    #[arg(value_name = "PLAN_FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plan_file: Option<PathBuf>,
    /// Plan that comes with loadline (see `loadline plans`); flags override its keys [default: quick]
    #[arg(long, value_name = "NAME", value_parser = PlanName, conflicts_with = "plan_file")]
    pub(crate) plan: Option<&'static NamedPlan>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Numbers of nodes over which each workload is measured, e.g. 1,2,3; jobs are spread over the first of them in turn
    /// [default: all nodes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) nodes: Option<Vec<u32>>,
    /// When a node is lost in a test, which makes that test refused: end the run, or continue over the nodes that are left
    /// [default: that of the plan, else end]
    #[arg(long, value_parser = on_node_loss())]
    pub(crate) on_node_loss: Option<OnNodeLoss>,
    #[command(flatten)]
    pub(crate) agents: AgentsArgs,
    /// Serve the run's figures to Prometheus while it goes on, at http://ADDRESS:PORT/metrics; port 0: any that is free. From a
    /// process of its own, as `loadline serve` (see docs/exports.md)
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Name of the platform in tables and charts [default: product and version]
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,
    /// Workload, e.g. LGWR-LAT1; repeatable, or separated by commas [default: those of the plan]
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,
    /// All workloads of a group, e.g. log-writer
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub(crate) group: Vec<String>,
    /// Parameter of a workload, e.g. LGWR-LAT25.rows=50 (see `loadline workloads CODE`); repeatable
    #[arg(long, value_name = "CODE.NAME=N", value_parser = parameter)]
    pub(crate) parameter: Vec<(String, String, i64)>,
    /// Workload of your own (TOML, see docs/user-workloads.md); repeatable. Without --workload and --group, nothing else runs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) workload_file: Vec<PathBuf>,
    /// pgbench script to run on the tables that are there, or builtin:NAME (tpcb-like, simple-update, select-only), with its weight
    /// [default: 1]; repeatable. Nothing else runs, and nothing is created, loaded or dropped (see docs/pgbench-scripts.md)
    #[arg(long, value_name = "FILE[@WEIGHT]")]
    pub(crate) pgbench_script: Vec<String>,
    /// Variable of the pgbench scripts, e.g. scale=10; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,
    /// Let pgbench scripts write [default: their sessions only read]
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Query on your tables whose result grows by 1 with each execution of a pgbench script, e.g. 'SELECT count(*) FROM orders'; a test
    /// is refused if it does not
    #[arg(long, value_name = "SQL")]
    pub(crate) evidence: Option<String>,
    /// Job counts, e.g. 1,2,4,8, or auto: rise from 1 until throughput no longer grows [default: that of the plan, else auto]
    #[arg(long, value_name = "LIST|auto")]
    pub(crate) jobs: Option<String>,
    /// Length of the measured window of each test, e.g. 30s or 5m (without a unit: s) [default: that of the plan, else 4s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<String>,
    /// Time under load before the window starts, e.g. 500ms or 10s (without a unit: s), or auto: until throughput is steady,
    /// 7 s or more [default: that of the plan, else 1s]
    #[arg(long, value_name = "TIME|auto", allow_hyphen_values = true)]
    pub(crate) warmup: Option<String>,
    /// With --warmup auto, the longest warm-up; a test that is not steady by then is marked [default: that of the plan, else 60s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) max_warmup: Option<String>,
    /// Number of times that everything is measured, interleaved; from 2 on, figures have confidence intervals [default: that
    /// of the plan, else 1]
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<u32>,
    /// Where the load is generated [default: that of the plan, else database where the target can, else client]
    #[arg(long, value_parser = driver())]
    pub(crate) driver: Option<Driver>,
    /// Open loop: transactions started per second over all jobs, whether or not earlier ones have ended
    #[arg(long, value_name = "TPS")]
    pub(crate) rate: Option<f64>,
    /// Mean time that a job thinks after each transaction, with its unit, e.g. 10ms; drawn from an exponential distribution. Client
    /// driver only, and not with --rate (see docs/load.md)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) think: Option<String>,
    /// Transactions after which a job closes its session and opens a new one; the time to connect is a figure of its own. Client
    /// driver only
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) reconnect_every: Option<u64>,
    /// Share of the payload that can be compressed away, 0 to 1 [default: that of the plan, else 0]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) payload_compressibility: Option<f64>,
    /// Latency that must be met at the load line, with its unit, e.g. 5ms [default: that of the plan, else none: the load line is then the
    /// load with the highest throughput / latency]
    #[arg(long, value_name = "TIME")]
    pub(crate) latency_objective: Option<String>,
    /// Do not probe the storage, and do not measure the limit of each test (saves up to 4 s a run, and 0.4 to 4 s a
    /// test)
    #[arg(long)]
    pub(crate) no_probe: bool,
    /// Limits measured on the database's own machine with `loadline probe LOG_DIR --format json --output FILE`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_probe")]
    pub(crate) limits: Option<PathBuf>,
    /// Size of the data set that workloads read, 1 MiB to 8 TiB [default: that of the plan, else 128MiB].
    /// The sizes of other tables are parameters of their workloads
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Memory of the server's machine, e.g. 64GiB, if loadline cannot enter it: bounds what its caches can hide. With a --size k
    /// times as large, at most 1/k of random reads are cached [default: what the server states, if it does]
    #[arg(long, value_name = "SIZE")]
    pub(crate) server_memory: Option<String>,
    /// Leave the data set on the target after the run, for the next one [default: removed]
    #[arg(long)]
    pub(crate) keep_data: bool,
    /// Drop an existing data set and load it again
    #[arg(long)]
    pub(crate) reload: bool,
    /// Keep storage figures although reads did not come from the device; such tests are marked
    #[arg(long)]
    pub(crate) allow_cached: bool,
    /// Exit with 1 if others disturbed a test, too; without it, such tests are marked and the exit code is 0 (see docs/truth.md)
    #[arg(long)]
    pub(crate) strict: bool,
    /// Most time for second tries of tests that others disturbed, as a share of the planned time; 0: none (see docs/truth.md)
    /// [default: that of the plan, else 30%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) patience: Option<String>,
    /// Seed of all randomness: of rows [default: that of the plan, else 42], and of what jobs draw [default: that of the plan, else one
    /// drawn for each run]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Folder that holds the runs [default: loadline-results]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) results: Option<PathBuf>,
    /// Continue an interrupted run, named by its folder or id; its plan stays unchanged but for --agents
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "plan_file", "plan", "node", "nodes", "on_node_loss", "agent_credentials", "setting", "platform", "workload", "group", "parameter", "workload_file", "pgbench_script", "define", "allow_writes", "evidence", "jobs", "duration", "warmup", "max_warmup",
        "repeat", "driver", "rate", "think", "reconnect_every", "payload_compressibility", "latency_objective", "seed", "size", "server_memory", "keep_data", "reload",
        "allow_cached", "patience", "oracle_awr", "dry_run", "no_probe"])]
    pub(crate) resume: Option<PathBuf>,
    /// Measure although a capability is missing or the doctor refuses; such tests are marked
    #[arg(long)]
    pub(crate) force: bool,
    /// Oracle: take AWR snapshots around each test and keep the AWR report in the run folder. Needs a licence for the
    /// Diagnostics Pack; without this flag AWR and ASH are never used
    #[arg(long)]
    pub(crate) oracle_awr: bool,
    /// Print the complete plan and the time it takes, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `--jobs` of `loadline ab`, which does not search for the peak.
const AB_JOBS: &str = "Job counts, e.g. 4 or 1,8 [default: those of the plan]";

/// `loadline ab`. The arms share everything but what `-a` and `-b` change.
#[derive(Debug, Args)]
#[command(mut_arg("repeat", |arg| arg.hide(true)), mut_arg("jobs", |arg| arg.value_name("LIST").help(AB_JOBS)))]
pub(crate) struct AbArgs {
    /// Setting of the private server in arm A; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, conflicts_with = "resume")]
    pub(crate) setting_a: Vec<(String, String)>,
    /// Setting of the private server in arm B; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, conflicts_with = "resume")]
    pub(crate) setting_b: Vec<(String, String)>,
    /// Target of arm A [default: --target]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) target_a: Option<String>,
    /// Target of arm B [default: --target]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) target_b: Option<String>,
    /// Driver in arm A
    #[arg(long, value_parser = driver(), conflicts_with = "resume")]
    pub(crate) driver_a: Option<Driver>,
    /// Driver in arm B
    #[arg(long, value_parser = driver(), conflicts_with = "resume")]
    pub(crate) driver_b: Option<Driver>,
    /// Parameter of a workload in arm A, e.g. LGWR-LAT25.rows=50; repeatable
    #[arg(long, value_name = "CODE.NAME=N", value_parser = parameter, conflicts_with = "resume")]
    pub(crate) parameter_a: Vec<(String, String, i64)>,
    /// Parameter of a workload in arm B; repeatable
    #[arg(long, value_name = "CODE.NAME=N", value_parser = parameter, conflicts_with = "resume")]
    pub(crate) parameter_b: Vec<(String, String, i64)>,
    /// Command that brings arm A about (a mount, a tuned profile, SET GLOBAL): sh runs it before each window of A, and at the end,
    /// with LOADLINE_ARM=A. It is stored in the run: no passwords
    #[arg(long, value_name = "COMMAND", requires = "switch_b", conflicts_with = "resume")]
    pub(crate) switch_a: Option<String>,
    /// Command that brings arm B about, with LOADLINE_ARM=B
    #[arg(long, value_name = "COMMAND", requires = "switch_a", conflicts_with = "resume")]
    pub(crate) switch_b: Option<String>,
    /// Name of arm A in reports [default: what it differs in]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) label_a: Option<String>,
    /// Name of arm B in reports
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) label_b: Option<String>,
    /// Pairs of windows per workload and job count; with --precision, the most [default: 16; with --precision 200]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) pairs: Option<u32>,
    /// Measure until the interval of the ratio is this narrow, e.g. 2%, looking at numbers of pairs that are set before
    #[arg(long, value_name = "PERCENT", conflicts_with = "resume")]
    pub(crate) precision: Option<String>,
    /// Difference up to which the arms are called equivalent [default: 2%]
    #[arg(long, value_name = "PERCENT", conflicts_with = "resume")]
    pub(crate) equivalence: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// `loadline replica-cost`.
#[derive(Debug, Args)]
#[command(mut_arg("repeat", |arg| arg.hide(true)), mut_arg("jobs", |arg| arg.value_name("LIST").help(LEVEL_JOBS)))]
pub(crate) struct ReplicaCostArgs {
    /// Levels, separated by commas, e.g. local,remote_write,on (see docs/replica-cost.md) [default: all that one replica has]
    #[arg(long, value_name = "LEVEL,…", value_delimiter = ',', conflicts_with = "resume")]
    pub(crate) levels: Option<Vec<String>>,
    /// Standby of the --target, a server of your own, and one that receives from it; repeatable: two for levels such as on:any-1.
    /// Levels are then changed by ALTER SYSTEM while the run lasts, and put back
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "resume")]
    pub(crate) standby: Vec<String>,
    /// One-way delays between the database and its replicas, separated by commas, e.g. 0,0.2ms,1ms,5ms,20ms [default: 0,1ms,5ms]
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', allow_hyphen_values = true, conflicts_with = "resume")]
    pub(crate) delay: Option<Vec<String>>,
    /// Most that a delay is longer by, drawn anew for each piece of data; the order is kept [default: 0]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "resume")]
    pub(crate) jitter: Option<String>,
    /// Bandwidth between the database and its replicas in each direction, per second, e.g. 100MiB [default: no limit]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    pub(crate) bandwidth: Option<String>,
    /// Pairs of windows per level, delay and job count [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) pairs: Option<u32>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// `--jobs` of `loadline replica-cost`.
const LEVEL_JOBS: &str = "Job counts, e.g. 1,4,32 [default: 1]";

/// `loadline compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A run of `loadline ab`, or two runs: ratios are those of the second to the first
    #[arg(required = true, num_args = 1..=2, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Exit with 1 if a main figure of B is shown to be slower by more than this, e.g. 3%; with 2 if one
    /// could not be judged
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) fail_if_slower: Option<f64>,
    /// Difference up to which two runs are called equivalent [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) equivalence: Option<f64>,
    /// Two runs: compare figures that were measured with different drivers as well
    #[arg(long)]
    pub(crate) across_drivers: bool,
    /// Two runs: compare other work as well (parameters, load, data, rows and redo per transaction), and mark it
    #[arg(long)]
    pub(crate) unequal: bool,
    /// Format
    #[arg(long, value_enum, default_value_t = VerdictFormat::Text)]
    pub(crate) format: VerdictFormat,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// `loadline trend`.
#[derive(Debug, Args)]
pub(crate) struct TrendArgs {
    /// Folders that hold the runs
    #[arg(value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) folders: Vec<PathBuf>,
    /// Workload to follow, e.g. LGWR-LAT1; repeatable, or separated by commas [default: all]
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,
    /// Figure to follow, by the id of its column (see `loadline columns`); repeatable, or separated by commas [default: the
    /// main figure of each workload, and its mean time]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) figure: Option<Vec<String>>,
    /// Exit with 1 if the newest level of a main figure (the first --figure) is shown to be slower than the level before by more
    /// than this, e.g. 3%
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(crate) fail_if_slower: Option<f64>,
    /// Format
    #[arg(long, value_enum, default_value_t = VerdictFormat::Text)]
    pub(crate) format: VerdictFormat,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Formats of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerdictFormat {
    /// Plain text
    Text,
    /// CSV: a row per workload, jobs and figure
    Csv,
}

/// `loadline snapshot`.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Files of earlier snapshots, to set side by side
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["target", "node", "setting", "time"])]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// How long to watch, e.g. 60s or 5m (without a unit: s)
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub(crate) time: String,
    /// Folder in which the snapshot is stored
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format of the page
    #[arg(long, value_parser = page_format(), default_value = "html")]
    pub(crate) format: Format,
    /// File for the page, - for standard output [default: html: beside the snapshot, of several ones loadline-snapshot.html; else
    /// standard output]
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Formats of a page about a test or a snapshot.
fn page_format() -> impl TypedValueParser<Value = Format> {
    one_of([
        ("html", "One self-contained page", Format::Html),
        ("md", "Markdown, without charts", Format::Markdown),
        ("text", "Plain text", Format::Text),
    ])
}

/// `loadline workloads`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadsArgs {
    /// Workload to show
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
    /// Workload of your own (TOML) to show
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pages")]
    pub(crate) workload_file: Option<PathBuf>,
    /// Write a page for each workload, and an index, into this folder (as in docs/workloads)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["code", "format", "output"])]
    pub(crate) pages: Option<PathBuf>,
    /// Format
    #[arg(long, value_enum, default_value_t = WorkloadsFormat::Text)]
    pub(crate) format: WorkloadsFormat,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Formats of `loadline workloads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadsFormat {
    /// Plain text
    Text,
    /// Markdown
    #[value(alias = "markdown")]
    Md,
    /// CSV
    Csv,
    /// JSON
    Json,
    /// The file of a workload, to start one of your own with
    Toml,
}

impl WorkloadsFormat {
    /// The format of a listing; `None` for the file of a workload.
    pub(crate) fn of_list(self) -> Option<ListFormat> {
        match self {
            WorkloadsFormat::Text => Some(ListFormat::Text),
            WorkloadsFormat::Md => Some(ListFormat::Md),
            WorkloadsFormat::Csv => Some(ListFormat::Csv),
            WorkloadsFormat::Json => Some(ListFormat::Json),
            WorkloadsFormat::Toml => None,
        }
    }
}

/// `loadline references`.
#[derive(Debug, Args)]
pub(crate) struct ReferencesArgs {
    /// Reference whose table is printed, as CSV, as it was published
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// `loadline plans`.
#[derive(Debug, Args)]
pub(crate) struct PlansArgs {
    /// Plan to print; save it in a new file, change it, and run it with `loadline run FILE`
    #[arg(value_name = "NAME", value_parser = PlanName)]
    pub(crate) name: Option<&'static NamedPlan>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Parses the name of a plan; help and completions list the names.
#[derive(Debug, Clone)]
struct PlanName;

impl TypedValueParser for PlanName {
    type Value = &'static NamedPlan;

    fn parse_ref(&self, cmd: &clap::Command, _: Option<&clap::Arg>, value: &OsStr) -> Result<Self::Value, clap::Error> {
        plans::find(&value.to_string_lossy()).map_err(|e| cmd.clone().error(ErrorKind::InvalidValue, e))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(plans::PLANS.iter().map(|p| PossibleValue::new(p.name))))
    }
}

/// `loadline doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Folder beside which private servers and databases are made
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Print the privileges that the role lacks as one script of GRANTs for an administrator, and nothing else
    #[arg(long)]
    pub(crate) grants: bool,
    /// Print the way back: a script that takes from the role what --grants gives, and nothing else
    #[arg(long, conflicts_with = "grants")]
    pub(crate) revoke: bool,
    /// Oracle: check also whether AWR can be used (needs a licence for the Diagnostics Pack)
    #[arg(long)]
    pub(crate) oracle_awr: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// `loadline probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Directories, measured one after the other and shown side by side.
    /// loadline makes a file in each and removes it at the end; it touches no other file
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Size of the test file, e.g. 512MiB or 4GiB; larger than the device's cache shows the device
    /// [default: 1GiB, less where space is short]
    #[arg(long, value_name = "SIZE", value_parser = loadline_model::format::parse_bytes)]
    pub(crate) size: Option<u64>,
    /// Seconds per directory, writing the test file included; below 30, the reference log writer takes 10 all the same
    #[arg(long, value_name = "N", default_value_t = 30.0, allow_hyphen_values = true)]
    pub(crate) seconds: f64,
    /// Share of the data that can be compressed away, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(crate) compressibility: f64,
    /// Share of the 4 KiB pages written that repeat others, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, allow_hyphen_values = true)]
    pub(crate) dedup: f64,
    /// How reads and writes reach the kernel
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    pub(crate) engine: EngineArg,
    /// Do not measure the reference log writer, whose figures `loadline run --limits` needs
    #[arg(long)]
    pub(crate) no_log_writer: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// How reads and writes reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// io_uring, or threads if the kernel does not allow it
    Auto,
    /// A thread per operation in flight, with pread and pwrite
    Threads,
}

/// `loadline clean`.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Folder next to which private servers and databases were made
    #[arg(long, value_name = "DIR", default_value = loadline_run::plan::DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
}

/// Where the load is generated.
fn driver() -> impl TypedValueParser<Value = Driver> {
    one_of([
        (
            "database",
            "In the database: a procedure runs and times the loop, without client or network",
            Driver::Database,
        ),
        (
            "client",
            "At the client: loadline sends prepared statements and times them, as an application would",
            Driver::Client,
        ),
    ])
}

/// What a run does when a node is lost.
fn on_node_loss() -> impl TypedValueParser<Value = OnNodeLoss> {
    one_of([
        ("end", "The run ends after that test", OnNodeLoss::End),
        ("continue", "The later tests are measured over the nodes that are left", OnNodeLoss::Continue),
    ])
}

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents at a hub: name, version, machine, CPUs, whether they are free, and how many jobs they run at most
    List(AgentsListArgs),
}

/// `64`: a number of jobs.
fn job_count(text: &str) -> Result<u32, String> {
    let found = text.trim().parse().ok().filter(|n| (1..=1_000_000).contains(n));
    found.ok_or_else(|| format!("'{text}' is no number of jobs: write numbers from 1 to 1000000, as in 64,128"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| format!("'{text}' is no number above 0: write it without separators, as in 15000"))
}

/// An objective with its unit, in ms.
fn objective_ms(text: &str) -> Result<f64, String> {
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!("'{text}' has no unit: write {0}ms or {0}s", text.trim()));
    }
    let seconds = loadline_model::format::parse_duration_s(text)?;
    if seconds > 0.0 && seconds <= 3600.0 {
        // To the nanosecond: 0.009 s × 1,000 is not 9.
        Ok((seconds * 1e9).round() / 1e6)
    } else {
        Err(format!("{text} must be above 0 and at most 1h"))
    }
}

fn cpu_pct(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim().parse().ok().filter(|n: &f64| *n > 0.0 && *n < 100.0);
    number.ok_or_else(|| {
        format!("'{text}' is no share of the CPUs: write a percentage above 0 and below 100, such as 80%")
    })
}

fn share(text: &str) -> Result<f64, String> {
    loadline_model::format::parse_share(text)
}

fn parameter(text: &str) -> Result<(String, String, i64), String> {
    let wrong =
        || format!("'{text}' is not a parameter of a workload: write CODE.NAME=N, for example LGWR-LAT25.rows=50");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let (code, name) = name.split_once('.').ok_or_else(wrong)?;
    let value = value.trim().parse().map_err(|_| wrong())?;
    Ok((code.trim().to_owned(), name.trim().to_owned(), value))
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("'{text}' is not a setting: write NAME=VALUE, for example wal_sync_method=open_datasync")),
    }
}
