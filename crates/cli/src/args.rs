//! The command line. What a plan can say is in `run/src/plan/options.rs`; here are the commands, and their other flags.

mod stored;
mod variants;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueHint};
use loadline_model::format::parse_bytes;
use loadline_model::probe::Engine;
use loadline_report::Format;
use loadline_run::PlanSpec;
use loadline_run::plan::DEFAULT_RESULTS;
use loadline_run::plan::options::{
    CLUSTER, HubOptions, LevelOptions, PROOF, PairOptions, PrecisionOptions, RunOptions, TargetOptions, ViaOptions,
};
use loadline_run::plans::{self, NamedPlan};

pub(crate) use stored::*;
pub(crate) use variants::{VariantFlags, unique};
use variants::{fact, parameter, setting};

/// Finds the load line of a database platform: how fast it commits, loads, reads, writes and computes, how that grows
/// with load, and where it goes under. Each test is checked against the database's own counters; a test that fails a
/// check is refused.
#[derive(Debug, Parser)]
#[command(name = "loadline", version = env!("LOADLINE_VERSION"), arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// More messages on standard error (-vv, -vvv: even more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// The command
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a platform: by default the plan 'quick' on embedded SQLite, in under five minutes
    Run(Box<RunArgs>),
    #[command(flatten)]
    Paired(PairedCommand),
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
    #[command(flatten)]
    Hub(HubCommand),
    /// Remove everything that loadline has made on a target, and what dead runs left on this machine
    Clean(CleanArgs),
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

/// Runs in pairs of windows.
#[derive(Debug, Subcommand)]
pub(crate) enum PairedCommand {
    /// Measure two or more settings, targets, drivers or states in turns, and say which is faster, by how much and how sure that is
    Ab(Box<AbArgs>),
    /// Measure the cost of synchronous replication for a commit: levels over distances and jobs, each in turns with a baseline
    /// that waits for no replica
    ReplicaCost(Box<ReplicaCostArgs>),
}

/// Jobs of runs on other machines.
#[derive(Debug, Subcommand)]
pub(crate) enum HubCommand {
    /// Show the agents that wait at a hub for the jobs of `loadline run --hub`
    Agents {
        /// The command
        #[command(subcommand)]
        command: AgentsCommand,
    },
    /// Wait at a hub for jobs of runs with --agents, and run them
    Agent(AgentArgs),
}

/// The database under test.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    pub(crate) options: TargetOptions,
    /// Setting of a private server or database that loadline makes itself (postgres-temp:, sqlite:); repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) setting: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(mut_arg("hub", |arg| arg.help_heading(CLUSTER)))]
pub(crate) struct RunArgs {
    /// Plan file of your own (TOML); flags override its keys. `loadline plans quick` prints one to start from
    #[arg(value_name = "PLAN_FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plan_file: Option<PathBuf>,
    /// Plan that comes with loadline (see `loadline plans`); flags override its keys [default: quick]
    #[arg(long, value_name = "NAME", value_parser = PlanName, conflicts_with = "plan_file")]
    pub(crate) plan: Option<&'static NamedPlan>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    #[command(flatten)]
    pub(crate) hub: HubOptions,
    /// Parameter of a workload, e.g. LGWR-LAT25.rows=50 (see `loadline workloads CODE`); repeatable
    #[arg(long, value_name = "CODE.NAME=N", value_parser = parameter)]
    pub(crate) parameter: Vec<(String, String, i64)>,
    /// Fact of the platform that loadline cannot see, e.g. 'Launch year=2021'; repeatable, also [facts] in a plan (see docs/facts.md)
    #[arg(long, value_name = "NAME=VALUE", value_parser = fact, help_heading = PROOF)]
    pub(crate) fact: Vec<(String, String)>,
    /// Continue an interrupted run, named by its folder or id; its plan stays unchanged but for --agents
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "plan_file", "plan", "node", "setting", "parameter", "fact", "dry_run"])]
    pub(crate) resume: Option<PathBuf>,
    /// Print the complete plan and the time it takes, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Limits measured on the database's own machine with `loadline probe LOG_DIR --format json --output FILE`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "probe", help_heading = PROOF)]
    pub(crate) limits: Option<PathBuf>,
    /// Exit with 1 if others disturbed a test, too; without it, such tests are marked and the exit code is 0 (see docs/truth.md)
    #[arg(long, help_heading = PROOF)]
    pub(crate) strict: bool,
    /// Serve the run's figures to Prometheus while it goes on, at http://ADDRESS:PORT/metrics; port 0: any that is free. From a
    /// process of its own, as `loadline serve` (see docs/exports.md)
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, help_heading = PROOF)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Print help with all options, by groups
    #[arg(long, action = clap::ArgAction::HelpLong)]
    pub(crate) help_all: Option<bool>,
}

/// `--jobs` of `loadline ab`, which does not search for the peak.
const AB_JOBS: &str = "Job counts, e.g. 4 or 1,8 [default: those of the plan]";

/// `loadline ab`. The arms share everything but what the flags with their letters change.
#[derive(Debug, Args)]
#[command(mut_arg("repeat", |arg| arg.hide(true)), mut_arg("jobs", |arg| arg.value_name("LIST").help(AB_JOBS)))]
pub(crate) struct AbArgs {
    #[command(flatten)]
    pub(crate) variants: VariantFlags,
    #[command(flatten)]
    pub(crate) via: ViaOptions,
    #[command(flatten)]
    pub(crate) pairs: PairOptions,
    #[command(flatten)]
    pub(crate) precision: PrecisionOptions,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// `--jobs` and `--pairs` of `loadline replica-cost`.
const LEVEL_JOBS: &str = "Job counts, e.g. 1,4,32 [default: 1]";
const LEVEL_PAIRS: &str = "Pairs of windows per level, delay and job count [default: 8]";

/// `loadline replica-cost`.
#[derive(Debug, Args)]
#[command(mut_arg("repeat", |arg| arg.hide(true)), mut_arg("jobs", |arg| arg.value_name("LIST").help(LEVEL_JOBS)))]
#[command(mut_arg("pairs", |arg| arg.help(LEVEL_PAIRS)))]
pub(crate) struct ReplicaCostArgs {
    #[command(flatten)]
    pub(crate) levels: LevelOptions,
    #[command(flatten)]
    pub(crate) pairs: PairOptions,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

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
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format of the page
    #[arg(long, default_value = "html", value_parser = named([
        ("html", "One self-contained page", Format::Html),
        ("md", "Markdown, without charts", Format::Markdown),
        ("text", "Plain text", Format::Text),
    ]))]
    pub(crate) format: Format,
    /// File for the page, - for standard output [default: html: beside the snapshot, of several ones loadline-snapshot.html; else
    /// standard output]
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Folder beside which private servers and databases are made
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
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

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Directories, measured one after the other and shown side by side.
    /// loadline makes a file in each and removes it at the end; it touches no other file
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Size of the test file, e.g. 512MiB or 4GiB; larger than the device's cache shows the device
    /// [default: 1GiB, less where space is short]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
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
    #[arg(long, default_value = "auto", value_parser = named([
        ("auto", "io_uring, or threads if the kernel does not allow it", None),
        ("threads", "A thread per operation in flight, with pread and pwrite", Some(Engine::Threads)),
    ]))]
    pub(crate) engine: EngineArg,
    /// Do not measure the reference log writer, whose figures `loadline run --limits` needs
    #[arg(long)]
    pub(crate) no_log_writer: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// `None`: the best that the kernel allows.
pub(crate) type EngineArg = Option<Engine>;

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Folder next to which private servers and databases were made
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
}

/// Environment variable with the URL of the hub, for those who keep its token off the command line.
pub(crate) const HUB_VARIABLE: &str = "LOADLINE_HUB";

/// URL of the hub, from the flag or the environment.
pub(crate) fn hub_url(flag: &HubOptions) -> Option<String> {
    flag.hub.clone().or_else(|| std::env::var(HUB_VARIABLE).ok().filter(|url| !url.is_empty()))
}

/// Sets the hub of a run whose flags ask for agents.
pub(crate) fn set_hub(flag: &HubOptions, flags: &mut PlanSpec) {
    flags.hub = flag.hub.clone().or_else(|| flags.agents.and_then(|_| hub_url(flag)));
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) hub: HubOptions,
    /// Name of the agent in tables and messages; no two agents at a hub have the same [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Most jobs that it runs at a time; on servers no more than it may open files (ulimit -Hn) [default: 20000]
    #[arg(long, value_name = "N")]
    pub(crate) max_jobs: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsListArgs {
    #[command(flatten)]
    pub(crate) hub: HubOptions,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Commands about agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents at a hub: name, version, machine, CPUs, whether they are free, and how many jobs they run at most
    List(AgentsListArgs),
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
