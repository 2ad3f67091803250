//! What the checks of every test look at.

use loadline_model::snapshot::counter;
use loadline_model::{Driver, column};
use loadline_workload::{Commit, RedoSize};

use crate::figures::Proof;
use crate::figures::collected::Figures;
use crate::figures::counters::Counters;
use crate::figures::database::commits_not_comparable;
use crate::window::{JobResult, Measured, Request, Schedule};

/// What the checks look at.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// The window.
    pub(crate) schedule: Schedule,
    /// What each job brought back.
    pub(crate) jobs: &'a [JobResult],
    /// All of it together.
    pub(crate) merged: &'a JobResult,
    /// Rate asked for (open loop).
    pub(crate) rate_tps: Option<f64>,
    /// Whether commits wait until they are durable.
    pub(crate) durable: bool,
    /// Why the database's count of commits is not that of the jobs' transactions, if it is not.
    pub(crate) commits_not_comparable: Option<&'static str>,
    /// Why the counters at the edges of the window could not be read, if they could not.
    pub(crate) unread: Option<String>,
    /// The same before the jobs connected or after they had gone.
    pub(crate) unread_whole: Option<String>,
    /// Commits that the database counted between the snapshots at the edges of the window.
    pub(crate) window_commits: Option<f64>,
    /// Commits that it counted from before the jobs connected until after they had gone.
    pub(crate) all_commits: Option<f64>,
    /// Syncs of the log between the snapshots at the edges.
    pub(crate) window_syncs: Option<f64>,
    /// How far the snapshots lie from the edges they belong to, both together, s.
    pub(crate) snapshots_off_s: f64,
    /// How far the database's counters may lag behind, s.
    pub(crate) counter_lag_s: f64,
    /// Growth of the workload's evidence query, and what it must have grown by for one commit; or
    /// why the query failed.
    pub(crate) evidence: Result<Option<(i64, u64)>, String>,
    /// For transactions that only read, and are known to go through so many rows: rows that the database
    /// counted between the snapshots at the edges, if it counts them, and what a transaction goes through.
    pub(crate) rows_read: Option<(Option<f64>, f64)>,
    /// Rows that the committed transactions changed, where one transaction changes more than another.
    pub(crate) rows_changed: Option<u64>,
    /// Share of the transactions that change something, 0…1: only their commits have something to sync.
    pub(crate) writing_share: f64,
    /// What the evidence counts.
    pub(crate) evidence_counts: &'a str,
    /// What must be 0 after the test, with what was found.
    pub(crate) consistency: &'a [(&'static str, Result<Option<i64>, String>)],
    /// Redo per transaction, bytes, and what the workload wants.
    pub(crate) redo: Option<(f64, RedoSize)>,
    /// CPU time of the loadline process in the window as a share (0…1) of its machine, or why it is
    /// not known.
    pub(crate) client_cpu_share: Result<f64, String>,
    /// CPUs of the machine that loadline runs on.
    pub(crate) cpus: u32,
    /// Whether loadline's own CPU counts against the measured machine (client driver).
    pub(crate) client_driver: bool,
}

impl<'a> Facts<'a> {
    /// Those of a test with these figures.
    pub(crate) fn of(
        request: &Request,
        measured: &'a Measured,
        counters: &Result<Counters<'_>, String>,
        proof: &'a Proof,
        figures: &Figures,
    ) -> Facts<'a> {
        let (program, workload) = (&request.work.program, request.work.workload);
        let grown = |name| counters.as_ref().ok().and_then(|c| c.grown(name));
        let not_comparable = commits_not_comparable(request);
        let whole = measured.before.as_ref().ok().zip(measured.after.as_ref().ok());
        let through = workload.volume.map(|of| of(&request.work.params).rows).filter(|rows| *rows > 0.0);
        let through = through.filter(|_| !program.writes());
        let cpu = figures.figure(column::CLIENT_CPU_PCT).map(|pct| pct / 100.0);
        Facts {
            schedule: measured.schedule,
            jobs: &measured.jobs,
            merged: &measured.merged,
            rate_tps: request.rate_tps,
            durable: program.commit == Commit::Wait && program.writes(),
            commits_not_comparable: not_comparable,
            unread: measured.edges.unread(),
            unread_whole: measured.before.as_ref().err().or(measured.after.as_ref().err()).cloned(),
            window_commits: grown(counter::COMMITS).filter(|_| not_comparable.is_none()),
            all_commits: whole.and_then(|(a, b)| a.delta(b, counter::COMMITS)).filter(|_| not_comparable.is_none()),
            window_syncs: grown(counter::REDO_SYNCS),
            snapshots_off_s: counters.as_ref().map_or(0.0, |c| c.off_s),
            counter_lag_s: request.target.facts().counter_lag_s,
            evidence: proof.grown().map(|grown| grown.map(|n| (n, program.rows_changed_per_tx()))),
            rows_read: through.map(|rows| (grown(counter::ROWS_READ), rows)),
            rows_changed: program.varies().then_some(measured.merged.rows_changed),
            writing_share: program.writing_share(),
            evidence_counts: workload.evidence.map_or("", |e| e.counts),
            consistency: &proof.consistency,
            redo: figures.figure(column::REDO_BYTES_PER_TX).zip(workload.redo),
            client_cpu_share: cpu
                .ok_or_else(|| figures.absence_reason(column::CLIENT_CPU_PCT).unwrap_or_default().to_owned()),
            cpus: proof.cpus,
            client_driver: request.driver == Driver::Client,
        }
    }

    /// How late the database's counters may be at the edges, both together, as a share of the window.
    pub(super) fn late_share(&self) -> f64 {
        (self.counter_lag_s + self.snapshots_off_s) / self.schedule.window_s().max(1e-9)
    }
}
