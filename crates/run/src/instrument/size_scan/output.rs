//! Figures and checks of a scan of sizes.

use loadline_database::Work;
use loadline_load::Request;
use loadline_model::column::{self, Cell};
use loadline_model::format::Format;
use loadline_model::snapshot::counter;
use loadline_model::{Check, CheckId, Column, Latencies, Outcome, Series, Table, TestRecord};

use super::{Pair, Scanned};
use crate::figures::{Figures, KIB, Proof, disturbance};
use crate::record::Finished;

/// A larger share of outliers makes the scan invalid.
const MAX_OUTLIERS: f64 = 0.2;
/// Commits of the database's own background work that are allowed.
const OTHER_COMMITS: f64 = 20.0;
/// Why the figures of a steady load are absent.
const NO_LOAD: &str = "a scan of sizes has no steady load";

/// Makes the finished test of a scan, with figures and checks.
pub(crate) fn finished(request: &Request, scanned: Scanned, proof: &Proof) -> Finished {
    let work = request.work.as_ref();
    let mut figures = figures(work, &scanned);
    // The devices' counters are not read.
    figures.set_absent(column::OTHER_IO_PCT, NO_LOAD);
    figures.add(disturbance::figures(request, &scanned.around, None, None));
    figures.add(disturbance::sessions(&scanned.around, &Default::default(), None));
    figures.checks = checks(work, &scanned, proof);
    let so_far = figures.clone().columns().values;
    let probe = TestRecord { figures: so_far, ..TestRecord::blank(work.workload.code) };
    for column in Table::of(work.workload.group).file_columns() {
        let words = matches!(column.format, Format::Text | Format::YesNo);
        if !words && column.cell(&probe) == Cell::Absent {
            figures.set_absent(column, NO_LOAD);
        }
    }
    Finished {
        figures,
        opened_at: scanned.opened_at,
        waits: Default::default(),
        error_texts: Default::default(),
        full_disk: false,
        by_node: Vec::new(),
        populations: Vec::new(),
        kinds: Vec::new(),
        by_agent: Vec::new(),
        sizes: scanned.sizes,
        series: Series::default(),
        histograms: vec![("transaction".to_owned(), scanned.transaction), ("commit".to_owned(), scanned.commit)],
        snapshots: vec![
            ("before".to_owned(), scanned.all.open),
            ("open".to_owned(), scanned.scan.open),
            ("close".to_owned(), scanned.scan.close),
        ],
        activity: None,
        native: None,
    }
}

fn figures(work: &Work, scanned: &Scanned) -> Figures {
    let mut out = Figures::default();
    out.set(column::ELAPSED_S, scanned.elapsed_ns as f64 / 1e9);
    out.set(column::WARMUP_S, scanned.warmup_ns as f64 / 1e9);
    out.set(column::COMMITS, scanned.transactions as f64);
    out.set(column::ERRORS, 0.0);
    let mut set = |column: &Column, value: Option<f64>| value.into_iter().for_each(|value| out.set(column, value));
    let quantile = |times: &Latencies, q| times.quantile_ns(q).map(|ns| ns as f64);
    let kinds = [(column::TRANSACTION_TIMES, &scanned.transaction), (column::COMMIT_TIMES, &scanned.commit)];
    for (columns, times) in kinds {
        set(columns.p50, quantile(times, 0.5));
        set(columns.p99, quantile(times, 0.99));
        set(columns.max, times.max_ns().map(|ns| ns as f64));
    }
    set(column::COMMIT_TIME_NS_MEAN, scanned.commit.mean_ns());
    let redo = scanned.scan.grown(counter::REDO_BYTES).map(|bytes| bytes / scanned.transactions.max(1) as f64);
    set(column::REDO_BYTES_PER_TX, redo);
    set(column::REDO_KIB_PER_TX, redo.map(|bytes| bytes / KIB));
    let commits = scanned.scan.grown(counter::COMMITS);
    set(column::COMMITS_DATABASE, commits);
    let syncs = scanned.scan.grown(counter::REDO_SYNCS).filter(|syncs| *syncs > 0.0);
    set(column::COMMITS_PER_REDO_SYNC, syncs.map(|syncs| commits.unwrap_or(scanned.transactions as f64) / syncs));
    if scanned.outliers > 0 {
        out.notes.push(format!(
            "{} of {} samples are outliers and excluded: their redo differs from that of their size (a checkpoint or \
            another session)",
            scanned.outliers, scanned.transactions
        ));
    }
    let per_row = work.program.statements_per_tx() as f64 / work.program.rows_per_tx().max(1) as f64;
    out.notes.push(format!(
        "sizes are measured by the target's redo counter; a transaction changes as many rows as its size needs, with \
        {per_row:.0} statement per row"
    ));
    out
}

fn checks(work: &Work, scanned: &Scanned, proof: &Proof) -> Vec<Check> {
    let (sizes, outliers) = (&scanned.sizes, scanned.outliers as f64 / scanned.transactions.max(1) as f64);
    let of_size = Check::require(
        CheckId::Sizes,
        sizes.len() > 1 && outliers <= MAX_OUTLIERS,
        format!(
            "{} sizes from {:.1} to {:.1} KiB; {:.1} % of the samples were outliers (allowed: {:.0} %)",
            sizes.len(),
            sizes.first().map_or(0.0, |p| p.redo_bytes / 1024.0),
            sizes.last().map_or(0.0, |p| p.redo_bytes / 1024.0),
            outliers * 100.0,
            MAX_OUTLIERS * 100.0
        ),
    );
    vec![of_size, commits(&scanned.all, scanned.committed), evidence(work, scanned, proof), durable(scanned)]
}

fn commits(all: &Pair, ours: u64) -> Check {
    let check = CheckId::CommitsDatabase;
    match all.grown(counter::COMMITS) {
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

fn evidence(work: &Work, scanned: &Scanned, proof: &Proof) -> Check {
    let check = CheckId::WorkEvidence;
    let counts = work.workload.evidence.map_or("", |e| e.counts);
    match proof.grown() {
        Ok(Some(grown)) => Check::require(
            check,
            u64::try_from(grown) == Ok(scanned.rows),
            format!("the session committed {} {counts}; the database holds {grown}", scanned.rows),
        ),
        Err(e) => Check::require(check, false, format!("the query that proves the work failed: {e}")),
        Ok(None) => Check::new(check, Outcome::NotMade, "the workload has no evidence query"),
    }
}

/// With one session, each commit needs its own sync.
fn durable(scanned: &Scanned) -> Check {
    let check = CheckId::CommitsPerSync;
    match scanned.scan.grown(counter::REDO_SYNCS) {
        None => Check::new(check, Outcome::NotMade, "the database does not count the syncs of its log"),
        Some(syncs) => {
            let commits = scanned.transactions as f64;
            Check::require(
                check,
                commits <= (syncs + 2.0) * 1.01,
                format!("{commits} commits of one session and {syncs} syncs of the log: each commit needs a sync"),
            )
        }
    }
}
