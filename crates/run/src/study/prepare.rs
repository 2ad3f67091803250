//! Prepares a workload before its first test: tables, calibration, stored procedure. Measures loadline's own loop before all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use loadline_database::{LoadProgress, OpenRequest, Target, TargetError, Work, open};
use loadline_load::Request;
use loadline_model::Driver;
use loadline_model::manifest::{Calibration, Overhead, TableLoad};
use loadline_model::plan::PlannedWorkload;
use loadline_workload::{Instrument, Mix, RowCount, SCALE, Scope, Table};

use super::{Context, StudyError, spread};
use crate::calibrate::{MeasureError, calibrate, measure, with};
use crate::figures::volume::is_one_read;
use crate::live::Event;
use crate::plan::work_of;
use crate::reference::Lengths;

/// Interval between progress reports of a load.
const POLL: Duration = Duration::from_millis(100);
/// With these loadline's own loop is known to a few per cent.
const LOOP: Lengths = Lengths { warmup_s: 0.05, windows_s: [0.2, 2.0] };

/// Wall time of the client's loop per transaction of `work`, ns, with one job on the null engine. Includes clock readings and histograms.
fn client_ns_per_tx(work: Work, interrupted: &Arc<AtomicBool>) -> Result<f64, String> {
    let null = open(&OpenRequest::new("null:", std::env::temp_dir())).map_err(|e| e.to_string())?;
    let null: Arc<dyn Target> = Arc::from(null);
    let request = Request { interrupted: Arc::clone(interrupted), ..Request::new(&null, &Arc::new(work), 1) };
    Ok(1e9 / LOOP.rate(&request)?)
}

impl Context<'_> {
    /// The workload as planned, with `calibrated` parameters.
    pub(super) fn work(
        &self,
        workload: &PlannedWorkload,
        calibrated: &BTreeMap<String, i64>,
    ) -> Result<Work, StudyError> {
        let plan = &self.manifest.plan;
        let work = work_of(&self.known, plan, workload, calibrated)?;
        let most = spread::most(&work, self.side.target.facts());
        // In a sweep over nodes each test then has its own number.
        let nodes = Some(plan.node_counts().last().map_or(most, |n| most.min(*n)));
        Ok(Work { nodes, ..work })
    }

    /// Sets the block cache of a private server to the size that the workload needs. Returns it, bytes.
    pub(super) fn set_cache(&self, work: &Work) -> Result<Option<u64>, TargetError> {
        let Some(cache) = self.side.target.abilities().tables else { return Ok(None) };
        let data_bytes = work.params.size_bytes();
        match work.workload.has(Instrument::Device) {
            // The upper levels of the index must fit in the cache.
            true if is_one_read(work) => cache.set_cache_for_one_read(data_bytes),
            true => cache.set_cache(Some(data_bytes / 4)),
            false => cache.set_cache(None),
        }
    }

    /// Measures loadline's own overhead, with the first workload that the client driver can run.
    pub(super) fn measure_overhead(&mut self) -> Result<(), StudyError> {
        let at_client = |w: &&PlannedWorkload| {
            let work = self.work(w, &BTreeMap::new()).ok()?;
            (work.program.computations_per_tx() == 0).then(|| (w.code.clone(), work))
        };
        let Some((code, work)) = self.manifest.plan.workloads.iter().find_map(|w| at_client(&w)) else {
            return Ok(());
        };
        let measured = client_ns_per_tx(work, &self.interrupted);
        self.unless_stopped()?;
        self.manifest.overhead = Overhead {
            client_ns_per_tx: measured.as_ref().ok().copied(),
            client_absent: measured.err(),
            in_database_ns_per_tx: None,
            workload: Some(code),
        };
        Ok(())
    }

    /// Creates the tables of a workload, calibrates it unless an earlier test of the run did, and installs its program in the database.
    pub(super) fn prepare(&mut self, workload: &PlannedWorkload) -> Result<Arc<Work>, StudyError> {
        self.step(format!("preparing {}", workload.code));
        let key = self.calibration_key(&workload.code);
        let known = self.manifest.calibration.get(&key).map(|c| c.parameters.clone());
        let mut work = self.work(workload, known.as_ref().unwrap_or(&BTreeMap::new()))?;
        self.set_cache(&work)?;
        if known.is_none() {
            let calibration = self.calibrate(workload, &work)?;
            let defined = work.workload.redo.is_some() || work.workload.scripts.is_some();
            if defined && let Some(note) = &calibration.note {
                self.warn(format!("{}: {note}", workload.code));
            }
            work = with(&work, &calibration.parameters);
            self.manifest.calibration.insert(key, calibration);
        }
        self.side.target.create(&work)?;
        self.load(&work)?;
        if workload.driver == Driver::Database {
            self.side.target.abilities().driver()?.install(&work)?;
            if self.manifest.overhead.in_database_ns_per_tx.is_none() {
                self.manifest.overhead.in_database_ns_per_tx = self.side.target.abilities().driver()?.overhead_ns()?;
            }
        }
        self.folder.write_manifest(&self.manifest)?;
        Ok(Arc::new(work))
    }

    fn calibrate(&self, workload: &PlannedWorkload, work: &Work) -> Result<Calibration, StudyError> {
        if let Some(scripts) = &work.workload.scripts {
            return self.scale(workload, work, scripts);
        }
        let size = work.workload.redo;
        // Sizes given by the user are not calibrated.
        if let Some(size) = size
            && [size.payload, size.rows].iter().any(|p| workload.parameters.contains_key(*p))
        {
            let seen = match measure(&self.side.target, work, None, &self.interrupted) {
                Err(MeasureError::Target(e)) => return Err(e.into()),
                seen => seen.ok(),
            };
            return Ok(Calibration {
                redo_bytes_per_tx: seen,
                nominal: Some([size.min, size.nominal, size.max]),
                note: Some("not calibrated: the plan gives its size".into()),
                ..Calibration::default()
            });
        }
        Ok(calibrate(work, |w| measure(&self.side.target, w, None, &self.interrupted))?)
    }

    /// The value of `:scale`, as pgbench finds it: its own scripts need that of the tables, others have 1.
    fn scale(&self, workload: &PlannedWorkload, work: &Work, scripts: &Mix) -> Result<Calibration, StudyError> {
        let given = workload.parameters.contains_key(SCALE);
        let asked = if given { None } else { scripts.scale.zip(self.side.target.abilities().tables) };
        let Some((query, queries)) = asked else {
            let one = scripts.lacks(SCALE) && !given;
            let note = "the variable scale is 1, as pgbench has it for scripts of your own: give --define scale=N";
            return Ok(Calibration { note: one.then(|| note.to_owned()), ..Calibration::default() });
        };
        let scale = queries.integer(work, query).map_err(|e| match e {
            TargetError::Server(e) => TargetError::Refused(format!(
                "pgbench's own scripts need its tables, and {query} failed: {e}. `pgbench -i` makes them; loadline makes none"
            )),
            e => e,
        })?;
        Ok(Calibration { parameters: [(SCALE.to_owned(), scale)].into(), ..Calibration::default() })
    }

    /// Loads a workload's tables for one job and the data set.
    fn load(&mut self, work: &Work) -> Result<(), StudyError> {
        let (done, loaded) = self.load_watched(work, 1);
        let arm = self.loaded_variant();
        for table in done {
            self.listener.on(Event::Loaded(&table));
            self.manifest.data_set.push(TableLoad { arm, ..table });
        }
        loaded
    }

    /// Loads what is missing for `jobs` jobs, with progress events. Returns the tables that were loaded as well.
    pub(super) fn load_watched(&mut self, work: &Work, jobs: u32) -> (Vec<TableLoad>, Result<(), StudyError>) {
        let progress = LoadProgress::default();
        let target = Arc::clone(&self.side.target);
        let loaded = std::thread::scope(|scope| {
            let load = scope.spawn(|| target.load_watched(work, jobs, &progress));
            while !load.is_finished() {
                if self.stopped() {
                    progress.stop();
                }
                if let Some(now) = progress.now() {
                    self.listener.on(Event::Loading(now));
                }
                // Most loads have nothing to do and end at once.
                let began = Instant::now();
                while !load.is_finished() && began.elapsed() < POLL {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            load.join().unwrap_or_else(|_| {
                Err(TargetError::Local("loading crashed: an internal error, please report it".into()))
            })
        });
        let loaded = match loaded {
            Err(_) if self.stopped() => Err(StudyError::Interrupted),
            loaded => loaded.map_err(StudyError::from),
        };
        (progress.done(), loaded)
    }

    /// Drops the large tables of a workload after its last test to free disk space. Small per-job tables stay until the run ends.
    pub(super) fn drop_unneeded_tables(&mut self, work: &Work) {
        let is_large = |t: &Table| t.scope == Scope::Workload && !matches!(t.rows, RowCount::PerJob(_));
        if !work.workload.tables.iter().any(is_large) {
            return;
        }
        if let Err(e) = self.side.target.drop_tables(work) {
            let code = &work.workload.code;
            self.warn(format!("the tables of {code} could not be dropped after its last test: {e}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn the_loop_has_a_time_unless_the_user_stops_it() {
        let interrupted = Arc::new(AtomicBool::new(false));
        let ns = || client_ns_per_tx(Work::from_catalogue("LGWR-LAT1", &[]).unwrap(), &interrupted);
        assert!(ns().unwrap() > 0.0);
        interrupted.store(true, Ordering::Relaxed);
        let began = Instant::now();
        assert!(ns().is_err() && began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
