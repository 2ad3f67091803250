//! From records to the figures of the model.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::point::sync_us;

fn test(jobs: u32, tps: f64, sync: f64) -> TestRecord {
    let mut r = TestRecord { jobs, ..TestRecord::blank("LGWR-LAT1") };
    r.valid = true;
    r.set(column::COMMIT_THROUGHPUT_TPS, tps);
    r.set(column::COMMIT_LATENCY_MS, f64::from(jobs) / tps * 1e3);
    r.set(column::COMMITS_PER_REDO_SYNC, 1.0);
    r.set(column::REDO_BYTES_PER_TX, 1500.0);
    r.set(column::REDO_SYNC_TIME_US, sync);
    r.set(column::SESSION_CPU_PCT, 20.0);
    r
}

#[test]
fn repetitions_are_weighed_so_that_a_stall_counts_as_its_transactions() {
    let tests = [test(1, 5000.0, 150.0), test(1, 5000.0, 150.0), test(1, 500.0, 1900.0)];
    let p = point(1, &tests.iter().collect::<Vec<_>>(), false).unwrap();
    assert_eq!(p.tps, 3500.0);
    // Latency × throughput is the number of jobs, as in each test.
    assert!((p.latency_us.unwrap() * p.tps / 1e6 - 1.0).abs() < 1e-9);
    assert!((p.sync_us.unwrap() - (2.0 * 5000.0 * 150.0 + 500.0 * 1900.0) / 10_500.0).abs() < 1e-9);
    // 20 % of a job's time: 40, 40 and 400 µs per transaction.
    assert!((p.cpu_us_per_tx.unwrap() - (2.0 * 5000.0 * 40.0 + 500.0 * 400.0) / 10_500.0).abs() < 1e-9);
}

#[test]
fn only_valid_tests_of_one_closed_loop_whose_commits_wait_are_taken() {
    let base = test(2, 900.0, 100.0);
    let with = |change: &dyn Fn(&mut TestRecord)| {
        let mut r = base.clone();
        change(&mut r);
        r
    };
    let refused = [
        (with(&|r| r.arm = Some(ArmName::B)), "no sweep"),
        (with(&|r| r.swept = Some("rows".into())), "no sweep"),
        (with(&|r| r.set(column::RATE_TPS, 100.0)), "no sweep"),
        (with(&|r| r.valid = false), "none of its tests is valid"),
        (with(&|r| r.set(column::COMMITS_PER_REDO_SYNC, 50.0)), "no syncs"),
        (with(&|r| r.set(column::REDO_BYTES_PER_TX, 0.0)), "no syncs"),
        (with(&|r| r.figures.retain(|id, _| id != "commits_per_redo_sync")), "no syncs"),
    ];
    for (record, why) in refused {
        assert!(usable(&[record], "LGWR-LAT1").unwrap_err().contains(why), "{why}");
    }
    // Of two drivers the one with more numbers of jobs.
    let client = |jobs| with(&|r| (r.jobs, r.driver) = (jobs, Driver::Client));
    let database = with(&|r| (r.jobs, r.driver) = (4, Driver::Database));
    let records = [database.clone(), client(1), client(2), database];
    assert_eq!(jobs_of(&usable(&records, "LGWR-LAT1").unwrap()), [1, 2]);
}

#[test]
fn invalid_tests_are_named() {
    let invalid = |jobs| TestRecord { valid: false, ..test(jobs, 900.0, 100.0) };
    let records = [test(1, 900.0, 100.0), invalid(1), test(2, 900.0, 100.0), invalid(4)];
    let said = |records: &[TestRecord]| left_out(records, "LGWR-LAT1", &usable(records, "LGWR-LAT1").unwrap());
    assert_eq!(said(&records).unwrap(), "invalid tests took no part, 2 of 4: there is no valid one with 4 jobs");
    assert_eq!(said(&records[..1]), None);
}

#[test]
fn several_writes_of_a_sync_are_all_part_of_it() {
    let mut r = test(1, 1000.0, 100.0);
    r.set(column::REDO_WRITE_TIME_US, 10.0);
    r.set(column::REDO_WRITES_PER_S, 3000.0);
    r.set(column::REDO_SYNC_WRITES_PER_S, 1000.0);
    assert_eq!(sync_us(&r), Some(130.0));
    r.set(column::LOG_PART_WRITE_US, 5.0);
    r.set(column::LOG_PART_SYNC_US, 80.0);
    assert_eq!(sync_us(&r), Some(85.0), "the log writer's own parts");
}

#[test]
fn settings_say_how_the_log_is_written_and_how_large_its_buffer_is() {
    let settings = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    assert_eq!(buffer(&settings("wal_buffers", "16MB")), Some(16.0 * 1024.0 * 1024.0));
    assert_eq!(buffer(&settings("wal_buffers", "512kB")), Some(512.0 * 1024.0));
    assert_eq!(buffer(&settings("buffer_bytes", "4194304")), Some(4_194_304.0));
    assert_eq!(buffer(&settings("wal_buffers", "-1")), None);
    assert_eq!(operation(&settings("wal_sync_method", "fdatasync")), Operation::SyncWriteFdatasyncPrealloc);
    assert_eq!(operation(&settings("wal_sync_method", "open_datasync")), Operation::SyncWriteDsyncPrealloc);
    assert_eq!(operation(&BTreeMap::new()), Operation::SyncWriteFdatasyncPrealloc);
}
