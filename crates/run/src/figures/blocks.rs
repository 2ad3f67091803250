//! Figures of blocks, of the database's reads and writes, and of its data device.

use loadline_model::snapshot::{LEAST_IO_NS, counter};
use loadline_model::{Latencies, Note, column};

use super::NONE_COMPLETED;
use super::counters::Counters;
use super::volume::{is_one_read, is_sequential, only_adds};
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

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
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
