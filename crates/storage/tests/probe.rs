//! The whole probe on directories of this machine, and what it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_model::probe::{Engine, Operation, ProbedDir};
use loadline_storage::probe::{Event, Point, ProbeError, ProbeOptions, ProbeSession, SMALLEST_FILE, points, probe};

fn short() -> ProbeOptions {
    ProbeOptions { size: Some(SMALLEST_FILE), seconds: 3.0, ..ProbeOptions::default() }
}

fn probed(dir: &Path, options: &ProbeOptions) -> Result<ProbedDir, ProbeError> {
    probe(dir, options, &AtomicBool::new(false), &mut |_| ())
}

fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().count() == 0
}

/// Demands on every probe, whatever the device. Returns the median share of the depth that was in flight.
fn check(probed: &ProbedDir, pmem: bool) -> f64 {
    let expected = points(pmem);
    assert_eq!(probed.rows.len(), expected.len());
    let mut shares = Vec::new();
    for Point { operation, size, depth } in expected {
        let row = probed.row(operation, size, depth).unwrap_or_else(|| panic!("{operation} {size} {depth}"));
        assert!(row.samples > 0 && row.per_s > 0.0 && row.elapsed_s > 0.0, "{row:?}");
        assert!(row.p50_ns <= row.p99_ns.unwrap_or(row.max_ns), "{row:?}");
        assert!(row.p99_ns.unwrap_or(0) <= row.p999_ns.unwrap_or(row.max_ns), "{row:?}");
        assert!(row.p999_ns.unwrap_or(0) <= row.max_ns, "{row:?}");
        assert!((row.mib_per_s - row.per_s * size as f64 / 1_048_576.0).abs() < 1e-6 * row.mib_per_s, "{row:?}");
        // Little's law. One at a time, the window is the sum of the times, but for a sync write's
        // next block, which is made in between.
        let in_flight = row.per_s * row.mean_ns / 1e9;
        let one_by_one = operation == Operation::RandomRead || operation == Operation::SequentialRead;
        if depth == 1 && one_by_one {
            assert!((in_flight - 1.0).abs() < 1e-6, "{in_flight} in flight: {row:?}");
        } else if depth == 1 {
            assert!(in_flight < 1.000_001, "{in_flight} in flight: {row:?}");
        } else {
            // At each end of a slice operations are cut: their times count whole, or not at all.
            let cut = f64::from(depth) * row.max_ns as f64 * f64::from(probed.rounds) / (row.elapsed_s * 1e9);
            assert!(in_flight < f64::from(depth) + cut + 1e-6, "{in_flight} in flight: {row:?}");
        }
        // Making a large block takes an unoptimised build longer than writing it.
        if depth > 1 || size <= 16 << 10 {
            shares.push(in_flight / f64::from(depth));
        }
    }
    // Of most of them nothing that matters is cut.
    shares.sort_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    assert!(median < 1.07, "{shares:?}");
    median
}

#[test]
#[ignore = "nightly: while others have the CPUs, less is in flight than was asked for"]
fn as_many_operations_are_in_flight_as_were_asked_for() {
    for engine in [None, Some(Engine::Threads)] {
        let dir = on_disk();
        let options = ProbeOptions { engine, ..short() };
        let probed = probed(dir.path(), &options).unwrap();
        let median = check(&probed, probed.absent.is_empty());
        assert!(median > 0.93, "{engine:?}: {median}");
    }
}

#[test]
fn every_operation_is_measured_through_io_uring_and_other_files_stay_as_they_are() {
    let dir = on_disk();
    let other = dir.path().join("loadline-probe-precious.tmp");
    std::fs::write(&other, "precious").unwrap();
    let written = || std::fs::metadata(&other).unwrap().modified().unwrap();
    let before = written();
    let mut needed = None;
    let mut slices = 0;
    let stop = AtomicBool::new(false);
    let mut watch = |event: Event<'_>| match event {
        Event::Needs { needed: n, free } => {
            assert!(slices == 0 && free.unwrap() > n);
            needed = Some(n);
        }
        Event::Measuring { .. } => slices += 1,
        _ => {}
    };
    let probed = probe(dir.path(), &short(), &stop, &mut watch).unwrap();
    assert_eq!((probed.engine, probed.engine_reason.as_deref()), (Engine::IoUring, None));
    assert_eq!(slices, probed.rows.len() * probed.rounds as usize);
    assert!(needed.unwrap() > SMALLEST_FILE);
    check(&probed, probed.absent.is_empty());
    assert_eq!((std::fs::read(&other).unwrap(), written()), (b"precious".to_vec(), before));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn threads_take_the_place_of_io_uring() {
    let dir = on_disk();
    let options = ProbeOptions { engine: Some(Engine::Threads), ..short() };
    let probed = probed(dir.path(), &options).unwrap();
    assert_eq!((probed.engine, probed.engine_reason.as_deref()), (Engine::Threads, Some("threads were requested")));
    assert!(probed.notes.iter().any(|n| n.contains("instead of io_uring")), "{:?}", probed.notes);
    check(&probed, probed.absent.is_empty());
}

#[test]
fn main_memory_is_labelled_and_stands_in_for_persistent_memory() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let probed = probed(dir.path(), &short()).unwrap();
    assert_eq!((probed.kind.as_str(), probed.direct), ("tmpfs", false));
    for part in ["no disk", "go to the page cache", "no persistent memory"] {
        assert!(probed.notes.iter().any(|n| n.contains(part)), "{part}: {:?}", probed.notes);
    }
    assert!(probed.rows.iter().all(|r| !r.direct) && probed.absent.is_empty());
    check(&probed, true);
}

#[test]
fn what_cannot_be_probed_is_refused_with_the_reason() {
    let dir = on_disk();
    let refused = |path: &Path, options: &ProbeOptions| probed(path, options).unwrap_err();
    let missing = refused(&dir.path().join("none"), &short());
    assert!(missing.to_string().contains("none'") && missing.to_string().contains("Check that it exists"), "{missing}");
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(refused(&file, &short()), ProbeError::NotADirectory(_)));
    let huge = ProbeOptions { size: Some(1 << 50), ..short() };
    let no_space = refused(dir.path(), &huge);
    assert!(matches!(no_space, ProbeError::NoSpace { needed, free, .. } if needed > 1 << 50 && free < needed));
    assert!(no_space.to_string().contains("the probe needs 1"), "{no_space}");
    assert!(matches!(refused(dir.path(), &ProbeOptions { dedup: 2.0, ..short() }), ProbeError::Option { .. }));
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn an_interrupted_probe_ends_at_once_and_leaves_nothing() {
    let dir = on_disk();
    let stop = AtomicBool::new(false);
    // A slice would take 16 s.
    let options = ProbeOptions { seconds: 3600.0, ..short() };
    let mut slices = 0;
    let result = std::thread::scope(|scope| {
        let mut watch = |event: Event<'_>| {
            if matches!(event, Event::Measuring { .. }) {
                slices += 1;
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(100));
                    stop.store(true, Ordering::Relaxed);
                });
            }
        };
        probe(dir.path(), &options, &stop, &mut watch)
    });
    assert_eq!(slices, 1);
    assert!(matches!(result, Err(ProbeError::Interrupted)));
    assert!(is_empty(dir.path()));
}

/// A small tmpfs: `what` is given its directory.
fn with_mount(options: &str, what: impl FnOnce(&Path)) {
    let dir = on_disk();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(dir.path()).status();
    assert!(
        mounted.is_ok_and(|s| s.success()),
        "a tmpfs could not be mounted: run the tests as root, in a container with the capability SYS_ADMIN"
    );
    struct Unmount<'a>(&'a Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            for _ in 0..50 {
                if Command::new("umount").arg(self.0).status().is_ok_and(|s| s.success()) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
    let _unmount = Unmount(dir.path());
    what(dir.path());
}

#[test]
fn a_full_filesystem_and_a_read_only_one_are_refused() {
    with_mount("size=8m", |dir| {
        let options = ProbeOptions { size: None, ..short() };
        let error = probed(dir, &options).unwrap_err();
        assert!(matches!(error, ProbeError::NoSpace { .. }), "{error}");
        assert!(error.to_string().contains("8.0 MiB free") && is_empty(dir), "{error}");
    });
    with_mount("size=64m,ro", |dir| {
        let error = probed(dir, &short()).unwrap_err();
        assert!(matches!(error, ProbeError::ReadOnly(_)), "{error}");
    });
    with_mount("size=100m", |dir| {
        let options = ProbeOptions { size: None, ..short() };
        let probed = probed(dir, &options).unwrap();
        assert_eq!(probed.file_bytes, 25 << 20, "a quarter of what is free");
        assert!(probed.notes.iter().any(|n| n.contains("space is short")), "{:?}", probed.notes);
    });
}

#[test]
fn space_that_vanishes_in_mid_probe_is_an_error_that_says_so() {
    with_mount("size=64m", |dir| {
        let stop = AtomicBool::new(false);
        let mut watch = |event: Event<'_>| {
            if matches!(event, Event::Measuring { done: 0, .. }) {
                // Fills what is left.
                let _ = std::fs::write(dir.join("filler"), vec![1; 60 << 20]);
            }
        };
        let error = probe(dir, &short(), &stop, &mut watch).unwrap_err();
        assert!(
            matches!(&error, ProbeError::Operation { cause, .. }
            if cause.kind() == std::io::ErrorKind::StorageFull),
            "{error}"
        );
        assert!(error.to_string().contains("sync-write-") && error.to_string().contains("growing"), "{error}");
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1, "the filler only");
    });
}

#[test]
fn a_peer_opens_the_test_file_with_the_share_of_repeated_pages_that_a_device_sees() {
    for dedup in [0.0, 0.5, 1.0] {
        let (dir, stop) = (on_disk(), AtomicBool::new(false));
        let mut session = ProbeSession::open(dir.path(), &ProbeOptions { dedup, ..short() }, &stop).unwrap();
        assert_eq!(session.fill(60.0, |_, _| ()).unwrap(), SMALLEST_FILE);
        let bytes = std::fs::read(session.peer_path()).unwrap();
        assert_eq!(bytes.len() as u64, SMALLEST_FILE);
        let pages: Vec<&[u8]> = bytes.chunks_exact(4096).collect();
        let distinct = pages.iter().collect::<std::collections::HashSet<_>>().len();
        let repeated = 1.0 - distinct as f64 / pages.len() as f64;
        assert!((session.duplicates().unwrap() - repeated).abs() < 1e-9, "{dedup}: {repeated}");
        // One at each of the 256 places in a block is the original.
        assert!(repeated <= dedup + 0.04 && repeated >= dedup - 0.11, "{dedup}: {repeated}");
        let point = Point { operation: Operation::SequentialWrite, size: 1 << 20, depth: 8 };
        let row = session.measure(&point, 0.1).unwrap().unwrap();
        assert_eq!((row.operation, row.depth), (Operation::SequentialWrite, 8));
    }
}
