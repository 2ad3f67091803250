//! Checks of every test, against the database's own counters and the laws of a closed loop. Pure functions of evidence.

pub(crate) mod blocks_read;
pub(crate) mod blocks_written;
pub(crate) mod load;
pub(crate) mod processes;
pub(crate) mod redo_on_device;
pub(crate) mod settings;
pub(crate) mod steady;

use loadline_database::Runs;
use loadline_load::{Measured, Tally};
use loadline_model::format::counted;
use loadline_model::snapshot::counter;
use loadline_model::{Driver, Outcome, column};

use crate::evidence::{Evidence, Proof};
use crate::figures::counters::{Completed, Counters};
use crate::figures::database::{
    COMMITS_NOT_COUNTED, ENGINES_ELSEWHERE, are_comparable, comparable_commits, engines_elsewhere,
};
use crate::figures::nodes::{self, NodeCommits, allowed_commits, failed_commits, failed_in_window};
use crate::test::{Judged, Test, Verdict, failed, not_made, noted, passed, require};

/// Above this share of failed transactions a test is refused.
const MAX_ERROR_SHARE: f64 = 0.01;
/// Above this share of its machine's CPU the client is the bottleneck, and the test refused.
const MAX_CLIENT_CPU: f64 = 0.85;
/// From this share on, client CPU is noted.
const NOTE_CLIENT_CPU: f64 = 0.25;

/// Queries with a known number of rows must have read them. The database may count more (its catalog, other sessions).
pub(crate) fn rows_read(e: &Evidence<'_>) -> Option<Verdict> {
    let volume = e.work().workload.volume(&e.work().params).map(|of| of.rows).filter(|rows| *rows > 0.0);
    let per_tx = if e.work().program.writes() { return None } else { volume? };
    let Some(counted) = e.grown(counter::ROWS_READ) else {
        return Some(not_made(e.missing("the database does not count the rows that it reads")));
    };
    let Completed { count, uncertain } = e.comparable();
    let expected = count * per_tx;
    // A transaction that crosses window start or window end reads rows on one side and is counted on the other.
    let allowed = (e.jobs() + uncertain) * per_tx + 0.02 * expected;
    let detail = format!(
        "the queries in the window read {expected:.0} rows; the database counted {counted:.0} (at most {allowed:.0} \
        fewer are allowed)"
    );
    Some(require(counted >= expected - allowed, detail))
}

/// Whether scripts that may only read did so: one may have set `default_transaction_read_only` off.
pub(crate) fn read_only(e: &Evidence<'_>) -> Option<Verdict> {
    e.work().workload.scripts.as_ref().filter(|scripts| !scripts.allow_writes)?;
    Some(match e.grown(counter::ROWS_CHANGED) {
        None => not_made(e.missing("the database does not count changed rows")),
        Some(rows) if rows <= 0.0 => passed("no row was changed in the database"),
        Some(rows) => noted(format!(
            "scripts may only read, but {rows:.0} rows were changed in the database in the window: by a script that sets \
             default_transaction_read_only off, in temporary tables, or by other sessions"
        )),
    })
}

pub(crate) fn consistency(conditions: &[(String, Result<Option<i64>, String>)]) -> Option<Verdict> {
    let (mut held, mut unknown) = (Vec::new(), Vec::new());
    for (what, found) in conditions {
        match found {
            Ok(Some(0)) => held.push(what.as_str()),
            Ok(Some(off)) => return Some(failed(format!("violated: {what} (off by {off})"))),
            Ok(None) => unknown.push(what),
            Err(e) => return Some(failed(format!("the query that proves '{what}' failed: {e}"))),
        }
    }
    match (held.is_empty(), unknown.is_empty()) {
        (true, true) => None,
        (_, false) => Some(not_made("the target stores no rows to query")),
        _ => Some(passed(held.join("; "))),
    }
}

/// With what helps against a full disk, if that is why it failed.
pub(crate) fn with_full_disk(e: &Evidence<'_>, mut verdict: Verdict) -> Verdict {
    if let Some(advice) = e.full_disk.as_ref()
        && verdict.outcome == Outcome::Failed
    {
        verdict.detail += advice;
    }
    verdict
}

/// Whether the jobs failed: too many transactions ended with an error, or the window was not full.
pub(crate) fn have_failed(measured: &Measured) -> bool {
    [window(measured), errors(&measured.merged)].iter().any(|check| check.outcome == Outcome::Failed)
}

/// All jobs must have run through the window and completed transactions in it.
pub(crate) fn window(measured: &Measured) -> Verdict {
    let Measured { schedule, jobs, merged, .. } = measured;
    if let Some((job, text)) = jobs.iter().enumerate().find_map(|(i, j)| j.lost.as_ref().map(|t| (i, t))) {
        let n = jobs.iter().filter(|j| j.lost.is_some()).count();
        return failed(format!("{n} of {} jobs ended early; job {job}: {text}", jobs.len()));
    }
    let late = jobs.iter().filter(|j| !j.ran_through(schedule)).count();
    let idle = jobs.iter().filter(|j| j.completed == 0).count();
    let of = jobs.len();
    if late > 0 {
        return failed(format!("{late} of {of} jobs did not run through the whole window"));
    }
    let (mean_ns, window_ns) = (merged.transaction.mean_ns().unwrap_or(0.0), schedule.window_ns() as f64);
    if mean_ns > window_ns / 2.0 {
        let detail = format!(
            "transactions took {:.1} s, and the window {:.1} s, which is too short; use a longer window (--duration)",
            mean_ns / 1e9,
            window_ns / 1e9
        );
        return failed(detail);
    }
    let detail = format!("all {of} jobs ran from before the window start until after the window end");
    match idle {
        0 => passed(detail),
        n if n == of => {
            let advice = if merged.errors > 0 { "" } else { ": use a longer window (--duration)" };
            failed(format!("no transaction completed in the window{advice}"))
        }
        n => noted(format!("{detail}, but {n} of them completed no transaction in it")),
    }
}

pub(crate) fn errors(merged: &Tally) -> Verdict {
    let (errors, done) = (merged.errors as f64, merged.transaction.count() as f64);
    let again = merged.scripted.as_ref().map_or("", |_| "; scripts are not tried again (pgbench --max-tries 1)");
    let first = merged.error_texts.keys().next().map_or(String::new(), |t| format!("{again}; one of them: {t}"));
    if merged.errors_total == 0 {
        return passed("no transaction ended with an error");
    }
    let share = errors / (errors + done).max(1.0);
    let detail = if errors == 0.0 {
        let outside = merged.errors_total;
        format!("no transaction in the window ended with an error, {outside} before or after it did{first}")
    } else {
        format!(
            "{errors} transactions in the window ended with an error, {:.2} % of all (allowed: {:.0} %){first}",
            share * 100.0,
            MAX_ERROR_SHARE * 100.0
        )
    };
    let outcome = if share > MAX_ERROR_SHARE { Outcome::Failed } else { Outcome::Noted };
    Verdict::new(outcome, detail)
}

/// A counter that was reset proves nothing, and the checks that need it would not be made.
pub(crate) fn reset(e: &Evidence<'_>) -> Verdict {
    match e.counters.as_ref().map(Counters::went_back) {
        Err(why) => not_made(why.as_str()),
        Ok(names) if names.is_empty() => passed("no counter of the database went backwards"),
        Ok(names) => failed(format!("counters of the database were reset in the test: {}", names.join(", "))),
    }
}

pub(crate) const SYNCS_NOT_COUNTED: &str = "the database does not count the syncs of its log";

/// From before the jobs connected until after they disconnected, the database must have counted their commits.
pub(crate) fn all_commits(e: &Evidence<'_>) -> Judged {
    let merged = e.merged();
    let unread = |why: &String| not_made(format!("the database's counters could not be read: {why}"));
    let (before, after) = (e.measured.before.as_ref().map_err(unread)?, e.measured.after.as_ref().map_err(unread)?);
    are_comparable(e).map_err(not_made)?;
    let counted = before.delta(after, counter::COMMITS).ok_or_else(|| not_made(COMMITS_NOT_COUNTED))?;
    let ours = merged.scripted.as_ref().map_or(merged.total, |did| did.commits_total) as f64;
    let (counted, failed) = without_failed(counted, failed_commits(e.request, &e.measured.jobs));
    let allowed = allowed_commits(e.measured.jobs.len(), merged.errors_total, ours);
    let detail = format!(
        "from the first job's start to the last job's end the jobs counted {ours} commits, the database {counted}{failed} \
        (allowed difference: {allowed:.0})"
    );
    Ok(Verdict::compare(&[([ours, counted], allowed)], detail))
}

/// The database's count without the COMMITs that failed, and words for that.
fn without_failed(counted: f64, failed: f64) -> (f64, String) {
    let words = if failed > 0.0 { format!(" without {failed} COMMITs that failed") } else { String::new() };
    (counted - failed, words)
}

/// Between its snapshots the database must have counted the jobs' commits.
pub(crate) fn window_commits(e: &Evidence<'_>) -> Judged {
    if e.counters.as_ref().is_ok_and(|c| c.whole.is_some()) {
        return Err(not_made("the server counts late: its commits are those of the whole test"));
    }
    let counted = comparable_commits(e).map_err(not_made)?;
    // Snapshots are taken shortly after window start and window end; counters have grown by then, at different rates.
    let Completed { count, uncertain } = e.comparable();
    let per_tx = e.merged().commits_per_tx();
    let (ours, uncertain) = (count * per_tx, uncertain * per_tx);
    let [failed, failed_uncertain] = failed_in_window(e);
    let (counted, failed) = without_failed(counted, failed);
    let allowed = 2.0 * e.jobs() * per_tx.max(1.0)
        + e.merged().errors as f64
        + (ours * 0.02).max(10.0)
        + failed_uncertain
        + uncertain;
    let whose = if e.completed().is_some() { "between the database's snapshots" } else { "in the window" };
    let detail = format!(
        "{whose} the jobs counted {ours:.0} commits, the database {counted} between its snapshots{failed} (allowed \
        difference: {allowed:.0})"
    );
    Ok(Verdict::compare(&[([ours, counted], allowed)], detail))
}

/// The rows in the database must be those that the jobs' transactions left.
pub(crate) fn work_evidence(e: &Evidence<'_>) -> Judged {
    let (merged, program) = (e.merged(), &e.work().program);
    let idle = merged.scripted.as_ref().is_some_and(|did| did.statements == 0);
    let executions = merged.transaction.count();
    if idle && executions > 0 {
        let why = format!("nothing was sent to the database: {executions} executions of scripts sent no statement");
        return Err(failed(why));
    }
    if engines_elsewhere(e.request) {
        return Err(not_made(ENGINES_ELSEWHERE));
    }
    let grown = grown(e.proof)?;
    let per_tx = e.work().workload.scripts.as_ref().map_or(program.rows_changed_per_tx(), |_| 1);
    let expected = if program.varies() { merged.rows_changed } else { merged.total.saturating_mul(per_tx) };
    // A transaction that failed at its commit may have been committed.
    let unknown = (merged.errors_total + e.measured.jobs.iter().filter(|j| j.lost.is_some()).count() as u64) * per_tx;
    let ok = grown >= 0 && (grown as u64).abs_diff(expected) <= unknown;
    let up_to = if program.varies() { "up to " } else { "" };
    let detail = format!(
        "the jobs committed {} transactions of {up_to}{per_tx} rows: {expected} {}; the database has {grown}",
        merged.total,
        e.work().workload.evidence.as_ref().map_or("", |of| &of.counts)
    );
    Ok(require(ok, detail))
}

/// Growth of the rows that prove the work, or why it proves nothing.
pub(crate) fn grown(proof: &Proof) -> Result<i64, Verdict> {
    match &proof.grown {
        Ok(Some(grown)) => Ok(*grown),
        Ok(None) => Err(not_made("the workload has no evidence query")),
        Err(e) => Err(failed(format!("the query that proves the work failed: {e}"))),
    }
}

/// Commits that wait need syncs: one sync makes at most one commit of each job durable. Commits and syncs near window start and window
/// end may be on either side of a snapshot. Each instance must have synced for its own jobs; it also syncs what it applies
/// of others, so that its bound is a loose one.
pub(crate) fn commits_per_sync(e: &Evidence<'_>) -> Judged {
    if e.merged().scripted.is_some() {
        return Err(not_made("whether a script's commit writes is not known to its client"));
    }
    if !e.is_durable() {
        return Err(not_made("commits of this workload do not wait for a sync"));
    }
    let syncs = e.grown(counter::REDO_SYNCS).ok_or_else(|| not_made(e.missing(SYNCS_NOT_COUNTED)))?;
    let (nodes, share) = (nodes::commits(e), e.writing_share());
    let whole = [NodeCommits { node: None, jobs: e.measured.jobs.len(), commits: compared_commits(e), syncs }];
    let (mut said, mut broken) = (Vec::new(), Vec::new());
    for NodeCommits { node, jobs, commits: all, syncs } in if nodes.is_empty() { &whole[..] } else { &nodes } {
        // Read-only ones need no sync. The number of the others, if drawn at random, is estimated low by four standard deviations.
        let commits = (all * share - 4.0 * (all * share * (1.0 - share)).sqrt()).max(0.0).round();
        let name = node.map(|n| format!("node {n}"));
        let ratio = if *syncs > 0.0 { commits / syncs } else { f64::INFINITY };
        let of = if share < 1.0 { format!(" (lower bound of the writing ones among {all})") } else { String::new() };
        let of_node = name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        said.push(format!(
            "{of_node}{commits} commits{of} and {syncs} syncs of the log: {ratio:.2} commits per sync (allowed with {}: {jobs})",
            counted(*jobs, "job")
        ));
        if commits > (syncs + 2.0) * *jobs as f64 * 1.01 + e.late_share() * commits {
            broken.push(name.map_or(String::new(), |name| format!(" at {name}")));
        }
    }
    let detail = said.join("; ");
    if !broken.is_empty() {
        return Err(failed(format!("{detail}: commits{} did not wait until they were durable", broken.join(" and"))));
    }
    Ok(passed(detail))
}

/// Commits of the jobs between the snapshots. The database also counts those of background workers, which need no sync.
fn compared_commits(e: &Evidence<'_>) -> f64 {
    match (e.completed(), comparable_commits(e)) {
        (Some(Completed { count, uncertain }), Ok(counted)) => counted.min(count + uncertain),
        (Some(Completed { count, .. }), Err(_)) => count,
        // Others' reads are commits as well, and need no sync.
        (None, Ok(counted)) => counted.min(e.transactions() + e.jobs()),
        (None, Err(_)) => e.transactions(),
    }
}

/// Transactions must write the redo that the workload is defined with.
pub(crate) fn redo_size(e: &Evidence<'_>, figures: &Test) -> Judged {
    let size = e.work().workload.redo.ok_or_else(|| not_made("the workload is not defined by its redo"))?;
    let seen = figures.figure(column::REDO_BYTES_PER_TX);
    let seen = seen.ok_or_else(|| not_made(e.missing("the target does not count its redo")))?;
    let kib = |bytes: f64| bytes / 1024.0;
    // A transaction that crosses window start or window end writes redo on one side and is counted on the other. So do all
    // transactions between window start or end and the moment at which the log's position was read.
    let off_share = redo_off_share(e);
    let crossing = e.jobs() / e.transactions().max(1.0) + off_share;
    let detail = format!(
        "{:.2} KiB of redo per transaction; the workload is defined as {:.2} to {:.2} KiB",
        kib(seen),
        kib(size.min),
        kib(size.max)
    );
    let why =
        if off_share < 0.01 { "transactions cross the window's start or end" } else { "its position was read late" };
    let said = !(size.min..=size.max).contains(&seen) || off_share >= 0.01;
    let detail = if said { format!("{detail}, more or less {:.1} %: {why}", crossing * 100.0) } else { detail };
    let ok = (size.min * (1.0 - crossing)..=size.max * (1.0 + crossing)).contains(&seen);
    let transactions = e.counters.as_ref().ok().and_then(|c| c.whole).unwrap_or(e.transactions());
    let page_images = e.grown(counter::REDO_PAGE_IMAGES).map(|n| n / transactions);
    let detail = match page_images.filter(|n| !ok && *n >= 0.01) {
        Some(n) => format!(
            "{detail}; a transaction wrote {n:.2} images of whole pages, one for each page that changes for the first time after a \
            checkpoint: use a longer --warmup, a max_wal_size with which no checkpoint follows it, or fewer jobs"
        ),
        None => detail,
    };
    Ok(require(ok, detail))
}

/// Share of the window by which the log's position was read off its start and end, unless the jobs' own count is of these moments.
fn redo_off_share(e: &Evidence<'_>) -> f64 {
    let Some(counters) = e.counters.as_ref().ok().filter(|c| c.exact_on_time().is_none()) else { return 0.0 };
    let ([open, close], s) = (counters.on_time, e.measured.schedule);
    let off_ns = open.at_ns.abs_diff(s.open_ns) + close.at_ns.abs_diff(s.close_ns);
    off_ns as f64 / 1e9 / s.window_s().max(1e-9)
}

pub(crate) fn client_cpu(e: &Evidence<'_>, figures: &Test) -> Judged {
    if e.request.target.facts().runs != Runs::Apart {
        return Err(not_made("there is no client apart from the database"));
    }
    Ok(check_client(e, figures.known(column::CLIENT_CPU_PCT)? / 100.0))
}

/// The client used this share (0…1) of its machine's CPU.
fn check_client(e: &Evidence<'_>, share: f64) -> Verdict {
    let detail = match processes::busiest(&e.measured.elsewhere.processes) {
        Some((who, _)) => format!("{who} used {:.0} % of the CPU of their machine", share * 100.0),
        None => format!("loadline used {:.0} % of its machine's CPU", share * 100.0),
    };
    if e.request.driver != Driver::Client || share < NOTE_CLIENT_CPU {
        return passed(detail);
    }
    if share < MAX_CLIENT_CPU {
        return noted(format!("{detail}: with the client on a separate machine the figures may be higher"));
    }
    let limit = MAX_CLIENT_CPU * 100.0;
    failed(format!("{detail} (allowed: {limit:.0} %): the client is the bottleneck, not the target"))
}

#[cfg(test)]
mod tests;
