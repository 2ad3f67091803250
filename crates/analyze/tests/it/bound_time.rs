//! What bounds a test by the largest part of its jobs' time: each cause, and its near miss.

use crate::common::{limited, record, with};
use loadline_analyze::{BoundBy, bound, fill_bounded_by};
use loadline_model::limits::name;
use loadline_model::{Column, DataSource, TestRecord, column};

/// A test with `jobs` jobs whose sessions were on a CPU `cpu` % of their time, and `figures`.
fn test(jobs: u32, cpu: f64, figures: &[(&Column, f64)]) -> TestRecord {
    let always = [
        (column::COMMIT_THROUGHPUT_TPS, 1_000.0),
        (column::COMMIT_LATENCY_MS, f64::from(jobs)),
        (column::CPU_BUSY_PCT, 40.0),
        (column::SESSION_CPU_PCT, cpu),
        (column::SESSION_CPU_WAIT_PCT, 0.0),
    ];
    with(with(record("pg", 1, jobs), &always), figures)
}

#[track_caller]
fn assert_by(r: &TestRecord, by: BoundBy, says: &str) {
    let b = bound(r).unwrap();
    assert!(b.by == by && b.because.contains(says), "{}", b.sentence());
}

#[test]
fn one_session_that_is_always_on_a_cpu_is_bounded_by_it() {
    let one = test(1, 71.0, &[(column::CPU_BUSY_PCT, 52.0)]);
    assert_by(&one, BoundBy::Cpu, "sessions were on a CPU 71 % of the jobs' time; CPU busy 52 %");
    // Eight sessions share the CPUs: waiting for one is the CPU's as well.
    let eight = test(8, 20.0, &[(column::SESSION_CPU_WAIT_PCT, 45.0)]);
    assert_by(&eight, BoundBy::Cpu, "on a CPU 20 % of the jobs' time and waited 45 % for one");
    // The rest could be anything.
    assert_by(&test(1, 49.0, &[]), BoundBy::Unknown, "of the jobs' time CPU 49 %; 51 % unexplained");
}

#[test]
fn each_wait_names_its_component() {
    let busy = column::COMMITS_PER_REDO_SYNC;
    for (figures, by, says) in [
        (&[(column::LOG_FILE_SYNC_MS, 4.8), (busy, 3.0)][..], BoundBy::LogSync, "waited 4.80 of 8.00 ms per commit"),
        (&[(column::READ_WAIT_PCT, 60.0)], BoundBy::StorageReads, "4.8 of 8 jobs waited for a read"),
        (
            &[(column::WRITE_WAIT_PCT, 60.0)],
            BoundBy::StorageWrites,
            "wrote blocks or waited for one in the cache for 60 %",
        ),
        (&[(column::LOG_WRITE_WAIT_PCT, 60.0)], BoundBy::LogWrite, "waited for a place in it for 60 %"),
        (&[(column::REPLICA_WAIT_PCT, 60.0)], BoundBy::Replica, "waited for a replica to have a commit for 60 %"),
        (&[(column::LOCK_WAIT_PCT, 60.0)], BoundBy::Locks, "locks or latches of other sessions for 60 %"),
        (
            &[(column::WRITER_WAIT_PCT, 60.0)],
            BoundBy::SingleWriter,
            "waited for their turn to write (one at a time) for 60 %",
        ),
    ] {
        assert_by(&test(8, 20.0, figures), by, says);
        // Half as large, a wait is smaller than what is unexplained.
        let half: Vec<_> = figures.iter().map(|(column, value)| (*column, value / 2.0)).collect();
        assert_by(&test(8, 20.0, &half), BoundBy::Unknown, "50 % unexplained");
    }
}

#[test]
fn waits_for_the_log_count_together() {
    let both =
        [(column::LOG_FILE_SYNC_MS, 2.8), (column::COMMITS_PER_REDO_SYNC, 3.0), (column::LOG_WRITE_WAIT_PCT, 20.0)];
    assert_by(&test(8, 20.0, &both), BoundBy::LogSync, "log write 20 %");
    let near =
        [(column::LOG_FILE_SYNC_MS, 1.4), (column::COMMITS_PER_REDO_SYNC, 3.0), (column::LOG_WRITE_WAIT_PCT, 20.0)];
    assert_by(&test(8, 20.0, &near), BoundBy::Unknown, "42 % unexplained");
}

#[test]
fn a_part_of_a_transaction_never_exceeds_it() {
    // Samples saw more sessions in the wait than the jobs' time allows.
    let figures =
        [(column::COMMIT_LATENCY_MS, 0.42), (column::LOG_FILE_SYNC_MS, 0.496), (column::COMMITS_PER_REDO_SYNC, 1.0)];
    let samples = test(1, 5.0, &figures);
    assert_by(&samples, BoundBy::LogSync, "waited 0.420 of 0.420 ms per commit for the log (by samples 0.496 ms");
}

#[test]
fn full_cpus_are_no_limit_of_jobs_that_wait_longer_for_each_other() {
    let full = |cpu_wait: f64, column, wait: f64| {
        let mut r =
            test(16, 15.0, &[(column::CPU_BUSY_PCT, 95.0), (column::SESSION_CPU_WAIT_PCT, cpu_wait), (column, wait)]);
        r.waits.samples = 10;
        r.waits.sessions = [("LWLock:WALInsert".to_owned(), 63), ("CPU".to_owned(), 90)].into();
        r
    };
    assert_by(&full(10.0, column::LOG_WRITE_WAIT_PCT, 63.0), BoundBy::LogWrite, "in LWLock:WALInsert; CPU busy 95 %");
    assert_by(&full(10.0, column::LOCK_WAIT_PCT, 63.0), BoundBy::Locks, "CPU busy 95 %");
    assert_by(
        &full(50.0, column::LOCK_WAIT_PCT, 30.0),
        BoundBy::Cpu,
        "on average 6.30 of 16 jobs were in LWLock:WALInsert",
    );
    // A log writer that waits for a CPU looks like a slow log.
    let sync = full(10.0, column::LOG_FILE_SYNC_MS, 11.0);
    assert_by(&with(sync, &[(column::COMMITS_PER_REDO_SYNC, 3.0)]), BoundBy::Cpu, "CPU busy 95 %");
}

#[test]
fn long_transactions_that_rarely_commit_are_no_single_writer() {
    // PostgreSQL, 8 loads: one commit at a time by chance; the sessions wait for an extension of the table.
    let loads = [
        (column::COMMIT_LATENCY_MS, 57.1),
        (column::COMMIT_THROUGHPUT_TPS, 140.0),
        (column::COMMIT_TIME_NS_MEAN, 5.7e6),
        (column::LOG_FILE_SYNC_MS, 5.0),
        (column::COMMITS_PER_REDO_SYNC, 0.99),
        (column::LOCK_WAIT_PCT, 48.0),
    ];
    assert_by(&test(8, 21.0, &loads), BoundBy::Locks, "locks or latches of other sessions for 48 %");
}

#[test]
fn a_wait_is_at_most_the_time_asleep() {
    // Blocks copied from the page cache: the database times them as reads, the CPU does the work.
    let copies = test(1, 97.0, &[(column::READ_WAIT_PCT, 58.8)]);
    assert_by(&copies, BoundBy::Cpu, "on a CPU 97 %");
    // Blocks proved to be the device's: the CPU in the read calls is the kernel's, for the device.
    let from = |source| TestRecord { data_source: Some(source), ..test(1, 52.0, &[(column::READ_WAIT_PCT, 82.0)]) };
    assert_by(&from(DataSource::Device), BoundBy::StorageReads, "waited for a read");
    assert_by(&from(DataSource::Lukewarm), BoundBy::Cpu, "on a CPU 52 %");
    let computes =
        TestRecord { data_source: Some(DataSource::Device), ..test(1, 80.0, &[(column::READ_WAIT_PCT, 30.0)]) };
    assert_by(&computes, BoundBy::Cpu, "on a CPU 70 %");
}

#[test]
fn a_data_device_that_gives_no_more_is_the_limit() {
    let share = |share: f64, name: &str| {
        limited(test(2, 80.0, &[(column::LIMIT_SHARE_PCT, share), (column::CPU_BUSY_PCT, 97.0)]), name)
    };
    assert_by(&share(98.0, name::READ_BANDWIDTH), BoundBy::StorageReads, "98 % of what the data device gives");
    assert_by(&share(91.0, name::BLOCK_WRITES), BoundBy::StorageWrites, "CPU busy 97 %");
    assert_by(&share(85.0, name::READ_BANDWIDTH), BoundBy::Cpu, "CPU busy 97 %");
    assert_by(&share(98.0, name::KERNEL), BoundBy::Cpu, "CPU busy 97 %");
    let samples = |pct: f64, samples: [f64; 2]| {
        let mut r = share(pct, name::BLOCK_READS);
        r.limit.as_mut().unwrap().samples = samples.to_vec();
        r
    };
    let unsteady =
        "the limit itself differed when measured twice around the test: the machine or device was not steady";
    assert_by(&samples(98.0, [258.0, 1_142.0]), BoundBy::StorageReads, unsteady);
    let more = "160 % of what the data device gives the best program (block reads); the test got more than its limit: that \
                limit is too low";
    assert_by(&samples(160.0, [700.0, 710.0]), BoundBy::StorageReads, more);
    assert!(!bound(&samples(98.0, [700.0, 710.0])).unwrap().because.contains("limit"));
}

#[test]
fn reads_that_the_database_does_not_time_are_seen_by_the_system() {
    let io = |figures: &[(&Column, f64)]| with(test(8, 20.0, &[(column::SESSION_IO_PCT, 70.0)]), figures);
    let reads = (column::BLOCK_READS_PER_S, 9_000.0);
    assert_by(
        &io(&[reads]),
        BoundBy::StorageReads,
        "5.6 of 8 jobs waited for a read, by the operating system's states",
    );
    // Without reads it is other I/O; and time in the log's sync is not time in reads.
    assert_by(&io(&[]), BoundBy::Unknown, "unexplained");
    let log = [reads, (column::LOG_FILE_SYNC_MS, 5.2), (column::COMMITS_PER_REDO_SYNC, 3.0)];
    assert_by(&io(&log), BoundBy::LogSync, "5.20 of 8.00 ms");
}

#[test]
fn a_busy_data_device_explains_sleep_that_nobody_timed() {
    let device = |util: f64, idle: f64, read: f64| {
        let figures = [
            (column::DATA_DEVICE_UTIL_PCT, util),
            (column::SESSION_IDLE_PCT, idle),
            (column::DEVICE_READ_MIB_PER_S, read),
            (column::PHYSICAL_WRITTEN_MIB_PER_S, 90.0),
        ];
        test(8, 20.0, &figures)
    };
    assert_by(
        &device(92.0, 0.0, 300.0),
        BoundBy::StorageReads,
        "data device was busy 92 %: 300.0 MiB/s read, 90.0 MiB/s",
    );
    assert_by(&device(92.0, 0.0, 20.0), BoundBy::StorageWrites, "slept in statements 80 % of the jobs' time");
    assert_by(&device(60.0, 0.0, 20.0), BoundBy::Unknown, "80 % unexplained");
    // Sessions that wait for their client do not wait for the device.
    assert_by(&device(92.0, 70.0, 20.0), BoundBy::Unknown, "80 % unexplained");
}

#[test]
fn time_between_statements_is_the_clients_or_the_way_to_it() {
    let idle = |own: f64, cpu_wait: f64| {
        let figures = [
            (column::SESSION_IDLE_PCT, 75.0),
            (column::CLIENT_JOB_CPU_PCT, own),
            (column::CLIENT_JOB_CPU_WAIT_PCT, cpu_wait),
        ];
        test(1, 25.0, &figures)
    };
    assert_by(&idle(45.0, 0.0), BoundBy::Client, "their client 75 % of the jobs' time; its threads were on a CPU 45 %");
    assert_by(&idle(20.0, 0.0), BoundBy::RoundTrip, "its threads were on a CPU 20 %");
    // A client that waits for a CPU waits for the same CPUs.
    assert_by(&idle(20.0, 40.0), BoundBy::Cpu, "loadline's threads waited 40 % for one");
    // In the database driver the session is never idle: the client's threads do not count.
    let inside =
        [(column::SESSION_IDLE_PCT, 0.0), (column::CLIENT_JOB_CPU_PCT, 80.0), (column::CLIENT_JOB_CPU_WAIT_PCT, 0.0)];
    assert_by(&test(1, 95.0, &inside), BoundBy::Cpu, "on a CPU 95 %");
}

#[test]
fn parts_of_nearly_the_same_size_are_both_named() {
    let two = test(2, 42.0, &[(column::READ_WAIT_PCT, 50.0)]);
    assert_by(&two, BoundBy::StorageReads, "nearly as much: CPU (of the jobs' time storage reads 50 %, CPU 42 %)");
    let far = test(2, 39.0, &[(column::READ_WAIT_PCT, 50.0)]);
    assert!(!bound(&far).unwrap().because.contains("nearly"), "{far:?}");
}

#[test]
fn the_column_holds_the_short_cause() {
    let mut records = [test(1, 90.0, &[]), test(1, 10.0, &[])];
    assert_eq!(column::BOUNDED_BY.plain(&records[0]), "", "not before it is filled");
    fill_bounded_by(&mut records);
    let cells = records.each_ref().map(|r| column::BOUNDED_BY.plain(r));
    assert_eq!(cells, ["CPU", ""], "empty if unknown");
}

#[test]
fn what_jobs_do_between_transactions_is_a_part_of_their_time() {
    let thinks = test(8, 5.0, &[(column::THINKING_PCT, 85.0), (column::SESSION_IDLE_PCT, 86.0)]);
    assert_by(&thinks, BoundBy::ThinkTime, "jobs thought between transactions for 85 % of their time");
    let connects = test(8, 5.0, &[(column::CONNECTING_PCT, 60.0)]);
    assert_by(&connects, BoundBy::Connecting, "closed sessions and opened new ones for 60 %");
    let sleeps = test(8, 5.0, &[(column::SCRIPT_SLEEP_PCT, 90.0), (column::SESSION_IDLE_PCT, 95.0)]);
    assert_by(&sleeps, BoundBy::ScriptSleep, "jobs slept in their scripts for 90 %");
    // Full CPUs are the limit all the same.
    let full = with(thinks.clone(), &[(column::CPU_BUSY_PCT, 95.0)]);
    assert_by(&full, BoundBy::Cpu, "CPU busy 95 %");
    // A commit that is most of the transaction is little of the time of jobs that think, and a session that waits for one that
    // thinks waits for no round trip.
    let sync = [(column::LOG_FILE_SYNC_MS, 7.6), (column::COMMITS_PER_REDO_SYNC, 3.0)];
    assert_by(&with(thinks, &sync), BoundBy::ThinkTime, "85 %");
    let some = [(column::THINKING_PCT, 20.0), (column::SESSION_IDLE_PCT, 20.0)];
    assert_by(&with(test(8, 5.0, &some), &sync), BoundBy::LogSync, "7.60 of 8.00 ms");
    // Populations are bound by different things.
    let mut mixed = test(8, 5.0, &[(column::THINKING_PCT, 85.0)]);
    mixed.populations = vec![Default::default(); 2];
    assert_by(&mixed, BoundBy::Unknown, "the jobs are a mix of populations");
}
