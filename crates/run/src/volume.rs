//! What transactions worked through: queries, rows, bytes, operations per second.

use loadline_database::Work;
use loadline_model::{TestRecord, column};

const MIB: f64 = 1024.0 * 1024.0;

/// Sets the figures that follow from throughput and from what one transaction does. `data_bytes` is what it
/// works through, where it works through whole tables.
pub(crate) fn volume_figures(record: &mut TestRecord, work: &Work, data_bytes: &Result<Option<f64>, String>) {
    let tps = record.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0);
    let volume = work.workload.volume.map(|of| of(&work.params)).unwrap_or_default();
    let rows = match volume.rows {
        rows if rows > 0.0 => Some(rows),
        _ => work.program.rows_are_known().then(|| work.program.mean_rows_per_tx()),
    };
    let statements = work.program.mean_statements_per_tx();
    match record.figure(column::TRANSACTION_TIME_NS_MEAN) {
        Some(ns) if !work.program.writes() && statements > 0.0 => {
            record.set(column::QUERY_TIME_US_MEAN, ns / 1e3 / statements);
        }
        Some(_) => record.leave_out(column::QUERY_TIME_US_MEAN, "transactions do not only read"),
        None => record.leave_out(column::QUERY_TIME_US_MEAN, "no transaction completed in the window"),
    }
    if statements > 0.0 {
        for (id, per_tx) in [(column::ROWS_PER_TX, 1.0), (column::ROWS_PER_S, tps)] {
            match rows {
                Some(rows) => record.set(id, rows * per_tx),
                None => record.leave_out(id, "a statement returns any number of rows (read-any), which is not counted"),
            }
        }
        record.set(column::QUERIES_PER_S, statements * tps);
    } else {
        for id in [
            column::ROWS_PER_TX,
            column::ROWS_PER_S,
            column::QUERIES_PER_S,
            column::QUERY_TIME_US_MEAN,
            column::STATEMENTS_PER_TX,
        ] {
            record.leave_out(id, "a transaction executes no statement: it computes");
        }
    }
    match data_bytes {
        Ok(Some(bytes)) => record.set(column::DATA_MIB_PER_S, bytes / MIB * tps),
        Ok(None) => {
            record.leave_out(column::DATA_MIB_PER_S, "a transaction works through rows, not through whole tables")
        }
        Err(why) => record.leave_out(column::DATA_MIB_PER_S, why.clone()),
    }
    if volume.operations > 0.0 {
        let mops = volume.operations * tps / 1e6;
        record.set(column::MOPS_PER_S, mops);
        record.set(column::MOPS_PER_S_PER_JOB, mops / f64::from(record.jobs.max(1)));
    } else {
        for id in [column::MOPS_PER_S, column::MOPS_PER_S_PER_JOB] {
            record.leave_out(id, "only procedural code counts operations");
        }
    }
    if volume.groups > 0.0 {
        record.set(column::GROUPS, volume.groups);
    } else {
        record.leave_out(column::GROUPS, "transactions do not group rows");
    }
    match work.workload.workers {
        Some(param) => record.set(column::THREADS, work.params.get(param).max(1) as f64),
        None => record.set(column::THREADS, 1.0),
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
        record.set(column::COMMIT_THROUGHPUT_TPS, 100.0);
        record.set(column::ROWS_PER_TX, work.program.mean_rows_per_tx());
        volume_figures(&mut record, &work, &Ok(None));
        record
    }

    #[test]
    fn rows_that_nobody_counts_are_left_out_with_the_reason() {
        let known = figures("VOLUME-KNOWN", "{ read = 3 }");
        let rounded = |column| known.figure(column).map(|f| (f * 10.0).round() as i64);
        assert_eq!((rounded(column::ROWS_PER_TX), rounded(column::ROWS_PER_S)), (Some(12), Some(1200)));
        let any = figures("VOLUME-ANY", "\"read-any\"");
        for id in [column::ROWS_PER_TX, column::ROWS_PER_S] {
            assert_eq!(any.figure(id), None, "{id}");
            assert!(any.absent[id.id].contains("read-any"), "{:?}", any.absent);
        }
        assert_eq!(any.figure(column::QUERIES_PER_S), Some(100.0), "statements are known");
    }
}
