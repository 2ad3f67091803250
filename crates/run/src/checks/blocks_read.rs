//! Checks of the source of blocks: the database's own cache, another one, or the device. If the device's counters cannot be read, what
//! caches hide is bounded: they are in the memory of the server's machine.

use loadline_collect::os::DiskRates;
use loadline_database::Work;
use loadline_load::Request;
use loadline_model::snapshot::counter;
use loadline_model::{CheckId, DataSource, Detail, Note, column, format};

use crate::evidence::Evidence;
use crate::figures::MIB;
use crate::figures::counters::Counters;
use crate::figures::volume::is_sequential;
use crate::server_memory::{DATA_PER_CACHE, DATA_PER_MEMORY, ServerMemory, beyond_cache, beyond_memory};
use crate::test::{Test, Verdict, failed, not_made, noted, passed, require};

/// Minimum number of reads in a window to determine their source.
pub(crate) const MIN_READS: f64 = 20.0;

const TOO_FEW: &str = "too few blocks were read to determine their source";

/// Minimum share of blocks from the database's own cache, for workloads that measure it.
const MIN_HIT_SHARE: f64 = 0.999;

/// Checks that the database's cache served nearly all blocks. `has_blocks`: whether the target has blocks.
pub(crate) fn cache_hit(figures: &Test, has_blocks: bool) -> Verdict {
    let least = MIN_HIT_SHARE * 100.0;
    match figures.figure(column::CACHE_HIT_PCT) {
        Some(pct) => {
            let gets = format::number(figures.figure(column::BLOCK_GETS_PER_S).unwrap_or(0.0), 0);
            let detail = format!(
                "the database's cache served {pct:.3} % of {gets} blocks per second; at least {least:.1} % are required"
            );
            require(pct >= least, detail)
        }
        None if !has_blocks => not_made("the target has no blocks to cache"),
        None => {
            let why = figures.absence_reason(column::CACHE_HIT_PCT).unwrap_or("it is not counted");
            failed(format!("the share of blocks served by the database's cache is unknown: {why}"))
        }
    }
}

/// Lower bound of the blocks requested in the window. A transaction that crosses window start or window end is
/// counted when it ends, its reads when they are made, so half a transaction per job may be counted too much. This
/// matters for few transactions.
fn certain_blocks_requested(figures: &Test, request: &Request, w: &Counters<'_>) -> Option<f64> {
    let blocks = if is_sequential(&request.work) {
        figures.figure(column::DATA_MIB_PER_S)? * MIB * w.seconds / request.target.facts().block_bytes? as f64
    } else {
        // One block per row: rows are not adjacent.
        figures.figure(column::ROWS_PER_S)? * w.seconds
    };
    Some(blocks * certain_share(figures, request.jobs))
}

/// Lower bound of the share of the counted transactions that lies within the window.
pub(crate) fn certain_share(figures: &Test, jobs: u32) -> f64 {
    let transactions = figures.figure(column::COMMITS).unwrap_or(0.0).max(1.0);
    (1.0 - f64::from(jobs) / 2.0 / transactions).max(0.0)
}

/// Determines the source of blocks and checks that it is the device.
pub(crate) fn data_source(test: &mut Test, e: &Evidence<'_>, w: &Counters<'_>, facts: &CacheFacts) {
    let asked = certain_blocks_requested(test, e.request, w);
    let counted = asked.zip(w.grown(counter::BLOCK_READS)).map(<[f64; 2]>::from);
    let verdict = match (e.rates.data_disk, counted) {
        (Some(device), counted) => compared(test, e.work(), w, &device, facts, counted),
        (None, Some(counted)) => bounded(test, e.work(), e.request.jobs, facts, counted),
        (None, None) => Err(uncounted("its reads")),
    };
    add_check(test, facts, CheckId::DataSource, verdict);
}

fn uncounted(what: &str) -> String {
    format!("the source of the blocks is unknown: the database does not count {what}")
}

fn compared(
    test: &mut Test,
    work: &Work,
    w: &Counters<'_>,
    device: &DiskRates,
    facts: &CacheFacts,
    counted: Option<[f64; 2]>,
) -> Result<String, String> {
    let calls = w.most_reads().ok_or_else(|| uncounted("its reads"))?;
    let bytes = w.grown(counter::READ_BYTES).ok_or_else(|| uncounted("the bytes it reads"))?;
    let of_device = [device.reads_per_s, device.read_mib_per_s * MIB].map(|per_s| per_s * w.seconds);
    let is_enough = calls >= MIN_READS;
    let share = if is_enough { device_share([calls, bytes], of_device, is_sequential(work)) } else { None };
    let beyond = counted.and_then(|[asked, read]| beyond_own_cache(asked, read));
    if share.is_none() && beyond.is_some_and(|beyond| beyond >= 1.0 - MIN_HIT_SHARE) {
        return Err(TOO_FEW.to_owned());
    }
    let (share, beyond) = (share.unwrap_or(0.0), beyond.unwrap_or(1.0));
    let detail = format!(
        "the database read {:.0} % of the blocks requested by transactions from its files, and {:.0} % of these reads came \
         from the device (required in total: at least {:.0} %){}",
        beyond * 100.0,
        share * 100.0,
        MIN_DEVICE_SHARE * 100.0,
        advice(beyond, share, facts)
    );
    let source = source_by_share(share * beyond);
    test.details.push(Detail::DataSource(source));
    if source == DataSource::Device { Ok(detail) } else { Err(format!("{source}: {detail}")) }
}

fn advice(beyond: f64, share: f64, facts: &CacheFacts) -> String {
    let of_cache = match (facts.cache_bytes, facts.table_bytes) {
        _ if beyond >= MIN_DEVICE_SHARE => String::new(),
        (Some(cache), Some(tables)) => {
            let [of_cache, of_tables] = [cache, tables].map(|n| format::bytes(n as f64));
            let remedy = match cache < tables / DATA_PER_CACHE {
                true => ", too much to be cached; use a longer window".to_owned(),
                false => format!("; give --size {} or more, or make the cache smaller", beyond_cache(cache)),
            };
            format!(": the database's own cache has {of_cache} and the data have {of_tables}{remedy}")
        }
        _ => ": the database's own cache holds too much of the data: give a larger --size".to_owned(),
    };
    let memory = facts.memory.map_or(String::new(), |memory| {
        let size = beyond_memory(memory.bytes);
        format!("; or give --size {size} or more, {DATA_PER_MEMORY} times the memory of the machine")
    });
    let of_system = match &facts.not_kept_out {
        _ if share >= MIN_DEVICE_SHARE => String::new(),
        Some(why) => format!("; the operating system's page cache was not kept empty: {why}{memory}"),
        None => "; the rest came from the operating system's page cache, although it was emptied repeatedly".to_owned(),
    };
    of_cache + &of_system
}

/// Adds the check of `verdict`. An error fails it; with `--allow-cached` it becomes a note and the test is marked.
pub(crate) fn add_check(out: &mut Test, facts: &CacheFacts, id: CheckId, verdict: Result<String, String>) {
    out.not_the_devices |= verdict.is_err() && facts.allow_cached;
    out.check(
        id,
        match verdict {
            Ok(detail) => passed(detail),
            Err(why) if facts.allow_cached => noted(why),
            Err(why) => failed(format!("{why}; --allow-cached keeps such figures, marked")),
        },
    );
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CacheFacts {
    /// Size of the database's own block cache, bytes.
    pub(crate) cache_bytes: Option<u64>,
    pub(crate) table_bytes: Option<u64>,
    pub(crate) memory: Option<ServerMemory>,
    /// Time from the end of the jobs' window until a checkpoint had synced their changes, s, or why there was none. `None` if
    /// the database makes none, or none is needed.
    pub(crate) synced_s: Option<Result<f64, String>>,
    /// Why the data files are not kept out of the page cache, if so.
    pub(crate) not_kept_out: Option<String>,
    pub(crate) allow_cached: bool,
}

/// Minimum share of the device for the source `Device`.
pub(crate) const MIN_DEVICE_SHARE: f64 = 0.9;
/// Upper bound of the device's share for the source `Cached`.
const CACHED_BELOW: f64 = 0.1;

/// The source of blocks of which this share (0…1) came from the device.
fn source_by_share(share: f64) -> DataSource {
    if share >= MIN_DEVICE_SHARE {
        return DataSource::Device;
    }
    if share < CACHED_BELOW { DataSource::Cached } else { DataSource::Lukewarm }
}

/// Share (0…1) of the database's reads that the device served, by the numbers and bytes of both; `None` without reads.
///
/// Sequential reads are compared by bytes, because the device reads many blocks at once. Random reads are compared by
/// number as well: read-ahead and rounding to pages add bytes that the database did not request. Other users of the
/// device make the share too high.
fn device_share([count, bytes]: [f64; 2], [of_count, of_bytes]: [f64; 2], is_sequential: bool) -> Option<f64> {
    let share = |a: f64, b: f64| (b > 0.0).then(|| (a / b).min(1.0));
    let by_bytes = share(of_bytes, bytes)?;
    if is_sequential { Some(by_bytes) } else { Some(by_bytes.min(share(of_count, count)?)) }
}

/// Share (0…1) of the blocks requested by transactions that the database did not find in its own cache.
fn beyond_own_cache(asked: f64, read: f64) -> Option<f64> {
    (asked > 0.0).then(|| (read / asked).min(1.0))
}

/// Above this share of the requested blocks that may be a cache's, the figure says more of caches than of storage.
pub(super) const MAX_CACHED_SHARE: f64 = 0.5;
/// As good as the device's counters, which must show [`MIN_DEVICE_SHARE`].
const GOOD_SHARE: f64 = 1.0 / DATA_PER_MEMORY as f64;
/// Share by which the blocks that the database read may differ from those that transactions requested.
const COUNTS_OFF: f64 = 0.05;

/// Bounds the share of blocks that caches served, if the device's reads are unknown; or why nothing is said of the storage. Transactions of
/// so many jobs `asked` for blocks, and the database `read` from its files.
fn bounded(
    out: &mut Test,
    work: &Work,
    jobs: u32,
    facts: &CacheFacts,
    [asked, read]: [f64; 2],
) -> Result<String, String> {
    if asked < MIN_READS {
        return Err(TOO_FEW.to_owned());
    }
    let (Some(memory), Some(table_bytes)) = (facts.memory, facts.table_bytes) else {
        return Err(
            "the source of the blocks is unknown: the counters of the data device cannot be read from here. Give the memory of \
             the server's machine with --server-memory, and a --size of ten times as much: at most 10 % of the reads are then \
             cached"
                .to_owned(),
        );
    };
    let share = share_at_most(work, jobs, table_bytes as f64, memory.bytes as f64);
    let own = 1.0 - beyond_own_cache(asked, read).unwrap_or(0.0);
    let [memory_text, table_text] = [memory.bytes, table_bytes].map(|n| format::bytes(n as f64));
    // The database also reads blocks of an index, of which the machine may have all.
    let counted = 1.0 - (asked / read).min(1.0) * (1.0 - share.min(1.0));
    let detail = format!(
        "at most {} of the requested blocks of the table came from a cache of the server's machine, and at most {} of all that \
         the database read, {:.2} for each of them: the machine's memory has {memory_text} ({}), the table {table_text}; {} were \
         in the database's own cache",
        percent(share),
        percent(counted),
        read / asked,
        memory.source,
        percent(own)
    );
    // Draws vary around their mean by four standard deviations at most.
    let spread = 4.0 * (share.min(1.0) * (1.0 - share.min(1.0)) / asked.max(1.0)).sqrt();
    if own > share + spread + COUNTS_OFF {
        return Err(format!("{detail}, which is more: that memory is not the server's"));
    }
    if share > MAX_CACHED_SHARE {
        let uncompressed = memory.bytes as f64 / (1.0 - work.payload.compressibility);
        return Err(format!(
            "the counters of the data device cannot be read, and {detail}; at most {} are allowed: give --size {} or more, \
             {DATA_PER_MEMORY} times what that memory may hold",
            percent(MAX_CACHED_SHARE),
            beyond_memory(uncompressed as u64)
        ));
    }
    let source = if counted <= GOOD_SHARE { DataSource::Device } else { DataSource::Bounded };
    out.set(column::CACHED_PCT_MAX, counted * 100.0);
    out.details.push(Detail::DataSource(source));
    out.notes.push(Note::CachedAtMost { bound: detail.clone() });
    Ok(detail)
}

/// Rounded up.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", (share.min(1.0) * 1000.0 - 1e-6).max(0.0).ceil() / 10.0)
}

/// Upper bound of the mean share (0…1 and above) of requested blocks that caches of `memory` bytes serve.
///
/// Rows are drawn uniformly and independently of what was read before, so no cache holds more of the next block's chances than
/// its part of the table. A piece of consecutive rows is rarer at the ends of the table, so blocks in the middle have up to 1 /
/// (1 − piece / table) of the mean chance; and it may meet a piece that another job reads at the same time. A cache may be
/// compressed, so only what cannot be compressed counts.
fn share_at_most(work: &Work, jobs: u32, table: f64, memory: f64) -> f64 {
    let volume = if is_sequential(work) { work.workload.volume(&work.params) } else { None };
    let piece = volume.map_or(0.0, |v| v.share);
    let others = f64::from(jobs.saturating_sub(1)) * piece * 2.0;
    let share = (memory / (table * (1.0 - work.payload.compressibility)) + others) / (1.0 - piece);
    // Nothing incompressible, or the whole table in each transaction: no bound.
    if share.is_finite() { share } else { f64::MAX }
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;
    use loadline_model::plan::Payload;
    use loadline_workload::{CATALOGUE, Generator, Instrument, RowCount};

    use super::*;

    #[test]
    fn the_advice_names_the_cache_and_the_remedy() {
        let facts = CacheFacts { cache_bytes: Some(1 << 30), table_bytes: Some(128 << 20), ..CacheFacts::default() };
        let little = CacheFacts { cache_bytes: Some(1 << 20), ..facts.clone() };
        let least = CacheFacts { cache_bytes: Some((128 << 20) / DATA_PER_CACHE), ..facts.clone() };
        let shared = CacheFacts { not_kept_out: Some("no right".into()), ..CacheFacts::default() };
        let memory = Some(ServerMemory { bytes: 8 << 30, source: "this machine's" });
        let known = CacheFacts { memory, ..shared.clone() };
        for (shares, facts, says, not) in [
            ([0.01, 1.0], &facts, ["1.0 GiB", "--size 12GiB"], "page cache"),
            ([0.8, 1.0], &little, ["longer window"; 2], "--size"),
            ([0.8, 1.0], &least, ["--size 128MiB"; 2], "longer window"),
            ([1.0, 0.3], &shared, ["no right"; 2], "--size"),
            ([1.0, 0.3], &known, ["no right", "--size 80GiB"], "longer window"),
        ] {
            let text = advice(shares[0], shares[1], facts);
            assert!(says.iter().all(|part| text.contains(part)) && !text.contains(not), "{text}");
        }
        assert_eq!(advice(1.0, 1.0, &facts), "");
    }

    #[test]
    fn an_uncounted_cache_is_no_proof() {
        let mut figures = Test::default();
        assert_eq!(cache_hit(&figures, false).outcome, Outcome::NotMade, "the null engine");
        figures.set_absent(column::CACHE_HIT_PCT, "no right to read it");
        let check = cache_hit(&figures, true);
        assert!(check.outcome == Outcome::Failed && check.detail.contains("no right to read it"), "{check:?}");
        figures.set(column::CACHE_HIT_PCT, 99.95);
        assert_eq!(cache_hit(&figures, true).outcome, Outcome::Passed);
    }

    #[test]
    fn blocks_that_were_certainly_requested_leave_out_half_a_transaction_of_each_job() {
        let dir = tempfile::tempdir().unwrap();
        let figures = crate::testing::figures(&[
            (column::COMMITS, 8.0),
            (column::DATA_MIB_PER_S, 3.0),
            (column::ROWS_PER_S, 500.0),
        ]);
        let (open, close) = (Default::default(), Default::default());
        let w =
            Counters { open: &open, close: &close, on_time: [&open, &close], seconds: 2.0, off_s: 0.0, whole: None };
        let of = |code| {
            let request = crate::testing::request(dir.path(), code, 4);
            let blocks = certain_blocks_requested(&figures, &request, &w).unwrap();
            (blocks, request.target.facts().block_bytes.unwrap() as f64)
        };
        assert_eq!(of("STO-READ").0, 1000.0 * 0.75);
        let (blocks, block_bytes) = of("STO-SCAN");
        assert_eq!(blocks, 6.0 * MIB / block_bytes * 0.75);
    }

    #[test]
    fn the_thresholds_are_as_stated() {
        let sources = [1.0, 0.9, 0.899, 0.1, 0.099, 0.0].map(source_by_share);
        let [device, lukewarm, cached] = [DataSource::Device, DataSource::Lukewarm, DataSource::Cached];
        assert_eq!(sources, [device, device, lukewarm, lukewarm, cached, cached]);
        assert_eq!(source_by_share(f64::NAN), lukewarm, "unknown is not the device");
    }

    #[test]
    fn single_blocks_need_number_and_bytes_and_scans_bytes() {
        let database = [1000.0, 8_192_000.0];
        for (database, device, is_sequential, share) in [
            (database, [1000.0, 8_192_000.0], false, Some(1.0)),
            // Others read, too.
            (database, [1300.0, 9_000_000.0], false, Some(1.0)),
            // 100 reads of 128 KiB are read-ahead, and many small reads of something else.
            (database, [100.0, 13_000_000.0], false, Some(0.1)),
            (database, [5000.0, 819_200.0], false, Some(0.1)),
            (database, [0.0, 0.0], false, Some(0.0)),
            // SQLite's 1 KiB pages take a page of 4 KiB each from the device.
            ([10.0, 10_240.0], [9.0, 36_864.0], false, Some(0.9)),
            (database, [63.0, 8_192_000.0], true, Some(1.0)),
            (database, [63.0, 4_096_000.0], true, Some(0.5)),
            ([0.0, 0.0], [5.0, 5.0], true, None),
        ] {
            assert_eq!(device_share(database, device, is_sequential), share, "{database:?} {device:?}");
        }
        assert_eq!(beyond_own_cache(100.0, 5.0), Some(0.05));
        assert_eq!(beyond_own_cache(100.0, 190.0), Some(1.0), "an index and a table");
        assert_eq!(beyond_own_cache(0.0, 5.0), None);
    }

    const GIB: u64 = 1 << 30;

    fn work(code: &str, size: u64, compressibility: f64) -> Work {
        Work {
            payload: Payload { compressibility, duplicates: None },
            ..Work::from_catalogue(code, &[]).unwrap().with_size(size)
        }
    }

    fn judge(table_gib: u64, memory_gib: Option<u64>, read: f64) -> (Result<String, String>, Test) {
        let memory = memory_gib.map(|n| ServerMemory { bytes: n * GIB, source: "--server-memory" });
        let (work, mut out) = (work("STO-READ", table_gib * GIB, 0.0), Test::default());
        let facts = CacheFacts { table_bytes: Some(table_gib * GIB), memory, ..CacheFacts::default() };
        (bounded(&mut out, &work, 4, &facts, [10_000.0, read]), out)
    }

    #[test]
    fn k_times_the_memory_is_one_kth_and_blocks_of_an_index_may_all_be_cached() {
        for (table, read, pct, source, [begin, part]) in [
            (640, 9_900.0, 10.0, DataSource::Device, ["", "64.0 GiB (--server-memory)"]),
            (256, 9_900.0, 25.0, DataSource::Bounded, ["", "64.0 GiB (--server-memory)"]),
            (640, 20_000.0, 55.0, DataSource::Bounded, ["at most 10.0 % of the requested", "2.00 for"]),
        ] {
            let (detail, out) = judge(table, Some(64), read);
            let seen = out.figure(column::CACHED_PCT_MAX).unwrap();
            assert!((seen - pct).abs() < 1e-7 && out.details == [Detail::DataSource(source)], "{out:?}");
            assert!(detail.as_ref().is_ok_and(|text| text.starts_with(begin) && text.contains(part)), "{detail:?}");
        }
        assert!(judge(640, Some(64), 8_900.0).0.is_ok(), "11 % are within the spread");
        for (table, memory, read, says) in [
            (100, Some(64), 9_900.0, ["--size 640GiB", "at most 64.0 %"]),
            (10, Some(64), 9_900.0, ["--size 640GiB"; 2]),
            (640, None, 9_900.0, ["--server-memory", "at most 10 %"]),
            // A cache that serves more than fits shows a wrong memory.
            (640, Some(64), 5_000.0, ["50.0 % were in the database's own cache, which is more"; 2]),
        ] {
            let why = judge(table, memory, read).0.unwrap_err();
            assert!(says.iter().all(|part| why.contains(part)), "{why}");
        }
    }

    #[test]
    fn pieces_and_compression_weaken_the_bound() {
        let share = |code: &str, jobs, c| share_at_most(&work(code, 640 * GIB, c), jobs, 640.0, 64.0);
        assert!((share("STO-READ", 8, 0.5) - 0.2).abs() < 1e-9, "half of it compressed away");
        assert_eq!(share("STO-READ", 8, 1.0), f64::MAX);
        let (one, eight) = (share("STO-SCAN", 1, 0.0), share("STO-SCAN", 8, 0.0));
        assert!(one > 0.1 && one < eight && eight < 0.11, "{one} {eight}");
        // A sixth of a small table by each of eight jobs: they may all read the same.
        assert!(share_at_most(&work("STO-SCAN", 96 << 20, 0.0), 8, 96.0, 9.6) > 1.0);
    }

    #[test]
    fn workloads_of_the_device_draw_uniformly_from_one_table() {
        use Generator::{Payload, Plus, Sequence, Uniform};
        let all = CATALOGUE.iter().filter(|w| w.has(Instrument::Device));
        let reading: Vec<Work> = all.map(|w| work(&w.code, GIB, 0.0)).filter(|w| w.program.reads()).collect();
        assert!(reading.len() >= 4);
        for work in reading {
            let tables = work.workload.tables.iter().filter(|t| t.rows != RowCount::Empty).count();
            let (program, code) = (&work.program, &work.workload.code);
            let is_even = |of: &Generator| matches!(of, Sequence | Uniform { .. } | Plus { .. } | Payload { .. });
            assert!(tables == 1 && program.vars().iter().all(|(_, of)| is_even(of)), "{code}");
            assert!(!program.varies() && !program.bulks() && program.computations_per_tx() == 0, "{code}");
        }
    }
}
