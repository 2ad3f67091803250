//! What transactions worked through: queries, rows, bytes, operations per second.

use loadline_database::Work;
use loadline_model::TestRecord;

const MIB: f64 = 1024.0 * 1024.0;

/// Sets the figures that follow from throughput and from what one transaction does. `data_bytes` is what it
/// works through, where it works through whole tables.
pub(crate) fn volume_figures(record: &mut TestRecord, work: &Work, data_bytes: &Result<Option<f64>, String>) {
    let tps = record.figure("commit_throughput_tps").unwrap_or(0.0);
    let volume = work.workload.volume.map(|of| of(&work.params)).unwrap_or_default();
    let rows = match volume.rows {
        rows if rows > 0.0 => Some(rows),
        _ => work.program.rows_are_known().then(|| work.program.mean_rows_per_tx()),
    };
    let statements = work.program.mean_statements_per_tx();
    match record.figure("transaction_time_ns_mean") {
        Some(ns) if !work.program.writes() && statements > 0.0 => {
            record.set("query_time_us_mean", ns / 1e3 / statements);
        }
        Some(_) => record.leave_out("query_time_us_mean", "transactions do not only read"),
        None => record.leave_out("query_time_us_mean", "no transaction completed in the window"),
    }
    if statements > 0.0 {
        for (id, per_tx) in [("rows_per_tx", 1.0), ("rows_per_s", tps)] {
            match rows {
                Some(rows) => record.set(id, rows * per_tx),
                None => record.leave_out(id, "a statement returns any number of rows (read-any), which is not counted"),
            }
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use loadline_workload::register;

    use super::*;

    fn figures(code: &str, effect: &str) -> TestRecord {
        let text = format!(
            "code = \"{code}\"\nsummary = \"reads\"\nprogram = [{{ bind = \"n\", to = \"sequence\" }}, \
             {{ choose = [{{ share = 1, steps = [{{ execute = \"look\" }}] }}, {{ share = 9, steps = [{{ execute = \"one\" }}] }}] }}]\n\
             [[table]]\nname = \"t\"\nrows = 10\ncolumn = [{{ name = \"id\", type = \"int\", fill = \"key\" }}]\n\
             [[statement]]\nname = \"look\"\nsql = \"SELECT id FROM {{t}} WHERE id < :n\"\neffect = {effect}\n\
             [[statement]]\nname = \"one\"\nsql = \"SELECT id FROM {{t}} WHERE id = 1\"\neffect = {{ read = 1 }}\n"
        );
        let workload = register("x.toml", &text).unwrap();
        let work = Work::new(workload, workload.params(&BTreeMap::new()).unwrap(), 1, 0.0);
        let mut record = crate::job::blank_record(code);
        record.set("commit_throughput_tps", 100.0);
        record.set("rows_per_tx", work.program.mean_rows_per_tx());
        volume_figures(&mut record, &work, &Ok(None));
        record
    }

    #[test]
    fn rows_that_nobody_counts_are_left_out_with_the_reason() {
        let known = figures("VOLUME-KNOWN", "{ read = 3 }");
        let rounded = |id: &str| known.figure(id).map(|f| (f * 10.0).round() as i64);
        assert_eq!((rounded("rows_per_tx"), rounded("rows_per_s")), (Some(12), Some(1200)));
        let any = figures("VOLUME-ANY", "\"read-any\"");
        for id in ["rows_per_tx", "rows_per_s"] {
            assert_eq!(any.figure(id), None, "{id}");
            assert!(any.absent[id].contains("read-any"), "{:?}", any.absent);
        }
        assert_eq!(any.figure("queries_per_s"), Some(100.0), "statements are known");
    }
}
