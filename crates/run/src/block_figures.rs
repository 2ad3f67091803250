//! Figures of blocks and of the device under them, and what proves where blocks came from.

use loadline_collect::Edge;
use loadline_collect::os::DiskCounters;
use loadline_model::check::{Check, Outcome};
use loadline_model::snapshot::counter;
use loadline_model::{Latencies, Snapshot, TestRecord, format};
use loadline_target::Work;
use loadline_workload::{Cache, Effect, Step};

use crate::data_source::{Access, DEVICE_FROM, DataSource, Reads, beyond_own_cache, device_share};
use crate::test::{Measured, Request};

const MIB: f64 = 1024.0 * 1024.0;
/// Least share of block reads that the database's own cache serves where that is what is measured.
const HIT_FROM: f64 = 0.999;
/// Blocks read per transaction with which a transaction's time stands for that of a read.
const ONE_READ: std::ops::RangeInclusive<f64> = 0.9..=1.25;
/// Reads of a window with fewer than that say nothing about where they came from.
const FEW_READS: f64 = 20.0;
/// Reads of the device to each of the database's beyond which they are not all the database's.
const CROWDED: f64 = 1.3;
/// By how much the database's count of changed rows may differ from the jobs', and how many transactions
/// a job may be off at the edges of the window.
const ROWS_OFF: f64 = 0.05;
/// Bound of the share of short reads, as DBAs read wait histograms.
const SHORT_READ_NS: u64 = 512_000;

/// What is known of caches before a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheFacts {
    /// Size of the database's own block cache, bytes.
    pub cache_bytes: Option<u64>,
    /// Bytes of the tables that are read.
    pub table_bytes: Option<u64>,
    /// Why the operating system's cache is not kept empty, if it is not.
    pub not_kept_out: Option<String>,
    /// Whether reads from caches are kept, and marked.
    pub allow_cached: bool,
}

/// Growth of counters between two snapshots that cover `seconds`.
struct Window<'a> {
    open: &'a Snapshot,
    close: &'a Snapshot,
    seconds: f64,
}

impl Window<'_> {
    fn grown(&self, name: &str) -> Option<f64> {
        self.open.delta(self.close, name)
    }
    fn rate(&self, name: &str) -> Option<f64> {
        self.grown(name).map(|d| d / self.seconds)
    }
    fn both(&self, a: &str, b: &str) -> Option<(f64, f64)> {
        self.grown(a).zip(self.grown(b))
    }
}

/// Figures that come from the counters of blocks, all of them.
const BLOCK_COLUMNS: [&str; 12] = [
    "cache_hit_pct",
    "block_gets_per_s",
    "block_reads_per_s",
    "read_mib_per_s",
    "read_time_us_mean",
    "io_per_s",
    "physical_writes_per_s",
    "physical_written_blocks_per_s",
    "physical_written_mib_per_s",
    "redo_write_time_us",
    "redo_syncs",
    "redo_sync_time_us",
];

/// Sets the figures and returns the checks that follow from them. `snapshots` are those at the edges and
/// the seconds that they cover.
pub(crate) fn block_figures(
    record: &mut TestRecord,
    request: &Request,
    measured: &Measured,
    transactions: &Latencies,
    snapshots: Option<(&Snapshot, &Snapshot, f64)>,
    facts: &CacheFacts,
) -> Vec<Check> {
    match request.target.block_bytes() {
        Some(bytes) => record.set("block_bytes", bytes as f64),
        None => record.leave_out("block_bytes", "the target does not say"),
    }
    match request.work.params.to_map().get("write-pct") {
        Some(percent) => record.set("write_pct", *percent as f64),
        None => record.leave_out("write_pct", "the workload has no mix of reads and updates"),
    }
    let written = written(&measured.edges.at_open, &measured.edges.at_close);
    let device = device(record, &measured.edges.at_open, &measured.edges.at_close);
    let Some((open, close, seconds)) = snapshots else {
        let why = "the database's counters could not be read";
        BLOCK_COLUMNS.iter().for_each(|id| leave_out(record, id, why));
        return Vec::new();
    };
    let window = Window { open, close, seconds };
    rates(record, &window);
    read_times(record, request, &window, transactions);
    buffer_waits(record, request, measured, &window);
    let share = from_the_device(&window, device, access(&request.work), request.work.workload.cache);
    device_share_figure(record, request, &window, device);
    let mut checks = Vec::new();
    match request.work.workload.cache {
        Cache::Any => {}
        Cache::Hit => checks.push(cache_hit(record)),
        Cache::Device => {
            checks.extend(data_source(record, request, &window, share, facts));
            checks.extend(data_written(record, request, &window, written, facts));
        }
    }
    checks.extend(rows_changed(request, &window, transactions));
    checks
}

/// The device's reads as a share of the database's, and a word where others must have used the device.
fn device_share_figure(record: &mut TestRecord, request: &Request, w: &Window<'_>, device: Option<(Reads, f64)>) {
    const ID: &str = "device_read_share_pct";
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
fn leave_out(record: &mut TestRecord, id: &str, why: &str) {
    if !record.absent.contains_key(id) && record.figure(id).is_none() {
        record.leave_out(id, why);
    }
}

fn set(record: &mut TestRecord, id: &str, value: Option<f64>) {
    match value {
        Some(value) => record.set(id, value),
        None => leave_out(record, id, "the target does not provide the counter"),
    }
}

fn rates(record: &mut TestRecord, w: &Window<'_>) {
    let hits = w.both(counter::BLOCK_GETS, counter::BLOCK_READS).filter(|(gets, _)| *gets > 0.0);
    set(record, "cache_hit_pct", hits.map(|(gets, reads)| (1.0 - reads / gets).max(0.0) * 100.0));
    set(record, "block_gets_per_s", w.rate(counter::BLOCK_GETS));
    set(record, "block_reads_per_s", w.rate(counter::BLOCK_READS));
    set(record, "read_mib_per_s", w.rate(counter::READ_BYTES).map(|b| b / MIB));
    let calls = w.rate(counter::READ_CALLS).zip(w.rate(counter::WRITE_CALLS));
    set(record, "io_per_s", calls.map(|(reads, writes)| reads + writes));
    set(record, "physical_writes_per_s", w.rate(counter::WRITE_CALLS));
    set(record, "physical_written_blocks_per_s", w.rate(counter::BLOCK_WRITES));
    set(record, "physical_written_mib_per_s", w.rate(counter::WRITE_BYTES).map(|b| b / MIB));
    for (id, time, times) in [
        ("redo_write_time_us", counter::REDO_WRITE_NS, counter::REDO_WRITES),
        ("redo_sync_time_us", counter::REDO_SYNC_NS, counter::REDO_SYNCS),
    ] {
        let mean = w.both(time, times).filter(|(_, n)| *n > 0.0).map(|(ns, n)| ns / n / 1e3);
        set(record, id, mean);
    }
    set(record, "redo_syncs", w.grown(counter::REDO_SYNCS));
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
            record.set("device_reads_per_s", reads.count / seconds);
            record.set("device_read_mib_per_s", reads.bytes / MIB / seconds);
        }
        None => {
            let why = "the device under the data is not known, or is on another machine";
            ["device_reads_per_s", "device_read_mib_per_s"].iter().for_each(|id| record.leave_out(id, why));
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
    const SPREAD: [&str; 3] = ["read_time_us_p50", "read_time_us_p99", "reads_within_512us_pct"];
    let calls = w.grown(counter::READ_CALLS).filter(|n| *n > 0.0);
    let mean = w.grown(counter::READ_NS).zip(calls).map(|(ns, n)| ns / n / 1e3);
    let tps = record.figure("commit_throughput_tps").unwrap_or(0.0);
    let per_tx = w.rate(counter::BLOCK_READS).filter(|_| tps > 0.0).map(|reads| reads / tps);
    if let Some(mean) = mean {
        record.set("read_time_us_mean", mean);
    }
    match per_tx {
        Some(n) if is_one_read(&request.work) && ONE_READ.contains(&n) => {
            let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
            set(record, "read_time_us_p50", us(transactions.quantile_ns(0.5)));
            set(record, "read_time_us_p99", us(transactions.quantile_ns(0.99)));
            let short = transactions.histogram().count_between(0, SHORT_READ_NS) as f64;
            let all = transactions.count() as f64;
            set(record, "reads_within_512us_pct", (all > 0.0).then(|| short / all * 100.0));
            let timed = if mean.is_some() { "their mean is the database's own" } else { "so is their mean" };
            if mean.is_none() {
                set(record, "read_time_us_mean", transactions.mean_ns().map(|ns| ns / 1e3));
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
            leave_out(record, "read_time_us_mean", "the database does not time its reads");
        }
    }
}

/// Time in which jobs waited for a place in the cache, as counted, or else as sampled.
fn buffer_waits(record: &mut TestRecord, request: &Request, measured: &Measured, w: &Window<'_>) {
    const ID: &str = "buffer_wait_pct";
    let jobs = f64::from(request.jobs.max(1));
    if let Some(ns) = w.rate(counter::BUFFER_WAIT_NS) {
        record.set(ID, (ns / 1e9 / jobs * 100.0).min(100.0));
        return;
    }
    let events = request.target.buffer_wait_events();
    let profile = measured.collected.waits_between(measured.schedule.open_ns, measured.schedule.close_ns);
    match profile.mean_sessions(events) {
        Some(waiting) if !events.is_empty() && profile.samples >= 5 => record.set(ID, waiting / jobs * 100.0),
        _ if events.is_empty() => {
            leave_out(record, ID, "the target does not tell the time that sessions wait for buffers")
        }
        _ => leave_out(record, ID, "too few samples of what sessions wait for"),
    }
}

/// Share of the database's reads that came from the device.
fn from_the_device(
    w: &Window<'_>,
    device: Option<(Reads, f64)>,
    access: Access,
    cache: Cache,
) -> Result<Option<f64>, String> {
    if cache != Cache::Device {
        return Ok(None);
    }
    let (device, device_s) = device.ok_or("the reads of the device under the data are not known")?;
    let count = w.grown(counter::READ_CALLS).ok_or("the database does not count its reads")?;
    let bytes = w.grown(counter::READ_BYTES).ok_or("the database does not count the bytes it reads")?;
    if count < FEW_READS {
        return Ok(None);
    }
    // Both edges are read twice, and the two windows differ by a hair.
    let scale = w.seconds / device_s;
    let device = Reads { count: device.count * scale, bytes: device.bytes * scale };
    Ok(device_share(Reads { count, bytes }, device, access))
}

fn cache_hit(record: &TestRecord) -> Check {
    const ID: &str = "cache-hit";
    match record.figure("cache_hit_pct") {
        Some(pct) => Check::require(
            ID,
            pct >= HIT_FROM * 100.0,
            format!(
                "the database's cache served {pct:.3} % of {} blocks per second; at least {:.1} % must come from there",
                format::number(record.figure("block_gets_per_s").unwrap_or(0.0), 0),
                HIT_FROM * 100.0
            ),
        ),
        None => Check::new(ID, Outcome::NotMade, "the target does not count what its cache serves".to_owned()),
    }
}

/// Blocks that the transactions of the window asked for, at least. A transaction that crosses an edge is
/// counted whole where it ends, and its reads where they are made: half a transaction of each job may be
/// counted too much, which matters where a window holds few.
fn asked(record: &TestRecord, request: &Request, w: &Window<'_>) -> Option<f64> {
    let transactions = record.figure("commits").unwrap_or(0.0).max(1.0);
    let sure = (1.0 - f64::from(request.jobs) / 2.0 / transactions).max(0.0);
    asked_by_all(record, request, w).map(|blocks| blocks * sure)
}

fn asked_by_all(record: &TestRecord, request: &Request, w: &Window<'_>) -> Option<f64> {
    match access(&request.work) {
        Access::Sequential => {
            let bytes = record.figure("data_mib_per_s")? * MIB * w.seconds;
            Some(bytes / request.target.block_bytes()? as f64)
        }
        // A block for each row, as neighbours are not asked for.
        Access::Random => Some(record.figure("rows_per_s")? * w.seconds),
    }
}

/// Says where the blocks came from; where that is not the device, the test is no test of storage.
fn data_source(
    record: &mut TestRecord,
    request: &Request,
    w: &Window<'_>,
    share: Result<Option<f64>, String>,
    facts: &CacheFacts,
) -> Option<Check> {
    const ID: &str = "data-source";
    // Where nothing is read but what is to be changed, writes are what is measured.
    if !request.work.program.statements.iter().any(|s| s.effect.reads()) {
        return None;
    }
    let read = w.grown(counter::BLOCK_READS);
    let beyond = asked(record, request, w).zip(read).and_then(|(asked, read)| beyond_own_cache(asked, read));
    let (source, detail) = match (share, beyond) {
        (Err(why), _) => {
            let text = format!("where the blocks came from is not known: {why}");
            return Some(judged(record, facts, ID, text));
        }
        (Ok(None), Some(beyond)) if beyond >= 1.0 - HIT_FROM => {
            return Some(judged(record, facts, ID, "too few blocks were read to tell where they came from".to_owned()));
        }
        (Ok(share), beyond) => {
            let (share, beyond) = (share.unwrap_or(0.0), beyond.unwrap_or(1.0));
            let detail = format!(
                "of the blocks that transactions asked for {:.0} % were read by the database, and {:.0} % of these reads came \
                 from the device (at least {:.0} % in all must){}",
                beyond * 100.0,
                share * 100.0,
                DEVICE_FROM * 100.0,
                advice(beyond, share, facts)
            );
            (DataSource::of_share(share * beyond), detail)
        }
    };
    record.data_source = Some(source.name().to_owned());
    Some(match source {
        DataSource::Device => Check::require(ID, true, detail),
        _ => judged(record, facts, ID, format!("{}: {detail}", source.name())),
    })
}

/// What to do about blocks that did not come from the device.
fn advice(beyond: f64, share: f64, facts: &CacheFacts) -> String {
    let mut out = String::new();
    if beyond < DEVICE_FROM {
        match (facts.cache_bytes, facts.table_bytes) {
            (Some(cache), Some(tables)) if cache < tables / CACHE_OF_DATA => {
                out += &format!(
                    ": the database's own cache is {} and the data are {}, so it should not hold that much: a longer window \
                     tells",
                    format::bytes(cache as f64),
                    format::bytes(tables as f64)
                )
            }
            (Some(cache), Some(tables)) => {
                out += &format!(
                    ": the database's own cache is {} and the data are {}; give --size {} or more, or make the cache smaller",
                    format::bytes(cache as f64),
                    format::bytes(tables as f64),
                    size_for(cache)
                )
            }
            _ => out += ": the database's own cache holds too much of the data: give a larger --size",
        }
    }
    if share < DEVICE_FROM {
        match &facts.not_kept_out {
            Some(why) => out += &format!("; the operating system's page cache was not kept empty: {why}"),
            None => {
                out += "; the operating system's page cache was emptied over and over, and served the rest all the same"
            }
        }
    }
    out
}

/// Bytes that the device under the data wrote per second.
fn written(open: &Edge, close: &Edge) -> Option<f64> {
    let seconds = close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9;
    let disks = open.data_disk.as_ref().zip(close.data_disk.as_ref());
    let bytes = disks.and_then(|(a, b)| b.written_bytes.checked_sub(a.written_bytes));
    bytes.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 / seconds)
}

/// What the database wrote to its data files must have reached the device.
fn data_written(
    record: &mut TestRecord,
    request: &Request,
    w: &Window<'_>,
    device: Option<f64>,
    facts: &CacheFacts,
) -> Option<Check> {
    const ID: &str = "data-written";
    if request.work.program.rows_changed_per_tx() == 0 {
        return None;
    }
    let Some((database, device)) = w.rate(counter::WRITE_BYTES).zip(device) else {
        let why = "the writes of the database or of the device under its data are not known";
        return Some(judged(record, facts, ID, why.to_owned()));
    };
    let detail = format!(
        "the database wrote {:.1} MiB/s to its data files, and the device under them {:.1} MiB/s in all (at least {:.0} % \
         of it must get there)",
        database / MIB,
        device / MIB,
        DEVICE_FROM * 100.0
    );
    if device >= database * DEVICE_FROM {
        return Some(Check::require(ID, true, detail));
    }
    Some(judged(record, facts, ID, format!("{detail}: the rest is still in the operating system's page cache")))
}

/// A cache with less than this part of the data holds too little of them to matter.
const CACHE_OF_DATA: u64 = 12;

/// Size of the data set of which a cache holds a tenth at most, for the command line.
fn size_for(cache_bytes: u64) -> String {
    let mib = cache_bytes.saturating_mul(CACHE_OF_DATA).div_ceil(1 << 20);
    if mib >= 1 << 10 { format!("{}GiB", mib.div_ceil(1 << 10)) } else { format!("{mib}MiB") }
}

/// A failed check, or with `--allow-cached` a note and a mark.
fn judged(record: &mut TestRecord, facts: &CacheFacts, id: &str, detail: String) -> Check {
    if !facts.allow_cached {
        return Check::require(id, false, format!("{detail}; --allow-cached keeps such figures, marked"));
    }
    const MARK: &str = "--allow-cached: not the device's figures";
    if !record.forced.as_ref().is_some_and(|f| f.contains(MARK)) {
        record.forced = Some(record.forced.take().map_or(MARK.to_owned(), |before| format!("{before}; {MARK}")));
    }
    Check::new(id, Outcome::Noted, detail)
}

/// Work that is real shows in the database's own count of changed rows.
fn rows_changed(request: &Request, w: &Window<'_>, transactions: &Latencies) -> Option<Check> {
    let workload = request.work.workload;
    // The others are proved by a query of their own.
    if workload.cache != Cache::Device || workload.evidence.is_some() {
        return None;
    }
    let per_tx = request.work.program.rows_changed_per_tx() as f64;
    let expected = per_tx * transactions.count() as f64;
    if per_tx == 0.0 {
        return None;
    }
    const ID: &str = "rows-changed";
    let Some(counted) = w.grown(counter::ROWS_CHANGED) else {
        return Some(Check::new(
            ID,
            Outcome::NotMade,
            "the target does not count the rows that are changed".to_owned(),
        ));
    };
    // A transaction that crosses an edge may be in one count and not in the other.
    let edge = 64.0 * per_tx * f64::from(request.jobs);
    Some(Check::require(
        ID,
        (counted - expected).abs() <= expected * ROWS_OFF + edge,
        format!("the database counted {counted:.0} changed rows in the window, the jobs {expected:.0}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_says_which_cache_it_was_and_what_to_do() {
        let facts = CacheFacts { cache_bytes: Some(1 << 30), table_bytes: Some(128 << 20), ..CacheFacts::default() };
        let text = advice(0.01, 1.0, &facts);
        assert!(text.contains("1.0 GiB") && text.contains("--size 12GiB"), "{text}");
        assert!(!text.contains("page cache"), "{text}");
        let little = CacheFacts { cache_bytes: Some(1 << 20), ..facts.clone() };
        let text = advice(0.8, 1.0, &little);
        assert!(text.contains("longer window") && !text.contains("--size"), "{text}");
        let text = advice(1.0, 0.3, &CacheFacts { not_kept_out: Some("no right".into()), ..CacheFacts::default() });
        assert!(text.contains("no right") && !text.contains("--size"), "{text}");
        assert_eq!(advice(1.0, 1.0, &facts), "");
        assert_eq!(size_for(16 << 20), "192MiB");
    }
}
