//! Runs one test of a plan, in a straight line: prepare, measure, evidence, test, store. `measure.rs` has the steps.

use std::sync::Arc;

use loadline_database::{RemainingNodes, Work};
use loadline_model::live::LiveTest;
use loadline_model::plan::PlannedWorkload;
use loadline_model::{Column, InPair};
use loadline_store::TestOutput;

use super::level::TestUnderLevels;
use super::{Context, StudyError};
use crate::{record, steps};

/// A test to run.
pub(super) struct PlannedTest<'a> {
    pub(super) workload: &'a PlannedWorkload,
    pub(super) work: Arc<Work>,
    pub(super) position: LiveTest,
    /// Column of the swept parameter; `None` for a sweep over jobs.
    pub(super) swept: Option<&'static Column>,
    /// Its place in a run of pairs.
    pub(super) in_pair: Option<InPair>,
    /// What is known of replication, in a run of levels.
    pub(super) level: Option<TestUnderLevels>,
}

impl PlannedTest<'_> {
    /// Runs and stores the test.
    pub(super) fn measure(&self, context: &mut Context<'_>) -> Result<(), StudyError> {
        let (output, remaining) = match &self.work.workload.scan {
            Some(scan) => (self.scan(context, scan)?, None),
            None => self.jobs(context)?,
        };
        self.store(context, output, remaining)
    }

    /// Runs jobs in a window, and again in a longer one if it was too short. Also returns what is left of a target that lost nodes.
    fn jobs(&self, context: &mut Context<'_>) -> Result<(TestOutput, Option<RemainingNodes>), StudyError> {
        let mut prepared = self.prepare(context, None)?;
        let mut ended = self.run_jobs(context, &mut prepared)?;
        if let Some(longer_s) = ended.needs_longer_s(&prepared) {
            let test = self.position.test;
            context.step(format!(
                "test {test}: the window is too short for the transactions; repeating the test with {longer_s:.0} s"
            ));
            prepared = self.prepare(context, Some(longer_s))?;
            ended = self.run_jobs(context, &mut prepared)?;
        }
        let run = self.run_context(context, prepared.cache_bytes);
        let instruments = std::mem::take(&mut ended.instruments);
        let mut evidence = self.evidence(context, &run, &prepared, &ended, instruments);
        // A limit is that of the work that the jobs did, which their figures say.
        let figures = steps::figures_of(&evidence);
        evidence.seen.instruments.complete(&prepared.request, &run, &figures);
        let (native, missing) = self.report(context, ended.mark.clone());
        let evidence = evidence.and_remarks(missing);
        let test = steps::with_checks(figures, &evidence);
        let mut output = record::of_jobs(&evidence, test, self.identity(context), native);
        if let Some(activity) = &mut output.activity {
            ended.views.add_to(activity);
        }
        Ok((output, ended.remaining))
    }
}
