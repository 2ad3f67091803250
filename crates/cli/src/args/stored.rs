//! The command lines of what is done with stored runs, with figures of others, and with what loadline knows.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use loadline_exchange::{Form, Tool};
use loadline_model::format::{parse_duration_s, parse_share};
use loadline_report::Format;
use loadline_run::plan::DEFAULT_RESULTS;
use loadline_run::plans::NamedPlan;

use super::PlanName;
use super::variants::fact;

/// How a listing is written.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Format
    #[arg(long, value_parser = named(LISTS), default_value = "text")]
    pub(crate) format: Format,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Parses one of `values`: each has its name, its help and what it means. `markdown` is another name of `md`.
pub(super) fn named<T: Clone + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let shown = values.each_ref().map(|(name, help, _)| {
        let value = PossibleValue::new(*name).help(*help);
        if *name == "md" { value.alias("markdown") } else { value }
    });
    PossibleValuesParser::new(shown).try_map(move |text| {
        let text = if text == "markdown" { "md" } else { text.as_str() };
        values.iter().find(|(name, ..)| *name == text).map(|(.., value)| value.clone()).ok_or("unknown value")
    })
}

/// Formats of listings.
const LISTS: [(&str, &str, Format); 4] = [
    ("text", "Plain text", Format::Text),
    ("md", "Markdown", Format::Markdown),
    ("csv", "CSV", Format::Csv),
    ("json", "JSON", Format::Json),
];
/// Formats of comparisons.
const VERDICTS: [(&str, &str, Format); 2] =
    [("text", "Plain text", Format::Text), ("csv", "CSV: a row per workload, jobs and figure", Format::Csv)];
/// Formats of forecasts.
const FORECASTS: [(&str, &str, Format); 5] = [
    ("html", "One self-contained page", Format::Html),
    ("md", "Markdown", Format::Markdown),
    ("csv", "One table with all tests", Format::Csv),
    ("json", "Everything", Format::Json),
    ("text", "Plain text", Format::Text),
];

#[derive(Debug, Args)]
#[command(mut_arg("format", |arg| arg.value_parser(named(VERDICTS))))]
pub(crate) struct CompareArgs {
    /// A run of `loadline ab`, or two runs: ratios are those of the second to the first
    #[arg(required = true, num_args = 1..=2, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Exit with 1 if a main figure of B is shown to be slower by more than this, e.g. 3%; with 2 if one
    /// could not be judged
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    pub(crate) fail_if_slower: Option<f64>,
    /// Difference up to which two runs are called equivalent [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    pub(crate) equivalence: Option<f64>,
    /// Two runs: compare figures that were measured with different drivers as well
    #[arg(long)]
    pub(crate) across_drivers: bool,
    /// Two runs: compare other work as well (parameters, load, data, rows and redo per transaction), and mark it
    #[arg(long)]
    pub(crate) unequal: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("format", |arg| arg.value_parser(named(VERDICTS))))]
pub(crate) struct TrendArgs {
    /// Folders that hold the runs
    #[arg(value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
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
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    pub(crate) fail_if_slower: Option<f64>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// `loadline report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run folders or run ids; the others are compared with the first
    #[arg(required_unless_present = "example", value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) runs: Vec<PathBuf>,
    /// The report of a run of two platforms that comes with loadline, to see what reports look like
    #[arg(long, conflicts_with_all = ["runs", "test"])]
    pub(crate) example: bool,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format
    #[arg(long, value_parser = named(REPORTS), default_value = "html")]
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
    /// Only this table, of raw values, with --format csv or json; prices need --price
    #[arg(long, value_name = "TABLE", value_parser = loadline_report::TABLES, conflicts_with_all = ["test", "columns", "summary"])]
    pub(crate) table: Option<String>,
    /// Price list (TOML, see docs/facts.md): throughput for the price of each platform, and cost per TB
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["test", "redact", "anonymous"])]
    pub(crate) price: Option<PathBuf>,
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

/// The format of a report; `None` for its page on paper.
pub(crate) type ReportAs = Option<Format>;

const REPORTS: [(&str, &str, ReportAs); 6] = [
    ("html", "One self-contained page", Some(Format::Html)),
    ("pdf", "The same on paper: A4, with footers, through an installed Chromium, Chrome, Edge or Brave", None),
    ("md", "Markdown", Some(Format::Markdown)),
    ("csv", "One table with all tests", Some(Format::Csv)),
    ("json", "Everything", Some(Format::Json)),
    ("text", "Plain text", Some(Format::Text)),
];

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
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
}

#[derive(Debug, Args)]
#[command(mut_arg("format", |arg| arg.value_parser(named(FORECASTS))))]
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
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// File with tables that have a row per test (CSV, Markdown, boxed text), - for standard input, a run, or reference:ID for a published
    /// table. Exit code 1 says that there are errors, 2 that a table is not read
    #[arg(value_name = "FILE|RUN", value_hint = ValueHint::AnyPath, required_unless_present = "laws")]
    pub(crate) file: Option<PathBuf>,
    /// Meaning of columns, header = id (see `loadline columns`), e.g. 'tps=commit_throughput_tps,lat=commit_latency_ms'
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
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Tool that wrote the files
    #[arg(value_name = "TOOL", value_parser = named([
        ("pgbench", "Printed report, with or without logs (-l)", Tool::Pgbench),
        ("sysbench", "Printed report of the oltp scripts", Tool::Sysbench),
        ("fio", "JSON (--output-format=json or json+)", Tool::Fio),
    ]))]
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
    /// Fact of the platform, e.g. 'Launch year=2021'; repeatable (see docs/facts.md)
    #[arg(long, value_name = "NAME=VALUE", value_parser = fact)]
    pub(crate) fact: Vec<(String, String)>,
    /// Folder that holds the runs
    #[arg(long, visible_alias = "runs", value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Run folder or run id
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Format
    #[arg(long, value_parser = named(EXPORTS))]
    pub(crate) format: ExportAs,
    /// Only this table, as one file [default: all, as files in a folder]
    #[arg(long, value_name = "TABLE", value_parser = loadline_exchange::table::TABLES)]
    pub(crate) table: Option<String>,
    /// File to write, - for standard output; without --table a folder, which is made [default: RUN.FORMAT here; with --table standard
    /// output]
    #[arg(long, value_name = "FILE|-|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
}

/// The form of an export's tables, `None` for a log of latencies, and the end of its files' names.
pub(crate) type ExportAs = (Option<Form>, &'static str);

/// Formats of exports.
const EXPORTS: [(&str, &str, ExportAs); 4] = [
    ("parquet", "Tables as Parquet files", (Some(Form::Parquet), "parquet")),
    (
        "hlog",
        "Latencies of all tests as one log of HdrHistogram, version 1.3: an interval for each test and kind, named by its tag",
        (None, "hlog"),
    ),
    ("csv", "Tables as CSV files", (Some(Form::Csv), "csv")),
    ("json", "Tables as JSON files: an array with an object for each row", (Some(Form::Json), "json")),
];

/// Environment variable with the token of a server.
pub(crate) const TOKEN_VARIABLE: &str = "LOADLINE_TOKEN";

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Run folder or run id [default: the newest run, and each newer one that begins meanwhile, until one ends that was not over
    /// before]
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    /// Folder of the runs that are named by id
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) results: PathBuf,
    /// Print lines of text instead, until the run ends; exit code 1 if it is not complete then [default where there is no terminal, or
    /// TERM is dumb]
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Folder that holds the runs
    #[arg(value_name = "DIR", default_value = DEFAULT_RESULTS, value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Address and port; any but those of this machine alone need a token. Port 0: any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8377", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// File with the token that browsers are asked for; else the environment variable LOADLINE_TOKEN
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Name by which browsers may ask for this machine, besides localhost and its addresses; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// End with standard input, and listen at the socket that is standard output: of `run --metrics`
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// `127.0.0.1:8377`, `[::1]:8377`, `localhost:8377`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    numeric.parse().map_err(|_| {
        format!(
            "'{text}' is no address with a port, such as 127.0.0.1:8377, localhost:8377, [::1]:8377 or 0.0.0.0:8377"
        )
    })
}

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
    #[arg(long, default_value = "text", value_parser = named([
        ("text", "Plain text", Some(Format::Text)),
        ("md", "Markdown", Some(Format::Markdown)),
        ("csv", "CSV", Some(Format::Csv)),
        ("json", "JSON", Some(Format::Json)),
        ("toml", "The file of a workload, to start one of your own with", None),
    ]))]
    pub(crate) format: WorkloadsFormat,
    /// File to write, - for standard output
    #[arg(long, value_name = "FILE|-", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// The format of a listing; `None` for the file of a workload.
pub(crate) type WorkloadsFormat = Option<Format>;

#[derive(Debug, Args)]
pub(crate) struct ReferencesArgs {
    /// Reference whose table is printed, as CSV, as it was published
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PlansArgs {
    /// Plan to print; save it in a new file, change it, and run it with `loadline run FILE`
    #[arg(value_name = "NAME", value_parser = PlanName)]
    pub(crate) name: Option<&'static NamedPlan>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
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
    let seconds = parse_duration_s(text)?;
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

/// A text of one line, with something in it.
fn one_line(text: &str) -> Result<String, String> {
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
