//! The group-commit protocol under a deterministic scheduler.
//!
//! The engine's modules are compiled here again, with shuttle's locks, atomics and threads instead of the system's
//! (`mod sync`). Each test runs some thousand schedules: random ones, and PCT ones, which favour rare orders. A deadlock
//! fails the test; parks have no time limit unless the engine asks for one, so a lost wake-up is a deadlock. A failed
//! schedule is printed and can be replayed.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/config.rs"]
mod config;
#[path = "../src/engine.rs"]
mod engine;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/files.rs"]
mod files;
#[path = "../src/gather.rs"]
mod gather;
#[path = "../src/layout.rs"]
mod layout;
#[path = "../src/output.rs"]
mod output;
#[path = "../src/record.rs"]
mod record;
#[path = "../src/recover.rs"]
mod recover;
#[path = "../src/ring.rs"]
mod ring;
#[path = "../src/session.rs"]
mod session;
#[path = "../src/slot.rs"]
mod slot;
#[path = "../src/state.rs"]
mod state;
#[path = "../src/stats.rs"]
mod stats;
#[path = "../src/types.rs"]
mod types;
#[path = "../src/writer.rs"]
mod writer;

/// Shuttle's locks, atomics and threads.
mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;

    /// Time may pass or not: the clock decides.
    pub(crate) fn park_for(_ns: u64) {
        thread::yield_now();
    }

    pub(crate) fn back_off(_round: u32) {
        thread::yield_now();
    }

    pub(crate) fn switch_point() {
        thread::yield_now();
    }

    pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
        lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

mod common;

use crate as log;
use config::{Keep, LogConfig};
use error::LogError;
use loadline_logwriter::device;
use loadline_logwriter::{DeviceError, FileMaker, LogDevice};
use recover::Record;
use stats::{Stats, Trigger};
use sync::locked;
use types::{CommitMode, Lsn};
use writer::LogWriter;

use std::sync::atomic::{AtomicU64 as Count, Ordering};
use std::sync::{Arc, Mutex};

use common::{Call, Disk, Failure, Fate, Hook, MemDevice, committed, failing, payload};
use shuttle::rand::{Rng, thread_rng};

const BLOCK: usize = 512;

/// A log in memory, for one schedule.
struct World {
    disk: Arc<Mutex<Disk>>,
    writer: LogWriter,
}

/// Parameters of a test.
#[derive(Clone)]
struct Shape {
    config: LogConfig,
    file_blocks: usize,
    fault: Option<Hook>,
}

impl Shape {
    fn new() -> Self {
        let config = common::config(16, None, Keep::All);
        Self { config, file_blocks: 64, fault: None }
    }

    /// The clock advances by 1 µs at each reading. A sync takes as long as 60 readings, and lets others run.
    fn open(&self) -> World {
        let disk = Arc::new(Mutex::new(Disk::new(self.file_blocks * BLOCK)));
        let clock = Arc::new(Count::new(0));
        let (of_device, fault) = (Arc::clone(&clock), self.fault.clone());
        let before = move |call: Call| {
            shuttle::thread::yield_now();
            if call == Call::Sync {
                of_device.fetch_add(60_000, Ordering::Relaxed);
            }
            fault.as_ref().and_then(|fault| fault(call))
        };
        let device = MemDevice::hooked(&disk, BLOCK, Arc::new(before));
        let now = move || clock.fetch_add(1000, Ordering::Relaxed);
        let (writer, _) = LogWriter::open_with_clock(&self.config, Box::new(device), Box::new(now)).unwrap();
        World { disk, writer }
    }
}

/// Durable contents of the disk: all that was not synced is lost.
fn durable(disk: &Arc<Mutex<Disk>>) -> std::collections::BTreeMap<u64, Vec<u64>> {
    let left = disk.lock().unwrap().after_power_loss(|| Fate::Lost);
    let device = MemDevice::new(&Arc::new(Mutex::new(left)), BLOCK);
    committed(recover::recover(&device).unwrap().map(|record| record.unwrap()))
}

/// A job's transactions: each that was reported durable must be on the disk then. Ends at the first
/// error, which it returns with the number of commits that went well.
fn job(world: &World, number: u64, commits: u64, len: usize, mode: impl Fn(u64) -> CommitMode + Send + 'static) -> Job {
    let mut session = world.writer.session().unwrap();
    let disk = Arc::clone(&world.disk);
    shuttle::thread::spawn(move || {
        for commit in 0..commits {
            let done = session.append(&payload(number, commit, len)).and_then(|_| session.commit(mode(commit)));
            match done {
                Ok(_) if mode(commit) == CommitMode::Wait => {
                    let there = durable(&disk).remove(&number).unwrap_or_default();
                    assert!(there.contains(&commit), "job {number}: commit {commit} was reported durable and is not");
                    assert!(there.iter().copied().eq(0..there.len() as u64), "in order, without holes: {there:?}");
                }
                Ok(_) => {}
                Err(error) => return (commit, Some(error)),
            }
        }
        (commits, None)
    })
}

type Job = shuttle::thread::JoinHandle<(u64, Option<LogError>)>;

fn wait(_: u64) -> CommitMode {
    CommitMode::Wait
}

/// Runs schedules: random ones, then such with few, adversarial switches.
fn explore(schedules: usize, run: impl Fn() + Send + Sync + 'static) {
    let run = Arc::new(run);
    let config = || {
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 18;
        config
    };
    let random = Arc::clone(&run);
    shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new(schedules), config()).run(move || random());
    shuttle::Runner::new(shuttle::scheduler::PctScheduler::new(4, schedules), config()).run(move || run());
}

/// Counts of the schedules of a test, to show that they reached the case under test.
#[derive(Default)]
struct Seen {
    grouped: Count,
    gathered: Count,
    gathered_short: Count,
    full: Count,
    failed: Count,
    put_off: Count,
}

impl Seen {
    fn note(&self, stats: &Stats) {
        self.grouped.fetch_add(stats.group_sizes[2..].iter().sum(), Ordering::Relaxed);
        self.gathered.fetch_add(stats.gathers, Ordering::Relaxed);
        self.gathered_short.fetch_add(stats.gathers_short, Ordering::Relaxed);
        self.put_off.fetch_add(stats.groups.saturating_sub(stats.syncs), Ordering::Relaxed);
        self.full.fetch_add(stats.buffer_full_waits, Ordering::Relaxed);
    }
}

fn met(count: &Count) -> bool {
    count.load(Ordering::Relaxed) > 0
}

#[test]
fn nobody_is_forgotten_and_nothing_is_reported_before_it_is_durable() {
    let seen = Arc::new(Seen::default());
    let noted = Arc::clone(&seen);
    explore(1000, move || {
        let world = Shape::new().open();
        let jobs: Vec<Job> = (0..3).map(|number| job(&world, number, 4, 100, wait)).collect();
        jobs.into_iter().for_each(|job| assert!(job.join().unwrap().1.is_none()));
        let stats = world.writer.close().unwrap();
        assert_eq!((stats.commits, stats.commits_waited, stats.grouped_commits), (12, 12, 12));
        noted.note(&stats);
    });
    assert!(met(&seen.grouped) && met(&seen.gathered) && met(&seen.gathered_short), "every path was taken");
}

#[test]
fn a_full_buffer_and_short_files_hold_nobody_up_for_ever() {
    let seen = Arc::new(Seen::default());
    let noted = Arc::clone(&seen);
    explore(500, move || {
        let mut shape = Shape::new();
        shape.config.buffer_bytes = 4 * BLOCK;
        shape.config.at_bytes = Some(1000);
        shape.file_blocks = 6;
        let world = shape.open();
        let jobs: Vec<Job> = [(0, 900), (1, 300), (2, 16)]
            .map(|(number, len)| {
                job(&world, number, 4, len, |commit| if commit == 3 { CommitMode::Wait } else { CommitMode::Nowait })
            })
            .into();
        jobs.into_iter().for_each(|job| assert!(job.join().unwrap().1.is_none()));
        let disk = Arc::clone(&world.disk);
        let stats = world.writer.close().unwrap();
        assert_eq!(stats.buffer_full_waits > 0, stats.buffer_full_ns > 0);
        assert!(stats.fill_sum_bytes <= stats.groups * 4 * BLOCK as u64, "{stats:?}");
        noted.note(&stats);
        let there = durable(&disk);
        assert!((0..3).all(|job| there[&job] == [0, 1, 2, 3]), "{there:?}");
    });
    assert!(met(&seen.full), "the buffer was full at times");
}

#[test]
fn a_sync_that_is_put_off_is_made_up_for_before_anything_is_reported() {
    let seen = Arc::new(Seen::default());
    let noted = Arc::clone(&seen);
    explore(500, move || {
        let mut shape = Shape::new();
        shape.config.at_bytes = Some(1);
        let world = shape.open();
        let jobs: Vec<_> = (0..2)
            .map(|number| {
                let (mut session, disk) = (world.writer.session().unwrap(), Arc::clone(&world.disk));
                shuttle::thread::spawn(move || {
                    for commit in 0..5 {
                        session.append(&payload(number, commit, 16)).unwrap();
                        session.commit(CommitMode::Nowait).unwrap();
                    }
                    // All of it may be written already, and not synced.
                    session.flush().unwrap();
                    assert_eq!(durable(&disk)[&number], [0, 1, 2, 3, 4]);
                })
            })
            .collect();
        jobs.into_iter().for_each(|job| job.join().unwrap());
        noted.note(&world.writer.close().unwrap());
    });
    assert!(met(&seen.put_off));
}

#[test]
fn a_failure_reaches_all_and_nothing_is_reported_durable_after_it() {
    let seen = Arc::new(Seen::default());
    let noted = Arc::clone(&seen);
    explore(700, move || {
        let mut shape = Shape::new();
        let call = if thread_rng().gen_bool(0.5) { Call::Write { address: 0 } } else { Call::Sync };
        // The first of each is the opening's; so is the second write (the first is a file header).
        let at = thread_rng().gen_range(2..8);
        shape.fault = Some(failing(call, at, Failure::Errno(libc::EIO)));
        let full = thread_rng().gen_bool(0.5);
        if full {
            shape.config.buffer_bytes = 4 * BLOCK;
        }
        let mode = move |commit| if full && commit % 2 == 0 { CommitMode::Nowait } else { CommitMode::Wait };
        let world = shape.open();
        let len = if full { 900 } else { 100 };
        let jobs: Vec<Job> = (0..3).map(|number| job(&world, number, 4, len, mode)).collect();
        let ends: Vec<_> = jobs.into_iter().map(|job| job.join().unwrap()).collect();
        if let Some((_, Some(error))) = ends.iter().find(|end| end.1.is_some()) {
            assert!(matches!(error, LogError::Stopped(_)), "{error}");
            noted.failed.fetch_add(1, Ordering::Relaxed);
            let mut late = world.writer.session().unwrap();
            assert!(matches!(late.append(b"late"), Err(LogError::Stopped(_))));
            assert!(matches!(late.commit(CommitMode::Nowait), Err(LogError::Stopped(_))));
            assert!(matches!(late.flush(), Err(LogError::Stopped(_))));
            assert!(matches!(world.writer.close(), Err(LogError::Stopped(_))));
        }
    });
    assert!(met(&seen.failed));
}

#[test]
fn a_close_leaves_nobody_waiting() {
    let seen = Arc::new(Seen::default());
    let noted = Arc::clone(&seen);
    explore(700, move || {
        let world = Shape::new().open();
        let jobs: Vec<Job> = (0..2).map(|number| job(&world, number, 4, 100, wait)).collect();
        world.writer.close().unwrap();
        for job in jobs {
            if let (_, Some(error)) = job.join().unwrap() {
                assert!(matches!(error, LogError::Closed), "{error}");
                noted.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert!(met(&seen.failed));
}

#[test]
fn the_clock_writes_what_nobody_waits_for() {
    explore(200, || {
        let mut shape = Shape::new();
        shape.config.every = Some(std::time::Duration::from_millis(1));
        let world = shape.open();
        let jobs: Vec<Job> = (0..2).map(|number| job(&world, number, 2, 100, |_| CommitMode::Nowait)).collect();
        jobs.into_iter().for_each(|job| assert!(job.join().unwrap().1.is_none()));
        while world.writer.stats().triggers[Trigger::Timer as usize] == 0 {
            shuttle::thread::yield_now();
        }
        world.writer.close().unwrap();
    });
}
