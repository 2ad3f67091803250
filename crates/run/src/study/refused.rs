//! What the server refuses for one workload does not end the run: the workload is left out with the reason, and the rest is measured.

use std::sync::Arc;

use loadline_database::{TargetError, Work};
use loadline_load::TestError;
use loadline_model::format::counted;
use loadline_model::plan::{PlannedWorkload, SkippedWorkload};
use loadline_model::variant::Letter;

use super::{Context, StudyError, full_disk};
use crate::event::Event;

/// What of a workload the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// All of it.
    Whole,
    /// Tests with so many jobs, and so those with more.
    Jobs(u32),
    /// A value of the swept parameter.
    Value(String, i64),
    /// One of several arms that are compared with the first, in tests with so many jobs and more.
    Arm(Letter, u32),
}

/// What the server refused while the run went on.
#[derive(Default)]
pub(super) struct Refusals {
    all: Vec<(SkippedWorkload, Refused)>,
    /// The first one: the run's error, if nothing at all could be measured.
    first: Option<StudyError>,
}

impl Refusals {
    /// Whether a test of `code` with so many jobs, or with this value of the swept parameter, is left out.
    pub(super) fn leaves_out(&self, code: &str, jobs: u32, value: Option<i64>) -> bool {
        let of_test = |refused: &Refused| match refused {
            Refused::Whole => true,
            Refused::Jobs(from) => value.is_none() && jobs >= *from,
            Refused::Value(_, refused) => value == Some(*refused),
            Refused::Arm(..) => false,
        };
        self.all.iter().any(|(skipped, refused)| skipped.code == code && of_test(refused))
    }

    /// Whether the pairs of `code` with so many jobs of the first arm and this one are left out.
    pub(super) fn leaves_out_arm(&self, code: &str, jobs: u32, other: Letter) -> bool {
        let of_arm = |refused: &Refused| matches!(refused, Refused::Arm(arm, from) if *arm == other && jobs >= *from);
        let mut of_arms = self.all.iter().filter(|(skipped, _)| skipped.code == code);
        self.leaves_out(code, jobs, None) || of_arms.any(|(_, refused)| of_arm(refused))
    }

    /// What was left out, and the error of a run that measured nothing.
    pub(super) fn take(&mut self) -> (Vec<SkippedWorkload>, Option<StudyError>) {
        (std::mem::take(&mut self.all).into_iter().map(|(skipped, _)| skipped).collect(), self.first.take())
    }
}

/// Whether a full disk is why, if the server refused what it was asked, or no rate meets the objective; `None` for other failures. A lost
/// session is no refusal, as the server may have started anew, unless a full disk ended it.
fn is_full_disk(failure: &StudyError) -> Option<bool> {
    match failure {
        StudyError::Objective(_) => Some(false),
        StudyError::Target(e) | StudyError::Test { source: TestError::Target(e), .. } => {
            let refused = matches!(e, TargetError::Server(_) | TargetError::Unsupported(_) | TargetError::NoSpace(_));
            refused.then(|| e.is_full_disk())
        }
        _ => None,
    }
}

impl Context<'_> {
    /// The workload, prepared; `None` if the server refuses it: then what is `refused` is left out.
    ///
    /// # Errors
    /// If the run cannot go on.
    pub(super) fn prepare_or_leave_out(
        &mut self,
        workload: &PlannedWorkload,
        refused: Refused,
    ) -> Result<Option<Arc<Work>>, StudyError> {
        match self.prepare(workload) {
            Ok(work) => Ok(Some(work)),
            Err(e) => self.leave_out_refused(workload, refused, e).map(|()| None),
        }
    }

    /// Leaves out of `workload` what was `refused` if `failure` is the server's refusal and the server still answers. Drops the
    /// tables of one that is left out as a whole, and a data set that is not complete, if a disk is full: they may be what filled it.
    ///
    /// # Errors
    /// `failure`, if it is of another kind.
    pub(super) fn leave_out_refused(
        &mut self,
        workload: &PlannedWorkload,
        refused: Refused,
        failure: StudyError,
    ) -> Result<(), StudyError> {
        let work = self.work(workload, &Default::default()).ok();
        let Some(full_disk) = is_full_disk(&failure).filter(|_| !self.stopped() && self.side.target.info().is_ok())
        else {
            return Err(failure);
        };
        let failure = full_disk::explained(failure, self.side.target.as_ref(), &self.side.info);
        if self.tries.end_try() {
            self.warn(format!("{}: a disturbed test could not be measured again: {failure}", workload.code));
            return Ok(());
        }
        let why = match &failure {
            StudyError::Test { source, .. } => source.to_string(),
            failure => failure.to_string(),
        };
        let measured = self.records.iter().any(|r| r.workload == workload.code);
        let reason = match &refused {
            Refused::Jobs(jobs) if measured => format!("with {} and more: {why}", counted(*jobs as usize, "job")),
            Refused::Value(name, value) => format!("with {name} = {value}: {why}"),
            Refused::Arm(arm, 0) => format!("arm {arm}: {why}"),
            Refused::Arm(arm, jobs) => format!("arm {arm} with {} and more: {why}", counted(*jobs as usize, "job")),
            Refused::Jobs(_) | Refused::Whole => why,
        };
        if let Some(work) = work.filter(|_| refused == Refused::Whole) {
            self.drop_unneeded_tables(&work);
        }
        if full_disk {
            self.drop_partial_data_set();
        }
        self.listener.on(Event::Skipped { code: &workload.code, reason: &reason });
        let skipped = SkippedWorkload { code: workload.code.clone(), reason };
        self.manifest.plan.skipped.push(skipped.clone());
        self.refused.all.push((skipped, refused));
        self.refused.first.get_or_insert(failure);
        Ok(self.folder.write_manifest(&self.manifest)?)
    }

    /// Drops a data set whose loading filled a disk: no other workload can use it, and none could write. One that the user keeps stays.
    fn drop_partial_data_set(&mut self) {
        let Some(role) = self.side.target.abilities().data_set.filter(|_| !self.manifest.plan.keep_data) else {
            return;
        };
        let is_partial = role.data_set().is_ok_and(|tables| tables.iter().any(|table| !table.complete));
        if let Some(e) = is_partial.then(|| role.drop_data_set()).and_then(Result::err) {
            self.warn(format!("the data set that filled the disk could not be dropped: {e}"));
        }
    }
}
