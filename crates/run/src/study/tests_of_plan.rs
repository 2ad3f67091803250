//! The tests of a plan, one after another, each on disk before the next begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_database::{ParallelWorkers, TargetError, Work, WorkerLimit, kind_of};
use loadline_model::plan::{Jobs, PlannedWorkload};
use loadline_model::{Column, Driver, LogWriterPoint, TestLimit, TestRecord, column};
use loadline_store::{NativeFile, TestOutput};
use loadline_workload::{Commit, RowCount, SizeScan, Step, Sweep};

use super::caches::table_bytes;
use super::window;
use super::{Context, Limits, StudyError};
use crate::block_checks::CacheFacts;
use crate::calibrate::with;
use crate::event::{Event, Listener, TestPosition};
use crate::figures::{Identity, limit_figures, output};
use crate::limit::Bracket;
use crate::parallel::{self, Counted, Processes};
use crate::sizes;
use crate::sweep::{Points, Swept, next_jobs};
use crate::test::{Request, TestError, run_test};
use crate::visible;

/// Why a test has no limit.
const NO_LIMIT: &str = "the limit of the log is measured for workloads that are defined by their redo";
/// Time that a test takes besides warm-up and window, s: loading, sessions, counters.
const AROUND_S: f64 = 0.6;
/// Steps that an automatic sweep has, as far as nothing is known yet.
const TYPICAL_STEPS: f64 = 4.0;

/// A test of a sweep.
struct Point {
    jobs: u32,
    /// Value of the parameter over which the workload is swept, if it is.
    value: Option<Value>,
}

/// A value of the parameter over which a workload is swept.
#[derive(Clone, Copy)]
struct Value {
    name: &'static str,
    value: i64,
    /// Column that shows it.
    column: &'static Column,
}

/// What was asked before a test.
struct Before {
    evidence: Option<i64>,
    unchanged: Vec<Result<Option<i64>, String>>,
}

/// What a load before a test failed with, as what the test failed with.
fn loading(e: StudyError, failed: &dyn Fn(TargetError) -> StudyError) -> StudyError {
    match e {
        StudyError::Target(e) => failed(e),
        e => e,
    }
}

impl Context {
    /// Measures everything that is not there yet. Repetitions are the outermost loop, so that
    /// they lie far apart in time.
    pub(super) fn measure(&mut self, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let plan = self.manifest.plan.clone();
        let mut prepared: BTreeMap<String, Arc<Work>> = BTreeMap::new();
        for repetition in 1..=plan.repeat {
            for (index, workload) in plan.workloads.iter().enumerate() {
                while let Some(Point { jobs, value }) = self.next(workload, repetition) {
                    if self.stopped() {
                        return Err(StudyError::Interrupted);
                    }
                    if !prepared.contains_key(&workload.code) {
                        let work = self.prepare(workload, listener)?;
                        prepared.insert(workload.code.clone(), work);
                    }
                    let Some(work) = prepared.get(&workload.code) else { continue };
                    let (left_s, left_exact) = self.left(index, repetition);
                    let position = TestPosition {
                        test: self.records.iter().map(|r| r.test).max().unwrap_or(0) + 1,
                        workload: workload.code.clone(),
                        jobs,
                        repetition,
                        repeat: plan.repeat,
                        left_s,
                        left_exact,
                    };
                    let work = self.at_point(workload, &Arc::clone(work), value)?;
                    self.one_test(workload, &work, position, value.map(|v| v.column), listener)?;
                }
                if let Some(work) = prepared.get(&workload.code).filter(|_| repetition == plan.repeat) {
                    self.make_room(work, listener);
                }
            }
        }
        Ok(())
    }

    /// Tests of a workload and repetition that are there.
    fn done<'a>(&'a self, code: &'a str, repetition: u32) -> impl Iterator<Item = &'a TestRecord> {
        self.records.iter().filter(move |r| r.workload == code && r.repetition == repetition)
    }

    /// The work with a value of the parameter over which it is swept.
    fn at_point(
        &self,
        workload: &PlannedWorkload,
        work: &Arc<Work>,
        value: Option<Value>,
    ) -> Result<Arc<Work>, StudyError> {
        if !matches!(work.workload.sweep, Sweep::Parameter { .. }) {
            return Ok(Arc::clone(work));
        }
        let work = match value {
            Some(value) => Arc::new(with(work, &[(value.name.to_owned(), value.value)].into())),
            None => Arc::clone(work),
        };
        // The procedure is that of the value before.
        if workload.driver == Driver::Database {
            self.target.abilities().driver()?.install(&work)?;
        }
        Ok(work)
    }

    /// The test that a workload needs next in this repetition. Later repetitions repeat the job counts that
    /// the first one found.
    fn next(&self, workload: &PlannedWorkload, repetition: u32) -> Option<Point> {
        let found = loadline_workload::find(&workload.code).ok()?;
        let jobs = |jobs: u32| Point { jobs, value: None };
        let points = Points::of(workload);
        let next_of_jobs = || points.over_jobs.then(|| self.next_jobs(workload, repetition).map(jobs)).flatten();
        let Some(Swept { name, values, column }) = &points.parameter else {
            let once = || self.done(&workload.code, repetition).next().is_none().then(|| jobs(1));
            return if points.over_jobs { next_of_jobs() } else { once() };
        };
        let done = |v: &&i64| {
            let of_value = |r: &TestRecord| r.swept.is_some() && r.parameters.get(*name) == Some(*v);
            !self.done(&workload.code, repetition).any(of_value)
        };
        let given = workload.parameters.contains_key(*name);
        let most = if found.workers == Some(*name) { self.max_parallel_workers(given) } else { i64::MAX };
        let value = values.iter().filter(|v| **v <= most).find(done);
        value.map(|v| Point { jobs: 1, value: Some(Value { name, value: *v, column }) }).or_else(next_of_jobs)
    }

    /// The job count that a sweep over jobs needs next.
    fn next_jobs(&self, workload: &PlannedWorkload, repetition: u32) -> Option<u32> {
        let of_jobs = |repetition| self.done(&workload.code, repetition).filter(|r| r.swept.is_none());
        let first_missing =
            |wanted: &[u32]| wanted.iter().copied().find(|j| !of_jobs(repetition).any(|r| r.jobs == *j));
        match &self.manifest.plan.jobs {
            Jobs::List(list) => first_missing(list),
            Jobs::Auto { .. } if repetition > 1 => first_missing(&of_jobs(1).map(|r| r.jobs).collect::<Vec<u32>>()),
            Jobs::Auto { .. } => {
                let points: Vec<(u32, f64)> =
                    of_jobs(1).map(|r| (r.jobs, r.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0))).collect();
                next_jobs(&points, self.max_jobs)
            }
        }
    }

    /// Seconds that the rest of the run takes, this test included, and whether that is exact.
    fn left(&self, index: usize, repetition: u32) -> (f64, bool) {
        let plan = &self.manifest.plan;
        let (steps, exact) = match &plan.jobs {
            Jobs::List(list) => (list.len() as f64, true),
            Jobs::Auto { .. } => (TYPICAL_STEPS, false),
        };
        let all: Vec<f64> = plan.workloads.iter().map(|w| Points::of(w).count(steps)).collect();
        let done = plan.workloads.get(index).map_or(0, |w| self.done(&w.code, repetition).count());
        let here = (all.get(index).copied().unwrap_or(1.0) - done as f64).max(1.0);
        let later: f64 = all.iter().skip(index + 1).sum();
        let repeated = all.iter().sum::<f64>() * f64::from(plan.repeat.saturating_sub(repetition));
        ((here + later + repeated) * (plan.duration_s + plan.warmup_s + AROUND_S), exact)
    }

    /// Redo per transaction that the test's limit is measured with, bytes: what calibration saw.
    fn redo_bytes(&self, work: &Work) -> Result<f64, String> {
        let calibrated = self.manifest.calibration.get(work.workload.code).and_then(|c| c.redo_bytes_per_tx);
        calibrated.ok_or_else(|| "the redo of its transactions is not known before the test".to_owned())
    }

    /// First half of the limit of a test, if the reference log writer measures it.
    fn limit_before(&self, work: &Work, jobs: u32) -> Result<Option<Bracket>, String> {
        if work.workload.redo.is_none() {
            return Err(NO_LIMIT.to_owned());
        }
        match &self.limits {
            Limits::Reference(reference) => reference.before(work, self.redo_bytes(work)?, jobs).map(Some),
            Limits::Points(_) => Ok(None),
            Limits::None(reason) => Err(reason.clone()),
        }
    }

    /// The limit of a test that is done.
    fn limit_after(
        &self,
        half: Result<Option<Bracket>, String>,
        record: &TestRecord,
        work: &Work,
    ) -> Result<TestLimit, String> {
        match (half?, &self.limits) {
            (Some(half), Limits::Reference(reference)) => reference.after(half),
            (_, Limits::Points(points)) => {
                let seen = record.figure(column::REDO_BYTES_PER_TX).ok_or("the redo of its transactions is not known");
                let redo = self.redo_bytes(work).or(seen)?;
                let mix = work.program.varies().then_some(work.workload.code);
                LogWriterPoint::limit(points, mix, work.program.commit == Commit::Wait, redo, record.jobs)
            }
            _ => Err("it was not measured".to_owned()),
        }
    }

    fn identity(
        &self,
        workload: &PlannedWorkload,
        work: &Work,
        position: &TestPosition,
        before: &Before,
        evidence_after: Result<Option<i64>, TargetError>,
    ) -> Identity {
        let forced: Vec<String> = self.forced.iter().chain(workload.forced.iter()).cloned().collect();
        Identity {
            platform: self.manifest.plan.platform.clone(),
            run: self.manifest.run.clone(),
            test: position.test,
            repetition: position.repetition,
            target: self.manifest.target.url.clone(),
            forced: (!forced.is_empty()).then(|| forced.join("; ")),
            evidence_before: before.evidence,
            evidence_after: evidence_after.map_err(|e| e.to_string()),
            consistency: self.consistency(work, before),
            data_bytes: self.data_bytes(work),
            cache: CacheFacts::default(),
            counter_lag_s: self.target.facts().counter_lag_s,
            cpus: self.manifest.machine.cpus,
        }
    }

    /// Result of a query about the workload's tables; `None` if the target answers none.
    fn integer(&self, work: &Work, query: &str) -> Result<Option<i64>, TargetError> {
        self.target.abilities().queries.map(|q| q.integer(work, query)).transpose()
    }

    /// Asks what a test is held against, before it.
    fn before(&self, work: &Work) -> Result<Before, TargetError> {
        let ask = |query| self.integer(work, query).map_err(|e| format!("before the test: {e}"));
        let unchanged = work.workload.unchanged.iter().map(|c| ask(c.query));
        Ok(Before { evidence: self.target.evidence(work)?, unchanged: unchanged.collect() })
    }

    /// Whether what must hold after a test holds: by how much each query is off.
    fn consistency(&self, work: &Work, before: &Before) -> Vec<(&'static str, Result<Option<i64>, String>)> {
        let ask = |query: &str| self.integer(work, query).map_err(|e| e.to_string());
        let absolute = work.workload.consistency.iter().map(|c| (c.what, ask(c.query)));
        let off = |(query, before): (&str, &Result<Option<i64>, String>)| {
            Ok(ask(query)?.zip(before.clone()?).map(|(now, was)| now - was))
        };
        let unchanged = work.workload.unchanged.iter().zip(&before.unchanged);
        absolute.chain(unchanged.map(|(c, was)| (c.what, off((c.query, was))))).collect()
    }

    /// Bytes of the tables that a transaction works through as a whole.
    fn data_bytes(&self, work: &Work) -> Result<Option<f64>, String> {
        let Some(volume) = work.workload.volume.map(|of| of(&work.params)) else { return self.bulk_bytes(work) };
        let mut sum = 0.0;
        for table in volume.tables {
            match table_bytes(self.target.as_ref(), work, table).map_err(|e| e.to_string())? {
                Some(bytes) => sum += bytes as f64,
                None => return Err("the target does not say how large its tables are".to_owned()),
            }
        }
        Ok((!volume.tables.is_empty()).then_some(sum * volume.share))
    }

    /// Bytes that the rows take which a transaction adds in bulk, or to the only table there is.
    fn bulk_bytes(&self, work: &Work) -> Result<Option<f64>, String> {
        let bulk = work.program.body.iter().find_map(|step| match step {
            Step::Bulk { table, rows } => Some((work.workload.tables.get(*table)?, u64::from(*rows))),
            _ => None,
        });
        let only = match work.workload.tables {
            [table] if table.rows == RowCount::Empty => Some((table, work.program.rows_changed_per_tx())),
            _ => None,
        };
        let Some((table, rows)) = bulk.or(only) else { return Ok(None) };
        let count = format!("SELECT COUNT(*) FROM {{{}}}", table.name);
        let there = self.integer(work, &count).map_err(|e| e.to_string())?;
        let bytes = table_bytes(self.target.as_ref(), work, table.name).map_err(|e| e.to_string())?;
        match bytes.zip(there.filter(|n| *n > 0)) {
            Some((bytes, there)) => Ok(Some(bytes as f64 / there as f64 * rows as f64)),
            None => Err("the target does not say how large its tables are".to_owned()),
        }
    }

    /// A scan of sizes, which takes as long as its transactions do.
    fn one_scan(
        &mut self,
        workload: &PlannedWorkload,
        work: &Arc<Work>,
        scan: SizeScan,
        position: &TestPosition,
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        let test = position.test;
        let failed = |source| StudyError::Test { test, workload: workload.code.clone(), jobs: 1, source };
        let gone = |e: TargetError| failed(TestError::Target(e));
        self.load_again(work, 1, listener).map_err(|e| loading(e, &gone))?;
        self.target.reset(work, workload.driver).map_err(gone)?;
        let unsettled = self.target.settle().map_err(gone)?;
        let before = self.before(work).map_err(gone)?;
        let mark = self.native_mark();
        let mut last = None;
        let scanned = sizes::scan(&self.target, work, scan, &self.interrupted, |done, all| {
            let percent = done * 100 / all.max(1);
            if last != Some(percent) {
                last = Some(percent);
                listener.on(Event::Step(format!(
                    "test {:>2}  {}: {percent} % of {all} samples",
                    position.test, workload.code
                )));
            }
        })
        .map_err(failed)?;
        let identity = self.identity(workload, work, position, &before, self.target.evidence(work));
        let mut output = sizes::output(self.target.as_ref(), work, &scanned, &identity);
        output.record.notes.extend(unsettled);
        self.attach_report(mark, &mut output, listener);
        self.folder.append(&output)?;
        listener.on(Event::TestDone(&output.record));
        self.records.push(output.record);
        Ok(())
    }

    fn one_test(
        &mut self,
        workload: &PlannedWorkload,
        work: &Arc<Work>,
        position: TestPosition,
        swept: Option<&Column>,
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        let plan = &self.manifest.plan;
        let (test, jobs) = (position.test, position.jobs);
        let failed = |source| StudyError::Test { test, workload: workload.code.clone(), jobs, source };
        let gone = |e: TargetError| failed(TestError::Target(e));
        listener.on(Event::TestStarted(position.clone()));
        let cache_bytes = self.set_cache(work).map_err(gone)?;
        if let Some(scan) = work.workload.scan {
            return self.one_scan(workload, work, scan, &position, listener);
        }
        self.load_again(work, jobs, listener).map_err(|e| loading(e, &gone))?;
        self.target.reset(work, workload.driver).map_err(gone)?;
        let half = self.limit_before(work, jobs);
        let unsettled = self.target.settle().map_err(gone)?;
        let before = self.before(work).map_err(gone)?;
        // Outside the test: taking it is work of its own.
        let mark = self.native_mark();
        let tried = work.parallel_workers().map(|n| (n, self.try_parallel(work).map_err(|e| e.to_string())));
        let duration_s = window::of(plan.duration_s, &self.records, work.workload.code, jobs, self.longer);
        let request = Request {
            target: Arc::clone(&self.target),
            work: Arc::clone(work),
            driver: workload.driver,
            jobs,
            warmup_s: plan.warmup_s,
            duration_s,
            rate_tps: visible::rate(work, plan.rate_tps),
            cpu: self.cpu,
            disk: self.disk.clone(),
            data_disk: self.data_disk.clone(),
            interrupted: Arc::clone(&self.interrupted),
        };
        let caches = self.ready_caches(work, cache_bytes).map_err(gone)?;
        let (total_s, mut last) = (plan.warmup_s + duration_s, (0.0, 0));
        let measured = run_test(&request, |elapsed_s, completed| {
            let seconds = elapsed_s - last.0;
            let tps = if seconds > 0.0 { completed.saturating_sub(last.1) as f64 / seconds } else { 0.0 };
            last = (elapsed_s, completed);
            let closed = request.rate_tps.is_none();
            let latency_ms = (closed && tps > 0.0).then(|| f64::from(jobs) / tps * 1e3);
            listener.on(Event::Progress { position: position.clone(), elapsed_s, total_s, tps, latency_ms });
        })
        .map_err(failed)?;
        let (cache, about_caches) = caches.end();
        let evidence_after = self.target.evidence(work);
        let lost = measured.jobs.iter().find_map(|j| j.lost.clone());
        if let (Some(lost), Err(_)) = (lost, self.target.info()) {
            // The server is gone, not just a session: the test can be repeated when it is back.
            return Err(failed(TestError::Target(TargetError::Lost(lost))));
        }
        let mut identity = self.identity(workload, work, &position, &before, evidence_after);
        identity.cache = cache;
        let mut output = output(&request, &measured, &identity);
        output.record.swept = swept.map(|c| c.id.to_owned());
        if let Some(longer) = window::longer(&output.record, duration_s, self.longer.is_some()) {
            listener.on(Event::Step(format!(
                "test {test}: transactions are too long for the window, it is made again with {longer:.0} s"
            )));
            self.longer = Some(longer);
            let again = self.one_test(workload, work, position, swept, listener);
            self.longer = None;
            return again;
        }
        output.record.notes.extend(window::note(duration_s, plan.duration_s));
        output.record.notes.extend(window::coarse(&output.record));
        let limit = self.limit_after(half, &output.record, work);
        limit_figures(&mut output.record, limit);
        let counted = parallel::counted(&output.snapshots);
        self.parallel(&mut output.record, tried, counted);
        output.record.notes.extend(visible::other_rate(work, self.manifest.plan.rate_tps));
        output.record.notes.extend(unsettled);
        output.record.notes.extend(about_caches);
        self.attach_report(mark, &mut output, listener);
        self.folder.append(&output)?;
        listener.on(Event::TestDone(&output.record));
        self.records.push(output.record);
        Ok(())
    }

    /// Whether the processes that a query asks for came, and what they were good for.
    fn parallel(
        &self,
        record: &mut TestRecord,
        tried: Option<(u32, Result<Option<ParallelWorkers>, String>)>,
        counted: Option<Counted>,
    ) {
        let Some((asked, tried)) = tried else {
            return record.leave_out(column::SPEED_UP, "its queries are not run in parallel");
        };
        let cpus = self.manifest.target.local.then_some(self.manifest.machine.cpus);
        let queries = record.figure(column::COMMITS).unwrap_or(0.0);
        let processes = Processes { asked, tried, waits: &record.waits, counted, jobs: record.jobs, queries, cpus };
        let check = parallel::check(&processes);
        record.add_check(check);
        parallel::speed_up(record, &self.records);
        if let Ok(Some(WorkerLimit { workers: most, because })) = self.worker_limit() {
            record.notes.push(format!(
                "at most {most} processes do a query together on this server ({because}): a sweep over workers ends there"
            ));
        }
    }

    /// The most workers of a sweep over them; a number that the user gives is not held against it, so that
    /// the test says what came of it.
    fn max_parallel_workers(&self, given: bool) -> i64 {
        let limit = if given { None } else { self.worker_limit().ok().flatten() };
        limit.map_or(i64::MAX, |limit| limit.workers.into())
    }

    fn worker_limit(&self) -> Result<Option<WorkerLimit>, TargetError> {
        self.target.abilities().parallel_queries.map_or(Ok(None), |p| p.max_parallel_workers())
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        self.target.abilities().parallel_queries.map_or(Ok(None), |p| p.try_parallel(work))
    }

    /// The mark from which the database's own report will be made, if one was asked for.
    fn native_mark(&self) -> Result<Option<i64>, String> {
        let reports = self.target.abilities().native_reports.filter(|_| self.manifest.plan.native_report);
        reports.map(|r| r.native_mark().map_err(|e| e.to_string())).transpose()
    }

    /// Adds the database's own report since `mark`. A test whose report could not be had holds all the
    /// same; it says so.
    fn attach_report(&self, mark: Result<Option<i64>, String>, output: &mut TestOutput, listener: &mut dyn Listener) {
        let report = match mark {
            Ok(None) => return,
            Ok(Some(mark)) => self.native_report(mark),
            Err(why) => Err(why),
        };
        match report {
            Ok(report) => output.native = Some(report),
            Err(why) => {
                let text = format!("the database's own report of test {} is missing: {why}", output.record.test);
                listener.on(Event::Warning(text.clone()));
                output.record.notes.push(text);
            }
        }
    }

    fn native_report(&self, mark: i64) -> Result<NativeFile, String> {
        let kind = kind_of(&self.manifest.plan.target).map_err(|e| e.to_string())?;
        let report = kind.native_report.ok_or_else(|| format!("{} makes none", kind.product))?;
        let reports = self.target.abilities().native_reports.ok_or("this target makes no reports of its own")?;
        let text = reports.native_report(mark).map_err(|e| e.to_string())?;
        Ok(NativeFile { folder: report.folder.to_owned(), extension: report.extension.to_owned(), text })
    }
}
