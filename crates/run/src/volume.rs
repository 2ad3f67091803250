//! What transactions worked through: queries, rows, bytes, operations per second.

use loadline_model::TestRecord;
use loadline_target::Work;

const MIB: f64 = 1024.0 * 1024.0;

/// Sets the figures that follow from throughput and from what one transaction does. `data_bytes` is what it
/// works through, where it works through whole tables.
pub(crate) fn volume_figures(record: &mut TestRecord, work: &Work, data_bytes: &Result<Option<f64>, String>) {
    let tps = record.figure("commit_throughput_tps").unwrap_or(0.0);
    let volume = work.workload.volume.map(|of| of(&work.params)).unwrap_or_default();
    let rows = if volume.rows > 0.0 { volume.rows } else { work.program.mean_rows_per_tx() };
    let statements = work.program.mean_statements_per_tx();
    record.set("rows_per_tx", rows);
    match record.figure("transaction_time_ns_mean") {
        Some(ns) if !work.program.writes() && statements > 0.0 => {
            record.set("query_time_us_mean", ns / 1e3 / statements);
        }
        Some(_) => record.leave_out("query_time_us_mean", "transactions do not only read"),
        None => record.leave_out("query_time_us_mean", "no transaction completed in the window"),
    }
    if statements > 0.0 {
        record.set("rows_per_s", rows * tps);
        record.set("queries_per_s", statements * tps);
    } else {
        for id in ["rows_per_tx", "rows_per_s", "queries_per_s", "query_time_us_mean", "statements_per_tx"] {
            record.leave_out(id, "a transaction executes no statement: it computes");
        }
    }
    match data_bytes {
        Ok(Some(bytes)) => record.set("data_mib_per_s", bytes / MIB * tps),
        Ok(None) => record.leave_out("data_mib_per_s", "a transaction works through rows, not through whole tables"),
        Err(why) => record.leave_out("data_mib_per_s", why.clone()),
    }
    if volume.operations > 0.0 {
        let mops = volume.operations * tps / 1e6;
        record.set("mops_per_s", mops);
        record.set("mops_per_s_per_job", mops / f64::from(record.jobs.max(1)));
    } else {
        for id in ["mops_per_s", "mops_per_s_per_job"] {
            record.leave_out(id, "only procedural code counts operations");
        }
    }
    if volume.groups > 0.0 {
        record.set("groups", volume.groups);
    } else {
        record.leave_out("groups", "transactions do not group rows");
    }
    match work.workload.workers {
        Some(param) => record.set("threads", work.params.get(param).max(1) as f64),
        None => record.set("threads", 1.0),
    }
}
