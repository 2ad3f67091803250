//! From a scan of sizes to its record, with its checks.

use loadline_database::{Target, Work};
use loadline_model::column::{self, Cell};
use loadline_model::format::Format;
use loadline_model::record::RECORD_SCHEMA;
use loadline_model::snapshot::counter;
use loadline_model::{Check, Driver, Outcome, Series, Snapshot, Table, TestRecord};
use loadline_store::{TestOutput, rfc3339};

use super::Scanned;
use crate::figures::Identity;

/// More samples of another size than this make the scan invalid.
const MAX_LEFT_OUT: f64 = 0.2;
/// Commits that the database may have counted besides: its own background work.
const OTHER_COMMITS: f64 = 20.0;
/// Why the figures of a steady load are absent.
const NO_LOAD: &str = "a scan of sizes is no steady load";

/// Makes the record of a scan, with every check made.
#[must_use]
pub fn output(target: &dyn Target, work: &Work, scanned: &Scanned, id: &Identity) -> TestOutput {
    let mut record = TestRecord {
        schema: RECORD_SCHEMA,
        platform: id.platform.clone(),
        run: id.run.clone(),
        test: id.test,
        workload: work.workload.code.into(),
        group: work.workload.group.into(),
        target: id.target.clone(),
        driver: Driver::Client,
        nodes: target.facts().nodes,
        jobs: 1,
        repetition: id.repetition,
        started_at: rfc3339(scanned.opened_at),
        valid: true,
        invalid_reason: None,
        forced: id.forced.clone(),
        checks: Vec::new(),
        absent: Default::default(),
        notes: Vec::new(),
        error_texts: Default::default(),
        data_source: None,
        kpis: Vec::new(),
        swept: None,
        limit: None,
        sizes: scanned.sizes.clone(),
        waits: Default::default(),
        parameters: work.params.to_map(),
        figures: Default::default(),
    };
    figures(&mut record, work, scanned);
    for column in Table::of(work.workload.group).file_columns() {
        let words = matches!(column.format, Format::Text | Format::YesNo);
        if !words && column.cell(&record) == Cell::Absent {
            record.leave_out(column, NO_LOAD);
        }
    }
    for check in checks(work, scanned, id) {
        record.add_check(check);
    }
    TestOutput {
        record,
        series: Series::default(),
        histograms: vec![
            ("transaction".to_owned(), scanned.transaction.clone()),
            ("commit".to_owned(), scanned.commit.clone()),
        ],
        snapshots: vec![
            ("before".to_owned(), scanned.all.0.clone()),
            ("open".to_owned(), scanned.scan.0.clone()),
            ("close".to_owned(), scanned.scan.1.clone()),
        ],
        native: None,
    }
}

fn figures(record: &mut TestRecord, work: &Work, scanned: &Scanned) {
    record.set(column::ELAPSED_S, scanned.elapsed_ns as f64 / 1e9);
    record.set(column::WARMUP_S, scanned.warmup_ns as f64 / 1e9);
    record.set(column::COMMITS, scanned.transactions as f64);
    record.set(column::ERRORS, 0.0);
    for (columns, latencies) in
        [(column::TRANSACTION_TIMES, &scanned.transaction), (column::COMMIT_TIMES, &scanned.commit)]
    {
        let all = [
            (columns.p50, latencies.quantile_ns(0.5)),
            (columns.p99, latencies.quantile_ns(0.99)),
            (columns.max, latencies.max_ns()),
        ];
        for (column, ns) in all {
            if let Some(ns) = ns {
                record.set(column, ns as f64);
            }
        }
    }
    if let Some(mean) = scanned.commit.mean_ns() {
        record.set(column::COMMIT_TIME_NS_MEAN, mean);
    }
    let (open, close) = (&scanned.scan.0, &scanned.scan.1);
    if let Some(redo) = open.delta(close, counter::REDO_BYTES) {
        let per_tx = redo / scanned.transactions.max(1) as f64;
        record.set(column::REDO_BYTES_PER_TX, per_tx);
        record.set(column::REDO_KIB_PER_TX, per_tx / 1024.0);
    }
    let commits = open.delta(close, counter::COMMITS);
    if let Some(commits) = commits {
        record.set(column::COMMITS_DATABASE, commits);
    }
    if let Some(syncs) = open.delta(close, counter::REDO_SYNCS).filter(|s| *s > 0.0) {
        record.set(column::COMMITS_PER_REDO_SYNC, commits.unwrap_or(scanned.transactions as f64) / syncs);
    }
    let per_row = work.program.statements_per_tx() as f64 / work.program.rows_per_tx().max(1) as f64;
    if scanned.left_out > 0 {
        record.notes.push(format!(
            "{} of {} samples are left out: their redo was not that of their size (a checkpoint, or another session)",
            scanned.left_out, scanned.transactions
        ));
    }
    record.notes.push(format!(
        "sizes are what the target's own counter of redo says; a transaction changes as many rows as its size takes, with {per_row:.0} statement each"
    ));
}

fn checks(work: &Work, scanned: &Scanned, id: &Identity) -> Vec<Check> {
    let (sizes, left_out) = (&scanned.sizes, scanned.left_out as f64 / scanned.transactions.max(1) as f64);
    let of_size = Check::require(
        "sizes",
        sizes.len() > 1 && left_out <= MAX_LEFT_OUT,
        format!(
            "{} sizes from {:.1} to {:.1} KiB; {:.1} % of the samples were of another size (allowed: {:.0} %)",
            sizes.len(),
            sizes.first().map_or(0.0, |p| p.redo_bytes / 1024.0),
            sizes.last().map_or(0.0, |p| p.redo_bytes / 1024.0),
            left_out * 100.0,
            MAX_LEFT_OUT * 100.0
        ),
    );
    vec![of_size, commits(&scanned.all, scanned.committed), evidence(work, scanned, id), durable(scanned)]
}

fn commits(all: &(Snapshot, Snapshot), ours: u64) -> Check {
    let check = "commits-database";
    match all.0.delta(&all.1, counter::COMMITS) {
        None => Check::new(check, Outcome::NotMade, "the database does not count its commits"),
        Some(counted) => Check::require(
            check,
            (counted - ours as f64).abs() <= OTHER_COMMITS,
            format!(
                "the session counted {ours} commits, the database {counted} (allowed difference: {OTHER_COMMITS:.0})"
            ),
        ),
    }
}

fn evidence(work: &Work, scanned: &Scanned, id: &Identity) -> Check {
    let check = "work-evidence";
    let counts = work.workload.evidence.map_or("", |e| e.counts);
    match (id.evidence_before, &id.evidence_after) {
        (Some(before), Ok(Some(after))) => Check::require(
            check,
            (after - before).unsigned_abs() == scanned.rows && after >= &before,
            format!("the session committed {} {counts}; the database holds {}", scanned.rows, after - before),
        ),
        (_, Err(e)) => Check::require(check, false, format!("the query that proves the work failed: {e}")),
        _ => Check::new(check, Outcome::NotMade, "the workload has no evidence query"),
    }
}

/// One session: each commit needs a sync of its own.
fn durable(scanned: &Scanned) -> Check {
    let check = "commits-per-sync";
    let (open, close) = (&scanned.scan.0, &scanned.scan.1);
    match open.delta(close, counter::REDO_SYNCS) {
        None => Check::new(check, Outcome::NotMade, "the database does not count the syncs of its log"),
        Some(syncs) => {
            let commits = scanned.transactions as f64;
            Check::require(
                check,
                commits <= (syncs + 2.0) * 1.01,
                format!("{commits} commits of one session and {syncs} syncs of the log: no commit without a sync"),
            )
        }
    }
}
