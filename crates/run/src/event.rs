//! Events of a run, for progress display.

use loadline_database::Loading;
use loadline_model::live::{LiveSecond, LiveTest};
use loadline_model::manifest::TableLoad;
use loadline_model::{Finding, TestRecord};

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
    TestStarted(LiveTest),
    /// Progress of a test, about once a second.
    Progress {
        /// Which test.
        position: LiveTest,
        /// The last second.
        second: LiveSecond,
    },
    /// A test is on disk.
    TestDone(&'a TestRecord),
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
