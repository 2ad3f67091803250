//! Checks of where blocks came from and went to: a cache, or the device.

use loadline_collect::Edge;
use loadline_model::check::{Check, Outcome};
use loadline_model::record::NOT_THE_DEVICES;
use loadline_model::snapshot::counter;
use loadline_model::{Latencies, TestRecord, format};
use loadline_workload::Cache;

use crate::block_figures::{FEW_READS, MIB, Window, access};
use crate::data_source::{Access, DEVICE_FROM, DataSource, Reads, beyond_own_cache, device_share};
use crate::test::Request;

/// Least share of block reads that the database's own cache serves where that is what is measured.
const HIT_FROM: f64 = 0.999;
/// By how much the database's count of changed rows may differ from the jobs', and how many transactions
/// a job may be off at the edges of the window.
const ROWS_OFF: f64 = 0.05;

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

/// Share of the database's reads that came from the device.
pub(crate) fn from_the_device(
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

pub(crate) fn cache_hit(record: &TestRecord) -> Check {
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
pub(crate) fn data_source(
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
pub(crate) fn written(open: &Edge, close: &Edge) -> Option<f64> {
    let seconds = close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9;
    let disks = open.data_disk.as_ref().zip(close.data_disk.as_ref());
    let bytes = disks.and_then(|(a, b)| b.written_bytes.checked_sub(a.written_bytes));
    bytes.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 / seconds)
}

/// What the database wrote to its data files must have reached the device.
pub(crate) fn data_written(
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
    if !record.forced.as_ref().is_some_and(|f| f.contains(NOT_THE_DEVICES)) {
        let mark = |before: String| format!("{before}; {NOT_THE_DEVICES}");
        record.forced = Some(record.forced.take().map_or(NOT_THE_DEVICES.to_owned(), mark));
    }
    Check::new(id, Outcome::Noted, detail)
}

/// Work that is real shows in the database's own count of changed rows.
pub(crate) fn rows_changed(request: &Request, w: &Window<'_>, transactions: &Latencies) -> Option<Check> {
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
