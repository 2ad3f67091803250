//! Findings of an audit: how bad it is, where, and why. Reasons are values; their texts are made where they are printed.

use std::fmt;

use serde::Deserialize;

loadline_model::named! {
    /// How bad a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// The printed figures cannot all be right.
        Error: "error";
        /// They can be right only under an assumption, which the finding states.
        Warning: "warning";
        /// Something was inferred.
        Info: "info";
    }
    /// In tables.
    pub fn name;
}

/// Law of findings about how a table is written, and what was assumed of it.
pub(crate) const TABLE: &str = "table";

/// A law, and how bad it is that it is broken.
pub(crate) type Graded = (&'static str, Severity);

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub severity: Severity,
    pub table: String,
    /// Row below the column names, counted from 1; `None` if it is about the table.
    pub row: Option<usize>,
    /// Which test the row is, in words; without a row, the series that it is about.
    pub test: String,
    pub columns: Vec<&'static str>,
    pub law: &'static str,
    pub printed: String,
    /// Value by the other cells, in the printed unit.
    pub recomputed: String,
    /// How much larger the printed figure is than the recomputed one, in percent.
    pub deviation_pct: Option<f64>,
    pub reason: Reason,
}

/// A number that is shown with 5 significant digits, without zeros at the end of its fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure(pub f64);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
        if !value.is_finite() {
            return f.write_str("∞");
        } else if magnitude > 15 {
            return write!(f, "{value:.4e}");
        }
        let text = format!("{value:.*}", (4 - magnitude).clamp(0, 12) as usize);
        f.write_str(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
    }
}

macro_rules! texts {
    ($doc:literal $name:ident: $($variant:ident $(($($value:ty),*))? $text:literal;)*) => {
        #[doc = $doc]
        #[derive(Debug, Clone, PartialEq, thiserror::Error)]
        pub enum $name { $(#[error($text)] $variant $(($($value),*))?),* }
    };
}

texts! {
    "Why a text, what a user says of columns, or a claim is not used." AuditError:
    Empty "it is empty: a table has a line of column names and a line per test";
    NoTable "no table was found: expected CSV (commas, semicolons or tabs), a Markdown table or one in a box of bars, with a line of column names and at least one row";
    NoHeader(String) "its first line '{0}' holds numbers: write a line of column names above it";
    Header(String, usize, usize) "the column names '{0}' are {1}, and the rows have {2} cells: name each column";
    Html "HTML and the markup of wikis are not read; write it as CSV with a row per test";
    Json "JSON is not read; write it as CSV with a row per test";
    Aligned "columns set apart by spaces are not read; write it as CSV with a row per test";
    TwoHeaderRows "a table with two header rows of different cells is not read; write it as CSV with a row per test";
    MetricsAsRows "a table with a row per metric is read only if its metrics are known; write it as CSV with a row per test";
    Awr "an extract of an AWR report, per second and per transaction, is not read; write it as CSV with a row per test";
    SideBySide(String) "platforms side by side are not read: {0}; write it as CSV with a row per test";
    Mapping(String) "--columns: '{0}' is no mapping of a column: write HEADER=ID, such as 'tps=commit_throughput_tps'";
    Unknown(String, String) "--columns: there is no column '{0}'{1} (`loadline columns` lists them)";
    Twice(String) "--columns: '{0}' is named twice";
    NoColumn(String, String) "--columns: no table has a column '{0}': there are {1}";
    Claim(String) "--claim '{0}' is no claim: write COLUMN: ROW / ROW = FACTOR, such as 'tps: new / old = 2.5' or 'latency_ms: 4 / 1 = 6'";
    NoRows(String) "--claim '{0}': no table has that column with a figure in both rows; a row is a cell of the first column, or its number";
}

texts! {
    "What a finding or a remark says." Reason:
    TooManyCells(usize, usize) "it has {0} cells for {1} columns: it was not used";
    TooFewCells(usize, usize) "it has {0} cells for {1} columns: those at its end are taken as empty";
    HeaderAgain "it repeats the column names: it was not used";
    OpenQuote "a quote is opened in it and never closed: what follows is in that cell";
    Turned(usize) "a row per metric: read as {0} tests, a row each";
    Changes(String) "column '{0}' holds changes, which are no test and no figure";
    Unclear(String, usize, String) "column '{0}': cells with several numbers, or one that can be read in two ways, are not used: {1}, such as '{2}'";
    TakenFor(String, &'static str, String) "column '{0}' was taken for {1}{2}";
    SecondColumn(String, &'static str, String) "column '{0}' would be {1} as well as '{2}': it was not used";
    Unknown(String) "no law knows {0}: --columns says what columns are";
    NoLaw(String) "no law covers its columns; known are [{0}]. --columns says what columns are";
    Refused(AuditError) "{0}";
    Broken(String, &'static str, &'static str, &'static str) "{0}: {1}{2}{3}";
    Factor(String, usize, usize, Figure, &'static str) "{0}: in {1} of {2} rows the left side is {3} × the right: {4}";
    Apart(String, usize, usize, Figure, Figure) "{0}: not in {1} of {2} rows, where the left side is {3} to {4} × the right: the columns are not what they were taken for, or of different tests";
    Cut(String, usize, usize) "{0}: digits were cut off rather than rounded in {1} of {2} rows";
    Kilobyte(usize, usize, u32, u32) "fits in {0} of {1} rows with kilobytes of {2} and megabytes of {3}² bytes";
    Sessions(usize, usize, String) "throughput × time fits in {0} of {1} rows if the jobs are {2}";
    InFlight(String, Figure) "{0}: it holds if each job has {1} requests under way, as in a pipeline, which no column says";
    Think(Figure, usize, usize) "jobs / throughput − time is {0} ms in {1} of {2} rows: a think time, or time outside what was timed";
    OpenLoop(usize, usize) "throughput × time is more than the jobs in {0} of {1} rows: times of an open loop count from when a transaction was due";
    Elapsed(Figure, Figure, Figure) "it took {0} s of nominal {1} s, which dilutes its average; the rate was up to {2}";
    Usual(String, Figure) "{0} is {1} in the other rows: other work, or a wrong digit";
    Fits(String, usize, usize) "{0} fits in {1} of {2} rows";
    Peak(Figure, Figure) "throughput falls: {0} at {1} jobs was its peak";
    Gap(f64, f64) "tests {0} to {1} are missing";
    Copy(usize) "it is the same as row {0}";
    Again(usize) "it is the same test with other figures as row {0}";
    NotANumber "no number: a division by nothing, or one that is too long for its cell";
    Unread "not read as a number: text, or another unit";
    Negative "a negative figure: a counter that was reset, a wrong sign, or a change";
    NoJobs "0, and still there is work in the other cells";
    NoWork "no throughput, and still there were jobs: the test failed, or its figure is lost";
    Nines "all nines: it may be the largest number that its cell holds";
    Claim(Figure, Figure) "{0} is claimed, and the cells give {1}";
    More(usize) "{0} more findings by this law are not listed";
    Invalid(Box<Reason>) "{0}; the table itself calls this test invalid";
}
