//! Computes figures from the evidence of a test. Each is computed once, from the counters that its column names.
//!
//! `steps.rs` lists the functions.

pub(crate) mod blocks;
pub(crate) mod cost;
pub(crate) mod counters;
pub(crate) mod database;
pub(crate) mod disturbance;
pub(crate) mod log_switches;
pub(crate) mod machine;
pub(crate) mod nodes;
pub(crate) mod populations;
pub(crate) mod series;
pub(crate) mod shares;
pub(crate) mod slow;
pub(crate) mod volume;

use loadline_database::Runs;
use loadline_load::{Measured, Request};
use loadline_model::snapshot::{AUTOVACUUM, counter};
use loadline_model::{Driver, Latencies, Note, column};
use loadline_workload::Instrument;

use crate::evidence::Evidence;
pub(crate) use crate::test::MIB;
use crate::test::Test;

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const NOT_IDLE: &str = "only scans over times since the last change show it (LGWR-SIZE with --idle)";
const NONE_COMPLETED: &str = "no transaction completed in the window";
const ENDED_EARLY: &str = "all jobs ended before the window did";

fn all_ended_early(measured: &Measured) -> bool {
    measured.jobs.iter().all(|job| job.lost.is_some())
}

/// Background work of the database, rows by its own count, and what readers must know of counters and samples.
pub(crate) fn background(e: &Evidence<'_>, test: &mut Test) {
    let autovacuum = autovacuum_pct(e.measured);
    test.set_or_fallback(column::AUTOVACUUM_SHARE_PCT, autovacuum, "the target's background work is not sampled");
    if let Ok(Some(grown)) = e.proof.grown {
        test.set(column::ROWS_CHANGED_DATABASE, grown as f64);
    }
    if e.merged().scripted.is_some() {
        test.notes.push(Note::ScriptCommits { commits: e.merged().commits_per_tx() });
    }
    let problems = e.measured.collected.problems.iter().cloned();
    test.notes.extend(problems.map(|problem| Note::NotRead { problem }));
    if let Ok(counters) = &e.counters {
        test.notes.extend(read_late(counters.off_s, e.measured.schedule.window_s()));
        let made = counters.grown(counter::CHECKPOINTS);
        test.set_or_fallback(column::CHECKPOINTS, made, "the target does not count its checkpoints");
        test.notes.extend(checkpoints(e.request, made));
    }
}

/// Share of the samples in the window that saw autovacuum at work, %.
fn autovacuum_pct(measured: &Measured) -> Option<f64> {
    let window = measured.schedule.open_ns..measured.schedule.close_ns;
    let samples = measured.collected.wait_samples.iter().filter(|(at, _)| window.contains(at));
    let at_work: Vec<bool> =
        samples.filter_map(|(_, s)| Some(s.background.as_ref()?.iter().any(|what| what == AUTOVACUUM))).collect();
    let n = at_work.iter().filter(|at_work| **at_work).count();
    (!at_work.is_empty()).then(|| 100.0 * n as f64 / at_work.len() as f64)
}

/// Figures counted and timed by the jobs.
pub(crate) fn own(e: &Evidence<'_>, out: &mut Test) {
    let (merged, no_commit) = (e.merged(), no_commit(e));
    out.set(column::ELAPSED_S, e.measured.schedule.window_s());
    out.set(column::WARMUP_S, e.measured.warmup.taken_s);
    out.set(column::COMMITS, e.transactions());
    out.set(column::ERRORS, merged.errors as f64);
    out.set_absent(column::LOG_FLUSHED_WITHIN_S, NOT_IDLE);
    let counted = e.request.driver == Driver::Client || e.request.target.facts().retries_inside;
    let conflicts = counted.then_some(merged.conflicts as f64);
    out.set_or_absent(column::CONFLICTS, conflicts, "inside the database a transaction that loses is an error");
    out.set(column::COMMIT_THROUGHPUT_TPS, e.tps());
    out.set(column::TX_PER_S, e.tps());
    out.set_or_absent(column::COMMIT_LATENCY_MS, merged.transaction.mean_ns().map(|ns| ns / 1e6), NONE_COMPLETED);
    latencies(out, column::TRANSACTION_TIMES, &merged.transaction, NONE_COMPLETED);
    let (seen, all) = (merged.commit.count(), merged.transaction.count());
    latencies(out, column::COMMIT_TIMES, &merged.commit, no_commit);
    if no_commit == NONE_COMPLETED && seen < all {
        out.notes.push(Note::FewCommitsTimed { timed: seen, transactions: all });
    }
}

fn no_commit(e: &Evidence<'_>) -> &'static str {
    let merged = e.merged();
    if merged.scripted.is_some() {
        return "a script may commit anywhere, or not at all: its commits are not timed";
    }
    let unseen = merged.commit.count() == 0 && merged.transaction.count() > 0;
    e.request.target.facts().commit_unseen.filter(|_| unseen).unwrap_or(NONE_COMPLETED)
}

fn latencies(out: &mut Test, columns: column::Times, latencies: &Latencies, none: &str) {
    let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let quantile = |q| whole(latencies.quantile_ns(q));
    let times = [latencies.mean_ns(), quantile(0.5), quantile(0.99), whole(latencies.max_ns())];
    for (column, ns) in columns.all().into_iter().zip(times) {
        out.set_or_absent(column, ns, none);
    }
}

/// Note about checkpoints in the window, if no instrument says so. A database in loadline's process makes its own all the time.
fn checkpoints(request: &Request, counted: Option<f64>) -> Option<Note> {
    let measured = request.work.workload.has(Instrument::Checkpoint) || request.target.facts().runs != Runs::Apart;
    counted.filter(|n| *n >= 2.0 && !measured).map(|made| Note::Checkpoints { made })
}

/// Note about counters that were read too far from window start or window end.
fn read_late(off_s: f64, window_s: f64) -> Option<Note> {
    (off_s > 0.1 * window_s).then_some(Note::ReadLate { off_s, window_s })
}
