//! Figures of the data-load table that come from the jobs' own times and parameters.

use loadline_database::Work;
use loadline_model::{TestRecord, column};

use crate::job::JobResult;

/// Sets them.
pub(crate) fn load_figures(record: &mut TestRecord, work: &Work, merged: &JobResult) {
    let times = merged.transaction.mean_ns().zip(merged.commit.mean_ns());
    match times {
        Some((all, commit)) => record.set(column::SQL_SERVICE_TIME_S, (all - commit).max(0.0) / 1e9),
        None => {
            let why = record.why_absent(column::COMMIT_TIME_NS_MEAN).map(str::to_owned);
            let why = why.unwrap_or_else(|| "no transaction completed in the window".to_owned());
            record.leave_out(column::SQL_SERVICE_TIME_S, why);
        }
    }
    if work.params.to_map().contains_key("indexes") {
        record.set(column::INDEXES, indexes(work) as f64);
    } else {
        record.leave_out(column::INDEXES, "only DBL-22 loads tables without and with indexes");
    }
}

/// Indexes of the tables that the program loads, those of primary keys among them.
fn indexes(work: &Work) -> usize {
    let tables = work.program.bulk_tables().into_iter().filter_map(|table| work.workload.tables.get(table));
    tables.map(|t| t.indexes.len() + usize::from(t.primary_key().is_some())).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_indexes_are_those_of_the_table_that_is_loaded() {
        let count = |value: i64| {
            let workload = loadline_workload::find("DBL-22").unwrap();
            let params = workload.params(&[("indexes".to_owned(), value)].into()).unwrap();
            indexes(&Work::new(workload, params, 1, 0.0))
        };
        assert_eq!((count(0), count(1)), (0, 3), "none, or a primary key and two more");
    }
}
