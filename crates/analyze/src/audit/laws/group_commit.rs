//! Commits per write and per sync of the log: a job that waits has one commit on its way.

use std::cell::Cell;

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::Reading;
use crate::audit::judge::{Above, Limit, VERY_LATE, above, keep};

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
            if !falls || first || stays || !findings.wants("group-commit", Severity::Warning) {
                continue;
            }
            let text = format!(
                "{} commits per write of the log, and {} with fewer jobs: while the log writes, more jobs gather more commits",
                shown(*group, 4),
                shown(*before, 4)
            );
            let (least, id) = (Some(tps / before), columns[2]);
            context.warn(findings, ("group-commit", *row), (&columns, id), least, text);
        }
    }
}

pub(super) fn group(context: &Context<'_>, findings: &mut Findings) {
    shrunk(context, findings);
    // Where the database's own commits are counted with its syncs, that is what is compared.
    let all = [
        ("commits_per_redo_sync", "sync"),
        ("redo_sync_writes_per_s", "sync"),
        ("redo_syncs", "sync"),
        ("redo_writes_per_s", "write"),
    ];
    // A row that was found with syncs need not be found with writes again.
    let said: Vec<Cell<bool>> = vec![Cell::new(false); context.rows().len()];
    for (id, what) in
        all.into_iter().filter(|(id, _)| context.has(id) && (*id != "redo_syncs" || context.has("elapsed_s")))
    {
        let whole = id == "commits_per_redo_sync";
        let per = |row, reading| {
            let count = context.interval(id, row, reading)?;
            let rate =
                if id == "redo_syncs" { count.over(context.interval("elapsed_s", row, reading)?) } else { count };
            if whole { Some(count) } else { Some(context.interval("tps", row, reading)?.over(rate)) }
        };
        let jobs = |row, reading| Some(context.jobs(row, reading)?.scaled(1.005 + context.late(row, VERY_LATE)));
        let exceeds = |row| {
            let counted = !whole && context.value("commits_per_redo_sync", row).is_some();
            let found = above(|r| per(row, r), |r| jobs(row, r)).filter(|_| !counted && !said[row].get())?;
            said[row].set(found != Above::No);
            Some(found)
        };
        let say = |row| {
            let (found, jobs) = (per(row, Reading::Rounded), context.jobs(row, Reading::Rounded).map_or(0.0, |j| j.at));
            let text = format!(
                "{} commits per {what} of the log, and {} jobs: commits did not wait for the log, so their time is not that of a durable commit",
                shown(found.map_or(0.0, |i| if i.at.is_finite() { i.at } else { i.low }), 4),
                shown(jobs, 4)
            );
            (context.value("tps", row).map(|tps| tps / jobs).filter(|_| id.ends_with("_per_s")), text)
        };
        let columns = ["jobs", "tps", id];
        let limit = Limit { law: "group-commit", columns: &columns, target: id, strict: false, sure: true };
        keep(&limit, &exceeds, &say, context, findings);
    }
}

pub(super) fn syncs(context: &Context<'_>, findings: &mut Findings) {
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
    findings.push(context.about_table("syncs", Severity::Info, &columns, text));
    for (row, _) in all.iter().filter(off) {
        let text = "syncs are the commits in the other rows, and not in this one".to_owned();
        let expected = context.value("tps", *row);
        context.warn(findings, ("syncs", *row), (&columns, columns[1]), expected, text);
    }
}
