//! What the server refuses for one workload does not end the run: the workload is left out with the reason, and the rest is measured.

use loadline_database::TargetError;
use loadline_load::TestError;
use loadline_model::format::counted;
use loadline_model::plan::{PlannedWorkload, SkippedWorkload};

use super::{Context, StudyError, full_disk};
use crate::event::{Event, Listener};

/// Workloads that the server refused while the run went on.
#[derive(Default)]
pub(super) struct Refused {
    /// The workload, from how many jobs on it is left out, and why.
    from: Vec<(SkippedWorkload, u32)>,
    /// The first refusal: the run's error, if nothing at all could be measured.
    first: Option<StudyError>,
}

impl Refused {
    /// Whether a test of `code` with so many jobs is left out.
    pub(super) fn leaves_out(&self, code: &str, jobs: u32) -> bool {
        self.from.iter().any(|(skipped, from)| skipped.code == code && jobs >= *from)
    }

    /// What was left out, and the error of a run that measured nothing.
    pub(super) fn take(&mut self) -> (Vec<SkippedWorkload>, Option<StudyError>) {
        (std::mem::take(&mut self.from).into_iter().map(|(skipped, _)| skipped).collect(), self.first.take())
    }
}

/// Whether the server refused what it was asked, or ended the session for it, and may do other work.
fn is_refusal(failure: &StudyError) -> bool {
    let (StudyError::Target(e) | StudyError::Test { source: TestError::Target(e), .. }) = failure else { return false };
    e.is_lost() || matches!(e, TargetError::Server(_) | TargetError::Unsupported(_))
}

impl Context {
    /// Leaves `workload` out with `jobs` and more jobs if `failure` is the server's refusal and the server still answers. Its tables
    /// are dropped: they may be what filled a disk.
    ///
    /// # Errors
    /// `failure`, if it is of another kind.
    pub(super) fn leave_out_refused(
        &mut self,
        workload: &PlannedWorkload,
        jobs: u32,
        failure: StudyError,
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        if self.stopped() || !is_refusal(&failure) || self.side.target.info().is_err() {
            return Err(failure);
        }
        let failure = full_disk::explained(failure, self.side.target.as_ref(), &self.side.info);
        let why = match &failure {
            StudyError::Test { source, .. } => source.to_string(),
            failure => failure.to_string(),
        };
        let jobs = if self.records.iter().any(|r| r.workload == workload.code) { jobs } else { 0 };
        let reason = if jobs > 0 { format!("with {} and more: {why}", counted(jobs as usize, "job")) } else { why };
        if let Ok(work) = self.work(workload, &Default::default()) {
            self.drop_unneeded_tables(&work, listener);
        }
        listener.on(Event::Skipped { code: &workload.code, reason: &reason });
        let skipped = SkippedWorkload { code: workload.code.clone(), reason };
        self.manifest.plan.skipped.push(skipped.clone());
        self.refused.from.push((skipped, jobs));
        self.refused.first.get_or_insert(failure);
        Ok(self.folder.write_manifest(&self.manifest)?)
    }
}
