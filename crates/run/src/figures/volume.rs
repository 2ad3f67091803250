//! Work of a transaction, and the volume of work: queries, rows, bytes and operations per second.

use loadline_database::Work;
use loadline_load::Tally;
use loadline_model::column;
use loadline_workload::{Effect, RowCount, Step};

use super::{MIB, NONE_COMPLETED, no_commit};
use crate::evidence::Evidence;
use crate::test::Test;

/// Whether transactions read adjacent blocks, several of which the device reads at once, and not single ones at random.
pub(crate) fn is_sequential(work: &Work) -> bool {
    work.workload.volume(&work.params).is_some_and(|volume| volume.share > 0.0)
}

/// Whether a transaction is a single query for one row.
pub(crate) fn is_one_read(work: &Work) -> bool {
    let program = &work.program;
    let executed = |step: &Step| match step {
        Step::Execute { statement } => program.statements.get(*statement).map(|s| s.effect),
        _ => None,
    };
    work.workload.volume(&work.params).is_none()
        && program.is_single_statement()
        && program.body.iter().filter_map(executed).all(|e| e == Effect::Read(1))
}

/// Whether its transactions only add rows and read none.
pub fn only_adds(work: &Work) -> bool {
    work.program.rows_changed_per_tx() > 0 && work.workload.tables.iter().all(|t| t.rows == RowCount::Empty)
}

/// Figures computed from the throughput and the work of one transaction.
pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let (work, tps) = (e.work(), e.tps());
    statements(out, work, e.merged(), tps);
    let (bytes, why) = match &e.proof.data_bytes {
        Ok(bytes) => (*bytes, "a transaction reads or changes rows, not whole tables"),
        Err(why) => (None, why.as_str()),
    };
    out.set_or_absent(column::DATA_MIB_PER_S, bytes.map(|bytes| bytes / MIB * tps), why);
    let volume = work.workload.volume(&work.params).unwrap_or_default();
    let mops = Some(volume.operations).filter(|n| *n > 0.0).map(|n| n * tps / 1e6);
    let mops = mops.map(|mops| [mops, mops / e.jobs().max(1.0)]).ok_or("only procedural code counts operations");
    out.set_all([column::MOPS_PER_S, column::MOPS_PER_S_PER_JOB], mops);
    let groups = Some(volume.groups).filter(|groups| *groups > 0.0);
    out.set_or_absent(column::GROUPS, groups, "transactions do not group rows");
    out.set(column::THREADS, f64::from(work.parallel_workers().unwrap_or(1)));
}

/// Queries and their rows, if transactions execute statements.
fn statements(out: &mut Test, work: &Work, merged: &Tally, tps: f64) {
    let (program, done) = (&work.program, merged.transaction.count() as f64);
    let (per_tx, each) = match &merged.scripted {
        Some(did) => (
            if done > 0.0 { Ok(did.statements as f64 / done) } else { Err(NONE_COMPLETED) },
            Err("rows of a script's statements are not counted, nor is each of them timed"),
        ),
        None => {
            let per_tx = Some(program.mean_statements_per_tx()).filter(|n| *n > 0.0);
            let per_tx = per_tx.ok_or("transactions execute no statements: they only compute");
            (per_tx, per_tx)
        }
    };
    out.set_all([column::STATEMENTS_PER_TX, column::QUERIES_PER_S], per_tx.map(|n| [n, n * tps]));
    let query_us = each.and_then(|n| {
        let ns = merged.transaction.mean_ns().ok_or(NONE_COMPLETED)?;
        if program.writes() { Err("transactions also write") } else { Ok([ns / 1e3 / n]) }
    });
    out.set_all([column::QUERY_TIME_US_MEAN], query_us);
    let of_volume = work.workload.volume(&work.params).map(|of| of.rows).filter(|rows| *rows > 0.0);
    let rows = of_volume.or_else(|| program.rows_are_known().then(|| program.mean_rows_per_tx()));
    let unknown = "the rows of a statement with no fixed number (read-any, or change = [FEWEST, MOST]) are not in it";
    let rows = each.and_then(|_| rows.map(|rows| [rows, rows * tps]).ok_or(unknown));
    out.set_all([column::ROWS_PER_TX, column::ROWS_PER_S], rows);
}

/// Figures of the data-load table, from the jobs' times and parameters.
pub(crate) fn loads(e: &Evidence<'_>, out: &mut Test) {
    let (work, merged) = (e.work(), e.merged());
    let no_commit = no_commit(merged, e.request.target.facts().commit_unseen);
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
mod tests {
    use loadline_workload::read_file;

    use super::*;

    fn rows_of(code: &str, effect: &str) -> Test {
        let text = include_str!("rows.toml").replace("CODE", code).replace("EFFECT", effect);
        let work = Work::with(read_file("x.toml", &text).unwrap(), &[]).unwrap();
        let mut out = Test::default();
        statements(&mut out, &work, &Tally::default(), 100.0);
        out
    }

    #[test]
    fn rows_that_are_not_counted_are_absent_with_the_reason() {
        let known = rows_of("VOLUME-KNOWN", "{ read = 3 }");
        let rounded = |column| known.figure(column).map(|f| (f * 10.0).round() as i64);
        assert_eq!((rounded(column::ROWS_PER_TX), rounded(column::ROWS_PER_S)), (Some(12), Some(1200)));
        let any = rows_of("VOLUME-ANY", "\"read-any\"");
        for id in [column::ROWS_PER_TX, column::ROWS_PER_S] {
            assert_eq!(any.figure(id), None, "{id}");
            assert!(any.absence_reason(id).unwrap().contains("read-any"), "{any:?}");
        }
        assert_eq!(any.figure(column::QUERIES_PER_S), Some(100.0), "statements are known");
    }

    #[test]
    fn the_indexes_are_those_of_the_table_that_is_loaded() {
        let count = |value: i64| indexes(&Work::from_catalogue("DBL-22", &[("indexes", value)]).unwrap());
        assert_eq!((count(0), count(1)), (0, 3), "none, or a primary key and two more");
    }
}
