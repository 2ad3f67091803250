//! What bounds a test: for figures of real tests and for arbitrary figures.

use crate::common::{limited, record, with};
use loadline_analyze::{BoundBy, bound, bound_of_sweep, sweeps};
use loadline_model::limits::{SizePoint, name};
use loadline_model::{Column, TestRecord, column};
use proptest::prelude::*;

/// A test with `jobs` jobs and `figures`.
fn test(jobs: u32, figures: &[(&Column, f64)]) -> TestRecord {
    with(record("pg", 1, jobs), figures)
}

/// PostgreSQL on a disk: 8 jobs that mostly wait for the log.
fn log_bound() -> TestRecord {
    test(
        8,
        &[
            (column::COMMIT_THROUGHPUT_TPS, 17_800.0),
            (column::COMMIT_LATENCY_MS, 0.45),
            (column::LOG_FILE_SYNC_MS, 0.41),
            (column::COMMIT_TIME_NS_MEAN, 420_000.0),
            (column::COMMITS_PER_REDO_SYNC, 4.2),
            (column::CPU_BUSY_PCT, 31.0),
            (column::CLIENT_CPU_PCT, 9.0),
            (column::CLIENT_CPU_US_PER_TX, 10.0),
            (column::OUTSIDE_TX_PCT, 1.2),
            (column::DEVICE_UTIL_PCT, 93.0),
            (column::DEVICE_WRITES_PER_S, 4_400.0),
            (column::DEVICE_WRITE_MIB_PER_S, 41.0),
            (column::LIMIT_SHARE_PCT, 84.0),
        ],
    )
}

fn verdict(r: &TestRecord) -> (BoundBy, String) {
    let b = bound(r).unwrap();
    (b.by, b.sentence())
}

#[test]
fn waiting_for_the_log_is_log_sync() {
    let (by, why) = verdict(&log_bound());
    assert_eq!(by, BoundBy::LogSync);
    assert_eq!(
        why,
        "log sync: sessions waited 0.410 of 0.450 ms per commit for the log; 4.2 commits per sync; log device busy \
         93 %; CPU busy 31 %"
    );
    // MariaDB without a wait time: the commit time shows it.
    let mut maria = log_bound();
    maria.leave_out(column::LOG_FILE_SYNC_MS, "not read");
    let (by, why) = verdict(&maria);
    assert!(by == BoundBy::LogSync && why.contains("the commit took 0.420 of 0.450 ms"), "{why}");
    // 40 commits per sync: 8 jobs cannot all have waited.
    let nowait = with(maria, &[(column::COMMITS_PER_REDO_SYNC, 40.0)]);
    assert_eq!(verdict(&nowait).0, BoundBy::Unknown);
}

#[test]
fn a_busy_client_comes_first() {
    for figures in [
        &[(column::CLIENT_CPU_PCT, 91.0)][..],
        &[(column::CPU_BUSY_PCT, 99.0), (column::CLIENT_CPU_PCT, 55.0)],
        &[(column::CLIENT_CPU_US_PER_TX, 300.0)],
        &[(column::OUTSIDE_TX_PCT, 62.0)],
    ] {
        let (by, why) = verdict(&with(log_bound(), figures));
        assert_eq!(by, BoundBy::Client, "{why}");
    }
    // Two machines: their CPU shares cannot be compared.
    let mut remote = with(log_bound(), &[(column::CPU_BUSY_PCT, 99.0), (column::CLIENT_CPU_PCT, 55.0)]);
    remote.leave_out(column::DEVICE_UTIL_PCT, "on another machine");
    assert_eq!(verdict(&remote).0, BoundBy::Cpu);
}

#[test]
fn infinite_quotients_are_no_evidence() {
    let product = test(1, &[(column::CLIENT_CPU_US_PER_TX, 1e300), (column::COMMIT_THROUGHPUT_TPS, 1e300)]);
    assert_eq!(verdict(&product).0, BoundBy::Unknown);
    let quotient =
        [(column::DEVICE_WRITE_MIB_PER_S, 1e306), (column::DEVICE_WRITES_PER_S, 1e-9), (column::LIMIT_SHARE_PCT, 92.0)];
    assert_eq!(verdict(&with(log_bound(), &quotient)).0, BoundBy::LogSync);
}

#[test]
fn full_cpus_come_before_the_log() {
    let (by, why) = verdict(&with(log_bound(), &[(column::CPU_BUSY_PCT, 97.0)]));
    assert_eq!(by, BoundBy::Cpu);
    assert_eq!(why, "CPU: CPU busy 97 %; loadline itself 9 %");
}

#[test]
fn cpus_that_others_used_are_said_to_be_theirs() {
    let full = |others: f64| {
        let r = with(log_bound(), &[(column::CPU_BUSY_PCT, 100.0), (column::OTHER_CPU_PCT, others)]);
        bound(&r).unwrap()
    };
    let disturbed = full(76.0);
    assert_eq!(disturbed.sentence(), "CPU: CPU busy 100 %; other processes had 76 % of the CPUs; loadline itself 9 %");
    assert!(disturbed.from.contains(&column::OTHER_CPU_PCT));
    assert!(!full(1.0).because.contains("other processes"), "daemons of a quiet machine");
}

#[test]
fn commits_one_at_a_time_are_a_single_writer() {
    // SQLite: 8 jobs, one commit at a time, one sync each.
    let sqlite = test(
        8,
        &[
            (column::COMMIT_THROUGHPUT_TPS, 4_100.0),
            (column::COMMIT_LATENCY_MS, 1.95),
            (column::LOG_FILE_SYNC_MS, 0.19),
            (column::COMMIT_TIME_NS_MEAN, 215_000.0),
            (column::COMMITS_PER_REDO_SYNC, 1.0),
            (column::CPU_BUSY_PCT, 30.0),
            (column::DEVICE_UTIL_PCT, 80.0),
        ],
    );
    let (by, why) = verdict(&sqlite);
    assert_eq!(by, BoundBy::SingleWriter);
    assert_eq!(
        why,
        "single writer: 1.00 commits per sync with 8 jobs, and on average 0.88 of the jobs in a commit: commits \
         run one at a time"
    );
    // Eight sessions in a commit, each with its own sync, are not a queue.
    let own_syncs = with(log_bound(), &[(column::COMMITS_PER_REDO_SYNC, 1.0)]);
    assert_eq!(verdict(&own_syncs).0, BoundBy::LogSync);
    // Commits that hardly overlap do not queue.
    let idle = with(sqlite.clone(), &[(column::COMMIT_TIME_NS_MEAN, 50_000.0), (column::LOG_FILE_SYNC_MS, 0.01)]);
    assert_eq!(verdict(&idle).0, BoundBy::Unknown);
    assert_ne!(verdict(&with(test(1, &[]), &[(column::COMMIT_THROUGHPUT_TPS, 4_100.0)])).0, BoundBy::SingleWriter);
}

#[test]
fn large_writes_at_the_limit_are_bandwidth() {
    let throughput = with(
        log_bound(),
        &[
            (column::DEVICE_WRITES_PER_S, 900.0),
            (column::DEVICE_WRITE_MIB_PER_S, 440.0),
            (column::LIMIT_SHARE_PCT, 92.0),
        ],
    );
    let (by, why) = verdict(&throughput);
    assert_eq!(by, BoundBy::DeviceBandwidth);
    assert!(why.contains("440.0 MiB/s in writes of 501 KiB and was busy 93 %") && why.contains("92 % of the limit"));
    // The reference log writer gets more from the device; without it the limit is unknown.
    assert_eq!(verdict(&with(throughput.clone(), &[(column::LIMIT_SHARE_PCT, 40.0)])).0, BoundBy::LogSync);
    // Nor does a share of another limit say anything about the log.
    assert_eq!(verdict(&limited(throughput.clone(), name::COPY)).0, BoundBy::LogSync);
    assert_eq!(verdict(&limited(throughput.clone(), name::LOG_WRITER)).0, BoundBy::DeviceBandwidth);
    let mut unknown = throughput;
    unknown.leave_out(column::LIMIT_SHARE_PCT, "not measured");
    assert_eq!(verdict(&unknown).0, BoundBy::LogSync);
}

#[test]
fn a_rate_that_is_met_bounds() {
    let (by, why) = verdict(&with(log_bound(), &[(column::RATE_TPS, 17_850.0)]));
    assert_eq!(
        (by, why.as_str()),
        (BoundBy::Rate, "requested rate: 17,800.0 of the 17,850.0 requested transactions per second were completed")
    );
    assert_eq!(verdict(&with(log_bound(), &[(column::RATE_TPS, 20_000.0)])).0, BoundBy::LogSync);
}

#[test]
fn without_a_clear_figure_the_limit_is_unknown() {
    let mut r = with(log_bound(), &[(column::LOG_FILE_SYNC_MS, 0.1), (column::DEVICE_UTIL_PCT, 40.0)]);
    r.leave_out(column::CLIENT_CPU_PCT, "could not be read");
    r.waits.samples = 10;
    r.waits.sessions.insert("Lock:tuple".to_owned(), 52);
    let (by, why) = verdict(&r);
    assert_eq!(by, BoundBy::Unknown);
    assert_eq!(
        why,
        "limit unknown: CPU busy 31 %; sessions waited 0.100 of 0.450 ms per commit for the log; log device busy 40 %; on \
         average 5.20 of 8 jobs were in Lock:tuple; no figure points to one limit; not measured: client CPU"
    );
    let (_, why) = verdict(&test(1, &[(column::COMMIT_THROUGHPUT_TPS, 5.0)]));
    assert!(
        why.starts_with("limit unknown: no figure that could show it was measured; not measured: CPU busy,"),
        "{why}"
    );
}

#[test]
fn invalid_tests_and_size_scans_have_no_bound() {
    let mut r = log_bound();
    r.valid = false;
    assert_eq!(bound(&r), None);
    r.valid = true;
    r.sizes.push(SizePoint { redo_bytes: 0.0, commit_ns: vec![1], write_ns: vec![] });
    assert_eq!(bound(&r), None);
    assert_eq!(bound(&test(1, &[])), None);
}

#[test]
fn a_peak_at_one_job_may_hide_a_single_writer() {
    let one = |test: u32, jobs: u32, tps: f64| {
        let figures = [
            (column::COMMIT_THROUGHPUT_TPS, tps),
            (column::COMMIT_LATENCY_MS, f64::from(jobs) / tps * 1e3),
            (column::LOG_FILE_SYNC_MS, 0.8 / tps * 1e3),
            (column::COMMIT_TIME_NS_MEAN, 0.85 / tps * 1e9),
            (column::COMMITS_PER_REDO_SYNC, 1.0),
        ];
        with(record("sqlite", test, jobs), &figures)
    };
    let records = [one(1, 1, 4_980.0), one(2, 2, 4_700.0), one(3, 8, 4_600.0)];
    assert_eq!(bound(&records[0]).unwrap().by, BoundBy::LogSync);
    let b = bound_of_sweep(&sweeps(&records)[0], &records).unwrap();
    assert_eq!(
        b.sentence(),
        "single writer: throughput does not grow with jobs (4,980 tps with 1, 4,600 with 8); 1.00 commits per sync with 8 \
         jobs, and on average 0.85 of the jobs in a commit: commits run one at a time"
    );
    // One job alone only waits for the log.
    assert_eq!(bound_of_sweep(&sweeps(&records[..1])[0], &records[..1]).unwrap().by, BoundBy::LogSync);
}

#[test]
fn repetitions_with_different_limits_are_unknown() {
    let mut records = [log_bound(), log_bound(), with(log_bound(), &[(column::CPU_BUSY_PCT, 95.0)])];
    for (i, r) in records.iter_mut().enumerate() {
        r.test = i as u32 + 1;
        r.repetition = r.test;
    }
    let b = bound_of_sweep(&sweeps(&records)[0], &records).unwrap();
    assert_eq!(b.by, BoundBy::Unknown);
    assert!(b.because.starts_with("repetitions differ (CPU, log sync); one of them: "), "{}", b.because);
    assert_eq!(bound_of_sweep(&sweeps(&records[..2])[0], &records[..2]).unwrap().by, BoundBy::LogSync);
}

#[test]
fn jobs_that_wait_for_reads_are_bounded_by_them() {
    let figures = [
        (column::COMMIT_THROUGHPUT_TPS, 19_000.0),
        (column::BLOCK_READS_PER_S, 19_000.0),
        (column::READ_TIME_US_MEAN, 375.0),
    ];
    let read = |pct: f64| bound(&with(test(8, &figures), &[(column::READ_WAIT_PCT, pct)])).unwrap();
    let b = read(89.1);
    assert_eq!(b.by, BoundBy::StorageReads);
    let said = "on average 7.1 of 8 jobs waited for a read, by the database's own clock; 19,000 block reads/s; 375.0 µs per read \
                call";
    assert_eq!(b.because, said);
    // Reads from memory are no wait; more than 100 % is read-ahead.
    assert_eq!(read(1.2).by, BoundBy::Unknown);
    assert_eq!(read(890.0).by, BoundBy::Unknown);
    // Without the database's clock the read time is that of transactions, which always fills the jobs' time.
    let circular = [(column::COMMIT_LATENCY_MS, 8.0 / 19.0), (column::READ_TIME_US_MEAN, 8e6 / 19_000.0)];
    assert_eq!(verdict(&with(test(8, &figures), &circular)).0, BoundBy::Unknown);
}

const READ: [&Column; 36] = [
    column::THINKING_PCT,
    column::SCRIPT_SLEEP_PCT,
    column::CONNECTING_PCT,
    column::RATE_TPS,
    column::COMMIT_THROUGHPUT_TPS,
    column::COMMIT_LATENCY_MS,
    column::LOG_FILE_SYNC_MS,
    column::COMMIT_TIME_NS_MEAN,
    column::COMMITS_PER_REDO_SYNC,
    column::REDO_SYNC_WRITES_PER_S,
    column::CPU_BUSY_PCT,
    column::CPU_IOWAIT_PCT,
    column::CLIENT_CPU_PCT,
    column::CLIENT_CPU_US_PER_TX,
    column::OUTSIDE_TX_PCT,
    column::DEVICE_UTIL_PCT,
    column::DEVICE_WRITES_PER_S,
    column::DEVICE_WRITE_MIB_PER_S,
    column::LIMIT_SHARE_PCT,
    column::BLOCK_READS_PER_S,
    column::READ_TIME_US_MEAN,
    column::READ_WAIT_PCT,
    column::SESSION_CPU_PCT,
    column::SESSION_CPU_WAIT_PCT,
    column::SESSION_IO_PCT,
    column::SESSION_IDLE_PCT,
    column::CLIENT_JOB_CPU_PCT,
    column::CLIENT_JOB_CPU_WAIT_PCT,
    column::LOCK_WAIT_PCT,
    column::LOG_WRITE_WAIT_PCT,
    column::WRITE_WAIT_PCT,
    column::WRITER_WAIT_PCT,
    column::REPLICA_WAIT_PCT,
    column::DATA_DEVICE_UTIL_PCT,
    column::DEVICE_READ_MIB_PER_S,
    column::PHYSICAL_WRITTEN_MIB_PER_S,
];

fn any_figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(95.0),
        Just(1e300),
        Just(f64::NAN),
        Just(f64::NEG_INFINITY),
        0.0..100.0f64,
        -1e6..1e6f64
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn absent_figures_are_never_used(
        figures in prop::collection::btree_map(prop::sample::select(READ.map(|c| c.id).to_vec()), any_figure(), 0..16),
        jobs in prop_oneof![0..10u32, Just(u32::MAX)],
    ) {
        let mut r = record("pg", 1, jobs);
        r.figures = figures.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let Some(b) = bound(&r) else { return Ok(()) };
        prop_assert!(!b.because.is_empty() && !b.because.contains('\n'));
        prop_assert!(!b.because.contains("NaN") && !b.because.contains("inf"));
        for id in &b.from {
            prop_assert!(r.figure(id).is_some_and(f64::is_finite), "{id} is read but absent: {}", b.because);
        }
        let has = |column: &'static Column| b.from.contains(&column);
        let at_least = |column: &'static Column, least: f64| has(column) && r.figure(column).unwrap() >= least;
        prop_assert!(match b.by {
            BoundBy::Rate => has(column::RATE_TPS),
            BoundBy::Client => {
                has(column::CLIENT_CPU_PCT)
                    || has(column::CLIENT_CPU_US_PER_TX)
                    || has(column::OUTSIDE_TX_PCT)
                    || has(column::CLIENT_JOB_CPU_PCT)
            }
            BoundBy::Cpu => at_least(column::CPU_BUSY_PCT, 90.0) || has(column::SESSION_CPU_PCT),
            BoundBy::SingleWriter => (jobs > 1 && has(column::COMMITS_PER_REDO_SYNC)) || has(column::WRITER_WAIT_PCT),
            BoundBy::DeviceBandwidth => at_least(column::DEVICE_UTIL_PCT, 80.0) && at_least(column::LIMIT_SHARE_PCT, 80.0),
            BoundBy::StorageReads => {
                has(column::READ_WAIT_PCT)
                    || has(column::SESSION_IO_PCT)
                    || at_least(column::DATA_DEVICE_UTIL_PCT, 80.0)
                    || at_least(column::LIMIT_SHARE_PCT, 90.0)
            }
            BoundBy::StorageWrites => {
                has(column::WRITE_WAIT_PCT)
                    || at_least(column::DATA_DEVICE_UTIL_PCT, 80.0)
                    || at_least(column::LIMIT_SHARE_PCT, 90.0)
            }
            BoundBy::LogWrite => has(column::LOG_WRITE_WAIT_PCT),
            BoundBy::ThinkTime => has(column::THINKING_PCT),
            BoundBy::ScriptSleep => has(column::SCRIPT_SLEEP_PCT),
            BoundBy::Connecting => has(column::CONNECTING_PCT),
            BoundBy::Locks => has(column::LOCK_WAIT_PCT),
            BoundBy::Replica => has(column::REPLICA_WAIT_PCT),
            BoundBy::RoundTrip => has(column::SESSION_IDLE_PCT),
            BoundBy::LogSync => has(column::LOG_FILE_SYNC_MS) || has(column::COMMIT_TIME_NS_MEAN),
            BoundBy::Unknown => {
                b.because.contains("no figure points to one limit") || b.because.contains("no figure that could show it")
            },
        }, "{b:?}");
        // All figures in the text are named in `from`: without them the text changes.
        let mut without = r.clone();
        b.from.iter().filter(|id| **id != column::COMMIT_THROUGHPUT_TPS).for_each(|id| { without.figures.remove(id.id); });
        if !b.from.is_empty() && b.from != [column::COMMIT_THROUGHPUT_TPS] {
            prop_assert_ne!(bound(&without), Some(b));
        }
    }
}
