//! Loading the tables of a run.

use std::time::Duration;

use loadline_database::{LoadProgress, TargetError, Work};
use loadline_model::manifest::TableLoad;
use loadline_workload::{RowCount, Scope};

use super::{Context, StudyError};
use crate::event::{Event, Listener};

/// Between two looks at how far a load is.
const LOOK: Duration = Duration::from_millis(100);

impl Context {
    /// Loads what a workload needs for one job, and the data set with it, telling how far it is.
    pub(super) fn load(&mut self, work: &Work, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let (done, loaded) = self.load_watched(work, 1, listener);
        for table in done {
            listener.on(Event::Loaded(&table));
            self.manifest.data_set.push(table);
        }
        loaded
    }

    /// Loads what is missing before a test of `jobs` jobs: what they own, and rows that tests took away.
    pub(super) fn load_again(&self, work: &Work, jobs: u32, listener: &mut dyn Listener) -> Result<(), StudyError> {
        self.load_watched(work, jobs, listener).1
    }

    fn load_watched(
        &self,
        work: &Work,
        jobs: u32,
        listener: &mut dyn Listener,
    ) -> (Vec<TableLoad>, Result<(), StudyError>) {
        let progress = LoadProgress::default();
        let target = &self.target;
        let loaded = std::thread::scope(|scope| {
            let load = scope.spawn(|| target.load_watched(work, jobs, &progress));
            while !load.is_finished() {
                if self.stopped() {
                    progress.stop();
                }
                if let Some(now) = progress.now() {
                    listener.on(Event::Loading(now));
                }
                // Most loads have nothing to do: they are over at once.
                let began = std::time::Instant::now();
                while !load.is_finished() && began.elapsed() < LOOK {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            load.join().unwrap_or_else(|_| Err(TargetError::Local("loading ended by a defect of loadline".into())))
        });
        let loaded = match loaded {
            Err(_) if self.stopped() => Err(StudyError::Interrupted),
            loaded => loaded.map_err(StudyError::from),
        };
        (progress.done(), loaded)
    }

    /// Drops the tables of a workload that has no more tests, so that those of the next have room. The few rows
    /// that jobs own stay until the run's end.
    pub(super) fn make_room(&self, work: &Work, listener: &mut dyn Listener) {
        let large = |t: &loadline_workload::Table| t.scope == Scope::Workload && !matches!(t.rows, RowCount::PerJob(_));
        if !work.workload.tables.iter().any(large) {
            return;
        }
        if let Err(e) = self.target.drop_tables(work) {
            let code = work.workload.code;
            listener
                .on(Event::Warning(format!("the tables of {code}, whose tests are done, could not be dropped: {e}")));
        }
    }
}
