//! The order of a plan's tests.

use std::sync::Arc;

use loadline_database::{TargetError, Work};
use loadline_model::live::LiveTest;
use loadline_model::plan::{Jobs, PlannedWorkload};
use loadline_model::{Driver, TestRecord, column};
use loadline_workload::Sweep;

use super::measure::PlannedTest;
use super::refused::Refused;
use super::{Context, StudyError, spread};
use crate::calibrate::with;
use crate::plan::duration::DurationEstimate;
use crate::plan::sweep::{SweepPoints, SweptParameter, next_jobs};

struct SweepPoint {
    nodes: u32,
    jobs: u32,
    value: Option<i64>,
    /// The test that is measured again.
    try_of: Option<u32>,
}

impl Context<'_> {
    /// Runs all tests that have no record yet; then those once more that are still disturbed, as far as time allows.
    pub(super) fn measure(&mut self) -> Result<(), StudyError> {
        self.measure_missing()?;
        if self.has_due_at_end() { self.measure_missing() } else { Ok(()) }
    }

    /// Runs all tests that have no record yet, or are due again. Repetitions are the outermost loop: far apart in time.
    fn measure_missing(&mut self) -> Result<(), StudyError> {
        let plan = self.manifest.plan.clone();
        // Tables that are not needed any more were dropped.
        self.works.clear();
        if let Some(paired) = &plan.paired {
            return self.measure_in_pairs(&plan, paired);
        }
        let length = DurationEstimate::new(&plan);
        let all_nodes = self.side.target.facts().clone();
        for repetition in 1..=plan.repeat {
            for (index, workload) in plan.workloads.iter().enumerate() {
                let key = (0, workload.code.clone());
                while let Some(point) =
                    self.point_again(workload, repetition).or_else(|| self.next_point(workload, repetition))
                {
                    self.unless_stopped()?;
                    if self.left_lost_nodes()? {
                        continue;
                    }
                    let Some(work) = self.prepared(workload, 0, Refused::Whole)? else { break };
                    let of = |r: &&TestRecord| r.workload == workload.code && r.repetition == repetition;
                    let made = self.records.iter().filter(of).count();
                    let position = LiveTest {
                        test: self.next_test(),
                        workload: workload.code.clone(),
                        jobs: point.jobs,
                        repetition,
                        repeat: plan.repeat,
                        arm: None,
                        try_of: point.try_of,
                        left_s: self.left_s(length.left_s(repetition, index, made)),
                        left_exact: length.exact,
                    };
                    self.measure_point(workload, &work, point, position)?;
                }
                let is_over =
                    repetition == plan.repeat && (self.tries.is_end || !self.may_be_tried_again(&workload.code));
                if is_over && let Some(work) = self.works.get(&key).cloned() {
                    self.drop_unneeded_tables(&work);
                }
            }
        }
        // Of the plan: tests that are measured once more were all measured.
        if !self.tries.is_end && !plan.node_counts().is_empty() {
            self.left_out = self.not_measured(&all_nodes);
        }
        Ok(())
    }

    /// Measures a point of a sweep. If the server refuses it, it and those beyond it are left out.
    fn measure_point(
        &mut self,
        workload: &PlannedWorkload,
        work: &Work,
        SweepPoint { nodes, jobs, value, try_of }: SweepPoint,
        position: LiveTest,
    ) -> Result<(), StudyError> {
        let swept = SweepPoints::new(&self.known, workload).parameter.zip(value);
        let beyond = swept.as_ref().map_or(Refused::Jobs(jobs), |(of, value)| Refused::Value(of.name.clone(), *value));
        let work = match self.at_point(workload, work, swept.as_ref()) {
            Ok(work) => Arc::new(Work { nodes: Some(nodes), ..work }),
            Err(e) => return self.leave_out_refused(workload, beyond, e.into()),
        };
        let number = position.test;
        let swept = swept.map(|(of, _)| of.column);
        let test = PlannedTest { workload, work, position, swept, in_pair: None };
        if let Err(e) = test.measure(self) {
            // A test whose jobs could not even connect has no record: it is made over the nodes that are left.
            let is_of_test = matches!(e, StudyError::Test { .. }) && !self.stopped();
            if !is_of_test || !self.left_lost_nodes()? {
                return self.leave_out_refused(workload, beyond, e);
            }
        }
        self.judge_try(number, try_of);
        Ok(())
    }

    /// Recorded tests of a workload over so many nodes in a repetition.
    fn done<'a>(&'a self, code: &'a str, repetition: u32, nodes: u32) -> impl Iterator<Item = &'a TestRecord> {
        // Without numbers of nodes, each test is made once, over all nodes that there are then.
        let all = self.manifest.plan.node_counts().is_empty();
        let over = move |r: &TestRecord| if all { r.nodes >= nodes } else { r.nodes == nodes };
        self.records.iter().filter(move |r| r.workload == code && r.repetition == repetition && over(r))
    }

    /// Next test of a workload in this repetition: those of a single job first, then the sweep over jobs on the fewest nodes.
    fn next_point(&self, workload: &PlannedWorkload, repetition: u32) -> Option<SweepPoint> {
        if self.tries.is_end {
            return None;
        }
        let points = SweepPoints::new(&self.known, workload);
        let point = |nodes, jobs, value| SweepPoint { nodes, jobs, value, try_of: None };
        let value = points.parameter.as_ref().and_then(|swept| self.next_value(workload, swept, repetition));
        if value.is_some() {
            return Some(point(1, 1, value));
        }
        if points.over_jobs {
            let counts = spread::counts(&self.known, &self.manifest.plan, workload, self.side.target.facts());
            let next = |nodes| Some(point(nodes, self.next_jobs(workload, repetition, nodes)?, None));
            return counts.into_iter().find_map(next);
        }
        let is_done = points.parameter.is_some() || self.done(&workload.code, repetition, 1).next().is_some();
        (!is_done && !self.refused.leaves_out(&workload.code, 1, None, None)).then(|| point(1, 1, None))
    }

    /// The point of a test of a workload in this repetition that is due again.
    fn point_again(&mut self, workload: &PlannedWorkload, repetition: u32) -> Option<SweepPoint> {
        let is_meant = |r: &TestRecord| r.workload == workload.code && r.repetition == repetition;
        let (first, record) = self.due_again(is_meant)?;
        // Over fewer nodes it would be another test.
        if record.nodes > self.side.target.facts().nodes {
            self.tries.end_try();
            return None;
        }
        let is_swept = record.swept().is_some();
        let swept = if is_swept { SweepPoints::new(&self.known, workload).parameter } else { None };
        let value = swept.and_then(|of| record.parameters.get(&of.name).copied());
        Some(SweepPoint { nodes: record.nodes, jobs: record.jobs, value, try_of: Some(first) })
    }

    /// The work with a value of the swept parameter.
    fn at_point(
        &self,
        workload: &PlannedWorkload,
        work: &Work,
        swept: Option<&(SweptParameter, i64)>,
    ) -> Result<Work, TargetError> {
        let work = swept.map_or_else(|| work.clone(), |(of, value)| with(work, &[(of.name.clone(), *value)].into()));
        // The installed procedure still has the previous value.
        if matches!(work.workload.sweep, Sweep::Parameter { .. }) && workload.driver == Driver::Database {
            self.side.target.abilities().driver()?.install(&work)?;
        }
        Ok(work)
    }

    /// Next value of the swept parameter.
    fn next_value(
        &self,
        workload: &PlannedWorkload,
        SweptParameter { name, values, .. }: &SweptParameter,
        repetition: u32,
    ) -> Option<i64> {
        let found = self.known.find(&workload.code).ok()?;
        let done = |v: &&i64| {
            let of_value = |r: &TestRecord| r.swept().is_some() && r.parameters.get(name) == Some(*v);
            !self.done(&workload.code, repetition, 1).any(of_value)
        };
        let given = workload.parameters.contains_key(name);
        let most = if found.workers.as_ref() == Some(name) { self.max_parallel_workers(given) } else { i64::MAX };
        let left_in = |v: &&i64| **v <= most && !self.refused.leaves_out(&workload.code, 1, Some(**v), None);
        values.iter().filter(left_in).find(done).copied()
    }

    /// Next job count of a sweep on so many nodes, at least one for each. Later repetitions use the job counts of the first.
    pub(super) fn next_jobs(&self, workload: &PlannedWorkload, repetition: u32, nodes: u32) -> Option<u32> {
        let of_jobs = |repetition| self.done(&workload.code, repetition, nodes).filter(|r| r.swept().is_none());
        let wanted = |jobs: &u32| *jobs >= nodes && !self.refused.leaves_out(&workload.code, *jobs, None, None);
        let first_missing =
            |list: &[u32]| list.iter().copied().find(|j| wanted(j) && !of_jobs(repetition).any(|r| r.jobs == *j));
        let next = match &self.manifest.plan.jobs {
            Jobs::List(_) => first_missing(&self.manifest.plan.jobs_over(nodes).unwrap_or_default()),
            Jobs::Auto { .. } if repetition > 1 => first_missing(&of_jobs(1).map(|r| r.jobs).collect::<Vec<u32>>()),
            Jobs::Auto { .. } => {
                // Jobs per node: 1, 2, 4 …
                let tps = |r: &TestRecord| r.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0);
                let points: Vec<(u32, f64)> = of_jobs(1).map(|r| (r.jobs / nodes, tps(r))).collect();
                next_jobs(&points, (self.side.max_jobs / nodes).max(1)).map(|jobs| jobs * nodes)
            }
        };
        next.filter(wanted)
    }

    /// Maximum number of parallel workers of a sweep. One given by the user is not limited: the test reports how many came.
    fn max_parallel_workers(&self, given: bool) -> i64 {
        let limit = if given { None } else { self.side.target.abilities().parallel_queries };
        let limit = limit.and_then(|parallel| parallel.max_parallel_workers().ok()?);
        limit.map_or(i64::MAX, |limit| limit.workers.into())
    }
}
