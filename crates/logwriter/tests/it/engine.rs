//! The log as its users see it: figures, rules, switched and recycled files, errors.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{Call, Disk, MemDevice, committed, payload};
use crate::log;
use crate::log::device::file::{FileConfig, FileDevice, FileSync};
use crate::log::{CommitMode, Keep, LogConfig, LogDevice, LogError, LogWriter, RecoverError, Stats, Trigger, recover};

const BLOCK: usize = 512;

/// No rule but the commit that waits.
fn plain() -> LogConfig {
    LogConfig { at_bytes: None, buffer_fraction: None, every: None, buffer_bytes: 64 * BLOCK, ..LogConfig::default() }
}

fn memory(file_blocks: usize) -> Arc<Mutex<Disk>> {
    Arc::new(Mutex::new(Disk::new(file_blocks * BLOCK)))
}

fn open(config: &LogConfig, disk: &Arc<Mutex<Disk>>) -> LogWriter {
    LogWriter::open(config, Box::new(MemDevice::new(disk, BLOCK))).unwrap().0
}

fn triggered(stats: &Stats, by: Trigger) -> u64 {
    stats.triggers[Trigger::ALL.iter().position(|trigger| *trigger == by).unwrap()]
}

/// Waits for something that another thread does, with a generous time limit.
fn until(what: &str, mut met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn figures_of_one_job_add_up() {
    let writer = open(&plain(), &memory(1024));
    let opened = writer.stats();
    assert_eq!((opened.groups, opened.commits, triggered(&opened, Trigger::Flush)), (1, 0, 1));
    let mut session = writer.session().unwrap();
    for number in 0..50 {
        session.append(&payload(1, number, 400)).unwrap();
        session.append(&payload(1, number, 200)).unwrap();
        session.commit(CommitMode::Wait).unwrap();
    }
    session.append(&payload(1, 50, 16)).unwrap();
    session.commit(CommitMode::Nowait).unwrap();
    let stats = writer.stats();
    assert_eq!((stats.commits, stats.commits_waited, stats.grouped_commits), (51, 50, 50));
    assert_eq!((stats.records, stats.redo_bytes), (101, 50 * 600 + 16));
    assert_eq!(stats.record_bytes, 50 * (448 + 256 + 32) + 64 + 32, "commits have a header each");
    // The buffer is written empty: a group has what its commit brought.
    assert_eq!(stats.fill_sum_bytes, stats.log_bytes);
    assert_eq!((stats.groups, stats.syncs, stats.group_sizes[1]), (51, 51, 50));
    // 448 + 256 (a header each, up to a multiple of 32) + 32 for the commit: two blocks.
    assert_eq!(stats.log_bytes, (50 * 2 + 1) * BLOCK as u64);
    assert_eq!(triggered(&stats, Trigger::Commit), 50);
    assert_eq!(stats.blocks, 50 * 2 + 1 + 1, "and the file's header");
    assert_eq!(writer.close().unwrap().grouped_commits, 51);
    assert!(matches!(session.append(b"closed"), Err(LogError::Closed)));
    assert!(matches!(session.commit(CommitMode::Wait), Err(LogError::Closed)));
    assert!(matches!(session.flush(), Err(LogError::Closed)));
}

#[test]
fn times_are_those_of_the_device_and_the_parts_of_a_commit_are_its_whole() {
    const WRITE: u64 = 10_000;
    const OPEN: u64 = 100_000;
    const SYNC: u64 = 10_000_000;
    let clock = Arc::new(AtomicU64::new(0));
    let opened = |config: &LogConfig| {
        let (of_device, of_log) = (Arc::clone(&clock), Arc::clone(&clock));
        let takes = move |call: Call| {
            let ns = match call {
                Call::Write { .. } => WRITE,
                Call::Open { .. } => OPEN,
                Call::Sync => SYNC,
                Call::Make | Call::Read => 0,
            };
            of_device.fetch_add(ns, Ordering::Relaxed);
            None
        };
        let device = MemDevice::hooked(&memory(16), BLOCK, Arc::new(takes));
        let now = move || of_log.fetch_add(1, Ordering::Relaxed);
        LogWriter::open_with_clock(config, Box::new(device), Box::new(now)).unwrap().0
    };
    let adds_up = |stats: Stats| {
        assert_eq!(stats.device_sync_ns / SYNC, stats.syncs, "{stats:?}");
        // A file's header is a part of the switch to it.
        assert_eq!(stats.device_write_ns / WRITE, stats.writes - stats.switches, "{stats:?}");
        assert_eq!(stats.switch_ns / (OPEN + WRITE), stats.switches, "{stats:?}");
    };
    let writer = opened(&plain());
    let mut session = writer.session().unwrap();
    let mut sums = [0; 5];
    for number in 0..40 {
        let begun = clock.load(Ordering::Relaxed);
        session.append(&payload(1, number, 400)).unwrap();
        let switches = writer.stats().switches;
        let times = session.commit(CommitMode::Wait).unwrap();
        let switched = writer.stats().switches - switches;
        assert_eq!([times.wait_ns / OPEN, times.write_ns / WRITE, times.sync_ns / SYNC], [switched, 1, 1], "{times:?}");
        assert!((1..WRITE).contains(&times.copy_ns) && (1..WRITE).contains(&times.wake_ns), "{times:?}");
        let parts = [times.wait_ns, times.copy_ns, times.write_ns, times.sync_ns, times.wake_ns];
        // But for a reading each of the append and the commit.
        assert_eq!(parts.iter().sum::<u64>() + 2, clock.load(Ordering::Relaxed) - begun, "{times:?}");
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    let stats = writer.stats();
    let all = stats.commit;
    assert_eq!([all.wait_ns, all.copy_ns, all.write_ns, all.sync_ns, all.wake_ns], sums);
    // Half as much again as the buffer has, at once: what waits for space copies nothing meanwhile.
    for number in 0..24 {
        session.append(&payload(2, number, 1992)).unwrap();
    }
    let copy_ns = session.commit(CommitMode::Nowait).unwrap().copy_ns;
    let full = writer.stats();
    assert!(full.buffer_full_waits > 0 && full.buffer_full_ns / SYNC == full.syncs - stats.syncs, "{full:?}");
    assert!((24..WRITE).contains(&copy_ns), "{copy_ns}");
    assert_eq!(full.commit.copy_ns, all.copy_ns + copy_ns);
    adds_up(writer.close().unwrap());
    for put_off_bytes in [0, 1 << 20] {
        let writer = opened(&LogConfig { at_bytes: Some(4096), put_off_bytes, ..plain() });
        let mut session = writer.session().unwrap();
        for number in 0..40 {
            session.append(&payload(1, number, 1000)).unwrap();
        }
        session.flush().unwrap();
        adds_up(writer.close().unwrap());
    }
}

#[test]
fn many_jobs_share_writes_over_files_that_are_made_over() {
    for sync in [FileSync::Fdatasync, FileSync::Dsync] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let device = || {
            let config = FileConfig { file_bytes: 64 << 10, sync, ..FileConfig::default() };
            Box::new(FileDevice::open(dir.path(), &config).unwrap())
        };
        let config = LogConfig { buffer_bytes: 32 << 10, keep: Keep::Newest(2), ..LogConfig::default() };
        let (writer, recovered) = LogWriter::open(&config, device()).unwrap();
        assert_eq!(recovered, log::Recovered::default());
        std::thread::scope(|scope| {
            for job in 0..8 {
                let mut session = writer.session().unwrap();
                scope.spawn(move || {
                    for number in 0..60 {
                        session.append(&payload(job, number, 700)).unwrap();
                        session.commit(CommitMode::Wait).unwrap();
                    }
                });
            }
        });
        let stats = writer.close().unwrap();
        assert_eq!((stats.commits_waited, stats.grouped_commits), (480, 480));
        assert!(stats.switches > 4 && stats.writes > stats.groups, "{stats:?}");
        let mut files = device().files().unwrap();
        files.sort_unstable();
        assert!(files.len() <= 4 && files[0] > 0, "{files:?}: the newest two, and those made ready");

        let (writer, recovered) = LogWriter::open(&config, device()).unwrap();
        assert!(recovered.commits > 0 && recovered.start.0 > 0 && recovered.epoch == 1, "{recovered:?}");
        assert!(recovered.log != 0, "a number of its own, which it keeps");
        let mut session = writer.session().unwrap();
        session.append(&payload(99, 0, 100)).unwrap();
        session.commit(CommitMode::Wait).unwrap();
        writer.close().unwrap();
        let reader = device();
        let records = recover(reader.as_ref()).unwrap();
        assert_eq!(records.so_far().log, recovered.log);
        let found = committed(records.map(|record| record.unwrap()));
        assert_eq!(found[&99], [0]);
        for (job, numbers) in found.iter().filter(|(job, _)| **job < 8) {
            let first = numbers[0];
            assert!(numbers.iter().copied().eq(first..60), "job {job}: {numbers:?}");
        }
    }
}

#[test]
fn each_rule_triggers_a_write_and_is_counted() {
    for (config, by) in [
        (LogConfig { at_bytes: Some(4096), ..plain() }, Trigger::Bytes),
        (LogConfig { buffer_fraction: Some(0.25), ..plain() }, Trigger::Fraction),
        (LogConfig { at_bytes: Some(4096), buffer_fraction: Some(0.25), ..plain() }, Trigger::Bytes),
        (LogConfig { at_bytes: Some(16384), buffer_fraction: Some(0.25), ..plain() }, Trigger::Fraction),
        (LogConfig { every: Some(Duration::from_millis(20)), ..plain() }, Trigger::Timer),
    ] {
        let writer = open(&config, &memory(1024));
        let mut session = writer.session().unwrap();
        for number in 0..9 {
            session.append(&payload(1, number, 1000)).unwrap();
        }
        session.commit(CommitMode::Nowait).unwrap();
        until("the rule's write", || triggered(&writer.stats(), by) > 0);
        let stats = writer.stats();
        assert!(stats.log_bytes > 4096, "{by:?}: {stats:?}");
        assert_eq!(triggered(&stats, Trigger::Commit), 0);
    }
    // None of them: nothing is written unasked.
    let writer = open(&plain(), &memory(1024));
    let mut session = writer.session().unwrap();
    session.append(&payload(1, 0, 1000)).unwrap();
    session.commit(CommitMode::Nowait).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(writer.stats().groups, 1);
}

#[test]
fn a_size_rule_ends_a_group_where_it_is_met() {
    let disk = memory(1024);
    let writer = open(&LogConfig { at_bytes: Some(8 * BLOCK as u64), ..plain() }, &disk);
    let mut session = writer.session().unwrap();
    // 480 + 32: a block a record. The eighth meets the rule, whenever the writer gets to run.
    for number in 0..11 {
        session.append(&payload(1, number, 480)).unwrap();
    }
    until("the rule's write", || writer.stats().log_bytes == 9 * BLOCK as u64);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(writer.stats().log_bytes, 9 * BLOCK as u64, "the opening's block and eight, not eleven");
    drop(session);
}

#[test]
fn settings_that_cannot_be_are_refused_in_words() {
    let cases: [(LogConfig, &str); 9] = [
        (LogConfig { buffer_bytes: 1000, ..plain() }, "its buffer has 1000 bytes"),
        (LogConfig { buffer_bytes: 0, ..plain() }, "its buffer has 0 bytes"),
        (LogConfig { buffer_fraction: Some(0.0), ..plain() }, "above 0 and at most 1"),
        (LogConfig { buffer_fraction: Some(1.1), ..plain() }, "above 0 and at most 1"),
        (LogConfig { buffer_fraction: Some(f64::NAN), ..plain() }, "above 0 and at most 1"),
        (LogConfig { at_bytes: Some(0), ..plain() }, "at 0 bytes"),
        (LogConfig { every: Some(Duration::from_micros(999)), ..plain() }, "at least 1 ms"),
        (LogConfig { keep: Keep::Newest(1), ..plain() }, "at least 2 log files"),
        (LogConfig { buffer_bytes: (1 << 62) / BLOCK * BLOCK, ..plain() }, "no memory"),
    ];
    for (config, said) in cases {
        let opened = LogWriter::open(&config, Box::new(MemDevice::new(&memory(64), BLOCK)));
        let text = opened.err().expect(said).to_string();
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_record_that_is_too_big_is_refused_and_the_next_goes_on() {
    let disk = memory(1024);
    let writer = open(&plain(), &disk);
    let mut session = writer.session().unwrap();
    let most = 32 * BLOCK - 32;
    let error = session.append(&vec![1; most + 1]).unwrap_err();
    assert!(matches!(error, LogError::RecordTooBig { most: m, .. } if m == most as u64), "{error}");
    for number in 0..10 {
        session.append(&payload(1, number, most)).unwrap();
    }
    session.append(b"").unwrap();
    session.append_parts(&[b"in ", b"", b"pieces"]).unwrap();
    session.commit(CommitMode::Wait).unwrap();
    drop((session, writer));
    let device = MemDevice::new(&disk, BLOCK);
    let redo: Vec<_> = recover(&device).unwrap().map(|record| record.unwrap().redo).collect();
    assert_eq!((redo.len(), &redo[11]), (13, &Some(b"in pieces".into())));
}

#[test]
fn a_log_of_other_sizes_and_a_missing_file_are_said_to_be_so() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let device = |file_bytes, block_bytes| {
        FileDevice::open(dir.path(), &FileConfig { file_bytes, block_bytes, ..FileConfig::default() }).unwrap()
    };
    let config = LogConfig { buffer_bytes: 64 << 10, keep: Keep::All, ..LogConfig::default() };
    let (writer, _) = LogWriter::open(&config, Box::new(device(32 << 10, 4096))).unwrap();
    let mut session = writer.session().unwrap();
    for number in 0..40 {
        session.append(&payload(1, number, 3000)).unwrap();
        session.commit(CommitMode::Wait).unwrap();
    }
    drop(session);
    writer.close().unwrap();
    for other in [device(64 << 10, 4096), device(32 << 10, 512)] {
        let error = recover(&other).err().unwrap();
        assert!(matches!(error, RecoverError::OtherSizes { .. }), "{error}");
    }
    std::fs::remove_file(dir.path().join("redo-0000000002.log")).unwrap();
    let error = recover(&device(32 << 10, 4096)).err().unwrap();
    assert!(matches!(error, RecoverError::Missing { file: 2, .. }), "{error}");
    assert!(LogWriter::open(&config, Box::new(device(32 << 10, 4096))).is_err(), "nothing is written over it");
}

#[test]
fn what_a_killed_run_left_half_made_is_made_again() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(dir.path().join("redo-0000000000.log.new"), b"half").unwrap();
    std::fs::write(dir.path().join("redo-1.log"), b"somebody else's").unwrap();
    let device = FileDevice::open(dir.path(), &FileConfig { file_bytes: 64 << 10, ..FileConfig::default() }).unwrap();
    let (writer, _) = LogWriter::open(&LogConfig::default(), Box::new(device)).unwrap();
    writer.close().unwrap();
    assert_eq!(std::fs::read(dir.path().join("redo-1.log")).unwrap(), b"somebody else's");
    assert!(!dir.path().join("redo-0000000000.log.new").exists());
}

#[test]
fn a_device_of_sizes_that_cannot_be_is_neither_read_nor_opened() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (file_bytes, block_bytes) in
        [(64 << 10, 0), (64 << 10, 1000), (64 << 10, 1 << 17), (5000, 512), (1024, 512), (u64::MAX, 512)]
    {
        let device =
            || FileDevice::open(dir.path(), &FileConfig { file_bytes, block_bytes, ..FileConfig::default() }).unwrap();
        assert!(matches!(recover(&device()), Err(RecoverError::Sizes(_))));
        assert!(matches!(LogWriter::open(&plain(), Box::new(device())), Err(LogError::Config(_))));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_device_that_panics_takes_one_job_with_it_and_leaves_nobody_waiting() {
    let writes = AtomicU32::new(0);
    let panics = move |call: Call| {
        let number = if let Call::Write { .. } = call { writes.fetch_add(1, Ordering::Relaxed) } else { 0 };
        assert!(number < 9, "this device panics on purpose");
        None
    };
    let device = MemDevice::hooked(&memory(64), BLOCK, Arc::new(panics));
    let (writer, _) = LogWriter::open(&plain(), Box::new(device)).unwrap();
    let jobs: Vec<_> = (0..4)
        .map(|job| {
            let mut session = writer.session().unwrap();
            std::thread::spawn(move || {
                loop {
                    let done = session.append(&payload(job, 0, 100)).and_then(|_| session.commit(CommitMode::Wait));
                    if let Err(error) = done {
                        return error;
                    }
                }
            })
        })
        .collect();
    let ends: Vec<_> = jobs.into_iter().map(std::thread::JoinHandle::join).collect();
    assert_eq!(ends.iter().filter(|end| end.is_err()).count(), 1);
    assert!(ends.iter().flatten().all(|error| matches!(error, LogError::Panicked)));
}
