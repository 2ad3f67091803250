//! Input of the checks of every test.

use loadline_database::Runs;
use loadline_load::{JobResult, Measured, Request, Schedule, Tally};
use loadline_model::record::AgentFigures;
use loadline_model::snapshot::counter;
use loadline_model::{Driver, JobLoad, column};
use loadline_workload::{Commit, Program, RedoSize};

use super::agents;
use crate::figures::Proof;
use crate::figures::collected::Figures;
use crate::figures::counters::{Completed, Counters};
use crate::figures::database::{ENGINES_ELSEWHERE, commits_not_comparable, engines_elsewhere};
use crate::figures::nodes::{self, FailedCommits, NodeCommits};

/// Input of the checks.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// The window.
    pub(crate) schedule: Schedule,
    /// Result of each job.
    pub(crate) jobs: &'a [JobResult],
    /// Results of all jobs, merged.
    pub(crate) merged: &'a Tally,
    /// How the jobs made load.
    pub(crate) load: &'a JobLoad,
    /// Whether commits wait until they are durable.
    pub(crate) durable: bool,
    /// Why the database's count of commits cannot be compared with the jobs', if so.
    pub(crate) commits_not_comparable: Option<String>,
    /// Why the counters at window start or window end could not be read, if so.
    pub(crate) unread: Option<String>,
    /// Why the counters before the jobs connected or after they disconnected could not be read, if so.
    pub(crate) unread_whole: Option<String>,
    /// Counters that were lower at the window end than at its start, if they could be read.
    pub(crate) went_back: Option<Vec<String>>,
    /// Commits that the database counted between the snapshots of window start and window end.
    pub(crate) window_commits: Option<f64>,
    /// Transactions that the jobs completed between the same snapshots, if the snapshots have their count.
    pub(crate) completed: Option<Completed>,
    /// Whether the server counts late, so that its counters are those of the whole test.
    pub(crate) whole: bool,
    /// Commits that it counted from before the jobs connected until after they disconnected.
    pub(crate) all_commits: Option<f64>,
    /// COMMITs that failed.
    pub(crate) failed_commits: FailedCommits,
    /// Syncs of the log between the snapshots of window start and window end.
    pub(crate) window_syncs: Option<f64>,
    /// Commits and syncs of each node with jobs, if there are several nodes that count both.
    pub(crate) node_commits: Vec<NodeCommits>,
    /// Distance of the snapshots from window start and window end, sum, s.
    pub(crate) snapshots_off_s: f64,
    /// Growth of the evidence query's result, and the growth required per commit; or why the query failed.
    pub(crate) evidence: Result<Option<(i64, u64)>, String>,
    /// For read-only transactions with a known number of rows: rows that the database counted between the snapshots,
    /// if it counts them, and rows per transaction.
    pub(crate) rows_read: Option<(Option<f64>, f64)>,
    /// Of scripts that may only read: rows that were changed in the database between the snapshots, if it counts them.
    pub(crate) changed_by_readers: Option<Option<f64>>,
    /// Rows that the committed transactions changed, if transactions change different numbers of rows.
    pub(crate) rows_changed: Option<u64>,
    /// Share of writing transactions, 0…1: only their commits need a sync.
    pub(crate) writing_share: f64,
    /// What the evidence query counts.
    pub(crate) evidence_counts: &'a str,
    /// Consistency queries with their results, which must be 0.
    pub(crate) consistency: &'a [(&'static str, Result<Option<i64>, String>)],
    /// Redo per transaction, bytes.
    pub(crate) redo: Option<f64>,
    /// Images of whole pages in it, per transaction.
    pub(crate) page_images: Option<f64>,
    /// The range that the workload is defined with.
    pub(crate) redo_size: Option<RedoSize>,
    /// Share of the window by which the log's position was read before or after window start and window end, unless the
    /// jobs' own count is of the same moments.
    pub(crate) redo_off_share: f64,
    /// CPU time of the loadline process in the window as a share (0…1) of its machine, or why it is unknown.
    pub(crate) client_cpu_share: Result<f64, String>,
    /// CPUs of the machine that loadline runs on.
    pub(crate) cpus: u32,
    /// What each agent did, if the jobs ran on agents.
    pub(crate) agents: &'a [AgentFigures],
    /// Why the database has no evidence of the jobs' work, if so.
    pub(crate) no_evidence: Option<&'static str>,
    /// Whether the client driver runs the transactions.
    pub(crate) client_driver: bool,
}

impl<'a> Facts<'a> {
    /// Facts of a test with these figures.
    pub(crate) fn of(
        request: &'a Request,
        measured: &'a Measured,
        counters: &Result<Counters<'_>, String>,
        proof: &'a Proof,
        figures: &Figures,
    ) -> Facts<'a> {
        let (program, workload) = (&request.work.program, request.work.workload);
        let grown = |name| counters.as_ref().ok().and_then(|c| c.grown(name));
        let not_comparable = commits_not_comparable(request, &measured.merged);
        let whole = measured.before.as_ref().ok().zip(measured.after.as_ref().ok());
        let through = workload.volume(&request.work.params).map(|of| of.rows).filter(|rows| *rows > 0.0);
        let through = through.filter(|_| !program.writes());
        let target = request.target.facts();
        let cpu = match target.runs {
            Runs::Apart => figures
                .figure(column::CLIENT_CPU_PCT)
                .map(|pct| pct / 100.0)
                .ok_or_else(|| figures.absence_reason(column::CLIENT_CPU_PCT).unwrap_or_default().to_owned()),
            Runs::InProcess | Runs::Nowhere => Err("there is no client apart from the database".to_owned()),
        };
        let of_other_moments = |c: &Counters<'_>| {
            let ([open, close], s) = (c.on_time, measured.schedule);
            let off_ns = open.at_ns.abs_diff(s.open_ns) + close.at_ns.abs_diff(s.close_ns);
            if c.exact_on_time().is_some() { 0.0 } else { off_ns as f64 / 1e9 / s.window_s().max(1e-9) }
        };
        Facts {
            schedule: measured.schedule,
            jobs: &measured.jobs,
            merged: &measured.merged,
            load: &request.load,
            durable: program.commit == Commit::Wait && program.writes(),
            commits_not_comparable: not_comparable.clone(),
            unread: measured.edges.unread(),
            unread_whole: measured.before.as_ref().err().or(measured.after.as_ref().err()).cloned(),
            went_back: counters.as_ref().ok().map(Counters::went_back),
            window_commits: grown(counter::COMMITS).filter(|_| not_comparable.is_none()),
            completed: counters.as_ref().ok().and_then(Counters::completed),
            whole: counters.as_ref().is_ok_and(|c| c.whole.is_some()),
            all_commits: whole.and_then(|(a, b)| a.delta(b, counter::COMMITS)).filter(|_| not_comparable.is_none()),
            failed_commits: FailedCommits::of(request, measured, counters.as_ref().ok()),
            window_syncs: grown(counter::REDO_SYNCS),
            node_commits: counters.as_ref().map_or_else(|_| Vec::new(), |c| nodes::commits(request, measured, c)),
            snapshots_off_s: counters.as_ref().map_or(0.0, |c| c.grew_outside_s(request.driver, &request.load)),
            evidence: if engines_elsewhere(request) { Ok(None) } else { proof.grown() }
                .map(|grown| grown.map(|n| (n, workload.scripts.map_or(program.rows_changed_per_tx(), |_| 1)))),
            changed_by_readers: workload.scripts.filter(|s| !s.allow_writes).map(|_| grown(counter::ROWS_CHANGED)),
            rows_read: through.map(|rows| (grown(counter::ROWS_READ), rows)),
            rows_changed: program.varies().then_some(measured.merged.rows_changed),
            writing_share: writing_share(program, &measured.merged),
            evidence_counts: workload.evidence.map_or("", |e| e.counts),
            consistency: &proof.consistency,
            redo: figures.figure(column::REDO_BYTES_PER_TX),
            page_images: counters.as_ref().ok().and_then(|c| {
                let transactions = c.whole.unwrap_or(measured.merged.transaction.count() as f64);
                c.grown(counter::REDO_PAGE_IMAGES).map(|n| n / transactions)
            }),
            redo_size: workload.redo,
            redo_off_share: counters.as_ref().map_or(0.0, of_other_moments),
            client_cpu_share: cpu,
            cpus: agents::cpus(&measured.agents).unwrap_or(proof.cpus),
            agents: &measured.agents,
            no_evidence: engines_elsewhere(request).then_some(ENGINES_ELSEWHERE),
            client_driver: request.driver == Driver::Client,
        }
    }

    /// Transactions to compare with the database's counters: those between its snapshots by the jobs' own count, or else
    /// those of the window, which may differ by as many as the counters are of another time.
    pub(super) fn comparable(&self) -> Completed {
        let count = self.merged.transaction.count() as f64;
        self.completed.unwrap_or(Completed { count, uncertain: self.late_share() * count })
    }

    /// Commits of a transaction, mean: 1, except of scripts.
    pub(super) fn commits_per_tx(&self) -> f64 {
        self.merged.commits_per_tx()
    }

    /// For how long the counters may have grown outside the window, as a share of it.
    pub(super) fn late_share(&self) -> f64 {
        self.snapshots_off_s / self.schedule.window_s().max(1e-9)
    }
}

/// Share of the transactions that change something; its lower bound where only executions show it.
fn writing_share(program: &Program, merged: &Tally) -> f64 {
    let most = merged.total as f64 * program.rows_changed_per_tx() as f64;
    let share = program.writing_share();
    if program.counts_changes() && most > 0.0 { share.min(merged.rows_changed as f64 / most) } else { share }
}
