//! Reports from stored runs: tables, charts, HTML, Markdown, CSV, JSON and plain text.
//!
//! Reports are made from [`RunData`] alone, offline. `content` builds a document of sections, tables and charts (`doc`),
//! which is then written in the requested format. Column names, units and formats come from [`loadline_model::column`].

mod bars;
mod canvas;
mod cause;
mod compared;
mod content;
mod doc;
mod escape;
mod example;
mod forecasted;
mod json;
mod listing;
mod live;
mod period;
mod platform_run;
mod price;
mod probed;
mod redact;
mod spec;
mod svg;
mod templates;
mod terminal;
mod text;
mod trended;
mod words;

use std::collections::BTreeMap;

use loadline_analyze::fill_bounded_by;
use loadline_analyze::variants::typical_windows;
use loadline_analyze::waits::Counts;
use loadline_model::{Latencies, Manifest, Series, TestRecord};

pub use compared::{Compared, NotCompared, Terms};
pub use content::charts::OverTime;
pub use content::levels::Costs;
pub use example::example;
pub use forecasted::{Forecasts, evaluation_page};
pub use listing::{Listing, markdown_cell};
pub use live::{HEADLINES, Headlines, LiveRun, headlines, live_table, live_text, render_live, test_name, validity};
pub use period::{Period, render_page};
pub use price::{PriceError, Prices};
pub use probed::render_probe;
pub use redact::redact;
pub use templates::{SCRIPT, STYLE, filled};
pub use terminal::{done_line, end_page};
pub use text::{clean, shown_name};
pub use trended::Trended;

/// One stored run, as read from its folder.
#[derive(Debug, Clone)]
pub struct RunData {
    pub manifest: Manifest,
    /// All tests in the order in which they ran.
    pub records: Vec<TestRecord>,
    /// Throughput over time by test number.
    pub over_time: BTreeMap<u32, OverTime>,
    /// Latencies by test number, with their kind (`transaction`, `commit`, …).
    pub histograms: BTreeMap<u32, Vec<(String, Counts)>>,
    /// Numbers of the tests that have a page `test-N.html` beside the report.
    pub pages: Vec<u32>,
    /// Defects of the run folder and how they were handled.
    pub warnings: Vec<String>,
    /// Notes in Markdown by workload, and of the whole run under the empty name.
    pub notes: BTreeMap<String, String>,
    /// Set if loadline did not measure it.
    pub published: Option<Published>,
}

/// Source of figures that loadline did not measure: published ones, and those imported from another tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    pub imported: bool,
    pub source: String,
    /// Findings of an audit of their table.
    pub findings: Vec<AuditFinding>,
}

/// Finding of an audit on one law in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFinding {
    pub is_error: bool,
    pub said: String,
}

impl RunData {
    /// A run with `records`, without series and histograms. Fills in what bounds each test; names are as [`shown_name`] shows them.
    pub fn new(mut manifest: Manifest, mut records: Vec<TestRecord>, warnings: Vec<String>) -> RunData {
        fill_bounded_by(&mut records);
        let of_records = records.iter_mut().flat_map(|r| [&mut r.platform, &mut r.workload]);
        let Manifest { plan, target, .. } = &mut manifest;
        let of_run = [&mut plan.platform, &mut target.product, &mut target.version].into_iter();
        let of_run = of_run.chain(plan.workloads.iter_mut().map(|w| &mut w.code));
        of_records.chain(of_run).for_each(|name| *name = shown_name(name));
        let source = records.iter().find_map(|r| r.imported()).map(loadline_model::Imported::unchecked);
        let published = source.map(|source| Published { imported: true, source, findings: Vec::new() });
        RunData {
            manifest,
            records,
            over_time: BTreeMap::new(),
            histograms: BTreeMap::new(),
            pages: Vec::new(),
            warnings,
            notes: BTreeMap::new(),
            published,
        }
    }

    /// Numbers of the tests that have a page: all, and of variants those of a typical pair, as their windows are many.
    pub fn tests_with_pages(&self) -> Vec<u32> {
        match self.manifest.plan.arms() {
            Some(paired) => typical_windows(&self.records, paired.pairs),
            None => self.records.iter().map(|r| r.test).collect(),
        }
    }

    /// Adds the series and histograms of `test`, reduced to what reports show: a full histogram takes 270 KiB, and a test
    /// has up to three.
    pub fn add(&mut self, test: u32, series: &Series, histograms: &[(String, Latencies)]) {
        self.over_time.extend(OverTime::from_series(series).map(|over_time| (test, over_time)));
        let counts = histograms.iter().map(|(kind, l)| (kind.clone(), Counts::from_latencies(l))).collect();
        self.histograms.insert(test, counts);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One self-contained page: no network, and readable without its script.
    Html,
    /// That page in GitHub's Markdown, without charts.
    Markdown,
    /// One table with all tests of all runs, as in RFC 4180 but with LF line ends; of one run of levels without chosen columns,
    /// their costs.
    Csv,
    /// Manifests, records and a summary.
    Json,
    /// Plain text for a terminal.
    Text,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Ids of the columns of test tables (and of CSV), in order; `None` for the default ones.
    pub columns: Option<Vec<String>>,
    /// Whether figures measured with different drivers are compared as well.
    pub across_drivers: bool,
    /// Only what fits on some pages: key figures, what bounds them, load lines, and some charts.
    pub summary: bool,
    /// Title instead of the platforms' names.
    pub title: Option<String>,
    pub customer: Option<String>,
    /// For paper: with footers, and nothing folded.
    pub paper: bool,
    /// Only this one of [`TABLES`], of raw values, as CSV or JSON.
    pub table: Option<String>,
    pub prices: Option<Prices>,
}

/// Tables of a report that are written alone: facts of the platforms, throughput for the price, one job against a node and all nodes.
pub const TABLES: [&str; 3] = ["facts", "prices", "load-study"];

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("there is no column '{given}': {}`loadline columns` lists them",
        if .near.is_empty() { String::new() } else { format!("did you mean '{}'? ", .near.join("' or '")) })]
    UnknownColumn {
        given: String,
        /// The most similar id, and some that contain the given one.
        near: Vec<&'static str>,
    },
    #[error(
        "no column is named (--columns, --figure): give ids separated by commas, such as jobs,commit_throughput_tps"
    )]
    NoColumn,
    #[error("a page about a test or a snapshot is HTML, Markdown or text: give --format html, md or text")]
    NoPage,
    #[error("there is no run to report on: name at least one run folder")]
    NoRun,
    #[error("--anonymous cannot hide the product of {0}: {1}; --redact can hide whose it is")]
    NotAnonymous(String, &'static str),
    #[error(
        "the price list has no [[price]] of a platform of this report: it names {listed}; the platforms are {platforms}"
    )]
    NoPrice {
        /// The platforms of the price list.
        listed: String,
        platforms: String,
    },
    #[error("the table of prices needs a price list: add --price FILE")]
    NoPriceList,
    #[error("internal error with JSON, please report it: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes `runs` as one report in `format`. Several runs are compared as platforms, with factors against the first.
///
/// # Errors
/// [`ReportError`]: no run, an unknown column, or a value that cannot be written as JSON.
pub fn render(runs: &[RunData], format: Format, options: &Options) -> Result<Vec<u8>, ReportError> {
    if runs.is_empty() {
        return Err(ReportError::NoRun);
    }
    let columns = words::chosen_columns(options.columns.as_deref())?;
    let columns = columns.as_deref();
    if let Some(prices) = &options.prices {
        prices.check(runs)?;
    }
    if let Some(table) = &options.table {
        return Ok(listed(table, runs, options)?.render(format)?.into_bytes());
    }
    let text = match format {
        Format::Csv => match (runs, columns) {
            ([run], None) => {
                content::levels::Costs::from_run(run).map_or_else(|| listing::all_tests(runs, columns), |of| of.csv())
            }
            _ => listing::all_tests(runs, columns),
        },
        Format::Json => json::render(runs, options)?,
        for_people => templates::page(&content::document(runs, columns, options), for_people, options.paper)?,
    };
    Ok(text.into_bytes())
}

/// The table of raw values called `table`, one of [`TABLES`].
fn listed(table: &str, runs: &[RunData], options: &Options) -> Result<Listing, ReportError> {
    match (table, &options.prices) {
        ("facts", _) => Ok(content::platform::facts_listing(runs)),
        ("load-study", _) => Ok(content::load_study::listing(runs)),
        (_, None) => Err(ReportError::NoPriceList),
        (_, Some(prices)) => Ok(prices.listing(runs, options.across_drivers)),
    }
}
