//! Checks of the source of blocks: a cache or the device.

use loadline_collect::os::DiskRates;
use loadline_load::Request;
use loadline_model::snapshot::counter;
use loadline_model::{CheckId, DataSource, Note, column, format};

use super::cached_share;
use super::data_source::{CacheFacts, MIN_DEVICE_SHARE, Reads, beyond_own_cache, device_share, source_by_share};
use crate::evidence::Evidence;
use crate::figures::MIB;
use crate::figures::access::Access;
use crate::figures::counters::Counters;
use crate::storage_size::{DATA_PER_CACHE, beyond_cache};
use crate::test::{Test, Verdict, failed, not_made, noted, passed, require};

/// Minimum number of reads in a window to determine their source.
pub(crate) const MIN_READS: f64 = 20.0;

const TOO_FEW: &str = "too few blocks were read to determine their source";

/// Minimum share of blocks from the database's own cache, for workloads that measure it.
const MIN_HIT_SHARE: f64 = 0.999;

/// Share of the database's reads that came from the device.
fn device_share_of_reads(w: &Counters<'_>, device: &DiskRates, access: Access) -> Result<Option<f64>, String> {
    let count = w.grown(counter::READ_CALLS).ok_or("the database does not count its reads")?;
    let bytes = w.grown(counter::READ_BYTES).ok_or("the database does not count the bytes it reads")?;
    if count < MIN_READS {
        return Ok(None);
    }
    let device = Reads { count: device.reads_per_s * w.seconds, bytes: device.read_mib_per_s * MIB * w.seconds };
    Ok(device_share(Reads { count, bytes }, device, access))
}

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
    let blocks = match Access::of(&request.work) {
        Access::Sequential => {
            let bytes = figures.figure(column::DATA_MIB_PER_S)? * MIB * w.seconds;
            bytes / request.target.facts().block_bytes? as f64
        }
        // One block per row: rows are not adjacent.
        Access::Random => figures.figure(column::ROWS_PER_S)? * w.seconds,
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
    let verdict = match e.rates.data_disk {
        Some(device) => compared(test, e.request, w, &device, facts),
        None => bounded(test, e.request, w, facts),
    };
    add_check(test, facts, CheckId::DataSource, verdict);
}

/// Compares the database's reads with the device's.
fn compared(
    test: &mut Test,
    request: &Request,
    w: &Counters<'_>,
    device: &DiskRates,
    facts: &CacheFacts,
) -> Result<String, String> {
    let share = device_share_of_reads(w, device, Access::of(&request.work))
        .map_err(|why| format!("the source of the blocks is unknown: {why}"))?;
    let counted = certain_blocks_requested(test, request, w).zip(w.grown(counter::BLOCK_READS));
    let beyond = counted.and_then(|(asked, read)| beyond_own_cache(asked, read));
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
    test.data_source = Some(source);
    if source == DataSource::Device { Ok(detail) } else { Err(format!("{source}: {detail}")) }
}

/// Bounds the share of caches, if the device's reads are unknown.
fn bounded(out: &mut Test, request: &Request, w: &Counters<'_>, facts: &CacheFacts) -> Result<String, String> {
    let counted = certain_blocks_requested(out, request, w).zip(w.grown(counter::BLOCK_READS));
    let (asked, read) = counted.ok_or("the source of the blocks is unknown: the database does not count its reads")?;
    if asked < MIN_READS {
        return Err(TOO_FEW.to_owned());
    }
    let bound = cached_share::bound(&request.work, request.jobs, facts, [asked, read])?;
    out.set(column::CACHED_PCT_MAX, bound.share * 100.0);
    out.data_source = Some(bound.source);
    out.notes.push(Note::CachedAtMost { bound: bound.detail.clone() });
    Ok(bound.detail)
}

/// Advice for blocks that did not come from the device.
fn advice(beyond: f64, share: f64, facts: &CacheFacts) -> String {
    let mut out = String::new();
    if beyond < MIN_DEVICE_SHARE {
        match (facts.cache_bytes, facts.table_bytes) {
            (Some(cache), Some(tables)) if cache < tables / DATA_PER_CACHE => {
                out += &format!(
                    ": the database's own cache has {} and the data have {}, too much to be cached; use a longer window",
                    format::bytes(cache as f64),
                    format::bytes(tables as f64)
                )
            }
            (Some(cache), Some(tables)) => {
                out += &format!(
                    ": the database's own cache has {} and the data have {}; give --size {} or more, or make the \
                    cache smaller",
                    format::bytes(cache as f64),
                    format::bytes(tables as f64),
                    beyond_cache(cache)
                )
            }
            _ => out += ": the database's own cache holds too much of the data: give a larger --size",
        }
    }
    if share < MIN_DEVICE_SHARE {
        match &facts.not_kept_out {
            Some(why) => out += &format!("; the operating system's page cache was not kept empty: {why}"),
            None => out += "; the rest came from the operating system's page cache, although it was emptied repeatedly",
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;

    use super::*;

    #[test]
    fn the_advice_names_the_cache_and_the_remedy() {
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
}
