//! What happens during a run, for whoever shows it.

use loadline_database::Loading;
use loadline_model::manifest::TableLoad;
use loadline_model::{Finding, TestRecord};

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step that takes a moment: `opening the target`, `loading rows for 8 jobs`.
    Step(String),
    /// The doctor's findings.
    Doctor(&'a [Finding]),
    /// The run folder exists.
    Started {
        /// Its path.
        folder: &'a std::path::Path,
    },
    /// A workload was skipped.
    Skipped {
        /// Its code.
        code: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// Something the user should know.
    Warning(String),
    /// A table of the data set is being loaded.
    Loading(Loading),
    /// A table of the data set has been loaded.
    Loaded(&'a TableLoad),
    /// A test begins.
    TestStarted(TestPosition),
    /// A second of it has passed.
    Progress {
        /// Which test.
        position: TestPosition,
        /// Seconds since its jobs began.
        elapsed_s: f64,
        /// Seconds that its warm-up and window take in all.
        total_s: f64,
        /// Transactions per second over the last second.
        tps: f64,
        /// Mean transaction time over the last second by Little's law, ms; closed loop only.
        latency_ms: Option<f64>,
    },
    /// A test is on disk.
    TestDone(&'a TestRecord),
}

/// Where in the run a test is.
#[derive(Debug, Clone, PartialEq)]
pub struct TestPosition {
    /// Number of the test, from 1.
    pub test: u32,
    /// Workload code.
    pub workload: String,
    /// Jobs.
    pub jobs: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Repetitions in all.
    pub repeat: u32,
    /// Seconds that the rest of the run will take, as far as that can be told; an upper bound
    /// while a sweep is still looking for saturation.
    pub left_s: f64,
    /// Whether `left_s` is exact.
    pub left_exact: bool,
}

/// Is told what happens. Called from the coordinating thread only.
pub trait Listener {
    /// Something happened.
    fn on(&mut self, event: Event<'_>);
}

/// Listens to nothing.
pub struct Silent;

impl Listener for Silent {
    fn on(&mut self, _: Event<'_>) {}
}
