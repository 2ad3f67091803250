//! Figures of the data-load table that come from the jobs' own times and the database's counters.

use loadline_model::snapshot::counter;
use loadline_model::{Snapshot, TestRecord};
use loadline_target::Work;

use crate::job::JobResult;

/// Sets them; `edges` are the counters at the edges of the window.
pub(crate) fn load_figures(
    record: &mut TestRecord,
    work: &Work,
    merged: &JobResult,
    edges: (Option<&Snapshot>, Option<&Snapshot>),
) {
    let times = merged.transaction.mean_ns().zip(merged.commit.mean_ns());
    match times {
        Some((all, commit)) => record.set("sql_service_time_s", (all - commit).max(0.0) / 1e9),
        None => {
            let why = record.absent.get("commit_time_ns_mean").cloned();
            let why = why.unwrap_or_else(|| "no transaction completed in the window".to_owned());
            record.leave_out("sql_service_time_s", why);
        }
    }
    if work.params.to_map().contains_key("indexes") {
        record.set("indexes", work.params.get("indexes") as f64);
    } else {
        record.leave_out("indexes", "only DBL-22 loads tables without and with indexes");
    }
    let grown = |name| edges.0.zip(edges.1).and_then(|(open, close)| open.delta(close, name));
    let seconds = edges.0.zip(edges.1).map(|(open, close)| open.seconds_until(close)).filter(|s| *s > 0.0);
    let mut set = |id: &str, value: Option<f64>| match value {
        _ if record.figures.contains_key(id) || record.absent.contains_key(id) => {}
        Some(value) => record.set(id, value),
        None => record.leave_out(id, "the target does not count it"),
    };
    let mean_us = |time, n| grown(time).zip(grown(n).filter(|n| *n > 0.0)).map(|(ns, n)| ns / n / 1e3);
    let rate = |name| grown(name).zip(seconds).map(|(n, s)| n / s);
    set("redo_syncs", grown(counter::REDO_SYNCS));
    set("redo_write_time_us", mean_us(counter::REDO_WRITE_NS, counter::REDO_WRITES));
    set("redo_sync_time_us", mean_us(counter::REDO_SYNC_NS, counter::REDO_SYNCS));
    set("physical_writes_per_s", rate(counter::WRITE_CALLS));
    set("physical_written_blocks_per_s", rate(counter::BLOCK_WRITES));
    set("physical_written_mib_per_s", rate(counter::WRITE_BYTES).map(|bytes| bytes / (1024.0 * 1024.0)));
}
