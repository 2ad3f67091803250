//! Checks of where blocks came from and went to: a cache, or the device.

use loadline_model::check::{Check, Outcome};
use loadline_model::snapshot::counter;
use loadline_model::{column, format};

use super::data_source::{DataSource, MIN_DEVICE_SHARE, beyond_own_cache, device_share};
use crate::figures::MIB;
use crate::figures::access::Access;
use crate::figures::blocks::Reads;
use crate::figures::collected::Figures;
use crate::figures::counters::Counters;
use crate::window::Request;

/// Reads of a window with fewer than that say nothing about where they came from.
pub(crate) const MIN_READS: f64 = 20.0;

/// Least share of block reads that the database's own cache serves where that is what is measured.
const MIN_HIT_SHARE: f64 = 0.999;

/// What is known of caches before a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CacheFacts {
    /// Size of the database's own block cache, bytes.
    pub cache_bytes: Option<u64>,
    /// Bytes of the tables that are read.
    pub table_bytes: Option<u64>,
    /// Why the operating system's cache is not kept empty, if it is not.
    pub not_kept_out: Option<String>,
    /// Whether reads from caches are kept, and marked.
    pub allow_cached: bool,
}

/// Share of the database's reads that came from the device, which made `device` reads per second.
fn device_share_of_reads(w: &Counters<'_>, device: Option<Reads>, access: Access) -> Result<Option<f64>, String> {
    let device = device.ok_or("the reads of the device under the data are not known")?;
    let count = w.grown(counter::READ_CALLS).ok_or("the database does not count its reads")?;
    let bytes = w.grown(counter::READ_BYTES).ok_or("the database does not count the bytes it reads")?;
    if count < MIN_READS {
        return Ok(None);
    }
    let device = Reads { count: device.count * w.seconds, bytes: device.bytes * w.seconds };
    Ok(device_share(Reads { count, bytes }, device, access))
}

/// The id of the check that blocks come from the database's cache.
pub(crate) const CACHE_HIT: &str = "cache-hit";

/// The database's cache must have served nearly all; `has_blocks` is whether the target has any to serve.
pub(crate) fn cache_hit(figures: &Figures, has_blocks: bool) -> Check {
    const ID: &str = CACHE_HIT;
    match figures.figure(column::CACHE_HIT_PCT) {
        Some(pct) => Check::require(
            ID,
            pct >= MIN_HIT_SHARE * 100.0,
            format!(
                "the database's cache served {pct:.3} % of {} blocks per second; at least {:.1} % must come from there",
                format::number(figures.figure(column::BLOCK_GETS_PER_S).unwrap_or(0.0), 0),
                MIN_HIT_SHARE * 100.0
            ),
        ),
        None if !has_blocks => Check::new(ID, Outcome::NotMade, "the target has no blocks to be cached".to_owned()),
        None => Check::require(
            ID,
            false,
            format!(
                "what the database's cache served is not known: {}",
                figures.absence_reason(column::CACHE_HIT_PCT).unwrap_or("it is not counted")
            ),
        ),
    }
}

/// Blocks that the transactions of the window asked for, at least. A transaction that crosses an edge is
/// counted whole where it ends, and its reads where they are made: half a transaction of each job may be
/// counted too much, which matters where a window holds few.
fn certain_blocks_requested(figures: &Figures, request: &Request, w: &Counters<'_>) -> Option<f64> {
    blocks_requested(figures, request, w).map(|blocks| blocks * certain_share(figures, request.jobs))
}

/// Share of the window's transactions that lies in it for certain_share.
pub(crate) fn certain_share(figures: &Figures, jobs: u32) -> f64 {
    let transactions = figures.figure(column::COMMITS).unwrap_or(0.0).max(1.0);
    (1.0 - f64::from(jobs) / 2.0 / transactions).max(0.0)
}

fn blocks_requested(figures: &Figures, request: &Request, w: &Counters<'_>) -> Option<f64> {
    match Access::of(&request.work) {
        Access::Sequential => {
            let bytes = figures.figure(column::DATA_MIB_PER_S)? * MIB * w.seconds;
            Some(bytes / request.target.facts().block_bytes? as f64)
        }
        // A block for each row, as neighbours are not asked for.
        Access::Random => Some(figures.figure(column::ROWS_PER_S)? * w.seconds),
    }
}

/// The id of the check that blocks come from the device.
pub(crate) const DATA_SOURCE: &str = "data-source";

/// Says where the blocks came from; where that is not the device, the test is no test of storage.
pub(crate) fn data_source(
    out: &mut Figures,
    figures: &Figures,
    request: &Request,
    w: &Counters<'_>,
    device: Option<Reads>,
    facts: &CacheFacts,
) {
    const ID: &str = DATA_SOURCE;
    let share = device_share_of_reads(w, device, Access::of(&request.work));
    let read = w.grown(counter::BLOCK_READS);
    let beyond =
        certain_blocks_requested(figures, request, w).zip(read).and_then(|(asked, read)| beyond_own_cache(asked, read));
    let (source, detail) = match (share, beyond) {
        (Err(why), _) => {
            let text = format!("where the blocks came from is not known: {why}");
            return add_check(out, facts, ID, Err(text));
        }
        (Ok(None), Some(beyond)) if beyond >= 1.0 - MIN_HIT_SHARE => {
            return add_check(out, facts, ID, Err("too few blocks were read to tell where they came from".to_owned()));
        }
        (Ok(share), beyond) => {
            let (share, beyond) = (share.unwrap_or(0.0), beyond.unwrap_or(1.0));
            let detail = format!(
                "of the blocks that transactions asked for {:.0} % were read by the database, and {:.0} % of these reads came \
                 from the device (at least {:.0} % in all must){}",
                beyond * 100.0,
                share * 100.0,
                MIN_DEVICE_SHARE * 100.0,
                advice(beyond, share, facts)
            );
            (DataSource::of_share(share * beyond), detail)
        }
    };
    out.data_source = Some(source.name());
    let verdict = if source == DataSource::Device { Ok(detail) } else { Err(format!("{}: {detail}", source.name())) };
    add_check(out, facts, ID, verdict);
}

/// What to do about blocks that did not come from the device.
fn advice(beyond: f64, share: f64, facts: &CacheFacts) -> String {
    let mut out = String::new();
    if beyond < MIN_DEVICE_SHARE {
        match (facts.cache_bytes, facts.table_bytes) {
            (Some(cache), Some(tables)) if cache < tables / DATA_PER_CACHE => {
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
    if share < MIN_DEVICE_SHARE {
        match &facts.not_kept_out {
            Some(why) => out += &format!("; the operating system's page cache was not kept empty: {why}"),
            None => {
                out += "; the operating system's page cache was emptied over and over, and served the rest all the same"
            }
        }
    }
    out
}

/// A cache with less than this part of the data holds too little of them to matter.
const DATA_PER_CACHE: u64 = 12;

/// Size of the data set of which a cache holds a tenth at most, for the command line.
fn size_for(cache_bytes: u64) -> String {
    let mib = cache_bytes.saturating_mul(DATA_PER_CACHE).div_ceil(1 << 20);
    if mib >= 1 << 10 { format!("{}GiB", mib.div_ceil(1 << 10)) } else { format!("{mib}MiB") }
}

/// Adds the check of a `verdict`: what does not hold fails, or with `--allow-cached` is a note and a mark.
pub(crate) fn add_check(out: &mut Figures, facts: &CacheFacts, id: &str, verdict: Result<String, String>) {
    out.not_the_devices |= verdict.is_err() && facts.allow_cached;
    out.checks.push(match verdict {
        Ok(detail) => Check::require(id, true, detail),
        Err(why) if facts.allow_cached => Check::new(id, Outcome::Noted, why),
        Err(why) => Check::require(id, false, format!("{why}; --allow-cached keeps such figures, marked")),
    });
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

    #[test]
    fn a_cache_that_nobody_counts_is_no_proof() {
        let mut figures = Figures::default();
        assert_eq!(cache_hit(&figures, false).outcome, Outcome::NotMade, "the null engine");
        figures.set_absent(column::CACHE_HIT_PCT, "no right to read it");
        let check = cache_hit(&figures, true);
        assert!(check.outcome == Outcome::Failed && check.detail.contains("no right to read it"), "{check:?}");
        figures.set(column::CACHE_HIT_PCT, 99.95);
        assert_eq!(cache_hit(&figures, true).outcome, Outcome::Passed);
    }
}
