//! The engine on each device: jobs commit, something fails during the run, the power is cut. Every acknowledged commit
//! is read back, and nothing that was never written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::testing::Disk;
use super::*;
use crate::{Body, CommitMode, Keep, LogConfig, LogWriter, recover};

const JOBS: u64 = 4;

fn config() -> LogConfig {
    LogConfig { buffer_bytes: 64 << 10, keep: Keep::All, ..LogConfig::default() }
}

fn payload(job: u64, number: u64) -> Vec<u8> {
    let length = 40 + usize::try_from(number * 37 % 900).unwrap();
    let mut bytes = vec![u8::try_from((job * 31 + number) % 251).unwrap(); length];
    bytes[..8].copy_from_slice(&job.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Committed numbers by job. Panics on a record that nobody wrote.
fn committed(device: &dyn LogDevice) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut open: BTreeMap<(u32, u32), Vec<(u64, u64)>> = BTreeMap::new();
    let mut done: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for record in recover(device).unwrap() {
        let record = record.unwrap();
        let session = (record.epoch, record.session);
        match record.body {
            Body::Redo(bytes) => {
                let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
                assert_eq!(bytes, payload(word(0), word(8)), "only what was written is read back");
                open.entry(session).or_default().push((word(0), word(8)));
            }
            Body::Commit => {
                for (job, number) in open.remove(&session).unwrap_or_default() {
                    assert!(done.entry(job).or_default().insert(number), "{job} {number} was committed once");
                }
            }
        }
    }
    done
}

/// Acknowledged commits: each job's numbers are 0 up to this one.
#[derive(Default)]
struct Acked {
    next: [AtomicU64; JOBS as usize],
}

impl Acked {
    /// Every job commits `each` times, or until the log stops. In the middle, `fault` strikes.
    fn run(&self, device: Box<dyn LogDevice>, each: u64, fault: impl FnOnce() + Send) {
        let (writer, _) = LogWriter::open(&config(), device).unwrap();
        let half = AtomicU64::new(0);
        thread::scope(|scope| {
            for job in 0..JOBS {
                let (writer, half) = (&writer, &half);
                scope.spawn(move || {
                    let mut session = writer.session().unwrap();
                    let begin = self.next[usize::try_from(job).unwrap()].load(Ordering::SeqCst);
                    for number in begin..begin + each {
                        half.fetch_add(1, Ordering::SeqCst);
                        // The log may stop; what was acknowledged before counts.
                        if session.append(&payload(job, number)).is_err() || session.commit(CommitMode::Wait).is_err() {
                            return;
                        }
                        self.next[usize::try_from(job).unwrap()].store(number + 1, Ordering::SeqCst);
                    }
                });
            }
            while half.load(Ordering::SeqCst) < JOBS * each / 2 {
                thread::yield_now();
            }
            fault();
        });
        drop(writer);
    }

    /// Checks that everything is there, and continues at the end of the log.
    fn check(&self, device: &dyn LogDevice, label: &str) {
        let found = committed(device);
        for (job, acked) in self.next.iter().enumerate() {
            let found = found.get(&(job as u64)).map_or(0, |numbers| numbers.len() as u64);
            let acked = acked.swap(found, Ordering::SeqCst);
            assert!(found >= acked, "{label}: job {job} got {acked} acknowledgements and {found} are there");
        }
    }

    /// Commits acknowledged so far.
    fn now(&self) -> Acked {
        let next = std::array::from_fn(|job| AtomicU64::new(self.next[job].load(Ordering::SeqCst)));
        Acked { next }
    }

    /// Checks that after a power cut now, `least` of the disks have everything acknowledged.
    fn check_copies(&self, disks: &[Disk], least: usize, label: &str) {
        let acked = self.now();
        let has = |disk: &&Disk| {
            let found = committed(disk.snapshot().device().as_ref());
            let numbers = |job: usize| found.get(&(job as u64)).map_or(0, |numbers| numbers.len() as u64);
            acked.next.iter().enumerate().all(|(job, acked)| numbers(job) >= acked.load(Ordering::SeqCst))
        };
        let have = disks.iter().filter(has).count();
        assert!(have >= least, "{label}: {} acknowledgements, {have} copies have all, not {least}", acked.total());
    }

    fn total(&self) -> u64 {
        self.next.iter().map(|next| next.load(Ordering::SeqCst)).sum()
    }
}

fn disks(members: usize) -> Vec<Disk> {
    (0..members).map(|_| Disk::new(512, 64 << 10)).collect()
}

fn member(disk: &Disk) -> Member {
    Member { name: "a disk".to_owned(), device: disk.device(), storage: None }
}

type Fault = fn(&Disk);

const FAULTS: [(&str, Fault); 4] = [
    ("EIO on write", |disk| disk.fail_writes_after(0)),
    ("EIO on sync", |disk| disk.fail_syncs_after(2)),
    ("slow", |disk| disk.slow_down(Duration::from_millis(3))),
    ("nothing", |_| {}),
];

#[test]
fn every_mirrored_log_keeps_what_was_acknowledged_after_each_fault() {
    for (durable, members, least) in [(Durable::All, 2, 2), (Durable::Quorum(2), 3, 2)] {
        for (what, fault) in FAULTS {
            for round in 0..3 {
                let label = format!("{durable:?}, {what}, round {round}");
                let (disks, acked) = (disks(members), Acked::default());
                let mirror = open_mirror(disks.iter().map(member).collect(), durable).unwrap();
                acked.run(Box::new(mirror), 60, || {
                    fault(&disks[round % members]);
                    thread::sleep(Duration::from_millis(5));
                    acked.check_copies(&disks, least, &format!("{label}, in mid-run"));
                });
                acked.check_copies(&disks, least, &label);
                assert!(acked.total() > 100, "{label}: {}", acked.total());
            }
        }
    }
}

#[test]
fn a_flash_log_keeps_what_was_acknowledged_after_each_fault() {
    for (what, fault) in FAULTS {
        for round in 0..3 {
            let label = format!("{what}, round {round}");
            let (disks, acked) = (disks(2), Acked::default());
            let flash = open_flash_log([member(&disks[0]), member(&disks[1])]).unwrap();
            acked.run(Box::new(flash), 60, || {
                fault(&disks[round % 2]);
                thread::sleep(Duration::from_millis(5));
                acked.check_copies(&disks, 1, &format!("{label}, in mid-run"));
            });
            acked.check_copies(&disks, 1, &label);
            assert_eq!(acked.total(), 60 * JOBS, "{label}: one device is enough to continue");
        }
    }
}

#[test]
fn a_log_with_a_standby_keeps_what_was_acknowledged_after_each_fault() {
    for rule in [StandbyRule::Received, StandbyRule::Written, StandbyRule::Both] {
        for what in ["local EIO", "standby EIO", "standby killed", "standby slow"] {
            let label = format!("{rule:?}, {what}");
            let (disks, acked) = (disks(2), Acked::default());
            let receiver = Receiver::start(disks[1].device(), None).unwrap();
            let timeout = Duration::from_secs(10);
            let (set, _) = open_standby(member(&disks[0]), receiver.address(), rule, timeout).unwrap();
            let mut receiver = Some(receiver);
            acked.run(Box::new(set), 60, || match what {
                "local EIO" => disks[0].fail_syncs_after(0),
                "standby EIO" => disks[1].fail_writes_after(0),
                "standby killed" => receiver = None,
                _ => disks[1].slow_down(Duration::from_millis(3)),
            });
            drop(receiver);
            let least = if rule == StandbyRule::Both { 2 } else { 1 };
            acked.check_copies(&disks, least, &label);
            if what == "standby slow" || (what == "local EIO" && rule != StandbyRule::Both) {
                assert_eq!(acked.total(), 60 * JOBS, "{label}: it continues with what is left");
            }
        }
    }
}

#[test]
fn each_plain_device_reads_back_what_was_acknowledged() {
    let disk = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file_bytes = 1 << 20;
    let direct = |sync, via| {
        let options = DirectOptions { file_bytes, sync, via, ..DirectOptions::default() };
        Box::new(DirectDevice::open(disk.path(), options).unwrap()) as Box<dyn LogDevice>
    };
    // One log, written by one device after the other: they share their files.
    let acked = Acked::default();
    for (sync, via) in [
        (DirectSync::Dsync, Via::Auto),
        (DirectSync::Fdatasync, Via::Auto),
        (DirectSync::Dsync, Via::SystemCalls),
        (DirectSync::Fdatasync, Via::SystemCalls),
    ] {
        acked.run(direct(sync, via), 50, || {});
        acked.check(direct(sync, via).as_ref(), &format!("{sync:?} {via:?}"));
    }
    let block_bytes = direct(DirectSync::Dsync, Via::Auto).block_bytes();
    let config = file::FileConfig { file_bytes, block_bytes, ..file::FileConfig::default() };
    acked.check(&file::FileDevice::open(disk.path(), &config).unwrap(), "as files");
    assert_eq!(acked.total(), 4 * 50 * JOBS);
    if cfg!(target_arch = "x86_64") {
        let acked = Acked::default();
        let mapped = || PmemDevice::open(memory.path(), PmemOptions { file_bytes, block_bytes: 512 }).unwrap();
        for round in 1..3 {
            acked.run(Box::new(mapped()), 400, || {});
            acked.check(&mapped(), "mapped");
            assert_eq!(acked.total(), round * 400 * JOBS);
        }
    }
}
