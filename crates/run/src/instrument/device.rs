//! Makes a test's reads come from the device and its changes reach it, and proves both by the device's counters.
//!
//! If transactions read, the data files are kept out of the page cache. If they only change or add rows, the changes are
//! written at once, and what the database reads to change it may come from the page cache: its writes are measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loadline_collect::os::DiskRates;
use loadline_collect::page_cache::{DataFiles, Keep, Keeper};
use loadline_database::{Target, TargetError, Work};
use loadline_load::{JobResult, Request};
use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::counter;
use loadline_model::{CheckId, Note, column};
use loadline_storage::now_ns;
use loadline_workload::{Instrument as InstrumentSpec, RowCount, Workload};

use super::{Instrument, RunContext, boxed};
use crate::checks::blocks_read::{CacheFacts, MIN_READS, add_check, data_source};
use crate::checks::blocks_written::{data_written, rows_changed};
use crate::evidence::{Evidence, table_bytes};
use crate::figures::MIB;
use crate::figures::counters::Counters;
use crate::figures::volume::is_sequential;
use crate::test::Test;

pub(super) fn listed_by(workload: &Workload) -> Option<Box<dyn Instrument>> {
    boxed(workload.has(InstrumentSpec::Device).then(Device::default))
}

/// Pause between two passes of the keeper: at 50,000 reads a second of 8 KiB, the blocks of one pause are 4 MiB,
/// 3 % of the usual data set.
const PAUSE: Duration = Duration::from_millis(10);
/// Pause between sequential reads.
const SCAN_PAUSE: Duration = Duration::from_millis(2);
/// Bytes that an operating system may read ahead for a reader: Linux reads two windows, usually of 128 KiB each, on
/// virtual disks of up to 8 MiB.
const READ_AHEAD: u64 = 16 << 20;
/// Part of a table that may be read between two passes: two to three times as much is cached, of which other scans may use
/// a part.
const SCAN_PARTS: u64 = 24;
/// Rate of a fast device, bytes per second. In the pause of a table too small for [`READ_AHEAD`] it reads a tenth of it.
const FAST_SCAN: u64 = 500 << 20;
/// A larger share of the files that stays in the page cache after it was emptied is noted.
const MAX_LEFT_SHARE: f64 = 0.05;

/// Above this ratio of device reads to database reads, others use the device too.
const MAX_READ_RATIO: f64 = 1.3;

#[derive(Default)]
struct Device {
    keeper: Option<(Keep, Keeper)>,
    facts: CacheFacts,
    notes: Vec<Note>,
    /// The target, if a checkpoint must show that the changes reached the device: its counters are unknown.
    unseen: Option<Arc<dyn Target>>,
    /// When that checkpoint had ended, ns, or why there was none.
    synced_at_ns: Option<Result<u64, String>>,
}

impl Instrument for Device {
    fn prepare(&mut self, request: &mut Request, run: &RunContext<'_>) -> Result<(), TargetError> {
        let (target, work) = (request.target.as_ref(), &request.work);
        let mut bytes = Some(0);
        for table in work.workload.tables.iter().filter(|t| t.rows != RowCount::Empty) {
            bytes = bytes.zip(table_bytes(target, work, &table.name)?).map(|(a, b)| a + b);
        }
        self.facts.cache_bytes = run.cache_bytes;
        self.facts.table_bytes = bytes;
        self.facts.memory = run.server_memory;
        self.facts.allow_cached = run.manifest.plan.allow_cached();
        let unseen = request.data_disk.is_none() && proved(work)[1] && target.abilities().tables.is_some();
        self.unseen = unseen.then(|| Arc::clone(&request.target));
        if let Err(why) = self.keep(run.data_files, work, request.jobs) {
            self.facts.not_kept_out = Some(why.clone());
            self.notes.push(Note::NotKeptOut { why });
        }
        Ok(())
    }

    fn stop(&mut self, _: &[JobResult]) {
        if let Some(target) = self.unseen.take() {
            let made = target.abilities().tables.map(|target| target.checkpoint());
            let refused = |e| format!("a checkpoint after the window, which would sync them, failed: {e}");
            self.synced_at_ns = made.map(|made| made.map(|()| now_ns()).map_err(refused));
        }
        let Some((keep, keeper)) = self.keeper.take() else { return };
        let kept = keeper.stop();
        self.notes.push(Note::KeptOut {
            only_written: keep == Keep::Written,
            passes: kept.passes,
            files: kept.files.into(),
            longest_ms: kept.slowest_pass_ns as f64 / 1e6,
            cpu_pct: kept.cpu_ns as f64 / (kept.ran_ns as f64).max(1.0) * 100.0,
            unreadable: kept.missed.unreadable.into(),
            beyond_limit: kept.missed.beyond_limit.into(),
        });
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        test.notes.extend(self.notes.iter().cloned());
        let c = match &e.counters {
            Ok(counters) => counters,
            Err(why) => return unread(test, e.work(), &self.facts, why),
        };
        let s_after = |at_ns: u64| at_ns.saturating_sub(e.measured.schedule.close_ns) as f64 / 1e9;
        let synced_s = self.synced_at_ns.clone().map(|done| done.map(s_after));
        let facts = CacheFacts { synced_s, ..self.facts.clone() };
        read_share(test, e.work(), c, e.rates.data_disk);
        let [reads, changes] = proved(e.work());
        if reads {
            data_source(test, e, c, &facts);
        }
        if changes {
            data_written(test, e, c, &facts);
            test.check(CheckId::RowsChanged, rows_changed(e));
        }
    }
}

impl Device {
    /// Starts what is done with the data files during the test of `jobs` jobs.
    fn keep(&mut self, files: &Result<DataFiles, String>, work: &Work, jobs: u32) -> Result<(), String> {
        let files = files.clone()?;
        let (keep, pause) = kept(work, self.facts.table_bytes, jobs);
        if keep != Keep::Written {
            let dropped = files.drop_all().map_err(|e| e.to_string())?;
            if let Some(left) = dropped.left.filter(|left| *left as f64 > dropped.bytes as f64 * MAX_LEFT_SHARE) {
                let (bytes, files) = (dropped.bytes, dropped.files.into());
                self.notes.push(Note::StayedCached { left_bytes: left, bytes, files });
            }
        }
        self.keeper = Some((keep, Keeper::start(files, keep, pause).map_err(|e| e.to_string())?));
        Ok(())
    }
}

/// Treatment of the data files, and how often. `table_bytes`: size of the tables read.
fn kept(work: &Work, table_bytes: Option<u64>, jobs: u32) -> (Keep, Duration) {
    if !work.program.reads() || !is_sequential(work) {
        return (if work.program.reads() { Keep::Out } else { Keep::Written }, PAUSE);
    }
    let most = table_bytes.map_or(u64::MAX, |bytes| bytes / SCAN_PARTS);
    if most < READ_AHEAD {
        // What is read ahead would be a large part of the table, from which other scans read as from a cache. So it
        // is dropped, used or not: the proof that blocks come from the device is worth more than their rate.
        let pause = most * SCAN_PARTS / 10 / (FAST_SCAN / 1000);
        return (Keep::Out, Duration::from_millis(pause).max(PAUSE));
    }
    (Keep::OutOnceUsed { new_bytes: (u64::from(jobs) * READ_AHEAD).min(most) }, SCAN_PAUSE)
}

/// Whether the source of blocks read, and the destination of blocks written, must be proved. If a workload reads only
/// what it changes, only writes must be proved: cached reads do not reduce its writes.
fn proved(work: &Work) -> [bool; 2] {
    [work.program.reads(), work.program.rows_changed_per_tx() > 0]
}

/// Fails the checks of a test whose counters could not be read.
fn unread(out: &mut Test, work: &Work, facts: &CacheFacts, why: &str) {
    out.set_absent(column::DEVICE_READ_SHARE_PCT, why);
    let ids = [CheckId::DataSource, CheckId::DataWritten].into_iter().zip(proved(work)).filter(|(_, made)| *made);
    ids.for_each(|(id, _)| add_check(out, facts, id, Err(why.to_owned())));
}

/// The device's reads as a share of the database's, with a note if others use the device.
fn read_share(out: &mut Test, work: &Work, w: &Counters<'_>, device: Option<DiskRates>) {
    let database = w.grown(counter::READ_BYTES).zip(w.most_reads());
    let Some(((bytes, calls), device)) = database.zip(device) else {
        out.set_absent(column::DEVICE_READ_SHARE_PCT, "the reads of the database or of its data device are unknown");
        return;
    };
    if calls < MIN_READS {
        out.set_absent(column::DEVICE_READ_SHARE_PCT, "the database read almost nothing from its files");
        return;
    }
    let ratio = device.read_mib_per_s * MIB / (bytes / w.seconds);
    out.set(column::DEVICE_READ_SHARE_PCT, ratio * 100.0);
    let more = device.reads_per_s / (calls / w.seconds);
    if is_sequential(work) && ratio > MAX_READ_RATIO {
        out.notes.push(Note::DeviceReadMore { ratio });
    } else if !is_sequential(work) && more > MAX_READ_RATIO {
        out.notes.push(Note::DeviceReadOften { ratio: more });
    }
}

/// The data files of a target, or why they cannot be kept out of the page cache.
pub(crate) fn data_files(target: &dyn Target, info: &TargetInfo) -> Result<DataFiles, String> {
    if !info.local {
        return Err("the database runs on another machine".to_owned());
    }
    if let Some(own) = target.facts().own_files.clone() {
        return Ok(DataFiles::These { open: own.open, named: own.named });
    }
    let directory = info.data_dir.as_ref().map(PathBuf::from).ok_or("its data directory is unknown")?;
    Ok(DataFiles::Below { directory, except: info.log_dir.as_ref().map(PathBuf::from) })
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;

    use super::*;

    #[test]
    fn an_embedded_database_has_only_its_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("x.db"), crate::testing::sqlite(dir.path()));
        let files = data_files(target.as_ref(), &target.info().unwrap()).unwrap();
        let DataFiles::These { open, named } = files else { panic!("{files:?}") };
        assert_eq!((open.len(), named), (1, vec![dir.path().join("x.db-wal")]));
        assert_eq!(open[0].metadata().unwrap().len(), std::fs::metadata(&path).unwrap().len());
    }

    #[test]
    fn the_devices_reads_are_a_share_of_the_databases_and_many_more_are_noted() {
        let read = |code: &str, calls: f64, mib_per_s: f64, reads_per_s: f64| {
            let at = |at_ns, calls: f64| {
                let bytes = (counter::READ_BYTES, 8.0 * MIB * calls / MIN_READS);
                crate::testing::snapshot(at_ns, &[(counter::READ_CALLS, calls), bytes])
            };
            let (open, close) = (at(0, 0.0), at(2, calls));
            let on_time = [&open, &close];
            let w = Counters { open: &open, close: &close, on_time, seconds: 2.0, off_s: 0.0, whole: None };
            let [writes_per_s, write_mib_per_s, util_pct] = [0.0; 3];
            let device = DiskRates { reads_per_s, read_mib_per_s: mib_per_s, writes_per_s, write_mib_per_s, util_pct };
            let mut out = Test::default();
            read_share(&mut out, &Work::from_catalogue(code, &[]).unwrap(), &w, Some(device));
            let noted = out.notes.iter().map(|note| match note {
                Note::DeviceReadMore { ratio } | Note::DeviceReadOften { ratio } => *ratio,
                other => panic!("{other:?}"),
            });
            (out.figure(column::DEVICE_READ_SHARE_PCT), noted.collect::<Vec<_>>())
        };
        let (calls, much) = (MIN_READS / 2.0, MAX_READ_RATIO * 2.0);
        assert_eq!(read("STO-READ", MIN_READS, 3.0, calls), (Some(75.0), vec![]));
        assert_eq!(read("STO-READ", MIN_READS, 4.0 * much, calls), (Some(100.0 * much), vec![]));
        assert_eq!(read("STO-READ", MIN_READS, 3.0, calls * much), (Some(75.0), vec![much]));
        assert_eq!(read("STO-SCAN", MIN_READS, 4.0 * much, calls), (Some(100.0 * much), vec![much]));
        assert_eq!(read("STO-SCAN", MIN_READS, 3.0, calls * much), (Some(75.0), vec![]));
        assert_eq!(read("STO-READ", MIN_READS - 1.0, 3.0, calls), (None, vec![]));
    }

    #[test]
    fn what_is_done_with_the_page_cache_follows_from_the_work() {
        let of = |code: &str, bytes: Option<u64>, jobs| {
            let work = Work::from_catalogue(code, &[]).unwrap();
            kept(&work, bytes, jobs).0
        };
        assert_eq!(of("STO-READ", Some(1 << 30), 8), Keep::Out);
        assert_eq!(of("STO-RANDOM", Some(1 << 30), 8), Keep::Out, "it reads as well");
        for code in ["STO-WRITE", "DBWR-THR"] {
            assert_eq!(of(code, Some(1 << 30), 8), Keep::Written, "{code}");
        }
        let scan = |bytes, jobs| match of("STO-SCAN", bytes, jobs) {
            Keep::OutOnceUsed { new_bytes } => new_bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!((scan(None, 1), scan(None, 4)), (READ_AHEAD, 4 * READ_AHEAD), "all that is read ahead stays");
        let middle = 1 << 30;
        assert!(scan(Some(middle), 8) * 3 < middle / 7, "nearly all must come from the device");
        assert_eq!(of("STO-SCAN", Some(96 << 20), 4), Keep::Out, "all of it would be read ahead");
    }

    #[test]
    fn unread_counters_prove_nothing() {
        let failed = |code: &str, facts: &CacheFacts| {
            let work = Work::from_catalogue(code, &[]).unwrap();
            let mut out = Test::default();
            unread(&mut out, &work, facts, "the counters could not be read: gone");
            out.checks.into_iter().map(|c| (c.id, c.outcome)).collect::<Vec<_>>()
        };
        let none = CacheFacts::default();
        let of = |ids: &[CheckId]| ids.iter().map(|id| (*id, Outcome::Failed)).collect::<Vec<_>>();
        assert_eq!(failed("STO-READ", &none), of(&[CheckId::DataSource]));
        assert_eq!(failed("STO-WRITE", &none), of(&[CheckId::DataWritten]));
        assert_eq!(failed("DBWR-THR", &none), of(&[CheckId::DataWritten]));
        assert_eq!(failed("STO-RANDOM", &none), of(&[CheckId::DataSource, CheckId::DataWritten]));
        let allowed = CacheFacts { allow_cached: true, ..CacheFacts::default() };
        assert_eq!(failed("STO-READ", &allowed)[0].1, Outcome::Noted);
    }
}
