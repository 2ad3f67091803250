//! The tests of a plan, one after another: which one is next.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_database::Work;
use loadline_model::plan::{Jobs, PlannedWorkload};
use loadline_model::{Column, Driver, TestRecord, column};
use loadline_workload::Sweep;

use super::execute::OneTest;
use super::{Context, StudyError};
use crate::calibrate::with;
use crate::event::{Listener, TestPosition};
use crate::plan::length::Length;
use crate::plan::sweep::{Points, Swept, next_jobs};

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

impl Context {
    /// Measures everything that is not there yet. Repetitions are the outermost loop, so that
    /// they lie far apart in time.
    pub(super) fn measure(&mut self, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let plan = self.manifest.plan.clone();
        let length = Length::of(&plan);
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
                    let made = self.done(&workload.code, repetition).count();
                    let position = TestPosition {
                        test: self.records.iter().map(|r| r.test).max().unwrap_or(0) + 1,
                        workload: workload.code.clone(),
                        jobs,
                        repetition,
                        repeat: plan.repeat,
                        left_s: length.left_s(repetition, index, made),
                        left_exact: length.exact,
                    };
                    let work = self.at_point(workload, &Arc::clone(work), value)?;
                    let swept = value.map(|v| v.column);
                    OneTest { workload, work, position, swept }.measure(self, listener)?;
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
        let most = if found.workers() == Some(*name) { self.max_parallel_workers(given) } else { i64::MAX };
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

    /// The most workers of a sweep over them; a number that the user gives is not held against it, so that
    /// the test says what came of it.
    fn max_parallel_workers(&self, given: bool) -> i64 {
        let limit = self.target.abilities().parallel_queries.filter(|_| !given);
        let limit = limit.and_then(|parallel| parallel.max_parallel_workers().ok()?);
        limit.map_or(i64::MAX, |limit| limit.workers.into())
    }
}
