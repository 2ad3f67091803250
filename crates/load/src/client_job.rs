//! The timing loop of the client driver.

use std::sync::atomic::Ordering;

use loadline_database::{Attempts, ClientSession, TargetError};
use loadline_storage::now_ns;
use loadline_workload::{Arg, Execute, Program, Stream};

use crate::between::{Pace, Session, Think, think, wait};
use crate::job::{Books, Held, JobResult};
pub use crate::schedule::sleep_until;
use crate::schedule::{Schedule, Shared};
use crate::scripts::ScriptJob;

const MAX_FAILURES_IN_A_ROW: u32 = 100;
/// A transaction that lost against others this often, in some twenty seconds, ends with an error.
const MAX_ATTEMPTS: u64 = 200;
/// Pause before the third attempt, ns; before each later one it is twice as long, up to the second figure. One node of several lets
/// a transaction lose until it has applied the change that came first.
const PAUSE_AFTER_CONFLICT_NS: [u64; 2] = [100_000, 100_000_000];
const PAUSE_AFTER_FAILURE_NS: u64 = 1_000_000;
/// After the window end, an open-loop job that is late still begins the transactions that were due in the window for
/// this long, ns: another session may wait for their rows.
const CATCH_UP_NS: u64 = 1_000_000_000;

/// Runs a transaction of one statement, with its commit in the same call.
struct WithCommit<'a> {
    session: &'a mut dyn ClientSession,
    commit_ns: Option<u64>,
}

impl Execute for WithCommit<'_> {
    type Error = TargetError;

    #[inline]
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let (rows, commit_ns) = self.session.execute_and_commit(statement, args)?;
        self.commit_ns = commit_ns;
        Ok(rows)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        self.session.begin()?;
        let rows = ClientSession::bulk(self.session, table, first, rows)?;
        self.commit_ns = Some(now_ns());
        self.session.commit()?;
        Ok(rows)
    }
}

/// Runs one transaction. Returns when its commit began, if known. Counts a COMMIT that failed in `failed_commits`.
#[inline]
fn transaction(
    session: &mut dyn ClientSession,
    stream: &mut Stream,
    single: bool,
    failed_commits: &mut u64,
) -> Result<Option<u64>, TargetError> {
    if single {
        let mut with_commit = WithCommit { session, commit_ns: None };
        stream.transaction(&mut with_commit)?;
        return Ok(with_commit.commit_ns);
    }
    session.begin()?;
    stream.transaction(session)?;
    let commit_ns = now_ns();
    session.commit().inspect_err(|_| *failed_commits += 1)?;
    Ok(Some(commit_ns))
}

/// Runs a transaction, and again with the same values each time that it loses against another one. Its time is that of all
/// attempts, as an application has it. Returns as [`transaction`], and the attempts that were lost; `None` in place of an outcome if the
/// test ended before another attempt.
#[inline]
fn with_retries(
    session: &mut dyn ClientSession,
    stream: &mut Stream,
    single: bool,
    shared: &Shared,
) -> (Option<Result<Option<u64>, TargetError>>, Attempts) {
    let sequence = stream.sequence;
    let mut lost = Attempts::default();
    let [mut pause_ns, longest_ns] = PAUSE_AFTER_CONFLICT_NS;
    loop {
        let failed_before = lost.failed_commits;
        let outcome = transaction(session, stream, single, &mut lost.failed_commits);
        if lost.failed_commits > failed_before {
            shared.failed_commits.fetch_add(1, Ordering::Relaxed);
        }
        match outcome {
            Err(TargetError::Conflict(_)) if lost.conflicts + 1 < MAX_ATTEMPTS => lost.conflicts += 1,
            outcome => return (Some(outcome), lost),
        }
        if let Err(e) = session.rollback() {
            return (Some(Err(e)), lost);
        }
        if lost.conflicts > 1 {
            sleep_until(now_ns() + pause_ns, shared);
            pause_ns = (2 * pause_ns).min(longest_ns);
        }
        if shared.stopped() {
            return (None, lost);
        }
        stream.sequence = sequence;
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Common start of all jobs, ns.
    pub start_ns: u64,
    pub window_ns: u64,
}

pub struct Client<'a> {
    pub job: u32,
    pub session: Session<'a>,
    pub stream: &'a mut Stream,
    pub program: &'a Program,
    pub script: Option<ScriptJob>,
    /// Open loop: when its transactions are due.
    pub pace: Option<Pace>,
    /// Closed loop: how long it thinks after a transaction.
    pub think: Option<Think>,
}

#[expect(clippy::too_many_lines)]
pub fn run(client: Client<'_>, timing: Timing, shared: &Shared, tally: Held<'_>) -> JobResult {
    let Client { job, session: mut held, stream, program, mut script, mut pace, think: mut thinks } = client;
    let mut books = Books::watching(job, tally);
    let mut schedule = Schedule::pending(timing.start_ns);
    let single = program.is_single_statement();
    let (mut passed, mut failed_in_a_row) = (Passed::default(), 0);
    if pace.is_some() || thinks.is_some() {
        // Otherwise the kernel may wake the thread 50 µs late, which would count as the target's latency. If refused,
        // the default stays.
        let _ = nix::sys::prctl::set_timerslack(1);
    }
    sleep_until(timing.start_ns, shared);
    let never_began = loop {
        let intended_ns = pace.as_mut().map(Pace::next_start_ns);
        if let Some(at) = intended_ns {
            books.job.ran_until_ns = wait(at, &mut books, &mut schedule, shared, |now, schedule, books| {
                if let Some(session) = held.get() {
                    passed.pass(now, schedule, session, &mut books.job, None, shared);
                }
            });
        }
        if shared.stopped() && !intended_ns.is_some_and(|at| catches_up(at, &schedule, shared)) {
            break intended_ns;
        }
        let Some(session) = held.get() else { break None };
        let start_ns = now_ns();
        if job == 0 {
            books.job.intended_ns.extend(intended_ns);
        }
        let (outcome, lost) = match &mut script {
            Some(script) => (Some(script.transaction(session, shared).map(|()| None)), Attempts::default()),
            None => with_retries(session, stream, single, shared),
        };
        let end_ns = now_ns();
        shared.update(&mut schedule);
        if passed.window_end
            && let Some(next) = shared.next_window(&schedule)
        {
            (schedule, passed) = (next, Passed::default());
            shared.completed_before.fetch_add(books.forget_window(), Ordering::Relaxed);
        }
        books.lost(schedule.counts(end_ns), lost);
        if let Some(script) = &mut script {
            books.scripted(&schedule, end_ns, script);
        }
        if books.job.first_start_ns.is_none() {
            shared.started.fetch_add(1, Ordering::Relaxed);
        }
        match outcome {
            None => {
                books.job.note_times(&schedule, start_ns, end_ns);
                books.responded(&schedule, intended_ns, end_ns);
            }
            Some(Ok(commit_ns)) => {
                let kind = script.as_ref().map_or_else(|| stream.kind, ScriptJob::kind);
                books.completed(&schedule, kind, start_ns, commit_ns, end_ns);
                books.tally.with(|tally| tally.rows_changed += stream.rows_changed);
                books.in_part(&schedule, shared, [intended_ns.unwrap_or(start_ns), start_ns], end_ns);
                books.responded(&schedule, intended_ns, end_ns);
                failed_in_a_row = 0;
                if let Some(progress) = shared.progress_of(job) {
                    progress.set(books.job.total);
                }
            }
            Some(Err(e)) => {
                failed_in_a_row += 1;
                books.failed(&schedule, start_ns, end_ns, &e);
                books.responded(&schedule, intended_ns, end_ns);
                books.job.lost = why_job_ends(&e, session, script.is_some(), failed_in_a_row);
                if books.job.lost.is_some() {
                    break None;
                }
                if script.is_none() {
                    sleep_until(end_ns + PAUSE_AFTER_FAILURE_NS, shared);
                }
            }
        }
        passed.pass(end_ns, &schedule, session, &mut books.job, intended_ns, shared);
        think(thinks.as_mut(), &mut books, &mut schedule, shared, |now, schedule, books| {
            passed.pass(now, schedule, session, &mut books.job, None, shared);
        });
        if let Err(e) = held.renew(&mut books, &mut schedule, shared) {
            books.job.lost = Some(format!("no new session could be opened: {e}"));
            break None;
        }
    };
    books.end_part(shared, 0);
    if let Some(pace) = pace.as_mut()
        && !schedule.is_pending()
    {
        never_began_until_the_end(pace, never_began, &schedule, job == 0, &mut books);
    }
    if let Some(session) = held.get()
        && books.job.lost.is_none()
    {
        // What it did after the window: on a busy machine the server counts a session that ends too late.
        publish(session, &mut books.job);
    }
    books.job
}

/// Why a job whose transaction failed with `e`, the last of `in_a_row`, does not go on; `None` if it does.
fn why_job_ends(e: &TargetError, session: &mut dyn ClientSession, scripted: bool, in_a_row: u32) -> Option<String> {
    // As pgbench's, a client of scripts only goes on if it lost against another one.
    let ends = scripted && !matches!(e, TargetError::Conflict(_));
    if e.is_lost() || session.rollback().is_err() || ends {
        return Some(e.to_string());
    }
    (in_a_row >= MAX_FAILURES_IN_A_ROW && !scripted)
        .then(|| format!("{MAX_FAILURES_IN_A_ROW} transactions in a row failed, the last with: {e}"))
}

/// Transactions due before the window end that never began count as due too, and have waited until now at least. `first`: the first of
/// them, if the job waited for it.
fn never_began_until_the_end(
    pace: &mut Pace,
    first: Option<u64>,
    schedule: &Schedule,
    is_first_job: bool,
    books: &mut Books<'_>,
) {
    let due = first.into_iter().chain(std::iter::repeat_with(|| pace.next_start_ns()));
    let now = now_ns();
    for at in due.take_while(|at| *at < schedule.close_ns) {
        if is_first_job {
            books.job.intended_ns.push(at);
        }
        books.responded(schedule, Some(at), now);
    }
}

/// Whether a job has passed window start and window end.
#[derive(Default)]
struct Passed {
    window_start: bool,
    window_end: bool,
}

impl Passed {
    /// Publishes the job's counters if it has passed window start or window end by `now_ns`, between two transactions; the last was
    /// due at `intended_ns`.
    #[inline]
    fn pass(
        &mut self,
        now_ns: u64,
        schedule: &Schedule,
        session: &mut dyn ClientSession,
        job: &mut JobResult,
        intended_ns: Option<u64>,
        shared: &Shared,
    ) {
        if !self.window_start && now_ns >= schedule.open_ns {
            self.window_start = true;
            publish(session, job);
            shared.after_start.fetch_add(1, Ordering::Relaxed);
        }
        if !self.window_end && now_ns >= schedule.close_ns {
            self.window_end = true;
            job.behind_ns = intended_ns.map_or(0, |at| schedule.close_ns.saturating_sub(at));
            publish(session, job);
            shared.after_end.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether a job that may end still begins the transaction that was due at `at`, ns.
fn catches_up(at: u64, schedule: &Schedule, shared: &Shared) -> bool {
    let late = now_ns().checked_sub(schedule.close_ns);
    late.is_some_and(|ns| ns < CATCH_UP_NS) && at < schedule.close_ns && !shared.interrupted.load(Ordering::Relaxed)
}

fn publish(session: &mut dyn ClientSession, result: &mut JobResult) {
    if let Err(e) = session.publish_counters() {
        result.lost.get_or_insert(e.to_string());
    }
}

#[cfg(test)]
mod tests;
