//! Parts of the jobs' time: no part is longer than the whole.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, shown};
use crate::audit::interval::{Interval, Reading};
use crate::audit::judge::{Limit, above, keep};

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

pub(super) fn waits(context: &Context<'_>, findings: &mut Findings) {
    for Part { id: part, seconds, of_all, off } in PARTS.into_iter().filter(|p| context.has(p.id)) {
        let all = |row, reading| {
            let busy =
                context.interval("tps", row, reading)?.times(context.interval(part, row, reading)?).scaled(seconds);
            Some(busy.scaled(1.0 / (1.01 + context.edges(row)) / off))
        };
        let columns = ["jobs", "tps", part];
        let limit = Limit::of("waits", &columns, part, of_all, context);
        let exceeds = |row| above(|r| all(row, r), |r| context.jobs(row, r));
        let say = |row| {
            let (tps, jobs) = (context.value("tps", row), context.jobs(row, Reading::Rounded).map_or(0.0, |j| j.at));
            let text = format!(
                "throughput × {part} is {} jobs that wait or work at once, and there were {}",
                shown(all(row, Reading::Rounded).map_or(0.0, |i| i.at), 4),
                shown(jobs, 4)
            );
            (tps.map(|tps| jobs / tps / seconds), text)
        };
        keep(&limit, &exceeds, &say, context, findings);
    }
    writer(context, findings);
}

/// One writer per node writes one group at a time.
fn writer(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["redo_writes_per_s", "redo_write_time_us"];
    let busy = |row, reading| {
        let time = context.interval("redo_write_time_us", row, reading)?;
        Some(context.interval("redo_writes_per_s", row, reading)?.times(time).scaled(1e-6 / 1.01))
    };
    let nodes = |row| context.value("nodes", row).unwrap_or(1.0);
    let exceeds = |row| above(|reading| busy(row, reading), |_| Some(Interval::exact(nodes(row))));
    let say = |row| {
        let text = format!(
            "redo writes × their time is {}, and there is one log writer on each of {} nodes: several writers, writes in parallel, or \
             times that are not per write",
            shown(busy(row, Reading::Rounded).map_or(0.0, |i| i.at), 4),
            shown(nodes(row), 4)
        );
        (None, text)
    };
    keep(&Limit::of("waits", &columns, columns[1], false, context), &exceeds, &say, context, findings);
}

pub(super) fn parts(context: &Context<'_>, findings: &mut Findings) {
    let wholes = [("commit_latency_ms", 1e-3), ("transaction_time_ns_mean", 1e-9)];
    let Some((whole, size)) = wholes.into_iter().find(|(id, _)| context.has(id)) else { return };
    for Part { id: part, seconds, of_all, off } in PARTS.into_iter().filter(|p| context.has(p.id)) {
        let columns = [part, whole];
        let long = |row, reading| Some(context.interval(part, row, reading)?.scaled(seconds));
        let all = |row, reading| Some(context.interval(whole, row, reading)?.scaled(size * 1.001 * off));
        let exceeds = |row| above(|r| long(row, r), |r| all(row, r));
        let say = |row| {
            let most = context.value(whole, row).map(|v| v * size / seconds);
            (most, format!("{part} is a part of {whole} and longer than it"))
        };
        keep(&Limit::of("time-parts", &columns, part, of_all, context), &exceeds, &say, context, findings);
    }
}
