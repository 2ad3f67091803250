//! The engine on each device: jobs commit, something fails during the run, the power is cut. Every acknowledged commit
//! is read back, and nothing that was never written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::testing::Disk;
use super::*;
use crate::{Body, CommitMode, Keep, LogConfig, LogWriter, log_end, recover};

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

    fn total(&self) -> u64 {
        self.next.iter().map(|next| next.load(Ordering::SeqCst)).sum()
    }
}

struct Site {
    _root: tempfile::TempDir,
    dirs: Vec<PathBuf>,
    disks: Vec<Disk>,
}

impl Site {
    fn new(members: usize) -> Site {
        let root = tempfile::tempdir().unwrap();
        let dirs: Vec<_> = (0..members).map(|i| root.path().join(i.to_string())).collect();
        dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
        Site { _root: root, dirs, disks: (0..members).map(|_| Disk::new(512, 64 << 10)).collect() }
    }

    fn member(&self, i: usize) -> Member {
        Member::new(&self.dirs[i], Ok(self.disks[i].device()))
    }

    fn mirror(&self, options: MirrorOptions) -> Replicas {
        open_mirror((0..self.disks.len()).map(|i| self.member(i)).collect(), options, &log_end).unwrap()
    }

    fn flash(&self) -> Replicas {
        open_flash_log([self.member(0), self.member(1)], FlashOptions::default(), &log_end).unwrap()
    }

    /// What a power cut at this moment would leave, and the commits acknowledged before it.
    fn crash(&self, acked: &Acked) -> (Site, Acked) {
        thread::sleep(Duration::from_millis(5));
        let acked = acked.now();
        let copy = Site::new(self.disks.len());
        for (from, to) in self.dirs.iter().zip(&copy.dirs) {
            std::fs::copy(from.join("replica.label"), to.join("replica.label")).unwrap();
        }
        (Site { disks: self.disks.iter().map(Disk::snapshot).collect(), ..copy }, acked)
    }

    fn power_cut(&self) {
        self.disks.iter().for_each(Disk::power_cut);
    }
}

type Fault = fn(&Disk);

const FAULTS: [(&str, Fault); 4] = [
    ("EIO on write", |disk| disk.fail_writes_after(0)),
    ("EIO on sync", |disk| disk.fail_syncs_after(2)),
    ("slow", |disk| disk.slow_down(Duration::from_millis(3))),
    ("nothing", |_| {}),
];

#[test]
fn every_mirrored_log_reads_back_what_was_acknowledged_after_each_fault() {
    let all = MirrorOptions::default();
    let kinds = [
        ("all", 2, all),
        ("all, degrading", 3, MirrorOptions { degrade: true, ..all }),
        ("quorum", 3, MirrorOptions { durable: Durable::Quorum(2), ..all }),
    ];
    for (kind, members, options) in kinds {
        for (what, fault) in FAULTS {
            let site = Site::new(members);
            let acked = Acked::default();
            for round in 0..3 {
                let label = format!("{kind}, {what}, round {round}");
                let victim = &site.disks[round % members];
                let mut crash = None;
                acked.run(Box::new(site.mirror(options)), 60, || {
                    fault(victim);
                    crash = Some(site.crash(&acked));
                });
                let (then, told_then) = crash.unwrap();
                told_then.check(&then.mirror(options), &format!("{label}, in mid-run"));
                site.power_cut();
                acked.check(&site.mirror(options), &label);
            }
            assert!(acked.total() > 300, "{kind}, {what}: {}", acked.total());
        }
    }
}

#[test]
fn a_flash_log_reads_back_what_was_acknowledged_after_each_fault() {
    for (what, fault) in FAULTS {
        let site = Site::new(2);
        let acked = Acked::default();
        for round in 0..3 {
            let mut crash = None;
            acked.run(Box::new(site.flash()), 60, || {
                fault(&site.disks[round % 2]);
                crash = Some(site.crash(&acked));
            });
            let (then, told_then) = crash.unwrap();
            told_then.check(&then.flash(), &format!("{what}, round {round}, in mid-run"));
            site.power_cut();
            acked.check(&site.flash(), &format!("{what}, round {round}"));
        }
        assert_eq!(acked.total(), 3 * 60 * JOBS, "{what}: one device is enough to continue");
    }
}

#[test]
fn a_log_with_a_standby_reads_back_what_was_acknowledged_after_each_fault() {
    for rule in [StandbyRule::Received, StandbyRule::Written, StandbyRule::Both] {
        let options = StandbyOptions { rule, degrade: true, ..StandbyOptions::default() };
        for what in ["local EIO", "standby EIO", "standby killed", "standby slow"] {
            let site = Site::new(2);
            let receive =
                || Receiver::start(site.disks[1].device(), &site.dirs[1], &ReceiverOptions::default()).unwrap();
            let open =
                |receiver: &Receiver| open_standby(site.member(0), receiver.address(), options, &log_end).unwrap().0;
            let acked = Acked::default();
            for round in 0..2 {
                let receiver = receive();
                let device = Box::new(open(&receiver));
                let mut receiver = Some(receiver);
                acked.run(device, 60, || match what {
                    "local EIO" => site.disks[0].fail_syncs_after(0),
                    "standby EIO" => site.disks[1].fail_writes_after(0),
                    "standby killed" => receiver = None,
                    _ => site.disks[1].slow_down(Duration::from_millis(3)),
                });
                drop(receiver);
                site.power_cut();
                let receiver = receive();
                acked.check(&open(&receiver), &format!("{rule:?}, {what}, round {round}"));
            }
            assert_eq!(acked.total(), 2 * 60 * JOBS, "{rule:?}, {what}: it continues with what is left");
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
