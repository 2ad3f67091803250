//! Figures of blocks, of the database's reads and writes, and of its data device.

use loadline_database::Events;
use loadline_model::snapshot::{LEAST_IO_NS, WaitProfile, counter};
use loadline_model::{Column, Note, column};
use loadline_workload::{Commit, Instrument};

use super::counters::Counters;
use super::volume::{is_one_read, is_sequential, only_adds};
use super::{KIB, MIB};
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
    rates(e, out);
    per_transaction(e, out);
    let pct = e.counters.as_ref().ok().and_then(|w| read_wait_pct(w, request.jobs));
    out.set_or_fallback(column::READ_WAIT_PCT, pct, &e.missing("the database does not time its reads"));
    match &e.counters {
        Ok(counters) => {
            read_times(out, e, counters);
            buffer_waits(out, e, counters);
            let growth = if only_adds(&request.work) { request.target.facts().growth_is_written } else { None };
            out.notes.extend(growth.map(|how| Note::GrowthIsWritten { how: how.to_owned() }));
        }
        Err(why) => out.set_fallback_reason(column::READ_TIME_US_MEAN, why),
    }
}

fn rates(e: &Evidence<'_>, out: &mut Test) {
    let (counters, why) = (e.counters.as_ref().ok(), e.missing(NOT_PROVIDED));
    let mut set = |id, value| out.set_or_fallback(id, value, &why);
    let rate = |name| counters.and_then(|w| w.rate(name));
    let both = |a, b| counters.and_then(|w| w.both(a, b)).filter(|(_, n)| *n > 0.0);
    let missed = both(counter::BLOCK_READS, counter::BLOCK_GETS);
    set(column::CACHE_HIT_PCT, missed.map(|(reads, gets)| (1.0 - reads / gets).max(0.0) * 100.0));
    set(column::BLOCK_GETS_PER_S, rate(counter::BLOCK_GETS));
    set(column::BLOCK_READS_PER_S, rate(counter::BLOCK_READS));
    set(column::READ_MIB_PER_S, rate(counter::READ_BYTES).map(|b| b / MIB));
    let reads = counters.and_then(|w| w.reads(is_sequential(e.work())).map(|n| n / w.seconds));
    set(column::IO_PER_S, reads.zip(rate(counter::WRITE_CALLS)).map(|(reads, writes)| reads + writes));
    set(column::PHYSICAL_WRITES_PER_S, rate(counter::WRITE_CALLS));
    set(column::PHYSICAL_WRITTEN_BLOCKS_PER_S, rate(counter::BLOCK_WRITES));
    set(column::PHYSICAL_WRITTEN_MIB_PER_S, rate(counter::WRITE_BYTES).map(|b| b / MIB));
    for (id, time, times) in [
        (column::REDO_WRITE_TIME_US, counter::REDO_WRITE_NS, counter::REDO_WRITES),
        (column::REDO_SYNC_TIME_US, counter::REDO_SYNC_NS, counter::REDO_SYNCS),
    ] {
        set(id, both(time, times).map(|(ns, n)| ns / n / 1e3));
    }
    set(column::REDO_SYNCS, counters.and_then(|w| w.in_window(counter::REDO_SYNCS)));
}

/// Blocks, undo and old rows per transaction that the jobs completed.
fn per_transaction(e: &Evidence<'_>, out: &mut Test) {
    let why = e.missing(NOT_PROVIDED);
    let done = e.comparable().count;
    for (column, name, unit) in [
        (column::BLOCK_READS_PER_TX, counter::BLOCK_READS, 1.0),
        (column::BLOCK_WRITES_PER_TX, counter::BLOCK_WRITES, 1.0),
        (column::UNDO_KIB_PER_TX, counter::UNDO_BYTES, KIB),
        (column::OLD_ROWS_PER_TX, counter::OLD_ROWS, 1.0),
    ] {
        out.set_or_fallback(column, e.grown(name).filter(|_| done > 0.0).map(|n| n / unit / done), &why);
    }
}

fn read_times(out: &mut Test, e: &Evidence<'_>, w: &Counters<'_>) {
    const SPREAD: [&Column; 3] = [column::READ_TIME_US_P50, column::READ_TIME_US_P99, column::READS_WITHIN_512US_PCT];
    let time = w.grown(counter::READ_NS);
    let reads = w.reads(is_sequential(e.work())).filter(|n| *n > 0.0);
    let counted = time.zip(reads).map(|(ns, n)| ns / n);
    let mean = counted.filter(|ns| *ns >= LEAST_IO_NS).map(|ns| ns / 1e3);
    let (transactions, tps) = (&e.merged().transaction, e.tps());
    let per_tx = w.rate(counter::BLOCK_READS).filter(|_| tps > 0.0).map(|reads| reads / tps);
    let why = match (time, reads) {
        (Some(_), Some(_)) => NOT_READ,
        (Some(_), None) => "the database counts no reads, or blocks of several that it reads at once",
        (None, _) => "the database does not time its reads",
    };
    out.set_or_fallback(column::READ_TIME_US_MEAN, mean, why);
    match per_tx {
        Some(n) if is_one_read(e.work()) && ONE_READ.contains(&n) => {
            let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
            out.set_or_fallback(column::READ_TIME_US_P50, us(transactions.quantile_ns(0.5)), NOT_PROVIDED);
            out.set_or_fallback(column::READ_TIME_US_P99, us(transactions.quantile_ns(0.99)), NOT_PROVIDED);
            let short = transactions.histogram().count_between(0, SHORT_READ_NS) as f64;
            let all = transactions.count() as f64;
            out.set_or_fallback(column::READS_WITHIN_512US_PCT, (all > 0.0).then(|| short / all * 100.0), NOT_PROVIDED);
            if let Some(ns) = transactions.mean_ns()
                && mean.is_none()
            {
                out.set(column::READ_TIME_US_MEAN, ns / 1e3);
            }
            out.notes.push(Note::ReadsTimedByTransactions { blocks_per_tx: n, mean_is_counted: mean.is_some() });
        }
        _ => {
            let why = match per_tx {
                Some(n) if is_one_read(e.work()) => {
                    format!("a transaction read {n:.2} blocks: its time is not that of one read")
                }
                _ => "read times are known only for transactions that read a single block each".to_owned(),
            };
            out.set_all_absent(&SPREAD, &why);
        }
    }
}

/// Time of the database's reads by its own clock as a share of the jobs' time, %. Never estimated from the jobs'
/// times, which include more than reads.
fn read_wait_pct(w: &Counters<'_>, jobs: u32) -> Option<f64> {
    w.rate(counter::READ_NS).map(|ns| ns / 1e9 / f64::from(jobs.max(1)) * 100.0)
}

/// Time that jobs waited for a free buffer, as counted or else as sampled.
fn buffer_waits(out: &mut Test, e: &Evidence<'_>, w: &Counters<'_>) {
    const ID: &Column = column::BUFFER_WAIT_PCT;
    let (request, measured) = (e.request, e.measured);
    let jobs = f64::from(request.jobs.max(1));
    if let Some(ns) = w.rate(counter::BUFFER_WAIT_NS) {
        out.set(ID, (ns / 1e9 / jobs * 100.0).min(100.0));
        return;
    }
    let profile = measured.waits();
    let waits = request.target.facts().waits;
    let log = (request.work.program.commit == Commit::Nowait).then_some(&waits.log_sync).filter(|log| !log.is_empty());
    match sampled_buffer_wait(&profile, &waits.buffer, log) {
        Some(waiting) => {
            out.set(ID, (waiting / jobs * 100.0).min(100.0));
            if request.work.workload.has(Instrument::Device) {
                out.notes.push(Note::BufferWaitsSampled { samples: profile.samples, with_log: log.is_some() });
            }
        }
        None if waits.buffer.is_empty() => out.set_fallback_reason(ID, "the target does not time waits for buffers"),
        None => out.set_fallback_reason(ID, "too few samples of wait events"),
    }
}

/// Mean number of sessions that waited for buffers. Includes log events if commits do not wait for the log: the redo
/// of a changed block is written before its buffer is reused.
fn sampled_buffer_wait(profile: &WaitProfile, buffers: &Events, log: Option<&Events>) -> Option<f64> {
    if buffers.is_empty() || profile.samples < 5 {
        return None;
    }
    profile.mean_sessions(|event| buffers.has(event) || log.is_some_and(|log| log.has(event)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_the_log_count_if_no_commit_waits_for_it() {
        let mut profile = WaitProfile { samples: 10, ..WaitProfile::default() };
        for (event, n) in [("IO:DataFileWrite", 5), ("IO:WALSync", 10), ("CPU", 20)] {
            profile.sessions.insert(event.to_owned(), n);
        }
        let (buffers, log) = (Events::from(["IO:DataFileWrite"]), Events::from(["IO:WALSync"]));
        assert_eq!(sampled_buffer_wait(&profile, &buffers, None), Some(0.5));
        assert_eq!(sampled_buffer_wait(&profile, &buffers, Some(&log)), Some(1.5));
        let none = sampled_buffer_wait(&profile, &Events::default(), Some(&log));
        assert_eq!(none, None, "log events alone prove nothing about buffers");
        profile.samples = 4;
        assert_eq!(sampled_buffer_wait(&profile, &buffers, Some(&log)), None);
    }
}
