//! Computes figures from measurements. Each is computed once, from the counters that its column names.
//!
//! Each part returns [`Figures`]; [`figures`] merges them.

pub(crate) mod access;
pub(crate) mod blocks;
pub(crate) mod collected;
pub(crate) mod counters;
pub(crate) mod database;
pub(crate) mod disturbance;
mod load;
pub(crate) mod machine;
pub(crate) mod nodes;
pub(crate) mod populations;
pub(crate) mod series;
mod shares;
mod volume;

use loadline_database::Runs;
use loadline_load::{Measured, Request, Tally};
use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::number;
use loadline_model::snapshot::{AUTOVACUUM, counter};
use loadline_model::{Driver, Latencies, column};
use loadline_workload::Instrument;

pub use collected::Figures;
use counters::Counters;

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const MIB: f64 = 1024.0 * 1024.0;
/// Why times are absent.
const NONE_COMPLETED: &str = "no transaction completed in the window";
/// Why figures of the machine are absent.
const ENDED_EARLY: &str = "all jobs ended before the window did";

fn all_ended_early(measured: &Measured) -> bool {
    measured.jobs.iter().all(|job| job.lost.is_some())
}

/// Results of queries before and after a test.
#[derive(Debug, Clone)]
pub struct Proof {
    /// Result of the evidence query before the test.
    pub evidence_before: Option<i64>,
    /// The same after the test, or why it failed.
    pub evidence_after: Result<Option<i64>, String>,
    /// Consistency queries with their results, which must be 0.
    pub consistency: Vec<(&'static str, Result<Option<i64>, String>)>,
    /// Bytes of the whole tables that a transaction reads or loads, if it does.
    pub data_bytes: Result<Option<f64>, String>,
    /// CPUs of the machine that loadline runs on.
    pub cpus: u32,
}

impl Proof {
    /// Growth of the evidence query's result; `None` without a query.
    ///
    /// # Errors
    /// Why the query failed.
    pub(crate) fn grown(&self) -> Result<Option<i64>, String> {
        let after = self.evidence_after.clone()?;
        Ok(self.evidence_before.zip(after).map(|(before, after)| after - before))
    }
}

/// Figures of a test, without those of instruments.
pub(crate) fn figures(
    request: &Request,
    measured: &Measured,
    counters: &Result<Counters<'_>, String>,
    proof: &Proof,
) -> Figures {
    let mut all = Figures::of_target(request.target.absent_columns());
    let tps = measured.merged.transaction.count() as f64 / measured.schedule.window_s();
    let lacking = all.target_lacks(column::LOG_FILE_SYNC_MS);
    let no_commit = no_commit(request, &measured.merged);
    for figures in [
        own(request, measured, tps, no_commit),
        populations::figures(request, measured),
        volume::figures(&request.work, measured, tps, &proof.data_bytes),
        database::figures(request, counters, tps, &measured.merged),
        load::figures(&request.work, &measured.merged, no_commit),
        database::log_file_sync(measured, request.target.as_ref(), tps * measured.merged.commits_per_tx(), lacking),
        machine::machine(request, measured),
        machine::client(request, measured, proof.cpus),
        blocks::figures(request, measured, counters, tps),
        shares::figures(request, measured, counters),
        nodes::replicas(request, measured),
    ] {
        all.add(figures);
    }
    if all_ended_early(measured) {
        // What others used of a window that nobody worked in says nothing.
        DISTURBANCES.iter().for_each(|kind| all.set_absent(kind.column, ENDED_EARLY));
    } else if let Some(around) = &measured.around {
        let util = [column::DEVICE_UTIL_PCT, column::DATA_DEVICE_UTIL_PCT].into_iter().filter_map(|c| all.figure(c));
        all.add(disturbance::figures(request, around, machine::steal_pct(measured), util.reduce(f64::max)));
        let of_others = |c: &Counters<'_>| {
            let grown = |name| c.grown_on_time(name);
            Some(grown(counter::OTHER_SESSIONS_CPU_NS)? / grown(counter::OTHER_SESSIONS_AT_NS).filter(|ns| *ns > 0.0)?)
        };
        let cpus = counters.as_ref().ok().and_then(of_others);
        all.add(disturbance::sessions(around, &measured.waits(), cpus));
    }
    all.set_or_fallback(
        column::AUTOVACUUM_SHARE_PCT,
        autovacuum_pct(measured),
        "the target's background work is not sampled",
    );
    if let Ok(Some(grown)) = proof.grown() {
        all.set(column::ROWS_CHANGED_DATABASE, grown as f64);
    }
    if measured.merged.scripted.is_some() {
        all.notes.push(format!(
            "a transaction is one execution of a pgbench script, from its first command to its end; the mean one committed {} times",
            number(measured.merged.commits_per_tx(), 2)
        ));
    }
    all.notes.extend(measured.collected.problems.iter().cloned());
    if let Ok(counters) = counters {
        all.notes.extend(read_late(counters.off_s, measured.schedule.window_s()));
        let made = counters.grown(counter::CHECKPOINTS);
        all.set_or_fallback(column::CHECKPOINTS, made, "the target does not count its checkpoints");
        all.notes.extend(checkpoints(request, made));
    }
    all
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
fn own(request: &Request, measured: &Measured, tps: f64, no_commit: &str) -> Figures {
    let (merged, mut out) = (&measured.merged, Figures::default());
    out.set(column::ELAPSED_S, measured.schedule.window_s());
    out.set(column::WARMUP_S, measured.warmup.taken_s);
    out.set(column::COMMITS, merged.transaction.count() as f64);
    out.set(column::ERRORS, merged.errors as f64);
    let counted = request.driver == Driver::Client || request.target.facts().retries_inside;
    let conflicts = counted.then_some(merged.conflicts as f64);
    out.set_or_absent(column::CONFLICTS, conflicts, "inside the database a transaction that loses is an error");
    out.set(column::COMMIT_THROUGHPUT_TPS, tps);
    out.set(column::TX_PER_S, tps);
    out.set_or_absent(column::COMMIT_LATENCY_MS, merged.transaction.mean_ns().map(|ns| ns / 1e6), NONE_COMPLETED);
    latencies(&mut out, column::TRANSACTION_TIMES, &merged.transaction, NONE_COMPLETED);
    let (seen, all) = (merged.commit.count(), merged.transaction.count());
    latencies(&mut out, column::COMMIT_TIMES, &merged.commit, no_commit);
    if no_commit == NONE_COMPLETED && seen < all {
        out.notes.push(format!(
            "commit times (including the longest) are from {seen} of the {all} transactions: timing the commit of a \
            single-statement transaction costs the client an extra wake-up"
        ));
    }
    out
}

/// Why no commit was timed.
fn no_commit(request: &Request, merged: &Tally) -> &'static str {
    if merged.scripted.is_some() {
        return "a script may commit anywhere, or not at all: its commits are not timed";
    }
    let unseen = merged.commit.count() == 0 && merged.transaction.count() > 0;
    request.target.facts().commit_unseen.filter(|_| unseen).unwrap_or(NONE_COMPLETED)
}

fn latencies(out: &mut Figures, columns: column::Times, latencies: &Latencies, none: &str) {
    let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let quantile = |q| whole(latencies.quantile_ns(q));
    let times = [latencies.mean_ns(), quantile(0.5), quantile(0.99), whole(latencies.max_ns())];
    for (column, ns) in columns.all().into_iter().zip(times) {
        out.set_or_absent(column, ns, none);
    }
}

/// Note about checkpoints in the window, if no instrument says so. A database in loadline's process makes its own all the time.
fn checkpoints(request: &Request, counted: Option<f64>) -> Option<String> {
    let measured = request.work.workload.has(Instrument::Checkpoint) || request.target.facts().runs != Runs::Apart;
    let n = counted.filter(|n| *n >= 2.0 && !measured)?;
    Some(format!("the database made {n:.0} checkpoints in the window: their writes are part of the figures"))
}

/// Note about counters that were read too far from window start or window end.
fn read_late(off_s: f64, window_s: f64) -> Option<String> {
    (off_s > 0.1 * window_s).then(|| {
        format!(
            "the database's counters were read {off_s:.2} s after window start and window end (sum), when the last \
            job had passed them: figures from them may be off by up to {:.0} %; use a longer window",
            off_s / window_s * 100.0
        )
    })
}
