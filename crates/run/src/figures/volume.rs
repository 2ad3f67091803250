//! Work of a transaction, and the volume of work: queries, rows, bytes and operations per second, and blocks read and written.

use loadline_database::Work;
use loadline_load::Tally;
use loadline_model::snapshot::{LEAST_IO_NS, counter};
use loadline_model::{Latencies, Note, column};
use loadline_workload::{Effect, RowCount, Step};

use super::counters::Counters;
use super::{MIB, NONE_COMPLETED, no_commit};
use crate::evidence::Evidence;
use crate::test::Test;

/// Range of blocks read per transaction in which a transaction's time counts as the time of one read.
const ONE_READ: std::ops::RangeInclusive<f64> = 0.9..=1.25;
/// Upper bound of a short read, as in the database's wait histograms.
const SHORT_READ_NS: u64 = 512_000;

/// Why a mean below [`LEAST_IO_NS`] is not shown.
const NOT_READ: &str = "most blocks that the database counts as read took no time: they are new ones, by which tables grow \
     (PostgreSQL up to 15 counts these as well)";
const NOT_PROVIDED: &str = "the target does not provide the counter";

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

/// Figures of blocks, of the database's reads and writes, and of its data device.
pub(crate) fn blocks(e: &Evidence<'_>, out: &mut Test) {
    let request = e.request;
    let bytes = request.target.facts().block_bytes.map(|bytes| bytes as f64);
    out.set_or_absent(column::BLOCK_BYTES, bytes, "the target does not report its block size");
    let percent = request.work.params.to_map().get("write-pct").map(|percent| *percent as f64);
    out.set_or_absent(column::WRITE_PCT, percent, "the workload has no mix of reads and updates");
    let device = e.rates.data_disk;
    let why = "the data device is unknown or on another machine";
    out.set_or_fallback(column::DEVICE_READS_PER_S, device.map(|d| d.reads_per_s), why);
    out.set_or_fallback(column::DEVICE_READ_MIB_PER_S, device.map(|d| d.read_mib_per_s), why);
    let (counters, why) = (e.counters.as_ref().ok(), e.missing(NOT_PROVIDED));
    let gets = e.grown(counter::BLOCK_READS).zip(e.grown(counter::BLOCK_GETS)).filter(|(_, gets)| *gets > 0.0);
    let hit_pct = gets.map(|(reads, gets)| (1.0 - reads / gets).max(0.0) * 100.0);
    let reads = counters.and_then(|w| w.reads(is_sequential(e.work())).map(|n| n / w.seconds));
    let io = reads.zip(counters.and_then(|w| w.rate(counter::WRITE_CALLS))).map(|(reads, writes)| reads + writes);
    let syncs = counters.and_then(|w| w.in_window(counter::REDO_SYNCS));
    for (column, value) in [(column::CACHE_HIT_PCT, hit_pct), (column::IO_PER_S, io), (column::REDO_SYNCS, syncs)] {
        out.set_or_fallback(column, value, &why);
    }
    match &e.counters {
        Ok(counters) => {
            read_times(out, e, counters);
            let growth = if only_adds(&request.work) { request.target.facts().growth_is_written } else { None };
            out.notes.extend(growth.map(|how| Note::GrowthIsWritten { how: how.to_owned() }));
        }
        Err(why) => out.set_fallback_reason(column::READ_TIME_US_MEAN, why),
    }
}

fn read_times(out: &mut Test, e: &Evidence<'_>, w: &Counters<'_>) {
    let time = w.grown(counter::READ_NS);
    let reads = w.reads(is_sequential(e.work())).filter(|n| *n > 0.0);
    let counted = time.zip(reads).map(|(ns, n)| ns / n);
    let mean = counted.filter(|ns| *ns >= LEAST_IO_NS).map(|ns| ns / 1e3);
    let (transactions, tps) = (&e.merged().transaction, e.tps());
    let is_one = tps > 0.0 && is_one_read(e.work());
    let per_tx = if is_one { w.rate(counter::BLOCK_READS).map(|reads| reads / tps) } else { None };
    let why = match (time, reads) {
        (Some(_), Some(_)) => NOT_READ,
        (Some(_), None) => "the database counts no reads, or blocks of several that it reads at once",
        (None, _) => "the database does not time its reads",
    };
    out.set_or_fallback(column::READ_TIME_US_MEAN, mean, why);
    let blocks_per_tx = match per_tx {
        Some(n) if ONE_READ.contains(&n) => Ok(n),
        Some(n) => Err(format!("a transaction read {n:.2} blocks: its time is not that of one read")),
        None => Err("read times are known only for transactions that read a single block each".to_owned()),
    };
    if let Ok(blocks_per_tx) = blocks_per_tx {
        if mean.is_none()
            && let Some(ns) = transactions.mean_ns()
        {
            out.set(column::READ_TIME_US_MEAN, ns / 1e3);
        }
        out.notes.push(Note::ReadsTimedByTransactions { blocks_per_tx, mean_is_counted: mean.is_some() });
    }
    let spread = blocks_per_tx.and_then(|_| spread(transactions).ok_or_else(|| NONE_COMPLETED.to_owned()));
    out.set_all([column::READ_TIME_US_P50, column::READ_TIME_US_P99, column::READS_WITHIN_512US_PCT], spread);
}

/// Median and 99th percentile of the times, µs, and the share of short ones, %; `None` if there are none.
fn spread(times: &Latencies) -> Option<[f64; 3]> {
    let us = |q| times.quantile_ns(q).map(|ns| ns as f64 / 1e3);
    let short = times.histogram().count_between(0, SHORT_READ_NS) as f64;
    Some([us(0.5)?, us(0.99)?, short / times.count() as f64 * 100.0])
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
