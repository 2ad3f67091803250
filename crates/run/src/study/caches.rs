//! Caches before a test: filled where the database's cache is measured, emptied where the device is.

use std::path::PathBuf;
use std::time::Duration;

use loadline_collect::page_cache::{DataFiles, Keeper, Missed};
use loadline_database::{Target, TargetError, Work};
use loadline_model::format;
use loadline_model::manifest::TargetInfo;
use loadline_workload::{Cache, RowCount};

use super::Context;
use crate::block_checks::CacheFacts;
use crate::block_figures::{access, is_one_read};
use crate::data_source::Access;

/// Pause between two passes of the keeper: at 50,000 reads a second of 8 KiB, the blocks of one pause are 4 MiB,
/// 3 % of the usual data set.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest pause where blocks are read in order, so that what is read ahead is used before it is dropped.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// Rate of a fast device, bytes per second: the pause is so long that it reads a tenth of the data in it, half of which on average are still there.
const FAST_SCAN: u64 = 500 << 20;
/// Share of the files that may still be in the page cache after it was emptied without a word about it.
const LEFT: f64 = 0.05;

/// Caches as they were made for a test.
pub(super) struct Caches {
    keeper: Option<Keeper>,
    facts: CacheFacts,
    notes: Vec<String>,
}

impl Caches {
    /// Stops keeping the files out of the page cache; what the record has to say about it.
    pub(super) fn end(mut self) -> (CacheFacts, Vec<String>) {
        if let Some(kept) = self.keeper.take().map(Keeper::stop) {
            let cpu = kept.cpu_ns as f64 / (kept.ran_ns as f64).max(1.0) * 100.0;
            self.notes.push(format!(
                "{} data files were kept out of the operating system's page cache during the test by at least {} passes over \
                 them (the longest took {:.0} ms), which took {cpu:.1} % of a CPU and had changed blocks written to the device \
                 at once{}",
                kept.files,
                kept.passes,
                kept.slowest_pass_ns as f64 / 1e6,
                missed(kept.missed)
            ));
        }
        (self.facts, self.notes)
    }
}

/// What to say of files that were not looked after.
fn missed(missed: Missed) -> String {
    let mut out = String::new();
    if missed.unreadable > 0 {
        out += &format!("; {} more could not be opened by this user", missed.unreadable);
    }
    if missed.beyond_limit > 0 {
        out += &format!(
            "; {} more, the smallest, are beyond the number of files that loadline may have open (half of ulimit -n)",
            missed.beyond_limit
        );
    }
    out
}

/// Bytes of a table as it is stored; `None` if unknown.
pub(super) fn table_bytes(target: &dyn Target, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
    target.abilities().queries.map_or(Ok(None), |queries| queries.table_bytes(work, table))
}

/// The data files of a target, or why they cannot be looked after.
pub(super) fn data_files(target: &dyn Target, info: &TargetInfo) -> Result<DataFiles, String> {
    if !info.local {
        return Err("the database runs on another machine".to_owned());
    }
    if let Some(own) = target.facts().own_files.clone() {
        return Ok(DataFiles::These { open: own.open, named: own.named });
    }
    let directory = info.data_dir.as_ref().map(PathBuf::from).ok_or("its data directory is not known")?;
    Ok(DataFiles::Below { directory, except: info.log_dir.as_ref().map(PathBuf::from) })
}

/// How long the keeper pauses between two passes.
fn pause(work: &Work) -> Duration {
    if access(work) == Access::Random {
        return PAUSE;
    }
    Duration::from_millis(work.params.size_bytes() / 10 / (FAST_SCAN / 1000)).clamp(PAUSE, LONGEST_PAUSE)
}

impl Context {
    /// Gives a private server the block cache that the workload needs. Returns its size, bytes.
    pub(super) fn set_cache(&self, work: &Work) -> Result<Option<u64>, TargetError> {
        let small = work.workload.cache == Cache::Device;
        // Where a transaction is to be one read, what leads to its row must fit in.
        let part = if is_one_read(work) { 1 } else { 4 };
        let data_bytes = small.then(|| work.params.size_bytes() / part);
        self.target.abilities().block_cache.map_or(Ok(None), |cache| cache.set_cache(data_bytes))
    }

    /// Fills or empties caches, as the workload needs it.
    pub(super) fn ready_caches(&self, work: &Work, cache_bytes: Option<u64>) -> Result<Caches, TargetError> {
        let mut caches = Caches { keeper: None, facts: CacheFacts::default(), notes: Vec::new() };
        match work.workload.cache {
            Cache::Any => {}
            Cache::Hit => {
                if let Some(queries) = self.target.abilities().queries {
                    for table in work.workload.tables {
                        queries.integer(work, &format!("SELECT COUNT(*) FROM {{{}}}", table.name))?;
                    }
                }
            }
            Cache::Device => {
                caches.facts = CacheFacts {
                    cache_bytes,
                    table_bytes: self.table_bytes(work)?,
                    not_kept_out: None,
                    allow_cached: self.manifest.plan.allow_cached,
                };
                if let Err(why) = self.keep_out(work, &mut caches) {
                    caches.notes.push(format!("the data files were not kept out of the page cache: {why}"));
                    caches.facts.not_kept_out = Some(why);
                }
            }
        }
        Ok(caches)
    }

    fn table_bytes(&self, work: &Work) -> Result<Option<u64>, TargetError> {
        let mut sum = Some(0);
        for table in work.workload.tables.iter().filter(|t| t.rows != RowCount::Empty) {
            sum = sum.zip(table_bytes(self.target.as_ref(), work, table.name)?).map(|(a, b)| a + b);
        }
        Ok(sum)
    }

    /// Empties the page cache of the data files and keeps it empty.
    fn keep_out(&self, work: &Work, caches: &mut Caches) -> Result<(), String> {
        let files = self.data_files.clone()?;
        let dropped = files.drop_all().map_err(|e| e.to_string())?;
        if let Some(left) = dropped.left.filter(|left| *left as f64 > dropped.bytes as f64 * LEFT) {
            caches.notes.push(format!(
                "of {} in {} data files {} stayed in the page cache when it was emptied",
                format::bytes(dropped.bytes as f64),
                dropped.files,
                format::bytes(left as f64)
            ));
        }
        caches.keeper = Some(Keeper::start(files, pause(work)).map_err(|e| e.to_string())?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_embedded_database_only_its_own_files_are_looked_after() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bench.db");
        let url = format!("sqlite:{}", path.display());
        let target =
            loadline_database::open(&loadline_database::OpenRequest::new(&url, dir.path().to_owned())).unwrap();
        let files = data_files(target.as_ref(), &target.info().unwrap()).unwrap();
        let DataFiles::These { open, named } = files else { panic!("{files:?}") };
        assert_eq!((open.len(), named), (1, vec![dir.path().join("bench.db-wal")]));
        assert_eq!(open[0].metadata().unwrap().len(), std::fs::metadata(&path).unwrap().len());
    }

    #[test]
    fn what_was_not_looked_after_is_named_for_what_it_is() {
        assert_eq!(missed(Missed::default()), "");
        let text = missed(Missed { unreadable: 0, beyond_limit: 3 });
        assert!(text.contains("ulimit -n") && !text.contains("user"), "{text}");
        assert!(missed(Missed { unreadable: 2, beyond_limit: 0 }).contains("2 more could not be opened by this user"));
    }
}
