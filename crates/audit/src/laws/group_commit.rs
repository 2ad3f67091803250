//! Commits per write and per sync of the log: a job that waits has one commit on its way.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::Reading;
use crate::judge::{Above, VERY_LATE, above};

pub(crate) static GROUP_COMMIT: Law = Law {
    id: "group-commit",
    name: "Group commit",
    formula: "tps / redo_writes_per_s ≤ jobs; tps / redo_sync_writes_per_s ≤ jobs; commits_per_redo_sync ≤ jobs",
    needs: &[
        &["jobs", "tps", "redo_writes_per_s"],
        &["jobs", "tps", "redo_sync_writes_per_s"],
        &["jobs", "tps", "redo_syncs", "elapsed_s"],
        &["jobs", "commits_per_redo_sync"],
    ],
    tolerance: "always a warning: commits need not wait; also where one test has a third of the commits per write that the test with fewer jobs and no more throughput has",
    meaning: "Commits did not wait for the log (NOWAIT, asynchronous commit, a loop in the database), so their time is not that of a durable commit; or a wrong digit",
    check: Check::Own(group),
};

pub(crate) static SYNCS: Law = Law {
    id: "syncs",
    name: "Syncs that are commits",
    formula: "redo_sync_writes_per_s = tps, where the database counts commits that waited",
    needs: &[&["tps", "redo_sync_writes_per_s"]],
    tolerance: "2 %; only where most rows agree; always a warning",
    meaning: "A wrong digit; otherwise commits that did not wait",
    check: Check::Own(syncs),
};

/// How much fewer commits a write holds with more jobs than the digits and the noise of tests explain.
const SHRUNK: f64 = 3.0;

/// Tests whose writes hold far fewer commits than with fewer jobs: while the log writes, more commits gather, not fewer.
fn shrunk(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["jobs", "tps", "redo_writes_per_s"];
    let of = |row: &usize| {
        let [jobs, tps, writes] = columns.map(|id| context.value(id, *row));
        Some((*row, jobs?, tps?, tps? / writes.filter(|w| *w > 0.0)?))
    };
    for series in &context.series {
        let mut all: Vec<(usize, f64, f64, f64)> = series.rows.iter().filter_map(of).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        for (at, two) in all.windows(2).enumerate() {
            let [(_, fewer, less, before), (row, jobs, tps, group)] = two else { continue };
            let falls = jobs > fewer && *tps >= 0.95 * less && group * SHRUNK < *before;
            // One test, and not the one before it or all that come after it.
            let first = at.checked_sub(1).and_then(|i| all.get(i)).is_some_and(|b| before / SHRUNK > b.3);
            let stays = all.get(at + 2).is_some_and(|next| next.3 * SHRUNK < *before);
            if !falls || first || stays || !findings.wants(GROUP_COMMIT.id, Severity::Warning) {
                continue;
            }
            let text = format!(
                "{} commits per write of the log, and {} with fewer jobs: while the log writes, more jobs gather more commits",
                shown(*group, 4),
                shown(*before, 4)
            );
            let (least, id) = (Some(tps / before), columns[2]);
            findings.push(context.about_row(GROUP_COMMIT.id, Severity::Warning, *row, &columns, id, least, text));
        }
    }
}

fn group(context: &Context<'_>, findings: &mut Findings) {
    shrunk(context, findings);
    let all = [("redo_sync_writes_per_s", "sync"), ("redo_syncs", "sync"), ("redo_writes_per_s", "write")];
    // A row that was found with syncs need not be found with writes again.
    let mut said = vec![false; context.rows().len()];
    for (id, what) in
        all.into_iter().filter(|(id, _)| context.has(id) && (*id != "redo_syncs" || context.has("elapsed_s")))
    {
        // Where the database's own commits are counted with its syncs, that is what is compared.
        let counted = |row: usize| context.value("commits_per_redo_sync", row).is_some();
        for (row, said) in said.iter_mut().enumerate().filter(|(row, said)| !**said && !counted(*row)) {
            let rate = |reading| {
                let count = context.interval(id, row, reading)?;
                if id == "redo_syncs" {
                    Some(count.over(context.interval("elapsed_s", row, reading)?))
                } else {
                    Some(count)
                }
            };
            let per = |reading| Some(context.interval("tps", row, reading)?.over(rate(reading)?));
            *said = compare(context, row, id, what, &per, findings);
        }
    }
    if context.has("commits_per_redo_sync") {
        for row in context.rows() {
            let per = |reading| context.interval("commits_per_redo_sync", row, reading);
            compare(context, row, "commits_per_redo_sync", "sync", &per, findings);
        }
    }
}

type PerWrite<'f> = &'f dyn Fn(Reading) -> Option<crate::interval::Interval>;

fn compare(
    context: &Context<'_>,
    row: usize,
    id: &'static str,
    what: &str,
    per: PerWrite<'_>,
    findings: &mut Findings,
) -> bool {
    let nodes = if context.per_node { context.value("nodes", row).unwrap_or(1.0) } else { 1.0 };
    let jobs =
        |reading| Some(context.interval("jobs", row, reading)?.scaled(nodes * (1.005 + context.late(row, VERY_LATE))));
    let Some(Above::Yes | Above::Edge) = above(per, jobs) else { return false };
    let (Some(found), Some(jobs)) = (per(Reading::Rounded), context.value("jobs", row)) else { return false };
    let least = context.value("tps", row).map(|tps| tps / jobs / nodes).filter(|_| id.ends_with("_per_s"));
    let text = format!(
        "{} commits per {what} of the log, and {} jobs: commits did not wait for the log, so their time is not that of a durable commit",
        shown(if found.at.is_finite() { found.at } else { found.low }, 4),
        shown(jobs * nodes, 4)
    );
    if findings.wants(GROUP_COMMIT.id, Severity::Warning) {
        findings.push(context.about_row(
            GROUP_COMMIT.id,
            Severity::Warning,
            row,
            &["jobs", "tps", id],
            id,
            least,
            text,
        ));
    }
    true
}

fn syncs(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["tps", "redo_sync_writes_per_s"];
    let ratio =
        |row: usize| Some(context.value(columns[1], row)? / context.value("tps", row)?).filter(|r| r.is_finite());
    let all: Vec<(usize, f64)> = context.rows().filter_map(|row| Some((row, ratio(row)?))).collect();
    let wide = |row: usize| {
        let half = |id| Some(context.interval(id, row, Reading::Loose)?.high / context.value(id, row)? - 1.0);
        0.02 + half("tps").unwrap_or(0.0) + half(columns[1]).unwrap_or(0.0)
    };
    let off = |(row, ratio): &&(usize, f64)| (ratio - 1.0).abs() > wide(*row);
    let missed = all.iter().filter(off).count();
    if all.len() < 3 || missed * 4 > all.len() {
        return;
    }
    let text = format!(
        "redo_sync_writes_per_s is the throughput in {} of {} rows: it counts commits that waited, not calls to the device",
        all.len() - missed,
        all.len()
    );
    findings.push(context.about_table(SYNCS.id, Severity::Info, &columns, text));
    for (row, _) in all.iter().filter(off) {
        let text = "syncs are the commits in the other rows, and not in this one".to_owned();
        let expected = context.value("tps", *row);
        findings.push(context.about_row(SYNCS.id, Severity::Warning, *row, &columns, columns[1], expected, text));
    }
}
