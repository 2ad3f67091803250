//! Loading the tables of a run.

use std::time::Duration;

use loadline_database::{LoadProgress, TargetError, Work};
use loadline_model::manifest::TableLoad;
use loadline_workload::{RowCount, Scope};

use super::{Context, StudyError};
use crate::event::{Event, Listener};

/// Interval between progress reports of a load.
const POLL: Duration = Duration::from_millis(100);

impl Context {
    /// Loads a workload's tables for one job and the data set, with progress events.
    pub(super) fn load(&mut self, work: &Work, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let (done, loaded) = self.load_watched(work, 1, listener);
        let arm = self.loaded_variant();
        for table in done {
            listener.on(Event::Loaded(&table));
            self.manifest.data_set.push(TableLoad { arm, ..table });
        }
        loaded
    }

    /// Loads what is missing before a test: rows of each of the `jobs` jobs, and rows that earlier tests deleted.
    pub(super) fn load_for_test(&self, work: &Work, jobs: u32, listener: &mut dyn Listener) -> Result<(), StudyError> {
        self.load_watched(work, jobs, listener).1
    }

    fn load_watched(
        &self,
        work: &Work,
        jobs: u32,
        listener: &mut dyn Listener,
    ) -> (Vec<TableLoad>, Result<(), StudyError>) {
        let progress = LoadProgress::default();
        let target = &self.side.target;
        let loaded = std::thread::scope(|scope| {
            let load = scope.spawn(|| target.load_watched(work, jobs, &progress));
            while !load.is_finished() {
                if self.stopped() {
                    progress.stop();
                }
                if let Some(now) = progress.now() {
                    listener.on(Event::Loading(now));
                }
                // Most loads have nothing to do and end at once.
                let began = std::time::Instant::now();
                while !load.is_finished() && began.elapsed() < POLL {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            load.join().unwrap_or_else(|_| {
                Err(TargetError::Local("loading crashed: this is a bug in loadline, please report it".into()))
            })
        });
        let loaded = match loaded {
            Err(_) if self.stopped() => Err(StudyError::Interrupted),
            loaded => loaded.map_err(StudyError::from),
        };
        (progress.done(), loaded)
    }

    /// Drops the tables of a workload after its last test to free disk space. Small per-job tables stay until the run
    /// ends.
    pub(super) fn drop_unneeded_tables(&self, work: &Work, listener: &mut dyn Listener) {
        let large = |t: &loadline_workload::Table| t.scope == Scope::Workload && !matches!(t.rows, RowCount::PerJob(_));
        if !work.workload.tables.iter().any(large) {
            return;
        }
        if let Err(e) = self.side.target.drop_tables(work) {
            let code = &work.workload.code;
            listener.on(Event::Warning(format!("the tables of {code} could not be dropped after its last test: {e}")));
        }
    }
}
