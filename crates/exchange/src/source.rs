//! Files that come in, the tools that write them, and what is wrong with a file or a figure: values, whose text is made where it is printed.

use std::io::{BufRead, Error as Os};
use std::sync::LazyLock;

use thiserror::Error;

loadline_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Tool {
        Pgbench: "pgbench";
        Sysbench: "sysbench";
        Fio: "fio";
    }
    /// The name as the tool writes it.
    pub fn name;
}

/// Tools, and how their lines begin; those of other tools than these are known so that they are refused by name.
static MARKS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| include_str!("marks.txt").lines().filter_map(|row| row.split_once('\t')).collect());

impl Tool {
    /// The name of the tool that writes such a line; `None` if any may.
    pub(crate) fn of_line(line: &str) -> Option<&'static str> {
        let line = line.trim();
        let is_digit = |c: char| c.is_ascii_digit();
        let numbered = |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(is_digit));
        match MARKS.iter().find(|(_, mark)| line.starts_with(mark)) {
            Some((tool, _)) => Some(tool),
            None if numbered("sysbench ") => Some("sysbench"),
            None if numbered("fio-") => Some("fio"),
            None if line.contains("TEST RESULT : System achieved") => Some("HammerDB"),
            None => None,
        }
    }
}

pub struct Source<'a> {
    pub name: String,
    pub input: Box<dyn BufRead + 'a>,
}

#[derive(Debug, Error)]
pub enum ImportError {
    /// Fault in a line of a file, from 1, or in the file as a whole.
    #[error("{file}{}: {what}", line.map_or_else(String::new, |line| format!(", line {line}")))]
    Wrong { file: String, line: Option<u64>, what: String },
    #[error("{file} cannot be read: {error}")]
    Read { file: String, error: Os },
}

/// Why a figure of an imported test is missing.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Absence {
    #[error("import looks for no such figure in files of {}", .0.name())]
    NotLookedFor(Tool),
    #[error("{place} has no {what}")]
    NotIn { place: &'static str, what: &'static str },
    #[error("it is printed as 0, which it cannot be")]
    PrintedZero,
    #[error("it made no {what}s")]
    NoneMade { what: &'static str },
    #[error("nothing was completed")]
    NothingTimed,
    #[error("the tool's histogram is empty")]
    EmptyHistogram,
    #[error("at least {:.0} s, where the tool's histogram ends", (ns / 1e9).floor())]
    AtLeast { ns: f64 },
    #[error("at most {} µs, where the tool's histogram begins", ns / 1e3)]
    AtMost { ns: f64 },
    #[error("'{0}' is printed, which no such figure can be")]
    CannotBe(String),
    #[error("it cannot be: {what} is {value}, above {bound} of {limit}")]
    Above { what: &'static str, value: f64, bound: &'static str, limit: f64 },
    #[error("the load was a closed loop: no rate was asked for")]
    ClosedLoop,
    #[error("open loop: times are from the scheduled start, see the response times")]
    OpenLoop,
    #[error(
        "reads and writes are timed apart, and their percentiles cannot be joined: --output-format=json+ has the times"
    )]
    ReadsAndWrites,
    #[error("sysbench ends at the first error that it does not ignore")]
    EndsAtErrors,
}

/// Warning to the reader of an import. It is a note of the test as well.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Warning {
    #[error("contradictory: {what} is {stated:.3}, but {how} gives {computed:.3}")]
    Apart { what: &'static str, stated: f64, how: &'static str, computed: f64 },
    #[error("a figure is left out: {0}")]
    CannotBe(Absence),
    #[error(
        "line {line}: the interval that ends at {end_s} s states {per_s} transactions per second, at most {most:.0} can be: it is in no series"
    )]
    Interval { line: u64, end_s: f64, per_s: f64, most: f64 },
    #[error("line {line}: the interval that ends at {end_s} s has a time that cannot be: it is in no series")]
    IntervalTime { line: u64, end_s: f64 },
    #[error("line {line} is no progress that can be read: '{text}'")]
    NoProgress { line: u64, text: String },
    #[error("nothing was completed in the whole run")]
    NothingCompleted,
    #[error("it ran {ran_s} of {asked_s} s")]
    Stopped { ran_s: f64, asked_s: f64 },
    #[error("{asked} per second were asked for, {reached_pct:.0} % of them were reached")]
    RateMissed { asked: f64, reached_pct: f64 },
    #[error("{made} of {asked} transactions were made: clients ended before, or transactions failed")]
    FewerThanAsked { made: f64, asked: f64 },
    #[error("the job ended with error {code}: {}", Os::from_raw_os_error(*code))]
    Error { code: i32 },
    #[error("the tool said '{0}'")]
    Said(String),
}
