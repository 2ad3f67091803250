//! Figures and checks of a scan of sizes.

use loadline_analyze::idle::{FlushByTime, flush_by_time};
use loadline_model::column::{self, Cell};
use loadline_model::format::Format;
use loadline_model::snapshot::counter;
use loadline_model::{Column, Latencies, Note, SizePoint, Snapshot, Table, TestRecord};

use super::Scanned;
use crate::checks::{SYNCS_NOT_COUNTED, grown};
use crate::evidence::{Evidence, excused};
use crate::figures::database::COMMITS_NOT_COUNTED;
use crate::figures::{KIB, NOT_IDLE, disturbance as others};
use crate::test::{Judged, Test, Verdict, not_made, require};

/// A larger share of outliers refuses the scan.
const MAX_OUTLIERS: f64 = 0.2;
/// Commits of the database's own background work that are allowed.
const OTHER_COMMITS: f64 = 20.0;
const NO_LOAD: &str = "a scan of sizes has no steady load";

fn delta([open, close]: &[Snapshot; 2], name: &str) -> Option<f64> {
    open.delta(close, name)
}

pub(crate) fn figures(e: &Evidence<'_, Scanned>, out: &mut Test) {
    let (work, scanned) = (e.work(), &e.seen);
    let transactions = scanned.transaction.count();
    out.set(column::ELAPSED_S, scanned.elapsed_ns as f64 / 1e9);
    out.set(column::WARMUP_S, scanned.warmup_ns as f64 / 1e9);
    out.set(column::COMMITS, transactions as f64);
    out.set(column::ERRORS, 0.0);
    match flush_by_time(&scanned.sizes) {
        Some(FlushByTime::Within(by_s)) => out.set(column::LOG_FLUSHED_WITHIN_S, by_s),
        Some(FlushByTime::NotUpTo(s)) => {
            let why = format!(
                "commits after {s} s of idle time are not shorter by 30 %: the log is not flushed by time up to there"
            );
            out.set_absent(column::LOG_FLUSHED_WITHIN_S, why);
        }
        None => out.set_absent(column::LOG_FLUSHED_WITHIN_S, NOT_IDLE),
    }
    let mut set = |column: &Column, value: Option<f64>| value.into_iter().for_each(|value| out.set(column, value));
    let quantile = |times: &Latencies, q| times.quantile_ns(q).map(|ns| ns as f64);
    let kinds = [(column::TRANSACTION_TIMES, &scanned.transaction), (column::COMMIT_TIMES, &scanned.commit)];
    for (columns, times) in kinds {
        set(columns.p50, quantile(times, 0.5));
        set(columns.p99, quantile(times, 0.99));
        set(columns.max, times.max_ns().map(|ns| ns as f64));
    }
    set(column::COMMIT_TIME_NS_MEAN, scanned.commit.mean_ns());
    let redo = delta(&scanned.scan, counter::REDO_BYTES).map(|bytes| bytes / transactions.max(1) as f64);
    set(column::REDO_BYTES_PER_TX, redo);
    set(column::REDO_KIB_PER_TX, redo.map(|bytes| bytes / KIB));
    let commits = delta(&scanned.scan, counter::COMMITS);
    set(column::COMMITS_DATABASE, commits);
    let syncs = delta(&scanned.scan, counter::REDO_SYNCS).filter(|syncs| *syncs > 0.0);
    set(column::COMMITS_PER_REDO_SYNC, syncs.map(|syncs| commits.unwrap_or(transactions as f64) / syncs));
    if scanned.outliers > 0 {
        out.notes.push(Note::Outliers { outliers: scanned.outliers, samples: transactions });
    }
    let statements_per_row = work.program.statements_per_tx() as f64 / work.program.rows_per_tx().max(1) as f64;
    out.notes.push(Note::SizesByRedo { statements_per_row });
}

/// Figures of others in the scan. The devices' counters are not read.
pub(crate) fn disturbance(e: &Evidence<'_, Scanned>, out: &mut Test) {
    out.set_absent(column::OTHER_IO_PCT, NO_LOAD);
    others::shares(out, &e.around, None, None);
    others::confined(out, e.request, &e.around.readings);
    others::sessions(out, &e.around, &Default::default(), None);
}

pub(crate) fn no_load(e: &Evidence<'_, Scanned>, out: &mut Test) {
    let workload = &e.work().workload;
    let so_far = TestRecord { figures: out.values.clone(), ..TestRecord::blank(&workload.code) };
    for column in Table::for_group(&workload.group).file_columns() {
        let words = matches!(column.format, Format::Text | Format::YesNo);
        if !words && column.cell(&so_far) == Cell::Absent {
            out.set_absent(column, NO_LOAD);
        }
    }
}

/// Most samples must be of their sizes, and of more than one.
pub(crate) fn sizes_found(e: &Evidence<'_, Scanned>) -> Verdict {
    let (sizes, outliers) = (&e.sizes, e.outliers as f64 / e.transaction.count().max(1) as f64);
    let kib = |point: Option<&SizePoint>| point.map_or(0.0, |p| p.redo_bytes / KIB);
    let detail = format!(
        "{} sizes from {:.1} to {:.1} KiB; {:.1} % of the samples were outliers (allowed: {:.0} %)",
        sizes.len(),
        kib(sizes.first()),
        kib(sizes.last()),
        outliers * 100.0,
        MAX_OUTLIERS * 100.0
    );
    require(sizes.len() > 1 && outliers <= MAX_OUTLIERS, detail)
}

/// The database must have counted the session's commits.
pub(crate) fn commits(e: &Evidence<'_, Scanned>) -> Verdict {
    let ours = e.committed;
    let Some(counted) = delta(&e.all, counter::COMMITS) else { return not_made(COMMITS_NOT_COUNTED) };
    let detail =
        format!("the session counted {ours} commits, the database {counted} (allowed difference: {OTHER_COMMITS:.0})");
    require((counted - ours as f64).abs() <= OTHER_COMMITS, detail)
}

/// The rows in the database must be those that the session left.
pub(crate) fn work_evidence(e: &Evidence<'_, Scanned>) -> Judged {
    let (rows, counts) = (e.rows, e.work().workload.evidence.as_ref().map_or("", |of| &of.counts));
    let grown = grown(e.proof)?;
    let detail = format!("the session committed {rows} {counts}; the database holds {grown}");
    Ok(require(u64::try_from(grown) == Ok(rows), detail))
}

/// Each commit of one session needs its own sync.
pub(crate) fn commits_per_sync(e: &Evidence<'_, Scanned>) -> Verdict {
    let commits = e.transaction.count() as f64;
    let Some(syncs) = delta(&e.scan, counter::REDO_SYNCS) else { return not_made(SYNCS_NOT_COUNTED) };
    let detail = format!("{commits} commits of one session and {syncs} syncs of the log: each commit needs a sync");
    excused(Ok(require(commits <= (syncs + 2.0) * 1.01, detail)), e.excuses.commits.as_ref())
}
