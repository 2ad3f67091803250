//! Checks of changed data: the database counted it and wrote it, and it reached the data device.

use loadline_load::Request;
use loadline_model::snapshot::counter;
use loadline_model::{CheckId, Note, column, format};

use super::blocks_read::{CacheFacts, MAX_CACHED_SHARE, MIN_DEVICE_SHARE, add_check, certain_share, percent};
use crate::evidence::Evidence;
use crate::figures::MIB;
use crate::figures::counters::{Completed, Counters};
use crate::figures::volume::only_adds;
use crate::test::{Test, Verdict, not_made, require};

/// Minimum share of the changed blocks that must be written in the window. Consecutive changes are to different
/// blocks, and the cache holds few of them. Some blocks are written later or changed twice. Measured in windows of 1
/// s with 1 to 8 jobs: 0.9 to 1.2 on PostgreSQL 15, 3 to 4 on MariaDB 10.11, 1.0 to 1.6 on SQLite.
const MIN_WRITTEN_SHARE: f64 = 0.5;
/// Blocks that may be written and not yet synced, at most: more than two batches of a doublewrite buffer.
const UNSYNCED_BLOCKS: f64 = 512.0;
/// Maximum relative difference between the database's count of changed rows and the jobs'.
const MAX_ROWS_OFF_SHARE: f64 = 0.05;

/// Bytes written per second.
#[derive(Debug, Clone, Copy)]
struct Writes {
    /// By the database to its data files, including safety copies (doublewrite).
    database: f64,
    /// Of these, blocks at their final place.
    blocks: f64,
    /// By the data device, if its counters can be read.
    device: Option<f64>,
    /// Of these, by the database's log (lower bound).
    log: f64,
    /// That must have been written to data files, of which at least `part` (0…1) in the window; `what` names them, with `{}` for the number.
    expected: f64,
    part: f64,
    what: &'static str,
}

impl Writes {
    /// Without bytes that the database counts as written when it extends files.
    fn without(self, growth: f64) -> Writes {
        let less = |bytes: f64| (bytes - growth).max(0.0);
        Writes { database: less(self.database), blocks: less(self.blocks), ..self }
    }
}

/// Checks that the database wrote the expected bytes in the window, and that its writes reached the device.
pub(crate) fn data_written(out: &mut Test, e: &Evidence<'_>, w: &Counters<'_>, facts: &CacheFacts) {
    let (request, device) = (e.request, e.rates.data_disk.map(|disk| disk.write_mib_per_s * MIB));
    let verdict = writes(out, request, w, device).map_err(str::to_owned).and_then(|writes| {
        let detail = verdict(&writes, facts)?;
        if device.is_some() {
            return Ok(detail);
        }
        let pages = w.grown(counter::BLOCK_WRITES).zip(w.grown(counter::SYNCED_WRITES));
        let synced = request.target.facts().synced_writes.zip(pages);
        let (share, bound) = lent_at_most(facts, writes.database * w.seconds, w.seconds, synced)?;
        // The larger one, if blocks were also read.
        let of_reads = out.figure(column::CACHED_PCT_MAX).unwrap_or(0.0);
        out.set(column::CACHED_PCT_MAX, of_reads.max(share * 100.0));
        out.notes.push(Note::CachedAtMost { bound: bound.clone() });
        Ok(format!("{detail}; {bound}"))
    });
    add_check(out, facts, CheckId::DataWritten, verdict);
}

/// Upper bound of the share (0…1) of the rate of writes that a page cache may have lent, in numbers and in words, if the device's own
/// counters cannot be read; or why there is none. The database wrote so many bytes in the window, and so many blocks to their places, some
/// of them by way of something that it syncs.
///
/// - A checkpoint syncs all that was written before it. If it returns C s after a window of D s, the device has taken in D + C
///   what the database wrote in D.
/// - What is not on the device is in the machine's memory.
fn lent_at_most(
    facts: &CacheFacts,
    written: f64,
    window_s: f64,
    synced: Option<(&'static str, (f64, f64))>,
) -> Result<(f64, String), String> {
    let (done, why) = match &facts.synced_s {
        Some(Ok(s)) => (Some(s), "use a longer window"),
        Some(Err(why)) => (None, why.as_str()),
        None => (None, "the database makes no checkpoint on demand"),
    };
    let by_checkpoint = done
        .map(|s| (s / (s + window_s), format!("a checkpoint after the window had synced all of it {s:.2} s later")));
    let memory = if written > 0.0 { facts.memory } else { None };
    let by_memory = memory.map(|memory| {
        let [of_writes, of_memory] = [written, memory.bytes as f64].map(format::bytes);
        let text = format!("{of_writes} were written, and the server's memory has {of_memory} ({})", memory.source);
        (memory.bytes as f64 / written, text)
    });
    let by_syncs = synced.filter(|(_, (pages, _))| *pages > 0.0).map(|(syncs, (pages, synced))| {
        let share = 1.0 - ((synced - UNSYNCED_BLOCKS) / pages).clamp(0.0, 1.0);
        (share, format!("{syncs} ({synced:.0} of {pages:.0} blocks)"))
    });
    let bounds = [by_checkpoint, by_memory, by_syncs].into_iter().flatten();
    let least = bounds.min_by(|a, b| a.0.total_cmp(&b.0));
    match least.filter(|(share, _)| *share <= MAX_CACHED_SHARE) {
        Some((share, text)) => {
            Ok((share, format!("a page cache lent at most {} of the rate of these writes: {text}", percent(share))))
        }
        None => Err(format!(
            "the writes of the data device are unknown, and nothing bounds what a page cache held back: {why}"
        )),
    }
}

/// Bytes of new rows per second, for work that only adds rows.
fn added(figures: &Test, request: &Request) -> Option<f64> {
    if only_adds(&request.work) { figures.figure(column::DATA_MIB_PER_S).map(|mib| mib * MIB) } else { None }
}

fn writes(figures: &Test, request: &Request, w: &Counters<'_>, device: Option<f64>) -> Result<Writes, &'static str> {
    let database = w.rate(counter::WRITE_BYTES).ok_or("the database does not count its writes")?;
    let block = request.target.facts().block_bytes.map(|bytes| bytes as f64);
    let blocks = w.rate(counter::BLOCK_WRITES).zip(block).map_or(database, |(blocks, bytes)| blocks * bytes);
    // A log on an unknown device may be on the data device.
    let apart = request.disk.is_some() && request.disk != request.data_disk;
    let redo = figures.figure(column::REDO_MIB_PER_S).map(|mib| mib * MIB);
    let log = if apart || device.is_none() { Some(0.0) } else { redo };
    let log = log.ok_or("log and data are on the same device, and the log's share of its writes is unknown")?;
    let (added, certain) = (added(figures, request), certain_share(figures, request.jobs));
    let (expected, part, what) = if only_adds(&request.work) {
        (added.ok_or("the size of the new rows is unknown")?, MIN_DEVICE_SHARE, "the new rows are {} MiB/s")
    } else {
        let tps = figures.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0);
        let rows = request.work.program.mean_rows_changed_per_tx() * tps;
        (rows * block.ok_or("the block size is unknown")?, MIN_WRITTEN_SHARE, "the blocks changed are {} MiB/s")
    };
    let growth = if request.target.facts().growth_is_written.is_some() { added.unwrap_or(0.0) } else { 0.0 };
    Ok(Writes { database, blocks, device, log, expected: expected * certain, part, what }.without(growth))
}

/// Whether all writes reached the data files and the device, with the figures.
fn verdict(w: &Writes, facts: &CacheFacts) -> Result<String, String> {
    let mib = |bytes: f64| format!("{:.1}", bytes / MIB);
    let log = if w.log > 0.0 { format!(", {} of them its log", mib(w.log)) } else { String::new() };
    let device = w.device.map_or(String::new(), |device| {
        let least = MIN_DEVICE_SHARE * 100.0;
        format!(", and the data device wrote {} MiB/s{log} (at least {least:.0} % must reach it)", mib(device))
    });
    let detail = format!(
        "{}, of which at least {:.0} % must be written in the window; the database wrote {} MiB/s of blocks to its \
        data files, {} MiB/s in total{device}",
        w.what.replace("{}", &mib(w.expected)),
        w.part * 100.0,
        mib(w.blocks),
        mib(w.database),
    );
    let must = w.expected * w.part;
    if w.blocks < must {
        let cache = facts.cache_bytes.map_or(String::new(), |bytes| format!(" ({})", format::bytes(bytes as f64)));
        return Err(format!(
            "{detail}: the rest is in the database's own cache{cache}, or in its log until a checkpoint; use a longer \
            warm-up and window, a larger --size or a smaller cache"
        ));
    }
    if w.device.is_some_and(|device| device - w.log < must.max(w.database * MIN_DEVICE_SHARE)) {
        return Err(format!("{detail}: the rest is still in the operating system's page cache"));
    }
    Ok(detail)
}

/// Checks the jobs' changed rows against the database's own count.
pub(crate) fn rows_changed(e: &Evidence<'_>) -> Option<Verdict> {
    // Other workloads have an evidence query.
    let per_tx = e.work().program.rows_changed_per_tx() as f64;
    if e.work().workload.evidence.is_some() || per_tx == 0.0 {
        return None;
    }
    let Some(counted) = e.grown(counter::ROWS_CHANGED) else {
        return Some(not_made("the target does not count changed rows"));
    };
    // As many as the jobs did between the snapshots, or else in the window: then late snapshots are of others.
    let seconds = e.counters.as_ref().map_or(f64::INFINITY, |c| c.seconds);
    let done = e.completed().unwrap_or_else(|| {
        let done = e.comparable();
        Completed { uncertain: done.uncertain * e.measured.schedule.window_s() / seconds, ..done }
    });
    let (expected, allowed) = (per_tx * done.count, allowed_rows_off(done, per_tx, e.request.jobs));
    let detail = format!(
        "the database counted {counted:.0} changed rows in the window, the jobs {expected:.0} (allowed difference: \
         {allowed:.0})"
    );
    Some(require((counted - expected).abs() <= allowed, detail))
}

/// Allowed difference between the counts of changed rows: a transaction that crosses window start or end is in one only.
fn allowed_rows_off(done: Completed, per_tx: f64, jobs: u32) -> f64 {
    per_tx * (done.count * MAX_ROWS_OFF_SHARE + done.uncertain + 2.0 * f64::from(jobs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_memory::ServerMemory;

    const GOOD: Writes = Writes {
        database: 50.0 * MIB,
        blocks: 50.0 * MIB,
        device: Some(85.0 * MIB),
        log: 30.0 * MIB,
        expected: 0.0,
        part: 0.9,
        what: "the new rows are {} MiB/s",
    };

    /// The verdict if the workload must write so many MiB, of which it may miss a tenth.
    fn judge(w: Writes, mib: f64) -> Result<String, String> {
        verdict(
            &Writes { expected: mib * MIB, ..w },
            &CacheFacts { cache_bytes: Some(64 << 30), ..CacheFacts::default() },
        )
    }

    #[test]
    fn only_data_that_reached_the_device_are_written() {
        let detail = judge(GOOD, 50.0).unwrap();
        assert!(detail.contains("50.0") && detail.contains("85.0") && detail.contains("30.0"), "{detail}");
        let log_only = Writes { device: Some(60.0 * MIB), log: 60.0 * MIB, ..GOOD };
        let nothing = Writes { database: 0.0, blocks: 0.0, device: Some(30.0 * MIB), ..GOOD };
        let doubled = Writes { database: 50.0 * MIB, blocks: 25.0 * MIB, ..GOOD };
        let less = Writes { database: 37.0 * MIB, blocks: 37.0 * MIB, device: Some(64.0 * MIB), ..GOOD };
        // The database counts blocks twice, when it extends a file and when it writes; the device writes each once.
        let counted = Writes { database: 100.0 * MIB, blocks: 100.0 * MIB, device: Some(52.0 * MIB), log: 0.0, ..GOOD };
        let extended = Writes { database: 50.0 * MIB, blocks: 50.0 * MIB, ..counted };
        for (writes, mib, refused) in [
            // The device wrote only the log, but more bytes than the data files need.
            (log_only, 50.0, Some("page cache")),
            (Writes { log: 0.0, ..log_only }, 50.0, None),
            (nothing, 40.0, Some("64.0 GiB")),
            (nothing, 40.0, Some("longer warm-up")),
            (GOOD, 55.0, None),
            // Written twice, but each block once at its place.
            (doubled, 40.0, Some("")),
            (doubled, 25.0, None),
            // The device wrote all that the database wrote, but less than the rows need.
            (less, 41.0, Some("")),
            (counted, 50.0, Some("")),
            (counted.without(50.0 * MIB), 50.0, None),
            (extended.without(50.0 * MIB), 50.0, Some("")),
        ] {
            match (judge(writes, mib), refused) {
                (Err(why), Some(says)) => assert!(why.contains(says), "{why}"),
                (verdict, refused) => assert_eq!(verdict.err(), refused.map(str::to_owned), "{mib} MiB"),
            }
        }
    }

    #[test]
    fn without_the_devices_counters_a_checkpoint_memory_or_the_database_bounds_what_a_cache_lent() {
        let of = |synced_s: Option<Result<f64, String>>, gib: Option<u64>, synced: f64| {
            let memory = gib.map(|n| ServerMemory { bytes: n << 30, source: "--server-memory" });
            let facts = CacheFacts { synced_s, memory, ..CacheFacts::default() };
            let synced = (synced > 0.0).then_some(("it syncs", (100_000.0, synced)));
            lent_at_most(&facts, 40.0 * 1024.0 * MIB, 9.0, synced).map(|(share, _)| (share * 1000.0).round())
        };
        assert_eq!(of(Some(Ok(1.0)), None, 0.0), Ok(100.0), "9 s of writes in 10 s");
        assert_eq!(of(Some(Ok(1.0)), Some(1), 0.0), Ok(25.0), "1 of 40 GiB");
        assert_eq!(of(None, None, 100_000.0), Ok(5.0), "two batches of 100,000 blocks");
        assert!(of(Some(Ok(20.0)), Some(64), 0.0).unwrap_err().contains("longer window"));
        assert!(of(None, None, 10_000.0).is_err(), "most blocks went another way");
        let refused = of(Some(Err("GRANT pg_checkpoint".to_owned())), None, 0.0).unwrap_err();
        assert!(refused.contains("unknown") && refused.contains("pg_checkpoint"), "{refused}");
    }

    #[test]
    fn a_short_window_does_not_hide_rows() {
        // 100 transactions of a row each, by two jobs.
        let of = |uncertain| allowed_rows_off(Completed { count: 100.0, uncertain }, 1.0, 2);
        assert_eq!(of(0.0), 9.0);
        assert!(of(10.0) < 20.0, "64 rows a job would be more than there are");
    }
}
