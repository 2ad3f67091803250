//! Events of a run, for progress display.

use loadline_database::Loading;
use loadline_model::live::{LiveSecond, LiveTest};
use loadline_model::manifest::TableLoad;
use loadline_model::{Finding, TestRecord};

/// An event of a run.
#[derive(Debug)]
#[allow(missing_docs)] // Its names say what each is.
pub enum Event<'a> {
    /// A step that may take a while: `opening the target`, `loading rows for 8 jobs`.
    Step(String),
    Doctor(&'a [Finding]),
    Started {
        folder: &'a std::path::Path,
    },
    Skipped {
        code: &'a str,
        reason: &'a str,
    },
    Warning(String),
    Loading(Loading),
    Loaded(&'a TableLoad),
    TestStarted(LiveTest),
    /// Progress of a test, about once a second.
    Progress {
        position: LiveTest,
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
