//! Bounds of what caches hide if the device's counters cannot be read: caches are in the memory of the server's machine.

use loadline_database::Work;
use loadline_model::format::bytes;

use loadline_model::DataSource;

use super::data_source::{CacheFacts, beyond_own_cache};
use crate::figures::access::Access;
use crate::storage_size::DATA_PER_MEMORY;

/// Above this share of the requested blocks that may be a cache's, the figure says more of caches than of storage.
pub(super) const MAX_CACHED_SHARE: f64 = 0.5;
/// As good as the device's counters, which must show [`super::data_source::MIN_DEVICE_SHARE`].
const GOOD_SHARE: f64 = 1.0 / DATA_PER_MEMORY as f64;
/// Share by which the blocks that the database read may differ from those that transactions requested.
const COUNTS_OFF: f64 = 0.05;

/// A bound that makes the figure valid.
#[derive(Debug, PartialEq)]
pub(crate) struct Bound {
    /// At most this share (0…1) of the blocks that the database read came from caches.
    pub(crate) share: f64,
    pub(crate) source: DataSource,
    pub(crate) detail: String,
}

/// The bound of the share of blocks that caches served, or why nothing is said of the storage. Transactions of so many jobs `asked` for
/// blocks, and the database `read` from its files.
pub(crate) fn bound(work: &Work, jobs: u32, facts: &CacheFacts, [asked, read]: [f64; 2]) -> Result<Bound, String> {
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
    let [memory_text, table_text] = [memory.bytes, table_bytes].map(|n| bytes(n as f64));
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
        let size = work.params.size_bytes() as f64 * share / GOOD_SHARE;
        return Err(format!(
            "the counters of the data device cannot be read, and {detail}; at most {} are allowed, and --size {}GiB gives {}",
            percent(MAX_CACHED_SHARE),
            (size / f64::from(1 << 30)).ceil(),
            percent(GOOD_SHARE)
        ));
    }
    let source = if counted <= GOOD_SHARE { DataSource::Device } else { DataSource::Bounded };
    Ok(Bound { share: counted, source, detail })
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
    let piece = match Access::of(work) {
        Access::Random => 0.0,
        Access::Sequential => work.workload.volume(&work.params).map_or(1.0, |v| v.share),
    };
    let others = f64::from(jobs.saturating_sub(1)) * piece * 2.0;
    let share = (memory / (table * (1.0 - work.compressibility)) + others) / (1.0 - piece);
    // Nothing incompressible, or the whole table in each transaction: no bound.
    if share.is_finite() { share } else { f64::MAX }
}

#[cfg(test)]
mod tests {
    use loadline_workload::{CATALOGUE, Generator, Instrument, RowCount, Step};

    use super::*;
    use crate::server_memory::ServerMemory;

    const GIB: u64 = 1 << 30;

    fn work(code: &str, size: u64, compressibility: f64) -> Work {
        Work { compressibility, ..Work::of(code, &[]).unwrap().with_size(size) }
    }

    fn judge(table_gib: u64, memory_gib: Option<u64>, read: f64) -> Result<Bound, String> {
        let memory = memory_gib.map(|n| ServerMemory { bytes: n * GIB, source: "--server-memory" });
        let work = work("STO-READ", table_gib * GIB, 0.0);
        let facts = CacheFacts { table_bytes: Some(table_gib * GIB), memory, ..CacheFacts::default() };
        bound(&work, 4, &facts, [10_000.0, read])
    }

    #[test]
    fn k_times_the_memory_is_one_kth() {
        for (table, share, source) in [(640, 0.1, DataSource::Device), (256, 0.25, DataSource::Bounded)] {
            let bound = judge(table, Some(64), 9_900.0).unwrap();
            assert!((bound.share - share).abs() < 1e-9 && bound.source == source, "{bound:?}");
            assert!(bound.detail.contains("64.0 GiB (--server-memory)"), "{bound:?}");
        }
        let why = judge(100, Some(64), 9_900.0).unwrap_err();
        assert!(why.contains("--size 640GiB") && why.contains("at most 64.0 %"), "{why}");
        let why = judge(10, Some(64), 9_900.0).unwrap_err();
        assert!(why.contains("--size 640GiB"), "{why}");
        let why = judge(640, None, 9_900.0).unwrap_err();
        assert!(why.contains("--server-memory") && why.contains("at most 10 %"), "{why}");
    }

    #[test]
    fn blocks_of_an_index_may_all_be_cached() {
        let bound = judge(640, Some(64), 20_000.0).unwrap();
        assert!((bound.share - 0.55).abs() < 1e-9 && bound.source == DataSource::Bounded, "{bound:?}");
        assert!(
            bound.detail.starts_with("at most 10.0 % of the requested") && bound.detail.contains("2.00 for"),
            "{bound:?}"
        );
    }

    #[test]
    fn a_cache_that_serves_more_than_fits_shows_a_wrong_memory() {
        assert!(judge(640, Some(64), 8_900.0).is_ok(), "11 % are within the spread");
        let why = judge(640, Some(64), 5_000.0).unwrap_err();
        assert!(why.contains("50.0 % were in the database's own cache, which is more"), "{why}");
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
        fn draws(steps: &[Step]) -> bool {
            steps.iter().all(|step| match step {
                Step::Repeat { body, .. } => draws(body),
                Step::Bind { generator, .. } => matches!(
                    generator,
                    Generator::Sequence
                        | Generator::Uniform { .. }
                        | Generator::Plus { .. }
                        | Generator::Payload { .. }
                ),
                step => matches!(step, Step::Execute { .. }),
            })
        }
        let all = CATALOGUE.iter().filter(|w| w.has(Instrument::Device));
        let reading: Vec<Work> = all.map(|w| work(&w.code, GIB, 0.0)).filter(|w| w.program.reads()).collect();
        assert!(reading.len() >= 4);
        for work in reading {
            let tables = work.workload.tables.iter().filter(|t| t.rows != RowCount::Empty).count();
            assert!(tables == 1 && draws(&work.program.body), "{}", work.workload.code);
        }
    }
}
