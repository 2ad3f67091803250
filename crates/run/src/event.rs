//! Events of a run, for progress display.

use loadline_database::Loading;
use loadline_model::live::LiveSecond;
use loadline_model::manifest::TableLoad;
use loadline_model::{ArmName, Finding, TestRecord};

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step that may take a while: `opening the target`, `loading rows for 8 jobs`.
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
    /// A warning for the user.
    Warning(String),
    /// A table of the data set is being loaded.
    Loading(Loading),
    /// A table of the data set has been loaded.
    Loaded(&'a TableLoad),
    /// A test begins.
    TestStarted(TestPosition),
    /// Progress of a test, about once a second.
    Progress {
        /// Which test.
        position: TestPosition,
        /// The last second.
        second: LiveSecond,
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
    /// The arm, in a run of two; `repetition` is then the number of the pair.
    pub arm: Option<ArmName>,
    /// Estimated seconds until the end of the run. Not exact during an automatic sweep.
    pub left_s: f64,
    /// Whether `left_s` is exact.
    pub left_exact: bool,
}

/// Receives events. Called from the coordinating thread only.
pub trait Listener {
    /// Handles one event.
    fn on(&mut self, event: Event<'_>);
}

/// Ignores all events.
pub struct Silent;

impl Listener for Silent {
    fn on(&mut self, _: Event<'_>) {}
}
