//! Figures of the data-load table, from the jobs' times and parameters.

use loadline_database::Work;
use loadline_model::column;

use super::no_commit;
use crate::evidence::Evidence;
use crate::test::Test;

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let (work, merged, no_commit) = (e.work(), e.merged(), no_commit(e));
    let times = merged.transaction.mean_ns().zip(merged.commit.mean_ns());
    out.set_or_absent(column::SQL_SERVICE_TIME_S, times.map(|(all, commit)| (all - commit).max(0.0) / 1e9), no_commit);
    let has_indexes = work.params.to_map().contains_key("indexes");
    let indexes = has_indexes.then(|| indexes(work) as f64);
    out.set_or_absent(column::INDEXES, indexes, "only DBL-22 loads tables without and with indexes");
}

/// Number of indexes of the tables that the program loads, including primary keys.
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
        let count = |value: i64| indexes(&Work::of("DBL-22", &[("indexes", value)]).unwrap());
        assert_eq!((count(0), count(1)), (0, 3), "none, or a primary key and two more");
    }
}
