//! References: what the machine allows for the work of a test, measured without the database, or without the work.
//!
//! A [`Part`] measures one [`Limit`] of a workload directly before and after each test, because the speed of a device
//! changes within minutes. Each is a file here and a line in [`part`].

mod device;
pub(crate) mod log;
mod place;
mod statements;
mod threads;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_database::Work;
use loadline_load::{Place, Request, Tally, TestError, TestHooks, Warmup, run_test};
use loadline_model::limits::name;
use loadline_model::{Column, JobLoad, LogWriterPoint, TestLimit};
use loadline_workload::Limit;

pub use log::{GRID_JOBS, clean_leftovers, grid};
pub use place::{Role, writable_dir};

use crate::test::Test;
use device::Device;
pub(crate) use device::{TestFile, probe_options};
use log::LogWriter;
pub(crate) use log::SmallestCommits;
pub(crate) use threads::LastRows;

/// Tools that measure the limits of a run.
pub(crate) struct References {
    pub(crate) log: LogSource,
    /// A folder on the filesystem of the database's data, or why there is none.
    pub(crate) data_dir: Result<PathBuf, String>,
    pub(crate) test_file: TestFile,
    /// Why the CPUs and memory of this machine are not those of the database, if they are not.
    pub(crate) elsewhere: Option<String>,
    pub(crate) rows: LastRows,
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl References {
    /// Name of what is measured in place of `limit`: whole transactions, with their round trips.
    pub(crate) fn in_place_of(&self, limit: Limit) -> Option<&'static str> {
        (limit == Limit::Log && matches!(self.log, LogSource::Smallest(_))).then_some(name::SMALLEST_COMMITS)
    }
}

/// Source of the limit of commits.
pub(crate) enum LogSource {
    /// The reference log writer, measured around each test.
    Measured(Box<LogWriter>),
    /// Figures measured elsewhere.
    Points(Vec<LogWriterPoint>),
    /// The smallest durable transactions of the database itself, because its log cannot be reached.
    Smallest(SmallestCommits),
    None(String),
}

#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) request: &'a Request,
    pub(crate) redo_bytes: Option<f64>,
    /// Redo per transaction of an earlier test of the same transactions, bytes.
    pub(crate) earlier_redo_bytes: Option<f64>,
    pub(crate) figures: Option<&'a Test>,
}

impl Subject<'_> {
    /// A figure of the test; an error names it.
    pub(crate) fn figure(&self, column: &Column) -> Result<f64, String> {
        let figure = self.figures.and_then(|f| f.figure(column));
        figure.ok_or_else(|| format!("the test has no figure for {}", column.heading()))
    }
}

#[derive(Debug)]
pub(crate) struct Sample {
    /// In the part's own unit.
    pub(crate) per_s: f64,
    /// Measured limit, in words.
    pub(crate) of: String,
    /// Redo per transaction that it was measured with, bytes.
    pub(crate) redo_bytes: Option<f64>,
}

impl Sample {
    fn new(per_s: f64, of: impl Into<String>) -> Sample {
        Sample { per_s, of: of.into(), redo_bytes: None }
    }
}

/// One thing that bounds a test.
pub(crate) trait Part {
    /// Measures once the work of the test, as far as it is known. Returns `None` if that needs the figures of the test, and
    /// `subject` has none yet.
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String>;

    /// Units that a transaction of the test takes; 0 if it did none of the work.
    fn per_tx(&self, _subject: Subject<'_>) -> Result<f64, String> {
        Ok(1.0)
    }

    /// A figure measured elsewhere, in place of a measurement.
    fn known(&self, _subject: Subject<'_>, _references: &References) -> Option<Result<TestLimit, String>> {
        None
    }
}

pub(crate) fn part(limit: Limit) -> Box<dyn Part> {
    match limit {
        Limit::Log => Box::new(log::Commits::default()),
        Limit::Statements => Box::new(statements::Statements::default()),
        Limit::BlockReads | Limit::BatchReads | Limit::ReadBandwidth | Limit::BlockWrites | Limit::WriteBandwidth => {
            Box::new(Device(limit))
        }
        Limit::Copy => Box::new(threads::Copies),
        Limit::Memory => Box::new(threads::Memory::default()),
        Limit::Loop(of) => Box::new(threads::Loops { of, all_rows: 0 }),
        Limit::Kernel => Box::new(threads::Kernel),
    }
}

/// Approximate time of the two measurements of `limit` around a test, s.
pub(crate) fn around_test_s(limit: Limit) -> f64 {
    2.0 * match limit {
        Limit::Log => log::LENGTHS.all_s(),
        Limit::Statements => statements::LENGTHS.all_s(),
        _ if limit.is_of_device() => device::SAMPLES_S[0],
        _ => threads::SAMPLE.as_secs_f64(),
    }
}

/// Jobs like those of `like`, with other work: in this process, as fast as they can, without figures of devices.
fn with_work(like: &Request, work: Arc<Work>) -> Request {
    Request { work, load: JobLoad::default(), place: Place::Here, disk: None, data_disk: None, ..like.clone() }
}

/// Lengths of the measurement of a rate, s.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    pub(crate) warmup_s: f64,
    /// Windows to try: the first is enough for thousands of transactions, the second for long ones, or on a device that stalls.
    pub(crate) windows_s: [f64; 2],
}

impl Lengths {
    /// Sessions and counters, s.
    const AROUND_S: f64 = 0.1;

    /// About how long a measurement takes, s.
    fn all_s(&self) -> f64 {
        self.warmup_s + self.windows_s[0] + Self::AROUND_S
    }

    /// Transactions per second of `request`, without figures, in the first window in which transactions complete.
    pub(crate) fn rate(&self, request: &Request) -> Result<f64, String> {
        let warmup = Warmup::Seconds(self.warmup_s);
        let [short, long] = self.windows_s.map(|duration_s| Request { warmup, duration_s, ..request.clone() });
        let measured = match throughput(&short) {
            Err(TestError::Counters(_)) => throughput(&long),
            result => result,
        };
        measured.map_err(|e| if let TestError::Counters(why) = e { why } else { e.to_string() })
    }
}

/// No hooks, and nobody looks at the counters.
struct RateOnly;

impl TestHooks for RateOnly {
    fn counts(&self) -> bool {
        false
    }
}

/// Runs `request` without figures. Returns transactions per second.
pub(crate) fn throughput(request: &Request) -> Result<f64, TestError> {
    let measured = run_test(request, &mut RateOnly, |_| ())?;
    let Tally { transaction, errors, error_texts, .. } = &measured.merged;
    if let Some(lost) = measured.jobs.iter().find_map(|j| j.lost.clone()) {
        return Err(TestError::Counters(lost));
    }
    if *errors > 0 {
        let text = error_texts.keys().next().map_or("", String::as_str);
        return Err(TestError::Counters(format!("transactions of the reference failed: {text}")));
    }
    match transaction.count() {
        0 => Err(TestError::Counters("no transaction of the reference completed in its window".into())),
        _ => Ok(loadline_load::tps(&measured.jobs, &measured.schedule)),
    }
}
