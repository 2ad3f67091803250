//! Evidence of a test, and the lists of functions that make the test of it.
//!
//! The evidence is complete before a test is made of it: what the jobs counted, snapshots of the database's counters at fixed
//! moments, samples between them, what instruments saw, and answers to queries before and after. Each function of a list reads
//! the evidence and what the functions before it made, and adds figures (a value or a reason), checks and notes. Nothing is
//! changed later: the order of a list is the order in the record.

#[cfg(test)]
pub(crate) mod testing;

use std::fmt;
use std::ops::Deref;

use loadline_database::{TargetError, Work};
use loadline_load::{Measured, Request, Tally};
use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::counter;
use loadline_model::{Check, CheckId, Outcome};
use loadline_workload::{Commit, Program};

use crate::activity::GrownViews;
use crate::checks::{self, agents, disturbance as others, load, redo_on_device, settings, steady};
use crate::figures::counters::{Completed, Counters};
use crate::figures::database::{self, commits_not_comparable};
use crate::figures::{self, blocks, bulk, disturbance, machine, nodes, populations, shares, volume};
use crate::instrument::size_scan::{Scanned, output as scan};
use crate::instrument::{Instruments, RunContext};
use crate::study::proof::Proof;
use crate::study::window_length;
use crate::test::Test;

/// Figures of a test of jobs.
const FIGURES: &[fn(&Evidence<'_>, &mut Test)] = &[
    figures::own,
    populations::figures,
    volume::figures,
    database::figures,
    bulk::figures,
    database::log_file_sync,
    machine::machine,
    machine::client,
    blocks::figures,
    shares::figures,
    nodes::replicas,
    disturbance::figures,
    figures::background,
    steady::within_window,
];

/// Checks of a test of jobs, and what instruments make of it. What a lost node, agent or replica spoils are other checks as well:
/// the reason comes first.
const CHECKS: &[fn(&Evidence<'_>, &mut Test)] = &[
    nodes::lost,
    agents::common_window,
    nodes::membership,
    Instruments::reasons_first,
    checks::window,
    checks::errors,
    checks::reset,
    checks::all_commits,
    checks::window_commits,
    checks::work_evidence,
    load::littles_law,
    checks::commits_per_sync,
    checks::redo_size,
    checks::client_cpu,
    load::rate,
    load::think_time,
    checks::consistency,
    checks::rows_read,
    checks::read_only,
    agents::network,
    steady::warm_up,
    steady::window,
    nodes::commits_of_each,
    window_length::notes,
    Instruments::report,
    |e, test| remarks(e, test),
    |e, test| settings::unchanged(e, test),
    |e, test| others::undisturbed(e, test),
    |e, test| redo_on_device::check(e, test),
];

/// A test of a scan of sizes.
const SCAN: &[fn(&Evidence<'_, Scanned>, &mut Test)] = &[
    scan::figures,
    scan::disturbance,
    scan::sizes_found,
    scan::commits,
    scan::work_evidence,
    scan::commits_per_sync,
    scan::no_load,
    |e, test| remarks(e, test),
    |e, test| settings::unchanged(e, test),
    |e, test| others::undisturbed(e, test),
    |e, test| redo_on_device::check(e, test),
];

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
    pub(crate) instruments: &'a Instruments,
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
    pub(crate) fn with(mut self, instruments: &'a Instruments) -> Self {
        self.seen.instruments = instruments;
        self
    }

    /// Figures of the jobs, without those of instruments: with them limits are measured.
    pub(crate) fn figures(&self) -> Test {
        let mut test = Test::of_target(self.request.target.absent_columns());
        FIGURES.iter().for_each(|make| make(self, &mut test));
        test
    }

    /// The test.
    pub(crate) fn test(&self) -> Test {
        let mut test = self.figures();
        CHECKS.iter().for_each(|make| make(self, &mut test));
        test
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

    /// Commits that the database counted in the window, if they can be compared with the jobs'.
    pub(crate) fn window_commits(&self) -> Option<f64> {
        self.grown(counter::COMMITS).filter(|_| commits_not_comparable(self).is_none())
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

impl Evidence<'_, Scanned> {
    /// The test.
    pub(crate) fn test(&self) -> Test {
        let mut test = Test::default();
        SCAN.iter().for_each(|make| make(self, &mut test));
        test
    }
}

/// Notes about what was before and after the jobs.
fn remarks<S>(e: &Evidence<'_, S>, test: &mut Test) {
    test.notes.extend(e.remarks.iter().cloned());
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
