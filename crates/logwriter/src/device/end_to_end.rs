//! The engine on replica sets: jobs commit, something fails during the run, the power is cut. Every acknowledged commit
//! is read back, and nothing that was never written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::testing::Disk;
use super::testing::common::{committed, payload};
use super::*;
use crate::{CommitMode, Keep, LogConfig, LogWriter, recover};

const JOBS: u64 = 4;
const EACH: u64 = 60;

/// Acknowledged commits of each job.
#[derive(Default)]
struct Acked([AtomicU64; JOBS as usize]);

impl Acked {
    /// Every job commits `EACH` times, or until the log stops. In the middle, `fault` strikes.
    fn run(&self, device: Replicas, fault: impl FnOnce() + Send) {
        let config = LogConfig { buffer_bytes: 64 << 10, keep: Keep::All, ..LogConfig::default() };
        let (writer, _) = LogWriter::open(&config, Box::new(device)).unwrap();
        let begun = AtomicU64::new(0);
        thread::scope(|scope| {
            for (job, acked) in self.0.iter().enumerate() {
                let (writer, begun) = (&writer, &begun);
                scope.spawn(move || {
                    let mut session = writer.session().unwrap();
                    for number in 0..EACH {
                        begun.fetch_add(1, Ordering::SeqCst);
                        let bytes = payload(job as u64, number, 40 + usize::try_from(number * 37 % 900).unwrap());
                        // The log may stop; what was acknowledged before counts.
                        if session.append(&bytes).is_err() || session.commit(CommitMode::Wait).is_err() {
                            return;
                        }
                        acked.store(number + 1, Ordering::SeqCst);
                    }
                });
            }
            while begun.load(Ordering::SeqCst) < JOBS * EACH / 2 {
                thread::yield_now();
            }
            fault();
        });
        drop(writer);
    }

    /// Checks that after a power cut now, `least` of the disks have everything acknowledged.
    fn check_copies(&self, disks: &[Disk], least: usize, label: &str) {
        let acked: Vec<u64> = self.0.iter().map(|acked| acked.load(Ordering::SeqCst)).collect();
        let has = |disk: &&Disk| {
            let left = disk.snapshot().device();
            let found = committed(recover(left.as_ref()).unwrap().map(|record| record.unwrap()));
            (0..JOBS).zip(&acked).all(|(job, acked)| {
                let numbers = found.get(&job).map_or(&[][..], Vec::as_slice);
                assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{label}, job {job}: {numbers:?}");
                numbers.len() as u64 >= *acked
            })
        };
        let have = disks.iter().filter(has).count();
        assert!(have >= least, "{label}: acknowledged {acked:?}, {have} copies have all, not {least}");
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|acked| acked.load(Ordering::SeqCst)).sum()
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
fn every_set_keeps_what_was_acknowledged_after_each_fault() {
    // How many members there are, and how many have everything acknowledged.
    for (rule, members, least) in [(Rule::All, 2, 2), (Rule::Quorum(2), 3, 2), (Rule::Quorum(1), 2, 1)] {
        for (what, fault) in FAULTS {
            for round in 0..3 {
                let label = format!("{rule:?}, {what}, round {round}");
                let (disks, acked) = (disks(members), Acked::default());
                let set = Replicas::open("mirror", rule, disks.iter().map(member).collect()).unwrap();
                acked.run(set, || {
                    fault(&disks[round % members]);
                    thread::sleep(Duration::from_millis(5));
                    acked.check_copies(&disks, least, &format!("{label}, in mid-run"));
                });
                acked.check_copies(&disks, least, &label);
                let total = acked.total();
                assert!(total > 100 && (least == members || total == EACH * JOBS), "{label}: {total}");
            }
        }
    }
}

#[test]
fn a_log_with_a_standby_keeps_what_was_acknowledged_after_each_fault() {
    for rule in [Rule::Received, Rule::Written, Rule::Both] {
        for what in ["local EIO", "standby EIO", "standby killed", "standby slow"] {
            let label = format!("{rule:?}, {what}");
            let (disks, acked) = (disks(2), Acked::default());
            let (local, ends, timeout) = (member(&disks[0]), over_tcp().unwrap(), Duration::from_secs(10));
            let (set, standby) = open_standby(local, disks[1].device(), ends, rule, timeout).unwrap();
            let mut standby = Some(standby);
            acked.run(set, || match what {
                "local EIO" => disks[0].fail_syncs_after(0),
                "standby EIO" => disks[1].fail_writes_after(0),
                "standby killed" => standby = None,
                _ => disks[1].slow_down(Duration::from_millis(3)),
            });
            drop(standby);
            let least = if rule == Rule::Both { 2 } else { 1 };
            acked.check_copies(&disks, least, &label);
            if what == "standby slow" || (what == "local EIO" && rule != Rule::Both) {
                assert_eq!(acked.total(), EACH * JOBS, "{label}: it continues with what is left");
            }
        }
    }
}
