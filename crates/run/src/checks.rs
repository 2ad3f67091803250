//! Checks of every test, against the database's own counters and the laws of a closed loop. Pure functions of
//! measurements.

pub(crate) mod agents;
pub(crate) mod blocks_read;
pub(crate) mod blocks_written;
mod cached_share;
pub(crate) mod data_source;
pub(crate) mod disturbance;
mod facts;
mod load;
pub(crate) mod redo_on_device;
pub(crate) mod settings;
pub(crate) mod steady;

use loadline_model::format::counted;
use loadline_model::{Check, CheckId, Outcome};

pub(crate) use facts::Facts;

use crate::figures::counters::Completed;

/// Above this share of failed transactions a test is invalid.
const MAX_ERROR_SHARE: f64 = 0.01;
/// Above this share of its machine's CPU the client is the bottleneck, and the test invalid.
const MAX_CLIENT_CPU: f64 = 0.85;
/// From this share on, client CPU is noted.
const NOTE_CLIENT_CPU: f64 = 0.25;

/// Makes all checks.
pub(crate) fn verify(f: &Facts<'_>) -> Vec<Check> {
    let mut checks = vec![
        window(f),
        errors(f),
        reset(f),
        all_commits(f),
        window_commits(f),
        evidence(f),
        load::littles_law(f),
        commits_per_sync(f),
        redo_size(f),
        client_cpu(f),
        load::rate(f),
    ];
    checks.extend(load::think_time(f));
    checks.extend(consistency(f));
    checks.extend(rows_read(f));
    checks.extend(read_only(f));
    checks.extend(agents::check(f.agents));
    checks.extend(agents::network(f.agents));
    checks
}

/// Queries with a known number of rows must have read them. The database may count more (other tables, its catalog,
/// other sessions).
fn rows_read(f: &Facts<'_>) -> Option<Check> {
    let (counted, per_tx) = f.rows_read?;
    let id = CheckId::RowsRead;
    let Some(counted) = counted else {
        let why = missing(&f.unread, "the database does not count the rows that it reads");
        return Some(Check::new(id, Outcome::NotMade, why));
    };
    let Completed { count, uncertain } = f.comparable();
    let expected = count * per_tx;
    // A transaction that crosses window start or window end reads rows on one side and is counted on the other.
    let allowed = (f.jobs.len() as f64 + uncertain) * per_tx + 0.02 * expected;
    let detail = format!(
        "the queries in the window read {expected:.0} rows; the database counted {counted:.0} (at most {allowed:.0} \
        fewer are allowed)"
    );
    Some(Check::require(id, counted >= expected - allowed, detail))
}

/// Whether scripts that may only read did so: one may have set `default_transaction_read_only` off.
fn read_only(f: &Facts<'_>) -> Option<Check> {
    let id = CheckId::ReadOnly;
    Some(match f.changed_by_readers? {
        None => Check::new(id, Outcome::NotMade, missing(&f.unread, "the database does not count changed rows")),
        Some(rows) if rows <= 0.0 => Check::require(id, true, "no row was changed in the database".to_owned()),
        Some(rows) => {
            let detail = format!(
                "scripts may only read, but {rows:.0} rows were changed in the database in the window: by a script that sets \
                 default_transaction_read_only off, in temporary tables, or by other sessions"
            );
            Check::new(id, Outcome::Noted, detail)
        }
    })
}

/// The workload's consistency conditions after a test.
fn consistency(f: &Facts<'_>) -> Option<Check> {
    let id = CheckId::Consistency;
    let (mut held, mut unknown) = (Vec::new(), Vec::new());
    for (what, found) in f.consistency {
        match found {
            Ok(Some(0)) => held.push(*what),
            Ok(Some(off)) => {
                return Some(Check::require(id, false, format!("violated: {what} (off by {off})")));
            }
            Ok(None) => unknown.push(*what),
            Err(e) => return Some(Check::require(id, false, format!("the query that proves '{what}' failed: {e}"))),
        }
    }
    match (held.is_empty(), unknown.is_empty()) {
        (true, true) => None,
        (_, false) => Some(Check::new(id, Outcome::NotMade, "the target stores no rows to query".to_owned())),
        _ => Some(Check::require(id, true, held.join("; "))),
    }
}

fn window(f: &Facts<'_>) -> Check {
    if let Some((job, text)) = f.jobs.iter().enumerate().find_map(|(i, j)| j.lost.as_ref().map(|t| (i, t))) {
        let n = f.jobs.iter().filter(|j| j.lost.is_some()).count();
        return Check::require(
            CheckId::Window,
            false,
            format!("{n} of {} jobs ended early; job {job}: {text}", f.jobs.len()),
        );
    }
    let late = f.jobs.iter().filter(|j| !j.ran_through(&f.schedule)).count();
    let idle = f.jobs.iter().filter(|j| j.completed == 0).count();
    let of = f.jobs.len();
    if late > 0 {
        return Check::require(
            CheckId::Window,
            false,
            format!("{late} of {of} jobs did not run through the whole window"),
        );
    }
    let (mean_ns, window_ns) = (f.merged.transaction.mean_ns().unwrap_or(0.0), f.schedule.window_ns() as f64);
    if mean_ns > window_ns / 2.0 {
        let detail = format!(
            "transactions took {:.1} s, and the window {:.1} s, which is too short; use a longer window (--duration)",
            mean_ns / 1e9,
            window_ns / 1e9
        );
        return Check::require(CheckId::Window, false, detail);
    }
    let detail = format!("all {of} jobs ran from before the window start until after the window end");
    match idle {
        0 => Check::require(CheckId::Window, true, detail),
        n if n == of => Check::require(
            CheckId::Window,
            false,
            "no transaction completed in the window: use a longer window (--duration)".into(),
        ),
        n => Check::new(
            CheckId::Window,
            Outcome::Noted,
            format!("{detail}, but {n} of them completed no transaction in it"),
        ),
    }
}

fn errors(f: &Facts<'_>) -> Check {
    let (errors, done) = (f.merged.errors as f64, f.merged.transaction.count() as f64);
    let again = f.merged.scripted.as_ref().map_or("", |_| "; scripts are not tried again (pgbench --max-tries 1)");
    let first = f.merged.error_texts.keys().next().map_or(String::new(), |t| format!("{again}; one of them: {t}"));
    if f.merged.errors_total == 0 {
        return Check::require(CheckId::Errors, true, "no transaction ended with an error".into());
    }
    let share = errors / (errors + done).max(1.0);
    let detail = if errors == 0.0 {
        let outside = f.merged.errors_total;
        format!("no transaction in the window ended with an error, {outside} before or after it did{first}")
    } else {
        format!(
            "{errors} transactions in the window ended with an error, {:.2} % of all (allowed: {:.0} %){first}",
            share * 100.0,
            MAX_ERROR_SHARE * 100.0
        )
    };
    let outcome = if share > MAX_ERROR_SHARE { Outcome::Failed } else { Outcome::Noted };
    Check::new(CheckId::Errors, outcome, detail)
}

/// A counter that was reset proves nothing, and the checks that need it would not be made.
fn reset(f: &Facts<'_>) -> Check {
    let id = CheckId::Counters;
    match &f.went_back {
        None => Check::new(id, Outcome::NotMade, missing(&f.unread, "the database's counters could not be read")),
        Some(names) if names.is_empty() => Check::require(id, true, "no counter of the database went backwards".into()),
        Some(names) => {
            let names = names.join(", ");
            Check::require(id, false, format!("counters of the database were reset in the test: {names}"))
        }
    }
}

const COMMITS_NOT_COUNTED: &str = "the database does not count its commits";

/// Why a figure is missing: its counters could not be read, or else `why`.
fn missing(unread: &Option<String>, why: &str) -> String {
    unread.clone().unwrap_or_else(|| why.to_owned())
}

fn all_commits(f: &Facts<'_>) -> Check {
    let id = CheckId::CommitsDatabase;
    let Some(counted) = f.all_commits else {
        let unread = f.unread_whole.as_ref().map(|why| format!("the database's counters could not be read: {why}"));
        return Check::new(
            id,
            Outcome::NotMade,
            missing(&unread, f.commits_not_comparable.as_deref().unwrap_or(COMMITS_NOT_COUNTED)),
        );
    };
    let ours = f.merged.scripted.as_ref().map_or(f.merged.total, |did| did.commits_total) as f64;
    let (counted, failed) = without_failed(counted, f.failed_commits.all);
    // Unknown: the outcome of transactions that failed or were cancelled at the end. Background workers commit too.
    let allowed = f.jobs.len() as f64 + f.merged.errors_total as f64 + (ours * 0.005).max(20.0);
    let detail = format!(
        "from the first job's start to the last job's end the jobs counted {ours} commits, the database {counted}{failed} \
        (allowed difference: {allowed:.0})"
    );
    Check::compare(id, &[([ours, counted], allowed)], detail)
}

/// The database's count without the COMMITs that failed, and words for that.
fn without_failed(counted: f64, failed: f64) -> (f64, String) {
    let words = if failed > 0.0 { format!(" without {failed} COMMITs that failed") } else { String::new() };
    (counted - failed, words)
}

fn window_commits(f: &Facts<'_>) -> Check {
    let id = CheckId::CommitsWindow;
    if f.whole {
        return Check::new(id, Outcome::NotMade, "the server counts late: its commits are those of the whole test");
    }
    let Some(counted) = f.window_commits else {
        return Check::new(
            id,
            Outcome::NotMade,
            missing(&f.unread, f.commits_not_comparable.as_deref().unwrap_or(COMMITS_NOT_COUNTED)),
        );
    };
    // Snapshots are taken shortly after window start and window end; counters have grown by then, at different rates.
    let Completed { count, uncertain } = f.comparable();
    let per_tx = f.commits_per_tx();
    let (ours, uncertain) = (count * per_tx, uncertain * per_tx);
    let (counted, failed) = without_failed(counted, f.failed_commits.window);
    let allowed = 2.0 * f.jobs.len() as f64 * per_tx.max(1.0)
        + f.merged.errors as f64
        + (ours * 0.02).max(10.0)
        + f.failed_commits.uncertain
        + uncertain;
    let whose = if f.completed.is_some() { "between the database's snapshots" } else { "in the window" };
    let detail = format!(
        "{whose} the jobs counted {ours:.0} commits, the database {counted} between its snapshots{failed} (allowed \
        difference: {allowed:.0})"
    );
    Check::compare(id, &[([ours, counted], allowed)], detail)
}

fn evidence(f: &Facts<'_>) -> Check {
    let id = CheckId::WorkEvidence;
    let idle = f.merged.scripted.as_ref().is_some_and(|did| did.statements == 0);
    let executions = f.merged.transaction.count();
    if idle && executions > 0 {
        let detail = format!("nothing was sent to the database: {executions} executions of scripts sent no statement");
        return Check::require(id, false, detail);
    }
    let (grown, per_tx) = match &f.evidence {
        Ok(Some(evidence)) => *evidence,
        Ok(None) => {
            return Check::new(id, Outcome::NotMade, f.no_evidence.unwrap_or("the workload has no evidence query"));
        }
        Err(e) => return Check::require(id, false, format!("the query that proves the work failed: {e}")),
    };
    let expected = f.rows_changed.unwrap_or(f.merged.total.saturating_mul(per_tx));
    // A transaction that failed at its commit may have been committed.
    let unknown = (f.merged.errors_total + f.jobs.iter().filter(|j| j.lost.is_some()).count() as u64) * per_tx;
    let ok = grown >= 0 && (grown as u64).abs_diff(expected) <= unknown;
    let up_to = if f.rows_changed.is_some() { "up to " } else { "" };
    let detail = format!(
        "the jobs committed {} transactions of {up_to}{per_tx} rows: {expected} {}; the database has {grown}",
        f.merged.total, f.evidence_counts
    );
    Check::require(id, ok, detail)
}

fn commits_per_sync(f: &Facts<'_>) -> Check {
    let id = CheckId::CommitsPerSync;
    if f.merged.scripted.is_some() {
        return Check::new(id, Outcome::NotMade, "whether a script's commit writes is not known to its client");
    }
    if !f.durable {
        return Check::new(id, Outcome::NotMade, "commits of this workload do not wait for a sync");
    }
    let Some(syncs) = f.window_syncs else {
        return Check::new(
            id,
            Outcome::NotMade,
            missing(&f.unread, "the database does not count the syncs of its log"),
        );
    };
    if !f.node_commits.is_empty() {
        return commits_per_sync_of_nodes(f);
    }
    // The database also counts commits of background workers, which need no sync.
    let all = match (f.completed, f.window_commits) {
        (Some(Completed { count, uncertain }), Some(counted)) => counted.min(count + uncertain),
        (Some(Completed { count, .. }), None) => count,
        // Others' reads are commits as well, and need no sync.
        (None, Some(counted)) => counted.min(f.merged.transaction.count() as f64 + f.jobs.len() as f64),
        (None, None) => f.merged.transaction.count() as f64,
    };
    let jobs = f.jobs.len() as f64;
    let share = f.writing_share;
    let (commits, allowed_commits) = (writing(f, all), allowed_commits(f, writing(f, all), syncs, jobs));
    let ratio = if syncs > 0.0 { commits / syncs } else { f64::INFINITY };
    let of = if share < 1.0 { format!(" (lower bound of the writing ones among {all})") } else { String::new() };
    let detail = format!(
        "{commits} commits{of} and {syncs} syncs of the log: {ratio:.2} commits per sync (allowed with {}: {jobs})",
        counted(f.jobs.len(), "job")
    );
    let detail = if commits > allowed_commits {
        format!("{detail}: commits did not wait until they were durable")
    } else {
        detail
    };
    Check::require(id, commits <= allowed_commits, detail)
}

/// Lower bound of the writing transactions among `all`: read-only ones need no sync. If transactions are drawn at random, their
/// number is estimated low by four standard deviations.
fn writing(f: &Facts<'_>, all: f64) -> f64 {
    let share = f.writing_share;
    (all * share - 4.0 * (all * share * (1.0 - share)).sqrt()).max(0.0).round()
}

/// One sync makes at most one commit of each job durable. Commits and syncs near window start and window end may be on either
/// side of a snapshot.
fn allowed_commits(f: &Facts<'_>, commits: f64, syncs: f64, jobs: f64) -> f64 {
    (syncs + 2.0) * jobs * 1.01 + f.late_share() * commits
}

/// The same of each node: its syncs make commits of its own jobs durable. A node of a cluster also syncs what it applies of others,
/// so that its bound is a loose one.
fn commits_per_sync_of_nodes(f: &Facts<'_>) -> Check {
    let mut said = Vec::new();
    let mut broken = Vec::new();
    for node in &f.node_commits {
        let (commits, jobs) = (writing(f, node.commits), node.jobs as f64);
        let ratio = if node.syncs > 0.0 { commits / node.syncs } else { f64::INFINITY };
        said.push(format!(
            "node {}: {commits} commits and {} syncs of its log, {ratio:.2} per sync (allowed with {}: {jobs})",
            node.node,
            node.syncs,
            counted(node.jobs, "job")
        ));
        if commits > allowed_commits(f, commits, node.syncs, jobs) {
            broken.push(format!("node {}", node.node));
        }
    }
    let mut detail = said.join("; ");
    if !broken.is_empty() {
        detail = format!("{detail}: commits at {} did not wait until they were durable", broken.join(" and "));
    }
    Check::require(CheckId::CommitsPerSync, broken.is_empty(), detail)
}

fn redo_size(f: &Facts<'_>) -> Check {
    let id = CheckId::RedoSize;
    let Some(size) = f.redo_size else {
        return Check::new(id, Outcome::NotMade, "the workload is not defined by its redo");
    };
    let Some(seen) = f.redo else {
        return Check::new(id, Outcome::NotMade, missing(&f.unread, "the target does not count its redo"));
    };
    let kib = |bytes: f64| bytes / 1024.0;
    // A transaction that crosses window start or window end writes redo on one side and is counted on the other. So do all
    // transactions between a window edge and the moment at which the log's position was read.
    let edge = f.jobs.len() as f64 / (f.merged.transaction.count() as f64).max(1.0) + f.redo_off_share;
    let detail = format!(
        "{:.2} KiB of redo per transaction; the workload is defined as {:.2} to {:.2} KiB",
        kib(seen),
        kib(size.min),
        kib(size.max)
    );
    let why =
        if f.redo_off_share < 0.01 { "transactions cross the window's edges" } else { "its position was read late" };
    let said = !(size.min..=size.max).contains(&seen) || f.redo_off_share >= 0.01;
    let detail = if said { format!("{detail}, more or less {:.1} %: {why}", edge * 100.0) } else { detail };
    let ok = (size.min * (1.0 - edge)..=size.max * (1.0 + edge)).contains(&seen);
    let detail = match f.page_images.filter(|n| !ok && *n >= 0.01) {
        Some(n) => format!(
            "{detail}; a transaction wrote {n:.2} images of whole pages, one for each page that changes for the first time after a \
            checkpoint: use a longer --warmup, a max_wal_size with which no checkpoint follows it, or fewer jobs"
        ),
        None => detail,
    };
    Check::require(id, ok, detail)
}

fn client_cpu(f: &Facts<'_>) -> Check {
    let id = CheckId::ClientCpu;
    let share = match &f.client_cpu_share {
        Ok(share) => *share,
        Err(why) => return Check::new(id, Outcome::NotMade, why.clone()),
    };
    let detail = match agents::busiest(f.agents) {
        Some((who, _)) => format!("{who} used {:.0} % of the CPU of their machine", share * 100.0),
        None => format!("loadline used {:.0} % of its machine's CPU", share * 100.0),
    };
    if !f.client_driver || share < NOTE_CLIENT_CPU {
        return Check::require(id, true, detail);
    }
    if share < MAX_CLIENT_CPU {
        return Check::new(
            id,
            Outcome::Noted,
            format!("{detail}: with the client on a separate machine the figures may be higher"),
        );
    }
    let limit = MAX_CLIENT_CPU * 100.0;
    Check::require(id, false, format!("{detail} (allowed: {limit:.0} %): the client is the bottleneck, not the target"))
}

#[cfg(test)]
mod tests;
