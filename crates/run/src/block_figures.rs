//! Figures of blocks and of the device under them, and what proves where blocks came from.

use loadline_collect::Edge;
use loadline_collect::os::DiskCounters;
use loadline_database::Work;
use loadline_model::check::Check;
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Column, Latencies, Snapshot, TestRecord, column};
use loadline_workload::{Cache, Commit, Effect, Step};

use crate::block_checks::{CacheFacts, cache_hit, data_source, from_the_device, only_adds, unread};
use crate::data_source::{Access, Reads};
use crate::test::{Measured, Request};
use crate::write_checks::{data_written, rows_changed, written};

pub(crate) const MIB: f64 = 1024.0 * 1024.0;
/// Blocks read per transaction with which a transaction's time stands for that of a read.
const ONE_READ: std::ops::RangeInclusive<f64> = 0.9..=1.25;
/// Reads of a window with fewer than that say nothing about where they came from.
pub(crate) const FEW_READS: f64 = 20.0;
/// Reads of the device to each of the database's beyond which they are not all the database's.
const CROWDED: f64 = 1.3;
/// Bound of the share of short reads, as DBAs read wait histograms.
const SHORT_READ_NS: u64 = 512_000;

/// Growth of counters between two snapshots that cover `seconds`.
pub(crate) struct Window<'a> {
    open: &'a Snapshot,
    close: &'a Snapshot,
    pub(crate) seconds: f64,
    /// How far they lie from the edges that they stand for, and lag behind, s.
    pub(crate) off_s: f64,
}

impl Window<'_> {
    pub(crate) fn grown(&self, name: &str) -> Option<f64> {
        self.open.delta(self.close, name)
    }
    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        self.grown(name).map(|d| d / self.seconds)
    }
    fn both(&self, a: &str, b: &str) -> Option<(f64, f64)> {
        self.grown(a).zip(self.grown(b))
    }
}

/// Figures that come from the counters of blocks, all of them.
const BLOCK_COLUMNS: [&Column; 13] = [
    column::CACHE_HIT_PCT,
    column::BLOCK_GETS_PER_S,
    column::BLOCK_READS_PER_S,
    column::READ_MIB_PER_S,
    column::READ_TIME_US_MEAN,
    column::READ_WAIT_PCT,
    column::IO_PER_S,
    column::PHYSICAL_WRITES_PER_S,
    column::PHYSICAL_WRITTEN_BLOCKS_PER_S,
    column::PHYSICAL_WRITTEN_MIB_PER_S,
    column::REDO_WRITE_TIME_US,
    column::REDO_SYNCS,
    column::REDO_SYNC_TIME_US,
];

/// Sets the figures and returns the checks that follow from them. `snapshots` are those at the edges, the
/// seconds that they cover, and how far they lie from the edges, s.
pub(crate) fn block_figures(
    record: &mut TestRecord,
    request: &Request,
    measured: &Measured,
    transactions: &Latencies,
    snapshots: Option<(&Snapshot, &Snapshot, f64, f64)>,
    facts: &CacheFacts,
) -> Vec<Check> {
    match request.target.facts().block_bytes {
        Some(bytes) => record.set(column::BLOCK_BYTES, bytes as f64),
        None => record.leave_out(column::BLOCK_BYTES, "the target does not say"),
    }
    match request.work.params.to_map().get("write-pct") {
        Some(percent) => record.set(column::WRITE_PCT, *percent as f64),
        None => record.leave_out(column::WRITE_PCT, "the workload has no mix of reads and updates"),
    }
    let written = written(&measured.edges.at_open, &measured.edges.at_close);
    let device = device(record, &measured.edges.at_open, &measured.edges.at_close);
    let Some((open, close, seconds, off_s)) = snapshots else {
        let why = measured.edges.unread().unwrap_or_else(|| "the database's counters could not be read".to_owned());
        BLOCK_COLUMNS.iter().for_each(|id| leave_out(record, id, &why));
        return unread(record, &request.work, facts, &why);
    };
    let window = Window { open, close, seconds, off_s };
    rates(record, &window);
    read_times(record, request, &window, transactions);
    match read_wait_pct(&window, request.jobs) {
        Some(pct) => record.set(column::READ_WAIT_PCT, pct),
        None => leave_out(record, column::READ_WAIT_PCT, "the database does not time its reads"),
    }
    buffer_waits(record, request, measured, &window);
    let share = from_the_device(&window, device, access(&request.work), request.work.workload.cache);
    device_share_figure(record, request, &window, device);
    let mut checks = Vec::new();
    match request.work.workload.cache {
        Cache::Any => {}
        Cache::Hit => checks.push(cache_hit(record, request.target.facts().block_bytes.is_some())),
        Cache::Device => {
            checks.extend(data_source(record, request, &window, share, facts));
            checks.extend(data_written(record, request, &window, written, facts));
        }
    }
    checks.extend(rows_changed(request, &window, transactions));
    record
        .notes
        .extend(request.target.facts().growth_is_written.filter(|_| only_adds(&request.work)).map(str::to_owned));
    checks
}

/// The device's reads as a share of the database's, and a word where others must have used the device.
fn device_share_figure(record: &mut TestRecord, request: &Request, w: &Window<'_>, device: Option<(Reads, f64)>) {
    const ID: &Column = column::DEVICE_READ_SHARE_PCT;
    if request.work.workload.cache != Cache::Device {
        record.leave_out(ID, "only where reads must come from the device they are held against the device's");
        return;
    }
    let database = w.both(counter::READ_BYTES, counter::READ_CALLS);
    let Some(((bytes, calls), (device, device_s))) = database.zip(device) else {
        record.leave_out(ID, "the reads of the database or of the device under its data are not known");
        return;
    };
    if calls < FEW_READS {
        record.leave_out(ID, "the database read next to nothing from its files");
        return;
    }
    record.set(ID, device.bytes / device_s / (bytes / w.seconds) * 100.0);
    let over = device.bytes / device_s / (bytes / w.seconds);
    if over > CROWDED && access(&request.work) == Access::Sequential {
        record.notes.push(format!(
            "the device under the data read {over:.1} bytes to each that the database asked for: others use it, or what the \
             operating system reads ahead is dropped from its cache before it is used, which costs throughput; a larger --size \
             lets it stay longer"
        ));
    }
    let more = device.count / device_s / (calls / w.seconds);
    if more > CROWDED && access(&request.work) == Access::Random {
        record.notes.push(format!(
            "the device under the data made {more:.1} reads to each of the database's: others use it at the same time, which \
             makes the proof weak that reads came from the device, or the operating system reads ahead"
        ));
    }
}

/// Leaves a figure out where nobody has said why.
fn leave_out(record: &mut TestRecord, column: &Column, why: &str) {
    if record.why_absent(column).is_none() && record.figure(column).is_none() {
        record.leave_out(column, why);
    }
}

fn set(record: &mut TestRecord, column: &Column, value: Option<f64>) {
    match value {
        Some(value) => record.set(column, value),
        None => leave_out(record, column, "the target does not provide the counter"),
    }
}

fn rates(record: &mut TestRecord, w: &Window<'_>) {
    let hits = w.both(counter::BLOCK_GETS, counter::BLOCK_READS).filter(|(gets, _)| *gets > 0.0);
    set(record, column::CACHE_HIT_PCT, hits.map(|(gets, reads)| (1.0 - reads / gets).max(0.0) * 100.0));
    set(record, column::BLOCK_GETS_PER_S, w.rate(counter::BLOCK_GETS));
    set(record, column::BLOCK_READS_PER_S, w.rate(counter::BLOCK_READS));
    set(record, column::READ_MIB_PER_S, w.rate(counter::READ_BYTES).map(|b| b / MIB));
    let calls = w.rate(counter::READ_CALLS).zip(w.rate(counter::WRITE_CALLS));
    set(record, column::IO_PER_S, calls.map(|(reads, writes)| reads + writes));
    set(record, column::PHYSICAL_WRITES_PER_S, w.rate(counter::WRITE_CALLS));
    set(record, column::PHYSICAL_WRITTEN_BLOCKS_PER_S, w.rate(counter::BLOCK_WRITES));
    set(record, column::PHYSICAL_WRITTEN_MIB_PER_S, w.rate(counter::WRITE_BYTES).map(|b| b / MIB));
    for (id, time, times) in [
        (column::REDO_WRITE_TIME_US, counter::REDO_WRITE_NS, counter::REDO_WRITES),
        (column::REDO_SYNC_TIME_US, counter::REDO_SYNC_NS, counter::REDO_SYNCS),
    ] {
        let mean = w.both(time, times).filter(|(_, n)| *n > 0.0).map(|(ns, n)| ns / n / 1e3);
        set(record, id, mean);
    }
    set(record, column::REDO_SYNCS, w.grown(counter::REDO_SYNCS));
}

/// Reads of the device under the data, and over how many seconds.
fn device(record: &mut TestRecord, open: &Edge, close: &Edge) -> Option<(Reads, f64)> {
    let seconds = close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9;
    let grown = |a: &DiskCounters, b: &DiskCounters| {
        let count = b.reads.checked_sub(a.reads)? as f64;
        Some(Reads { count, bytes: b.read_bytes.checked_sub(a.read_bytes)? as f64 })
    };
    let disks = open.data_disk.as_ref().zip(close.data_disk.as_ref());
    let reads = disks.and_then(|(a, b)| grown(a, b)).filter(|_| seconds > 0.0);
    match reads {
        Some(reads) => {
            record.set(column::DEVICE_READS_PER_S, reads.count / seconds);
            record.set(column::DEVICE_READ_MIB_PER_S, reads.bytes / MIB / seconds);
        }
        None => {
            let why = "the device under the data is not known, or is on another machine";
            [column::DEVICE_READS_PER_S, column::DEVICE_READ_MIB_PER_S].iter().for_each(|id| record.leave_out(id, why));
        }
    }
    reads.map(|reads| (reads, seconds))
}

pub(crate) fn access(work: &Work) -> Access {
    let volume = work.workload.volume.map(|of| of(&work.params));
    if volume.is_some_and(|v| v.share > 0.0) { Access::Sequential } else { Access::Random }
}

/// Whether a transaction is a single query for one row.
pub(crate) fn is_one_read(work: &Work) -> bool {
    let program = &work.program;
    let executed = |step: &Step| match step {
        Step::Execute { statement } => program.statements.get(*statement).map(|s| s.effect),
        _ => None,
    };
    work.workload.volume.is_none()
        && program.is_single_statement()
        && program.body.iter().filter_map(executed).all(|e| e == Effect::Read(1))
}

fn read_times(record: &mut TestRecord, request: &Request, w: &Window<'_>, transactions: &Latencies) {
    const SPREAD: [&Column; 3] = [column::READ_TIME_US_P50, column::READ_TIME_US_P99, column::READS_WITHIN_512US_PCT];
    let calls = w.grown(counter::READ_CALLS).filter(|n| *n > 0.0);
    let mean = w.grown(counter::READ_NS).zip(calls).map(|(ns, n)| ns / n / 1e3);
    let tps = record.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0);
    let per_tx = w.rate(counter::BLOCK_READS).filter(|_| tps > 0.0).map(|reads| reads / tps);
    if let Some(mean) = mean {
        record.set(column::READ_TIME_US_MEAN, mean);
    }
    match per_tx {
        Some(n) if is_one_read(&request.work) && ONE_READ.contains(&n) => {
            let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
            set(record, column::READ_TIME_US_P50, us(transactions.quantile_ns(0.5)));
            set(record, column::READ_TIME_US_P99, us(transactions.quantile_ns(0.99)));
            let short = transactions.histogram().count_between(0, SHORT_READ_NS) as f64;
            let all = transactions.count() as f64;
            set(record, column::READS_WITHIN_512US_PCT, (all > 0.0).then(|| short / all * 100.0));
            let timed = if mean.is_some() { "their mean is the database's own" } else { "so is their mean" };
            if mean.is_none() {
                set(record, column::READ_TIME_US_MEAN, transactions.mean_ns().map(|ns| ns / 1e3));
            }
            record.notes.push(format!(
                "median, p99 and share of the reads are times of transactions, each of which read {n:.2} blocks; {timed}"
            ));
        }
        _ => {
            let why = match per_tx {
                Some(n) if is_one_read(&request.work) => {
                    format!("a transaction read {n:.2} blocks: its time is not that of one read")
                }
                _ => "only of transactions that read a single block each the times tell those of reads".to_owned(),
            };
            SPREAD.iter().for_each(|id| record.leave_out(id, why.clone()));
            leave_out(record, column::READ_TIME_US_MEAN, "the database does not time its reads");
        }
    }
}

/// Time that the database's reads took by its own clock as a share of the jobs', %. Nothing stands for it: from
/// the jobs' own times it would follow that they did nothing but wait.
fn read_wait_pct(w: &Window<'_>, jobs: u32) -> Option<f64> {
    w.rate(counter::READ_NS).map(|ns| ns / 1e9 / f64::from(jobs.max(1)) * 100.0)
}

/// Time in which jobs waited for a place in the cache, as counted, or else as sampled.
fn buffer_waits(record: &mut TestRecord, request: &Request, measured: &Measured, w: &Window<'_>) {
    const ID: &Column = column::BUFFER_WAIT_PCT;
    let jobs = f64::from(request.jobs.max(1));
    if let Some(ns) = w.rate(counter::BUFFER_WAIT_NS) {
        record.set(ID, (ns / 1e9 / jobs * 100.0).min(100.0));
        return;
    }
    let profile = measured.collected.waits_between(measured.schedule.open_ns, measured.schedule.close_ns);
    let log = if request.work.program.commit == Commit::Nowait { request.target.facts().log_sync_events } else { &[] };
    let events = [request.target.facts().buffer_wait_events, log];
    match sampled_buffer_wait(&profile, events) {
        Some(waiting) => {
            record.set(ID, (waiting / jobs * 100.0).min(100.0));
            if request.work.workload.cache == Cache::Device {
                let log = if log.is_empty() { "" } else { ", those for the log among them, as no commit waits for it" };
                record.notes.push(format!(
                    "buffer waits are estimated from {} samples of the sessions' wait events{log}",
                    profile.samples
                ));
            }
        }
        None if events[0].is_empty() => {
            leave_out(record, ID, "the target does not tell the time that sessions wait for buffers")
        }
        None => leave_out(record, ID, "too few samples of what sessions wait for"),
    }
}

/// Sessions that waited for buffers, on average: in the events of buffers, and in those of the log where commits
/// do not wait for it, because who needs the place of a changed block has its redo written first.
fn sampled_buffer_wait(profile: &WaitProfile, [buffers, log]: [&[&str]; 2]) -> Option<f64> {
    if buffers.is_empty() || profile.samples < 5 {
        return None;
    }
    profile.mean_sessions(&[buffers, log].concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_buffers_are_those_for_the_log_where_no_commit_is() {
        let mut profile = WaitProfile { samples: 10, ..WaitProfile::default() };
        for (event, n) in [("IO:DataFileWrite", 5), ("IO:WALSync", 10), ("CPU", 20)] {
            profile.sessions.insert(event.to_owned(), n);
        }
        let (buffers, log): (&[&str], &[&str]) = (&["IO:DataFileWrite"], &["IO:WALSync"]);
        assert_eq!(sampled_buffer_wait(&profile, [buffers, &[]]), Some(0.5));
        assert_eq!(sampled_buffer_wait(&profile, [buffers, log]), Some(1.5));
        assert_eq!(sampled_buffer_wait(&profile, [&[], log]), None, "the log alone says nothing of buffers");
        profile.samples = 4;
        assert_eq!(sampled_buffer_wait(&profile, [buffers, log]), None);
    }

    #[test]
    fn waits_for_reads_are_told_by_the_databases_clock_only() {
        let at = |calls: f64, ns: Option<f64>| {
            let counters =
                [(counter::READ_CALLS, Some(calls)), (counter::BLOCK_READS, Some(calls * 4.0)), (counter::READ_NS, ns)];
            let counters = counters.into_iter().filter_map(|(n, v)| Some((n.to_owned(), v?))).collect();
            Snapshot { counters, ..Snapshot::default() }
        };
        let of =
            |open: &Snapshot, close: &Snapshot| read_wait_pct(&Window { open, close, seconds: 2.0, off_s: 0.0 }, 8);
        // 1,000 calls of 12 ms each in 2 s, by 8 jobs.
        let pct = of(&at(0.0, Some(0.0)), &at(1_000.0, Some(12e9))).unwrap();
        assert!((pct - 75.0).abs() < 1e-9, "{pct}");
        assert_eq!(of(&at(0.0, None), &at(1_000.0, None)), None, "calls alone tell no time");
    }
}
