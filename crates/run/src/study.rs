//! A run, from its plan to its last record: checks the target, creates the run folder, measures, cleans up.

mod begin;
mod disk_space;
mod find_rate;
mod measure;
mod native_report;
mod pairs;
mod prepare;
mod quiet;
mod refused;
mod sequence;
pub(crate) mod side;
mod spread;
mod switch;
#[cfg(test)]
mod tests;
mod tries;
mod variants;
pub(crate) mod window_length;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_database::{OpenRequest, TargetError, Work, is_temporary};
use loadline_load::{Place, TestError};
use loadline_model::format::counted;
use loadline_model::manifest::RunState;
use loadline_model::plan::{Plan, SkippedWorkload};
use loadline_model::{Manifest, TestRecord, seed_of_window};
use loadline_store::{RunFolder, StoreError};
use loadline_workload::Workloads;
use thiserror::Error;

pub use side::KnownLimits;
pub use spread::Loss;

use self::refused::Refusals;
use self::side::{Side, until_released};
use self::tries::Tries;
use self::variants::VariantsState;
use crate::live::{Event, Listener, WatchedRun};
use crate::plan::PlanError;

/// A run to start or to resume.
pub struct Study {
    /// The plan; on resume, that of the manifest.
    pub plan: Plan,
    /// How the target is opened, with its secrets.
    pub request: OpenRequest,
    /// Folder of runs.
    pub results: PathBuf,
    pub resume: Option<PathBuf>,
    /// The command line without secrets.
    pub command: Vec<String>,
    /// Reference log writer figures measured elsewhere (`--limits FILE`). `None`: measured here.
    pub limits: Option<KnownLimits>,
    /// How the targets of the variants after the first are opened, in a run of `loadline ab`.
    pub others: Vec<OpenRequest>,
    pub place: Place,
}

#[derive(Debug)]
pub struct StudyOutcome {
    pub folder: PathBuf,
    /// All its tests, including those made before a resume.
    pub records: Vec<TestRecord>,
    /// Tests of the plan that were not made because nodes were lost, in words.
    pub left_out: Vec<String>,
    /// Workloads that the server refused while the run went on.
    pub refused: Vec<SkippedWorkload>,
    pub ended: Ended,
}

#[derive(Debug)]
pub enum Ended {
    /// All tests of the plan were made.
    Complete,
    Interrupted,
    /// It failed. Tests measured before the failure are stored.
    Failed(StudyError),
}

/// Why a run did not start or did not complete.
#[derive(Debug, Error)]
pub enum StudyError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the doctor refuses the target:\n{0}\nChange that, or measure anyway with --force (tests are then marked)")]
    Doctor(String),
    #[error("nothing can be measured on the target:\n{0}")]
    Impossible(String),
    #[error("{0}")]
    Objective(String),
    #[error("{asked} jobs are more than the target allows: {because}; the maximum is {most}")]
    TooManyJobs { asked: u32, because: String, most: u32 },
    #[error("test {test} ({workload}, {}) failed: {source}", counted(*jobs as usize, "job"))]
    Test { test: u32, workload: String, jobs: u32, source: TestError },
    #[error(transparent)]
    Lost(#[from] Loss),
    #[error("interrupted before the first test was complete: nothing is kept")]
    Interrupted,
}

struct Context<'a> {
    listener: &'a mut dyn Listener,
    /// How the target of each variant is opened; of a run without variants, the target.
    requests: Vec<OpenRequest>,
    /// The target that is measured now.
    side: Side,
    /// Those of variants that have one of their own, by the index of the variant, without that which is measured now.
    parked: BTreeMap<usize, Side>,
    variants: VariantsState,
    /// The processes of the proxy through which jobs go in the variant in force, or why they are unknown; `None`: there is no proxy.
    via: Option<Result<Vec<u32>, String>>,
    manifest: Manifest,
    /// The workloads that the plan may name.
    known: Workloads,
    folder: RunFolder,
    /// The tests, each by the try that counts.
    records: Vec<TestRecord>,
    tries: Tries,
    /// Number of the last test that was stored before this run was resumed; 0 in a new one.
    stored: u32,
    place: Place,
    /// Work whose tables are there, by the index of its variant and the code of its workload.
    works: BTreeMap<(usize, String), Arc<Work>>,
    interrupted: Arc<AtomicBool>,
    /// See [`StudyOutcome::left_out`].
    left_out: Vec<String>,
    refused: Refusals,
}

impl Study {
    /// How the targets are opened: that of the plan, and those of the variants after the first.
    fn requests(&self) -> impl Iterator<Item = &OpenRequest> {
        std::iter::once(&self.request).chain(&self.others)
    }

    /// Runs it. An error if no test was measured, with nothing left behind; otherwise the run ends with an outcome.
    pub fn run(self, listener: &mut dyn Listener) -> Result<StudyOutcome, StudyError> {
        let mut listener = WatchedRun::new(listener, self.requests().flat_map(OpenRequest::urls).collect());
        let mut context = begin::begin(&self, &mut listener)?;
        context.listener.on(Event::Started(context.folder.path()));
        for skipped in &context.manifest.plan.skipped {
            context.listener.on(Event::Skipped(skipped));
        }
        let result = context.measure();
        if result.is_ok() && context.stored > 0 && context.next_test() == context.stored + 1 {
            context.warn("nothing was left to measure".to_owned());
        }
        let refused = context.manifest.plan.refused().cloned().collect();
        let first_refusal = if context.records.is_empty() { context.refused.first.take() } else { None };
        let ended = match (result, first_refusal) {
            (Ok(()), Some(refusal)) => Ended::Failed(refusal),
            (Ok(()), None) => Ended::Complete,
            (Err(StudyError::Test { source: TestError::Interrupted, .. } | StudyError::Interrupted), _) => {
                Ended::Interrupted
            }
            // A session that waits, or is being opened, gives up when the user wants to stop.
            (Err(StudyError::Test { source: TestError::Target(e), .. } | StudyError::Target(e)), _)
                if context.stopped() && (e.is_lost() || matches!(e, TargetError::Unreachable(_))) =>
            {
                Ended::Interrupted
            }
            // Before anything is removed from the disk.
            (Err(e), _) => Ended::Failed(refused::explained(e, context.side.target.as_ref(), &context.side.info)),
        };
        context.manifest.state = match ended {
            Ended::Complete => RunState::Complete,
            Ended::Interrupted => RunState::Interrupted,
            Ended::Failed(_) => RunState::Failed,
        };
        // A run is complete when what it changed is put back: if it is killed before, a resume does that.
        context.end();
        let written = context.folder.write_manifest(&context.manifest);
        let has_looks = context.manifest.search.as_ref().is_some_and(|search| !search.looks.is_empty());
        let is_kept = match ended {
            Ended::Complete => true,
            Ended::Interrupted => has_looks || !context.records.is_empty(),
            Ended::Failed(_) => !context.records.is_empty(),
        };
        if !is_kept {
            context.folder.remove();
            return Err(match ended {
                Ended::Failed(e) => e,
                _ => StudyError::Interrupted,
            });
        }
        let ended = match (ended, written) {
            (Ended::Complete | Ended::Interrupted, Err(e)) => Ended::Failed(e.into()),
            (ended, _) => ended,
        };
        let folder = context.folder.path().to_owned();
        let (records, left_out) = (context.records, context.left_out);
        Ok(StudyOutcome { folder, records, left_out, refused, ended })
    }
}

impl Context<'_> {
    fn step(&mut self, text: String) {
        self.listener.on(Event::Step(text));
    }

    fn warn(&mut self, text: String) {
        self.listener.on(Event::Warning(text));
    }

    fn stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn unless_stopped(&self) -> Result<(), StudyError> {
        if self.stopped() { Err(StudyError::Interrupted) } else { Ok(()) }
    }

    /// Work left before the first test.
    fn make_ready(&mut self) -> Result<(), StudyError> {
        self.measure_overhead()?;
        self.try_variants()?;
        self.folder.write_manifest(&self.manifest)?;
        // Last step: a run that is refused must not lose the data set.
        for side in std::iter::once(&self.side).chain(self.parked.values()) {
            if side.space.drop_data_set
                && let Some(target) = side.target.abilities().tables
            {
                target.drop_data_set()?;
            }
        }
        Ok(())
    }

    /// `work` as a new window draws it. With the numbers of an earlier one it would find that one's rows in caches, and make
    /// changes and queries a second time. The number of windows is stored first: one that is interrupted has drawn as well.
    fn drawn_anew(&mut self, work: &Work) -> Result<Arc<Work>, StudyError> {
        let known = self.records.iter().map(|r| r.test).max().unwrap_or(0);
        self.manifest.windows = self.manifest.windows.max(known) + 1;
        self.folder.write_manifest(&self.manifest)?;
        let plan = &self.manifest.plan;
        let draws = seed_of_window(plan.draws().unwrap_or(plan.seed), self.manifest.windows);
        Ok(Arc::new(Work { draws, ..work.clone() }))
    }

    /// Brings back what variants changed, and removes what the run made.
    fn end(&mut self) {
        self.put_back();
        self.leave(0);
        for (n, side) in std::mem::take(&mut self.parked) {
            self.side = side;
            self.leave(n);
        }
    }

    /// Removes what the run created on the target, which is that of the variant `n`.
    fn leave(&mut self, n: usize) {
        self.side.lock = None;
        let Some(request) = self.requests.get(n).filter(|request| !is_temporary(&request.url)) else { return };
        let keep = self.manifest.plan.keep_data;
        if let Err(e) = until_released(|| self.side.target.clean_after_run(keep)) {
            let command = request.clean_command();
            self.warn(format!("loadline's tables could not be removed ({e}): run `{command}`"));
        }
    }
}
