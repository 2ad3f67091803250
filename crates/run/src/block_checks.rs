//! Checks of where blocks came from and went to: a cache, or the device.

use loadline_database::Work;
use loadline_model::check::{Check, Outcome};
use loadline_model::record::NOT_THE_DEVICES;
use loadline_model::snapshot::counter;
use loadline_model::{TestRecord, column, format};
use loadline_workload::{Cache, RowCount};

use crate::block_figures::{FEW_READS, MIB, Window, access};
use crate::data_source::{Access, DEVICE_FROM, DataSource, Reads, beyond_own_cache, device_share};
use crate::test::Request;
use crate::write_checks::DATA_WRITTEN;

/// Least share of block reads that the database's own cache serves where that is what is measured.
const HIT_FROM: f64 = 0.999;

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

/// The id of the check that blocks come from the database's cache.
const CACHE_HIT: &str = "cache-hit";

/// The database's cache must have served nearly all; `has_blocks` is whether the target has any to serve.
pub(crate) fn cache_hit(record: &TestRecord, has_blocks: bool) -> Check {
    const ID: &str = CACHE_HIT;
    match record.figure(column::CACHE_HIT_PCT) {
        Some(pct) => Check::require(
            ID,
            pct >= HIT_FROM * 100.0,
            format!(
                "the database's cache served {pct:.3} % of {} blocks per second; at least {:.1} % must come from there",
                format::number(record.figure(column::BLOCK_GETS_PER_S).unwrap_or(0.0), 0),
                HIT_FROM * 100.0
            ),
        ),
        None if !has_blocks => Check::new(ID, Outcome::NotMade, "the target has no blocks to be cached".to_owned()),
        None => Check::require(
            ID,
            false,
            format!(
                "what the database's cache served is not known: {}",
                record.why_absent(column::CACHE_HIT_PCT).unwrap_or("it is not counted")
            ),
        ),
    }
}

/// The checks of a test whose counters could not be read, `why`: what has to be proved is not.
pub(crate) fn unread(record: &mut TestRecord, work: &Work, facts: &CacheFacts, why: &str) -> Vec<Check> {
    match work.workload.cache {
        Cache::Any => Vec::new(),
        Cache::Hit => vec![Check::require(CACHE_HIT, false, why.to_owned())],
        Cache::Device => {
            let ids = [(DATA_SOURCE, work.program.reads()), (DATA_WRITTEN, work.program.rows_changed_per_tx() > 0)];
            let of = ids.into_iter().filter(|(_, made)| *made);
            of.map(|(id, _)| judged(record, facts, id, why.to_owned())).collect()
        }
    }
}

/// Whether its transactions add rows and ask for none that are there.
#[must_use]
pub fn only_adds(work: &Work) -> bool {
    work.program.rows_changed_per_tx() > 0 && work.workload.tables.iter().all(|t| t.rows == RowCount::Empty)
}

/// Blocks that the transactions of the window asked for, at least. A transaction that crosses an edge is
/// counted whole where it ends, and its reads where they are made: half a transaction of each job may be
/// counted too much, which matters where a window holds few.
fn asked(record: &TestRecord, request: &Request, w: &Window<'_>) -> Option<f64> {
    asked_by_all(record, request, w).map(|blocks| blocks * sure(record, request.jobs))
}

/// Share of the window's transactions that lies in it for sure.
pub(crate) fn sure(record: &TestRecord, jobs: u32) -> f64 {
    let transactions = record.figure(column::COMMITS).unwrap_or(0.0).max(1.0);
    (1.0 - f64::from(jobs) / 2.0 / transactions).max(0.0)
}

fn asked_by_all(record: &TestRecord, request: &Request, w: &Window<'_>) -> Option<f64> {
    match access(&request.work) {
        Access::Sequential => {
            let bytes = record.figure(column::DATA_MIB_PER_S)? * MIB * w.seconds;
            Some(bytes / request.target.facts().block_bytes? as f64)
        }
        // A block for each row, as neighbours are not asked for.
        Access::Random => Some(record.figure(column::ROWS_PER_S)? * w.seconds),
    }
}

/// The id of the check that blocks come from the device.
const DATA_SOURCE: &str = "data-source";

/// Says where the blocks came from; where that is not the device, the test is no test of storage.
pub(crate) fn data_source(
    record: &mut TestRecord,
    request: &Request,
    w: &Window<'_>,
    share: Result<Option<f64>, String>,
    facts: &CacheFacts,
) -> Option<Check> {
    const ID: &str = DATA_SOURCE;
    // Where nothing is read but what is to be changed, writes are what is measured: who reads what another session
    // has just read, or has it from the operating system, writes no less.
    if !request.work.program.reads() {
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

/// A cache with less than this part of the data holds too little of them to matter.
const CACHE_OF_DATA: u64 = 12;

/// Size of the data set of which a cache holds a tenth at most, for the command line.
fn size_for(cache_bytes: u64) -> String {
    let mib = cache_bytes.saturating_mul(CACHE_OF_DATA).div_ceil(1 << 20);
    if mib >= 1 << 10 { format!("{}GiB", mib.div_ceil(1 << 10)) } else { format!("{mib}MiB") }
}

/// A failed check, or with `--allow-cached` a note and a mark.
pub(crate) fn judged(record: &mut TestRecord, facts: &CacheFacts, id: &str, detail: String) -> Check {
    if !facts.allow_cached {
        return Check::require(id, false, format!("{detail}; --allow-cached keeps such figures, marked"));
    }
    if !record.forced.as_ref().is_some_and(|f| f.contains(NOT_THE_DEVICES)) {
        let mark = |before: String| format!("{before}; {NOT_THE_DEVICES}");
        record.forced = Some(record.forced.take().map_or(NOT_THE_DEVICES.to_owned(), mark));
    }
    Check::new(id, Outcome::Noted, detail)
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
        let mut record = crate::job::blank_record("");
        assert_eq!(cache_hit(&record, false).outcome, Outcome::NotMade, "the null engine");
        record.leave_out(column::CACHE_HIT_PCT, "no right to read it");
        let check = cache_hit(&record, true);
        assert!(check.outcome == Outcome::Failed && check.detail.contains("no right to read it"), "{check:?}");
        record.set(column::CACHE_HIT_PCT, 99.95);
        assert_eq!(cache_hit(&record, true).outcome, Outcome::Passed);
    }

    #[test]
    fn what_could_not_be_read_proves_nothing() {
        let failed = |code: &str, facts: &CacheFacts| {
            let workload = loadline_workload::find(code).unwrap();
            let work = Work::new(workload, workload.params(&Default::default()).unwrap(), 1, 0.0);
            let checks =
                unread(&mut crate::job::blank_record(""), &work, facts, "the counters could not be read: gone");
            checks.into_iter().map(|c| (c.id, c.outcome)).collect::<Vec<_>>()
        };
        let none = CacheFacts::default();
        let of = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), Outcome::Failed)).collect::<Vec<_>>();
        assert_eq!(failed("SRV-QUERY1", &none), of(&["cache-hit"]));
        assert_eq!(failed("STO-READ", &none), of(&["data-source"]));
        assert_eq!(failed("STO-WRITE", &none), of(&["data-written"]));
        assert_eq!(failed("DBWR-THR", &none), of(&["data-written"]));
        assert_eq!(failed("STO-RANDOM", &none), of(&["data-source", "data-written"]));
        assert_eq!(failed("LGWR-LAT1", &none), []);
        let allowed = CacheFacts { allow_cached: true, ..CacheFacts::default() };
        assert_eq!(failed("STO-READ", &allowed)[0].1, Outcome::Noted);
        assert_eq!(failed("SRV-QUERY1", &allowed), of(&["cache-hit"]), "it allows no other cache");
    }
}
