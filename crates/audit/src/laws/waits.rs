//! Parts of the jobs' time: no part is longer than the whole.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::{Interval, Reading};
use crate::judge::{Above, above};

pub(crate) static WAITS: Law = Law {
    id: "waits",
    name: "Little's law for a part of the transaction",
    formula: "tps × time of a part ≤ jobs; redo_writes_per_s × redo_write_time_us / 10⁶ ≤ nodes",
    needs: &[
        &["jobs", "tps", "log_file_sync_ms"],
        &["jobs", "tps", "sql_service_time_s"],
        &["jobs", "tps", "commit_time_ns_mean"],
        &["redo_writes_per_s", "redo_write_time_us"],
    ],
    tolerance: "1 %, and one transaction per job, which began before the window; a warning for waits of the database, which may be those of all sessions, and for commit times, with 25 %, which may be those of a sample",
    meaning: "A wrong digit or unit, or waits that are not per transaction",
    check: Check::Own(waits),
};

pub(crate) static TIME_PARTS: Law = Law {
    id: "time-parts",
    name: "A part of a time is no longer than the whole",
    formula: "log_file_sync_ms, commit_time_ns_mean, sql_service_time_s ≤ commit_latency_ms",
    needs: &[
        &["commit_latency_ms", "log_file_sync_ms"],
        &["commit_latency_ms", "commit_time_ns_mean"],
        &["commit_latency_ms", "sql_service_time_s"],
        &["transaction_time_ns_mean", "commit_time_ns_mean"],
        &["transaction_time_ns_mean", "sql_service_time_s"],
    ],
    tolerance: "0.1 %; a warning for log_file_sync_ms, which may be per wait rather than per commit, and for commit times, with 25 %, which may be those of a sample",
    meaning: "A wrong digit or unit, or times of different transactions",
    check: Check::Own(parts),
};

/// A time of a part.
struct Part {
    id: &'static str,
    /// One of its unit, s.
    seconds: f64,
    /// Whether it is the time of each transaction: neither of the database's own clock, nor of a sample of them.
    of_all: bool,
    /// What it may be off the mean of all, as a factor.
    off: f64,
}

/// Where the commit of each transaction cannot be timed, a sample of them is.
pub(super) const SAMPLED: f64 = 1.25;

const PARTS: [Part; 3] = [
    Part { id: "log_file_sync_ms", seconds: 1e-3, of_all: false, off: 1.0 },
    Part { id: "sql_service_time_s", seconds: 1.0, of_all: true, off: 1.0 },
    Part { id: "commit_time_ns_mean", seconds: 1e-9, of_all: false, off: SAMPLED },
];

fn severity(found: Above, sure: bool) -> Severity {
    if found == Above::Yes && sure { Severity::Error } else { Severity::Warning }
}

fn waits(context: &Context<'_>, findings: &mut Findings) {
    for Part { id: part, seconds, of_all, off } in PARTS.into_iter().filter(|p| context.has(p.id)) {
        for row in context.rows() {
            let all = |reading| {
                let busy =
                    context.interval("tps", row, reading)?.times(context.interval(part, row, reading)?).scaled(seconds);
                Some(busy.scaled(1.0 / (1.01 + context.edges(row)) / off))
            };
            let nodes = if context.per_node { context.value("nodes", row).unwrap_or(1.0) } else { 1.0 };
            let jobs = |reading| Some(context.interval("jobs", row, reading)?.scaled(nodes));
            let Some(found @ (Above::Edge | Above::Yes)) = above(all, jobs) else { continue };
            let (Some(tps), Some(jobs)) = (context.value("tps", row), context.value("jobs", row)) else { continue };
            let text = format!(
                "throughput × {part} is {} jobs that wait or work at once, and there were {}",
                shown(all(Reading::Rounded).map_or(0.0, |i| i.at), 4),
                shown(jobs * nodes, 4)
            );
            let columns = ["jobs", "tps", part];
            let most = jobs * nodes / tps / seconds;
            findings.push(context.about_row(WAITS.id, severity(found, of_all), row, &columns, part, Some(most), text));
        }
    }
    writer(context, findings);
}

/// One writer per node writes one group at a time.
fn writer(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["redo_writes_per_s", "redo_write_time_us"];
    if !columns.iter().all(|id| context.has(id)) {
        return;
    }
    for row in context.rows() {
        let busy = |reading| {
            let time = context.interval("redo_write_time_us", row, reading)?;
            Some(context.interval("redo_writes_per_s", row, reading)?.times(time).scaled(1e-6 / 1.01))
        };
        let nodes = context.value("nodes", row).unwrap_or(1.0);
        if let Some(Above::Yes | Above::Edge) = above(busy, |_| Some(Interval::exact(nodes))) {
            let text = format!(
                "redo writes × their time is {}, and there is one log writer on each of {} nodes: several writers, writes in parallel, or \
                 times that are not per write",
                shown(busy(Reading::Rounded).map_or(0.0, |i| i.at), 4),
                shown(nodes, 4)
            );
            findings.push(context.about_row(WAITS.id, Severity::Warning, row, &columns, columns[1], None, text));
        }
    }
}

fn parts(context: &Context<'_>, findings: &mut Findings) {
    let wholes = [("commit_latency_ms", 1e-3), ("transaction_time_ns_mean", 1e-9)];
    let Some((whole, size)) = wholes.into_iter().find(|(id, _)| context.has(id)) else { return };
    for Part { id: part, seconds, of_all, off } in PARTS.into_iter().filter(|p| context.has(p.id)) {
        for row in context.rows() {
            let long = |reading| Some(context.interval(part, row, reading)?.scaled(seconds));
            let all = |reading| Some(context.interval(whole, row, reading)?.scaled(size * 1.001 * off));
            let Some(found @ (Above::Edge | Above::Yes)) = above(long, all) else { continue };
            let most = context.value(whole, row).map(|v| v * size / seconds);
            let text = format!("{part} is a part of {whole} and longer than it");
            let columns = [part, whole];
            findings.push(context.about_row(TIME_PARTS.id, severity(found, of_all), row, &columns, part, most, text));
        }
    }
}
