//! Prepares a workload before its first test: tables, calibration, stored procedure.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_database::{TargetError, Work};
use loadline_model::manifest::Overhead;
use loadline_model::plan::PlannedWorkload;
use loadline_model::{Driver, manifest::Calibration};
use loadline_workload::{Instrument, SCALE, Scripts};

use super::{Context, StudyError, nodes, overhead};
use crate::calibrate::{MeasureError, calibrate, measure, with};
use crate::event::{Event, Listener};
use crate::figures::volume::is_one_read;
use crate::plan::planned;

impl Context {
    /// The workload as planned, with `calibrated` parameters.
    pub(super) fn work(
        &self,
        workload: &PlannedWorkload,
        calibrated: &BTreeMap<String, i64>,
    ) -> Result<Work, StudyError> {
        let plan = &self.manifest.plan;
        let (found, params) = planned(&self.known, workload, calibrated, plan.size_bytes)?;
        let most = nodes::most(&self.known, workload, self.side.target.facts());
        // In a sweep over nodes each test then has its own number.
        let nodes = Some(plan.node_counts.last().map_or(most, |n| most.min(*n)));
        Ok(Work { nodes, ..Work::new(found, params, plan.seed, plan.payload_compressibility) })
    }

    /// Sets the block cache of a private server to the size that the workload needs. Returns it, bytes.
    pub(super) fn set_cache(&self, work: &Work) -> Result<Option<u64>, TargetError> {
        let small = work.workload.has(Instrument::Device);
        // If a transaction is one read, the upper levels of the index must fit in the cache.
        let part = if is_one_read(work) { 1 } else { 4 };
        let data_bytes = small.then(|| work.params.size_bytes() / part);
        self.side.target.abilities().block_cache.map_or(Ok(None), |cache| cache.set_cache(data_bytes))
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
        let measured = overhead::client_ns_per_tx(&work, &self.interrupted);
        if self.stopped() {
            return Err(StudyError::Interrupted);
        }
        self.manifest.overhead = Overhead {
            client_ns_per_tx: measured.as_ref().ok().copied(),
            client_absent: measured.err(),
            in_database_ns_per_tx: None,
            workload: Some(code),
        };
        Ok(())
    }

    /// Creates the tables of a workload, calibrates it, and installs its program in the database. A resumed run keeps
    /// the calibration of its first tests.
    pub(super) fn prepare(
        &mut self,
        workload: &PlannedWorkload,
        listener: &mut dyn Listener,
    ) -> Result<Arc<Work>, StudyError> {
        listener.on(Event::Step(format!("preparing {}", workload.code)));
        let key = self.calibration_key(&workload.code);
        let known = self.manifest.calibration.get(&key).map(|c| c.parameters.clone());
        let mut work = self.work(workload, known.as_ref().unwrap_or(&BTreeMap::new()))?;
        self.set_cache(&work)?;
        if known.is_none() {
            let calibration = self.calibrate(workload, &work)?;
            let defined = work.workload.redo.is_some() || work.workload.scripts.is_some();
            if let Some(note) = calibration.note.as_ref().filter(|_| defined) {
                listener.on(Event::Warning(format!("{}: {note}", workload.code)));
            }
            work = with(&work, &calibration.parameters);
            self.manifest.calibration.insert(key, calibration);
        }
        self.side.target.create(&work)?;
        self.load(&work, listener)?;
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
            let seen = match measure(&self.side.target, work, &self.interrupted) {
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
        Ok(calibrate(work, |w| measure(&self.side.target, w, &self.interrupted))?)
    }

    /// The value of `:scale`, as pgbench finds it: its own scripts need that of the tables, others have 1.
    fn scale(&self, workload: &PlannedWorkload, work: &Work, scripts: &Scripts) -> Result<Calibration, StudyError> {
        let given = workload.parameters.contains_key(SCALE);
        let Some((query, queries)) = scripts.scale.zip(self.side.target.abilities().queries).filter(|_| !given) else {
            let one = scripts.mix.lacks(SCALE) && !given;
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
}
