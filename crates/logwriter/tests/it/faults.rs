//! A device that fails in any of its calls: nothing reported durable is lost, nothing is reported durable after the
//! failure, and the log can be opened again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::{Call, Disk, Failure, Fate, MemDevice, committed, failing, payload};
use crate::log::{CommitMode, DeviceError, Keep, LogConfig, LogError, LogWriter, RecoverError, recover};

const BLOCK: usize = 512;
const JOBS: u64 = 3;

fn config() -> LogConfig {
    LogConfig {
        buffer_bytes: 16 * BLOCK,
        at_bytes: Some(2000),
        buffer_fraction: None,
        every: None,
        keep: Keep::All,
        ..LogConfig::default()
    }
}

fn device(disk: &Arc<Mutex<Disk>>) -> Box<MemDevice> {
    Box::new(MemDevice::new(disk, BLOCK))
}

/// A device on which one call fails.
fn failing_device(disk: &Arc<Mutex<Disk>>, call: Call, at: usize, failure: Failure) -> Box<MemDevice> {
    Box::new(MemDevice::hooked(disk, BLOCK, failing(call, at, failure)))
}

const CALLS: [Call; 4] = [Call::Open { file: 0 }, Call::Write { address: 0 }, Call::Sync, Call::Make];

/// Contents read back from a disk.
fn there(disk: &Arc<Mutex<Disk>>) -> BTreeMap<u64, Vec<u64>> {
    committed(recover(device(disk).as_ref()).unwrap().map(|record| record.unwrap()))
}

/// Jobs commit until all get an error. Returns the acknowledged commits of each, and the errors.
fn run(writer: &LogWriter, first_job: u64) -> Vec<(u64, Option<u64>, LogError)> {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (first_job..first_job + JOBS)
            .map(|job| {
                let mut session = writer.session().unwrap();
                scope.spawn(move || {
                    let mut durable = None;
                    for number in 0..400 {
                        let mode = if number % 4 == 3 { CommitMode::Nowait } else { CommitMode::Wait };
                        let done = session.append(&payload(job, number, 300)).and_then(|_| session.commit(mode));
                        match (done, mode) {
                            (Ok(_), CommitMode::Wait) => durable = Some(number),
                            (Ok(_), CommitMode::Nowait) => {}
                            (Err(error), _) => {
                                let again = session.append(b"x").and_then(|_| session.commit(CommitMode::Wait));
                                assert!(again.is_err(), "nothing is reported durable after a failure");
                                return (job, durable, error);
                            }
                        }
                    }
                    panic!("job {job} met no failure");
                })
            })
            .collect();
        jobs.into_iter().map(|job| job.join().unwrap()).collect()
    })
}

fn holds(found: &BTreeMap<u64, Vec<u64>>, ends: &[(u64, Option<u64>, LogError)], case: &str) {
    let none = Vec::new();
    for (job, durable, _) in ends {
        let numbers = found.get(job).unwrap_or(&none);
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{case}, job {job}: {numbers:?}");
        if let Some(durable) = durable {
            assert!(numbers.last() >= Some(durable), "{case}, job {job}: {durable} was durable, there is {numbers:?}");
        }
    }
}

#[test]
fn a_failure_in_any_call_is_reported_and_loses_nothing_durable() {
    let failures = [
        Failure::Errno(libc::EIO),
        Failure::ErrnoAfter(libc::EIO),
        Failure::Errno(libc::ENOSPC),
        Failure::ShortBlocks(1),
    ];
    for call in CALLS {
        // The first calls are the opening's own; see the next test.
        for at in [2, 3, 4, 5, 9, 14] {
            for failure in failures {
                let case = format!("{call:?} {at} {failure:?}");
                let disk = Arc::new(Mutex::new(Disk::new(16 * BLOCK)));
                let (writer, _) = LogWriter::open(&config(), failing_device(&disk, call, at, failure)).unwrap();
                let ends = run(&writer, 0);
                for (_, _, error) in &ends {
                    assert!(matches!(error, LogError::Stopped(_)), "{case}: {error}");
                    assert!(error.to_string().contains("until it is opened again"), "{error}");
                }
                let close = writer.close();
                assert!(matches!(close, Err(LogError::Stopped(_))), "{case}: {close:?}");

                // The power cut takes everything unsynced, or nothing.
                for fate in [Fate::Lost, Fate::Kept] {
                    let left = Arc::new(Mutex::new(disk.lock().unwrap().after_power_loss(|| fate)));
                    let found = there(&left);
                    holds(&found, &ends, &case);
                    // The log is opened again and runs until a second failure.
                    let again = failing_device(&left, Call::Sync, 12, Failure::Errno(libc::EIO));
                    let (writer, recovered) = LogWriter::open(&config(), again).unwrap();
                    assert_eq!(recovered.epoch, 1);
                    let more = run(&writer, 100);
                    drop(writer);
                    let left = left.lock().unwrap().after_power_loss(|| Fate::Lost);
                    holds(&there(&Arc::new(Mutex::new(left))), &more, &case);
                }
            }
        }
    }
}

#[test]
fn a_failure_while_the_log_is_opened_is_that_of_the_opening() {
    let fresh = || Arc::new(Mutex::new(Disk::new(16 * BLOCK)));
    for call in CALLS {
        let device = failing_device(&fresh(), call, 0, Failure::Errno(libc::ENOSPC));
        let error = LogWriter::open(&config(), device).err();
        let error = error.unwrap_or_else(|| panic!("{call:?}"));
        assert!(matches!(&error, LogError::Stopped(cause) if matches!(**cause, DeviceError::Io { .. })), "{error}");
    }
    let disk = fresh();
    drop(LogWriter::open(&config(), device(&disk)).unwrap());
    let error = LogWriter::open(&config(), failing_device(&disk, Call::Read, 0, Failure::Errno(libc::EIO))).err();
    assert!(matches!(error, Some(LogError::Recover(RecoverError::Device(_)))), "{error:?}");
}
