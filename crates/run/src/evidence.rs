//! Evidence of a test, complete before a test is made of it: what the jobs counted, snapshots of the database's counters at fixed
//! moments, samples between them, what instruments saw, and answers to queries before and after. `steps.rs` has what makes a test of it.

#[cfg(test)]
pub(crate) mod testing;

use std::fmt;
use std::ops::Deref;

use loadline_collect::page_cache::DataFiles;
use loadline_database::{TargetError, Work};
use loadline_load::{Measured, Request, Tally};
use loadline_model::machine::Storage;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Check, CheckId, Manifest, Outcome, TestRecord};
use loadline_workload::{Commit, Program};

use crate::activity::GrownViews;
use crate::figures::counters::{Completed, Counters};
use crate::reference::References;
use crate::server_memory::ServerMemory;
use crate::study::proof::Proof;
use crate::test::Test;

/// What instruments add to a test.
pub(crate) trait Instrumented {
    /// Adds checks of what makes other checks fail as well.
    fn reasons_first(&self, test: &mut Test);

    /// Adds figures or the reasons for their absence, checks and notes.
    fn report(&self, e: &Evidence<'_>, test: &mut Test);
}

/// The run that a test is part of.
pub(crate) struct RunContext<'a> {
    /// Plan, target and machine.
    pub(crate) manifest: &'a Manifest,
    /// Earlier tests of the run.
    pub(crate) records: &'a [TestRecord],
    /// Repetition of this test, from 1.
    pub(crate) repetition: u32,
    /// Storage of the database's log, if known.
    pub(crate) log: Option<&'a Storage>,
    /// What measures the limits of its tests, or why nothing does.
    pub(crate) references: &'a Result<References, String>,
    /// The data files, or why they cannot be kept out of the page cache.
    pub(crate) data_files: &'a Result<DataFiles, String>,
    /// Size of the database's own block cache, bytes, if known.
    pub(crate) cache_bytes: Option<u64>,
    /// Memory of the server's machine, if known.
    pub(crate) server_memory: Option<ServerMemory>,
}

/// Evidence of one test; `seen` is that of jobs or of a scan.
pub(crate) struct Evidence<'a, S = Jobs<'a>> {
    /// What was asked for.
    pub(crate) request: &'a Request,
    /// The run that it is part of.
    pub(crate) run: &'a RunContext<'a>,
    /// Answers to queries before and after the test.
    pub(crate) proof: &'a Proof,
    /// The target before the test, and after it.
    pub(crate) target: (TargetInfo, Result<TargetInfo, TargetError>),
    /// What the test has on purpose.
    pub(crate) excuses: Excuses,
    /// Notes about what was before and after the jobs.
    pub(crate) remarks: Vec<String>,
    /// What was counted and sampled.
    pub(crate) seen: S,
}

/// Evidence of jobs in a common window.
pub(crate) struct Jobs<'a> {
    /// Counts, samples and snapshots.
    pub(crate) measured: &'a Measured,
    /// The database's counters in the window, or why they could not be read.
    pub(crate) counters: Result<Counters<'a>, String>,
    /// What instruments saw.
    pub(crate) instruments: &'a dyn Instrumented,
    /// Growth of the database's statistics views.
    pub(crate) views: &'a GrownViews,
    /// Names of the nodes that were lost.
    pub(crate) lost_nodes: &'a [String],
    /// What became of the sessions of lost agents.
    pub(crate) ended_sessions: &'a [String],
    /// What a failure may have to do with a full disk.
    pub(crate) full_disk: Option<String>,
}

impl<S> Deref for Evidence<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.seen
    }
}

impl<S> Evidence<'_, S> {
    /// The evidence with one remark before the others.
    pub(crate) fn and_remark(mut self, remark: Option<String>) -> Self {
        self.remarks.splice(0..0, remark);
        self
    }

    /// The work of its transactions.
    pub(crate) fn work(&self) -> &Work {
        &self.request.work
    }

    /// Whether commits wait until they are durable.
    pub(crate) fn is_durable(&self) -> bool {
        let program = &self.work().program;
        program.commit == Commit::Wait && program.writes()
    }
}

impl<'a> Evidence<'a> {
    /// The evidence with what instruments saw.
    pub(crate) fn with(mut self, instruments: &'a dyn Instrumented) -> Self {
        self.seen.instruments = instruments;
        self
    }

    /// What all jobs counted.
    pub(crate) fn merged(&self) -> &Tally {
        &self.measured.merged
    }

    /// Transactions that completed in the window.
    pub(crate) fn transactions(&self) -> f64 {
        self.merged().transaction.count() as f64
    }

    /// Transactions per second.
    pub(crate) fn tps(&self) -> f64 {
        self.transactions() / self.measured.schedule.window_s()
    }

    /// Number of jobs that ran.
    pub(crate) fn jobs(&self) -> f64 {
        self.measured.jobs.len() as f64
    }

    /// Growth of a counter in the window, if it could be read.
    pub(crate) fn grown(&self, name: &str) -> Option<f64> {
        self.counters.as_ref().ok().and_then(|c| c.grown(name))
    }

    /// Why a figure is missing: its counters could not be read, or else `why`.
    pub(crate) fn missing(&self, why: &str) -> String {
        self.measured.edges.unread().unwrap_or_else(|| why.to_owned())
    }

    /// Transactions that the jobs completed between the database's snapshots, if the snapshots have their count.
    pub(crate) fn completed(&self) -> Option<Completed> {
        self.counters.as_ref().ok().and_then(Counters::completed)
    }

    /// Transactions to compare with the database's counters: those between its snapshots by the jobs' own count, or else
    /// those of the window, which may differ by as many as the counters are of another time.
    pub(crate) fn comparable(&self) -> Completed {
        let count = self.transactions();
        self.completed().unwrap_or(Completed { count, uncertain: self.late_share() * count })
    }

    /// For how long the counters may have grown outside the window, as a share of it.
    pub(crate) fn late_share(&self) -> f64 {
        let off_s = |c: &Counters<'_>| c.grew_outside_s(self.request.driver, &self.request.load);
        self.counters.as_ref().map_or(0.0, off_s) / self.measured.schedule.window_s().max(1e-9)
    }

    /// Share of the transactions that change something, whose commits need a sync; its lower bound where only executions show it.
    pub(crate) fn writing_share(&self) -> f64 {
        let (program, merged): (&Program, _) = (&self.work().program, self.merged());
        let most = merged.total as f64 * program.rows_changed_per_tx() as f64;
        let share = program.writing_share();
        if program.counts_changes() && most > 0.0 { share.min(merged.rows_changed as f64 / most) } else { share }
    }
}

/// What a test has on purpose: a check that fails because of it is noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Excuses {
    /// Whether the doctor refused something of the target that the user forced.
    pub(crate) forced: bool,
    /// Why commits need not wait for their disk.
    pub(crate) commits: Option<Excuse>,
    /// Why transactions may have other redo than they were calibrated with.
    pub(crate) redo: Option<Excuse>,
}

/// Why a check may fail.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Excuse {
    /// The doctor refused this in an arm, and the user forced it.
    ArmHas(Vec<String>),
    /// The arms differ in what their transactions write.
    CalibratedInArmA,
    /// Commits at this level of replication do not wait for their disk.
    Level(String),
}

impl Excuses {
    /// The check, noted instead of failed if it has an excuse.
    pub(crate) fn apply_to(&self, check: Check) -> Check {
        let excuse = match check.id {
            CheckId::CommitsPerSync | CheckId::RedoOnDevice => &self.commits,
            CheckId::RedoSize => &self.redo,
            _ => &None,
        };
        match excuse.as_ref().filter(|_| check.outcome == Outcome::Failed) {
            Some(excuse) => Check::new(check.id, Outcome::Noted, format!("{}; {excuse}", check.detail)),
            None => check,
        }
    }
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIFFER: &str = "it is what the arms differ in";
        match self {
            Excuse::ArmHas(forced) => write!(f, "{DIFFER}: the arm has {}", forced.join("; ")),
            Excuse::CalibratedInArmA => write!(f, "{DIFFER}: both do the work that was calibrated in arm A"),
            Excuse::Level(name) => write!(f, "a commit at level {name} does not wait for its disk"),
        }
    }
}
