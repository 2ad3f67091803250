//! Limits of the data's device: a test file on its filesystem is read and written past the page cache.
//!
//! Units of a transaction are the fewest that the counters allow. So blocks that a cache served are not counted, nor are
//! blocks read ahead, nor the writes that were merged into one: the best program would not need them either.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::Work;
use loadline_model::column;
use loadline_model::format::bytes;
use loadline_model::plan::Payload;
use loadline_model::probe::Operation;
use loadline_storage::probe::{Point, ProbeOptions, ProbeSession};
use loadline_storage::{Kind, StorageFacts};
use loadline_workload::Limit;

use super::place::check_free_space;
use super::{Part, References, Sample, Subject};
use crate::test::MIB;

/// Lengths of a measurement to try, s: the first is enough for thousands of blocks, the second for a device that stalls.
pub(super) const SAMPLES_S: [f64; 2] = [0.3, 2.0];
/// Smallest and largest test file, bytes. It has the size of the data, because a device may read a small file faster.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 128 << 20..=4 << 30;
/// Time to write the test file, s; the file is shorter if the device is slow.
const FILL_S: f64 = 2.0;
/// Most blocks in flight: no queue of a device is longer.
const MAX_IN_FLIGHT: u32 = 1024;
const WRITES_IN_FLIGHT: u32 = 32;
/// Size of sequential transfers, bytes, and their number in flight.
const SEQUENTIAL: (u64, u32) = (1 << 20, 8);

type Session = ProbeSession<Arc<AtomicBool>>;

/// The test file of a run, made on first use. The kernel frees it however the run ends.
#[derive(Default)]
pub(crate) struct TestFile(Mutex<Option<Result<Session, String>>>);

impl TestFile {
    /// Calls `measure` with the file's session and folder.
    fn with<T>(
        &self,
        subject: Subject<'_>,
        references: &References,
        measure: impl FnOnce(&mut Session, &Path) -> Result<T, String>,
    ) -> Result<T, String> {
        let dir = references.data_dir.as_deref().map_err(Clone::clone)?;
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = made.get_or_insert_with(|| make(dir, &subject.request.work, &references.interrupted));
        measure(session.as_mut().map_err(|why| why.clone())?, dir)
    }
}

/// Makes and fills a test file in `dir` as large as the data of `work`, of the same compressibility and share of duplicates.
fn make(dir: &Path, work: &Work, interrupted: &Arc<AtomicBool>) -> Result<Session, String> {
    let facts = StorageFacts::read(dir).map_err(|e| e.to_string())?;
    if facts.kind == Kind::Tmpfs {
        return Err(format!("the data in {} is in memory (tmpfs): there is no device to measure", dir.display()));
    }
    let most = facts.storage.free_bytes.unwrap_or(u64::MAX) / 4;
    let size =
        work.params.size_bytes().clamp(*FILE_BYTES.start(), *FILE_BYTES.end()).min(most).max(*FILE_BYTES.start());
    check_free_space(dir, "the reference of the device", size * 2)?;
    let options = ProbeOptions { size: Some(size), ..probe_options(work.payload) };
    let mut session = Session::open(dir, &options, Arc::clone(interrupted)).map_err(|e| e.to_string())?;
    session.fill(FILL_S, |_, _| ()).map_err(|e| e.to_string())?;
    // The best program does not sleep while its reads are in flight.
    session.poll();
    Ok(session)
}

pub(crate) fn probe_options(payload: Payload) -> ProbeOptions {
    let Payload { compressibility, duplicates } = payload;
    ProbeOptions { compressibility, dedup: duplicates.unwrap_or(0.0), ..ProbeOptions::default() }
}

/// A limit of the device: its units are bytes if it is a bandwidth, else blocks.
pub(super) struct Device(pub(super) Limit);

impl Device {
    fn is_bandwidth(&self) -> bool {
        matches!(self.0, Limit::ReadBandwidth | Limit::WriteBandwidth)
    }

    /// Size of a transfer, bytes, and number in flight.
    fn shape(&self, subject: Subject<'_>) -> Result<(u64, u32), String> {
        let (jobs, work) = (subject.request.jobs, &subject.request.work);
        let in_flight = match self.0 {
            _ if self.is_bandwidth() => return Ok(SEQUENTIAL),
            Limit::BlockReads => jobs,
            // All rows of a query, each in a block of its own.
            Limit::BatchReads => {
                jobs.saturating_mul(work.workload.volume(&work.params).map_or(1, |v| v.rows.round() as u32))
            }
            _ => WRITES_IN_FLIGHT,
        };
        Ok((block_bytes(subject)?, in_flight.clamp(1, MAX_IN_FLIGHT)))
    }
}

impl Part for Device {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        let (wanted, depth) = self.shape(subject)?;
        references.test_file.with(subject, references, |session, dir| {
            let size = if session.direct() { wanted.next_multiple_of(session.alignment()) } else { wanted };
            let (what, operation) = match self.0 {
                Limit::BlockWrites => ("random writes", Operation::SequentialWrite),
                Limit::ReadBandwidth => ("sequential reads", Operation::SequentialRead),
                Limit::WriteBandwidth => ("sequential writes", Operation::SequentialWrite),
                _ => ("random reads", Operation::RandomRead),
            };
            let mut measure = |seconds| match self.0 {
                Limit::BlockWrites => session.random_writes_per_s(size, depth, seconds),
                _ => session.measure(&Point { operation, size, depth }, seconds).map(|row| row.map(|r| r.per_s)),
            };
            let [short, long] = SAMPLES_S;
            let per_s = match measure(short) {
                Ok(None) => measure(long),
                measured => measured,
            };
            let per_s = per_s.map_err(|e| e.to_string())?;
            let of = format!(
                "{what} of {}, {depth} in flight ({}{}), of a file of {} in {}",
                bytes(size as f64),
                if session.direct() { "O_DIRECT, " } else { "through the page cache, " },
                session.engine().0.name(),
                bytes(session.file_bytes as f64),
                dir.display(),
            );
            let unit = if self.is_bandwidth() { size as f64 } else { 1.0 };
            let per_s = per_s.ok_or_else(|| "nothing completed within the measurement".to_owned())?;
            Ok(Some(Sample::new(per_s * unit, of)))
        })
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        let of = |column, unit: f64| subject.figure(column).map(|figure| figure * unit);
        // The device of the log is also that of the data.
        let shared = subject.request.disk.is_some() && subject.request.disk == subject.request.data_disk;
        let of_both = |column, unit| if shared { of(column, unit) } else { Err("on another device".to_owned()) };
        let per_s = match self.0 {
            Limit::ReadBandwidth => fewest([
                of(column::DATA_MIB_PER_S, MIB),
                of(column::READ_MIB_PER_S, MIB),
                of(column::DEVICE_READ_MIB_PER_S, MIB),
            ]),
            Limit::BlockWrites => {
                fewest([of(column::PHYSICAL_WRITTEN_BLOCKS_PER_S, 1.0), of_both(column::DEVICE_WRITES_PER_S, 1.0)])
            }
            Limit::WriteBandwidth => {
                let log = of_both(column::REDO_MIB_PER_S, MIB).unwrap_or(0.0);
                let all = of(column::PHYSICAL_WRITTEN_MIB_PER_S, MIB).map(|data| data + log);
                fewest([all, of_both(column::DEVICE_WRITE_MIB_PER_S, MIB)])
            }
            _ => fewest([
                of(column::BLOCK_READS_PER_S, 1.0),
                of(column::DEVICE_READS_PER_S, 1.0),
                of(column::DEVICE_READ_MIB_PER_S, MIB / block_bytes(subject)? as f64),
            ]),
        };
        Ok(per_s? / of(column::COMMIT_THROUGHPUT_TPS, 1.0)?)
    }
}

fn block_bytes(subject: Subject<'_>) -> Result<u64, String> {
    subject.request.target.facts().block_bytes.ok_or_else(|| "the block size of the database is unknown".to_owned())
}

/// The smallest of the known figures; if none is known, why the first is not.
fn fewest<const N: usize>(figures: [Result<f64, String>; N]) -> Result<f64, String> {
    match figures.iter().flatten().copied().reduce(f64::min) {
        Some(least) => Ok(least),
        None => figures.into_iter().next().unwrap_or_else(|| Err("no figure was given".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{figures, references, request, subject};
    use loadline_load::Request;
    use loadline_model::Column;

    fn per_tx(limit: Limit, request: &Request, known: &[(&'static Column, f64)]) -> Result<f64, String> {
        Device(limit).per_tx(Subject { figures: Some(&figures(known)), ..subject(request) })
    }

    #[test]
    fn reads_served_by_a_cache_or_read_ahead_are_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), "STO-READ", 1);
        let block_mib = request.target.facts().block_bytes.unwrap() as f64 / MIB;
        let reads = |database: f64, device: f64, device_blocks: f64| {
            let known = [
                (column::COMMIT_THROUGHPUT_TPS, 100.0),
                (column::BLOCK_READS_PER_S, database),
                (column::DEVICE_READS_PER_S, device),
                (column::DEVICE_READ_MIB_PER_S, device_blocks * block_mib),
            ];
            per_tx(Limit::BlockReads, &request, &known).unwrap()
        };
        assert_eq!(reads(200.0, 300.0, 400.0), 2.0, "the operating system read ahead");
        assert_eq!(reads(200.0, 50.0, 400.0), 0.5, "it merged reads");
        assert_eq!(reads(200.0, 100.0, 100.0), 1.0, "the page cache served half of them");
        let known = [(column::COMMIT_THROUGHPUT_TPS, 100.0), (column::BLOCK_READS_PER_S, 150.0)];
        assert_eq!(per_tx(Limit::BlockReads, &request, &known).unwrap(), 1.5, "the device is on another machine");
        let why = per_tx(Limit::BlockReads, &request, &known[..1]).unwrap_err();
        assert!(why.contains(&column::BLOCK_READS_PER_S.heading()), "{why}");
    }

    #[test]
    fn the_log_counts_where_it_shares_the_device() {
        let dir = tempfile::tempdir().unwrap();
        let mut request = request(dir.path(), "STO-WRITE", 1);
        let known = [
            (column::COMMIT_THROUGHPUT_TPS, 10.0),
            (column::PHYSICAL_WRITTEN_MIB_PER_S, 20.0),
            (column::REDO_MIB_PER_S, 30.0),
            (column::PHYSICAL_WRITTEN_BLOCKS_PER_S, 2000.0),
            (column::DEVICE_WRITES_PER_S, 500.0),
        ];
        assert_eq!(per_tx(Limit::WriteBandwidth, &request, &known).unwrap(), 5.0 * MIB);
        assert_eq!(per_tx(Limit::BlockWrites, &request, &known).unwrap(), 50.0, "writes were merged");
        request.disk = Some("vdb".to_owned());
        assert_eq!(per_tx(Limit::WriteBandwidth, &request, &known).unwrap(), 2.0 * MIB);
        assert_eq!(per_tx(Limit::BlockWrites, &request, &known).unwrap(), 200.0);
    }

    #[test]
    fn the_file_is_measured_without_a_name_in_its_folder() {
        let (dir, database) = (tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap(), tempfile::tempdir().unwrap());
        let request = request(database.path(), "STO-READ-ASYNC", 2);
        let (references, subject) = (references(Ok(dir.path().to_owned())), subject(&request));
        for (limit, words) in [
            (Limit::BlockReads, "2 in flight"),
            (Limit::BatchReads, "128 in flight"),
            (Limit::ReadBandwidth, "sequential reads of 1.0 MiB"),
            (Limit::BlockWrites, "random writes"),
            (Limit::WriteBandwidth, "sequential writes"),
        ] {
            let sample = Device(limit).sample(subject, &references).unwrap().unwrap();
            assert!(sample.per_s > 0.0 && sample.of.contains(words), "{words}: {}", sample.of);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_measured_has_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), "STO-READ", 1);
        let subject = subject(&request);
        let why = |data_dir| Device(Limit::BlockReads).sample(subject, &references(data_dir)).unwrap_err();
        assert_eq!(why(Err("the data is elsewhere".to_owned())), "the data is elsewhere");
        assert!(why(Ok(dir.path().join("gone"))).contains("gone"));
        let needed = check_free_space(dir.path(), "the file", u64::MAX).unwrap_err();
        assert!(needed.contains("the file needs") && needed.contains("are free"), "{needed}");
        let memory = Path::new("/dev/shm");
        if StorageFacts::read(memory).is_ok_and(|facts| facts.kind == Kind::Tmpfs) {
            let said = why(Ok(memory.to_owned()));
            assert!(said.contains("tmpfs") || said.contains("free space"), "{said}");
        }
    }
}
