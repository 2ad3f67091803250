//! Computes figures from the evidence of a test. Each is computed once, from the counters that its column names.
//!
//! `steps.rs` lists the functions.

pub(crate) mod counters;
pub(crate) mod database;
pub(crate) mod disturbance;
pub(crate) mod machine;
pub(crate) mod nodes;
pub(crate) mod populations;
pub(crate) mod series;
pub(crate) mod shares;
pub(crate) mod slow;
pub(crate) mod volume;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use loadline_database::Runs;
use loadline_load::{Measured, Tally};
use loadline_model::snapshot::{AUTOVACUUM, counter};
use loadline_model::{Driver, Note, column};
use loadline_workload::Instrument;

use crate::evidence::Evidence;
pub(crate) use crate::test::MIB;
use crate::test::Test;

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const NOT_IDLE: &str = "only scans over times since the last change show it (LGWR-SIZE with --idle)";
const NONE_COMPLETED: &str = "no transaction completed in the window";
const ENDED_EARLY: &str = "all jobs ended before the window did";

fn all_ended_early(measured: &Measured) -> bool {
    measured.jobs.iter().all(|job| job.lost.is_some())
}

/// Background work of the database, rows by its own count, and what readers must know of counters and samples.
pub(crate) fn background(e: &Evidence<'_>, test: &mut Test) {
    let autovacuum = autovacuum_pct(e.measured);
    test.set_or_fallback(column::AUTOVACUUM_SHARE_PCT, autovacuum, "the target's background work is not sampled");
    if let Ok(Some(grown)) = e.proof.grown {
        test.set(column::ROWS_CHANGED_DATABASE, grown as f64);
    }
    if e.merged().scripted.is_some() {
        test.notes.push(Note::ScriptCommits { commits: e.merged().commits_per_tx() });
    }
    let problems = e.measured.collected.problems.iter().cloned();
    test.notes.extend(problems.map(|problem| Note::NotRead { problem }));
    if let Ok(counters) = &e.counters {
        // Too far from window start or window end.
        let (off_s, window_s) = (counters.off_s, e.measured.schedule.window_s());
        test.notes.extend((off_s > 0.1 * window_s).then_some(Note::ReadLate { off_s, window_s }));
        // Those of a server that counts late are of the warm-up too.
        let made = if counters.whole.is_some() {
            counters.grown_on_time(counter::CHECKPOINTS)
        } else {
            counters.grown(counter::CHECKPOINTS)
        };
        test.set_or_fallback(column::CHECKPOINTS, made, "the target does not count its checkpoints");
        // A database in loadline's process makes its own all the time; of others an instrument may say it.
        let (work, runs) = (&e.work().workload, e.request.target.facts().runs);
        let many = made.filter(|n| *n >= 2.0 && !work.has(Instrument::Checkpoint) && runs == Runs::Apart);
        test.notes.extend(many.map(|made| Note::Checkpoints { made }));
    }
}

/// Share of the samples in the window that saw autovacuum at work, %.
fn autovacuum_pct(measured: &Measured) -> Option<f64> {
    let window = measured.schedule.open_ns..measured.schedule.close_ns;
    let samples = measured.collected.wait_samples.iter().filter(|(at, _)| window.contains(at));
    let at_work: Vec<bool> =
        samples.filter_map(|(_, s)| Some(s.background.as_ref()?.iter().any(|what| what == AUTOVACUUM))).collect();
    let n = at_work.iter().filter(|at_work| **at_work).count();
    (!at_work.is_empty()).then(|| 100.0 * n as f64 / at_work.len() as f64)
}

/// Figures counted and timed by the jobs.
pub(crate) fn own(e: &Evidence<'_>, out: &mut Test) {
    let merged = e.merged();
    let no_commit = no_commit(merged, e.request.target.facts().commit_unseen);
    out.set(column::ELAPSED_S, e.measured.schedule.window_s());
    out.set(column::WARMUP_S, e.measured.warmup.taken_s);
    out.set(column::COMMITS, e.transactions());
    out.set(column::ERRORS, merged.errors as f64);
    out.set_absent(column::LOG_FLUSHED_WITHIN_S, NOT_IDLE);
    let counted = e.request.driver == Driver::Client || e.request.target.facts().retries_inside;
    let conflicts = counted.then_some(merged.conflicts as f64);
    out.set_or_absent(column::CONFLICTS, conflicts, "inside the database a transaction that loses is an error");
    out.set(column::COMMIT_THROUGHPUT_TPS, e.tps());
    out.set(column::TX_PER_S, e.tps());
    out.set_or_absent(column::COMMIT_LATENCY_MS, merged.transaction.mean_ns().map(|ns| ns / 1e6), NONE_COMPLETED);
    out.set_all(column::TRANSACTION_TIMES.all(), merged.transaction.summary_ns().ok_or(NONE_COMPLETED));
    // A stall that lasts beyond the window: a transaction in progress at its end took that long at least.
    let oldest_ns = e.measured.jobs.iter().map(|job| job.age_at_close_ns).max().unwrap_or(0) as f64;
    if out.figure(column::TRANSACTION_TIME_NS_MAX).is_some_and(|max_ns| max_ns < oldest_ns) {
        out.set(column::TRANSACTION_TIME_NS_MAX, oldest_ns);
    }
    let (seen, all) = (merged.commit.count(), merged.transaction.count());
    out.set_all(column::COMMIT_TIMES.all(), merged.commit.summary_ns().ok_or(no_commit));
    if no_commit == NONE_COMPLETED && seen < all {
        out.notes.push(Note::FewCommitsTimed { timed: seen, transactions: all });
    }
}

/// Why commits have no times. `commit_unseen`: why the target's sessions see none.
fn no_commit(merged: &Tally, commit_unseen: Option<&'static str>) -> &'static str {
    if merged.scripted.is_some() {
        return "a script may commit anywhere, or not at all: its commits are not timed";
    }
    let is_unseen = merged.commit.count() == 0 && merged.transaction.count() > 0;
    let why = if is_unseen { commit_unseen } else { None };
    why.unwrap_or(NONE_COMPLETED)
}

/// Figures by column id: a counter, what its growth is divided by, and unit; in groups by the reason for their absence.
type Ratios = BTreeMap<String, BTreeMap<String, (String, String, f64)>>;

/// None if the file cannot be read, which the tests detect.
static RATIOS: LazyLock<Ratios> =
    LazyLock::new(|| toml::from_str(include_str!("figures/ratios.toml")).unwrap_or_default());

/// Figures that are the growth of a counter by time, transactions or another counter.
pub(crate) fn ratios(e: &Evidence<'_>, out: &mut Test) {
    let seconds = e.counters.as_ref().ok().map(|c| c.seconds);
    let grown = |name: &str| e.grown(&format!("loadline.{name}"));
    for (why, figures) in RATIOS.iter() {
        let why = e.missing(why);
        for (id, (counter, by, unit)) in figures {
            let by = match by.as_str() {
                "s" => seconds,
                "job_s" => seconds.map(|s| s * e.jobs()),
                "tx" => Some(e.comparable().count),
                other => grown(other),
            };
            // A group without commits is no group commit; the time of a server that counts late is NaN if nothing completed.
            let n = grown(counter).filter(|n| counter != "commits" || *n > 0.0);
            let ratio = n.zip(by.filter(|n| n.is_nan() || *n > 0.0)).map(|(n, by)| n / by / unit);
            column::column(id).into_iter().for_each(|column| out.set_or_fallback(column, ratio, &why));
        }
    }
}

#[cfg(test)]
mod tests {
    use loadline_collect::os::DiskCounters;
    use loadline_database::Work;

    use super::*;
    use crate::steps::FIGURES;
    use crate::testing::{self, SECOND, jobs};

    type Expected = (&'static loadline_model::Column, f64);

    /// Four jobs with transactions of 3 ms, of which the commit takes 1 ms, in 2 s.
    fn of_three_ms(workload: &str) -> testing::Case {
        let three_ms = jobs(4, |schedule, books| {
            let mut t = schedule.start_ns;
            while t < schedule.close_ns {
                books.completed(schedule, None, t, Some(t + 2_000_000), t + 3_000_000);
                t += 3_000_000;
            }
        });
        testing::case(Work::from_catalogue(workload, &[]).unwrap(), three_ms)
    }

    #[test]
    fn reads_need_no_sync_and_a_stall_at_the_window_end_is_in_the_longest_time() {
        for (workload, least, most) in
            [("LGWR-LAT1", 3.99, 4.01), ("TP-MIXED", 1.0, 3.9), ("SRV-QUERY1", f64::NAN, f64::NAN)]
        {
            let mut case = of_three_ms(workload);
            let n = case.measured.merged.transaction.count() as f64;
            case.count(counter::COMMITS, n);
            case.count(counter::REDO_SYNCS, n / 4.0);
            case.measured.jobs[0].age_at_close_ns = 10 * SECOND;
            let made = case.made(FIGURES);
            let per_sync = made.figure(column::COMMITS_PER_REDO_SYNC);
            assert_eq!(per_sync.is_some(), least.is_finite(), "{workload}");
            assert!(per_sync.is_none_or(|n| (least..most).contains(&n)), "{workload}: {per_sync:?}");
            assert_eq!(made.figure(column::TRANSACTION_TIME_NS_MAX), Some(10.0 * SECOND as f64));
        }
    }

    #[test]
    fn a_commit_without_a_time_was_not_made_or_not_seen() {
        let mut merged = Tally::default();
        assert_eq!(no_commit(&merged, Some("unseen")), NONE_COMPLETED);
        merged.transaction.record(1000);
        assert_eq!([no_commit(&merged, Some("unseen")), no_commit(&merged, None)], ["unseen", NONE_COMPLETED]);
        merged.commit.record(1000);
        assert_eq!(no_commit(&merged, Some("unseen")), NONE_COMPLETED);
    }

    #[test]
    fn figures_are_those_of_the_counters() {
        let mut case = of_three_ms("LGWR-LAT1");
        let (n, tps) = (case.measured.merged.transaction.count() as f64, 4.0 / 0.003);
        let readings = &mut case.measured.readings;
        for (reading, grown) in [(&mut readings.at_start, 0), (&mut readings.at_end, 1)] {
            let of_disk = |writes| DiskCounters { writes, written_bytes: writes << 14, ..DiskCounters::default() };
            reading.system.disk = Some(of_disk(256 * grown));
            reading.system.data_disk = Some(DiskCounters { reads: 64 * grown, ..of_disk(0) });
            reading.system.process_ns = Some(4 * SECOND / 10 * grown);
        }
        // Counters by how much they grow, and the figures that follow.
        let counted: &[(&str, f64, &[Expected])] = &[
            (counter::COMMITS, n * 2.0, &[(column::COMMITS_DATABASE, n * 2.0), (column::COMMITS_PER_REDO_SYNC, 8.0)]),
            (counter::REDO_SYNCS, n / 4.0, &[(column::REDO_SYNC_WRITES_PER_S, n / 8.0), (column::REDO_SYNCS, n / 4.0)]),
            (counter::REDO_SYNC_NS, n * 1e3, &[(column::REDO_SYNC_TIME_US, 4.0)]),
            (counter::REDO_WRITES, 40.0, &[(column::REDO_WRITES_PER_S, 20.0)]),
            (counter::REDO_WRITE_NS, 2e6, &[(column::REDO_WRITE_TIME_US, 50.0)]),
            (counter::REDO_BLOCKS, 100.0, &[(column::REDO_BLOCKS_PER_S, 50.0)]),
            (
                counter::REDO_BYTES,
                4.0 * MIB,
                &[(column::REDO_MIB_PER_S, 2.0), (column::REDO_BYTES_PER_TX, 2.0 * MIB / tps)],
            ),
            (counter::FLASH_WRITES, 30.0, &[(column::FLASH_CACHE_WRITE_PCT, 25.0)]),
            (counter::WRITES, 120.0, &[]),
            (counter::LOG_GROUPS, n / 5.0, &[(column::LOG_GROUP_COMMITS, 10.0)]),
            (counter::LOG_FILL_BYTES, n * KIB, &[(column::LOG_FILL_KIB, 5.0)]),
            (counter::LOG_PART_WAIT_NS, n * 1e3, &[(column::LOG_PART_WAIT_US, 0.5)]),
            (counter::LOG_PART_COPY_NS, n * 2e3, &[(column::LOG_PART_COPY_US, 1.0)]),
            (counter::LOG_PART_WRITE_NS, n * 3e3, &[(column::LOG_PART_WRITE_US, 1.5)]),
            (counter::LOG_PART_SYNC_NS, n * 7e3, &[(column::LOG_PART_SYNC_US, 3.5)]),
            (counter::LOG_PART_WAKE_NS, n * 4e3, &[(column::LOG_PART_WAKE_US, 2.0)]),
            (counter::LOG_FULL_NS, n * 5e3, &[(column::LOG_FULL_US, 2.5)]),
            (counter::OLD_ROWS, n * 2.0, &[(column::OLD_ROWS_PER_TX, 2.0)]),
            (counter::LOG_WAIT_NS, 2e9, &[(column::LOG_FILE_SYNC_MS, 1e3 / tps)]),
            (counter::BLOCK_GETS, 240.0, &[(column::BLOCK_GETS_PER_S, 120.0), (column::CACHE_HIT_PCT, 75.0)]),
            (counter::BLOCK_READS, 60.0, &[(column::BLOCK_READS_PER_S, 30.0), (column::BLOCK_READS_PER_TX, 60.0 / n)]),
            (counter::READ_BYTES, 6.0 * MIB, &[(column::READ_MIB_PER_S, 3.0)]),
            (counter::READ_CALLS, 40.0, &[(column::IO_PER_S, 30.0)]),
            (counter::READ_NS, 4e8, &[(column::READ_TIME_US_MEAN, 1e4), (column::READ_WAIT_PCT, 5.0)]),
            (counter::WRITE_CALLS, 20.0, &[(column::PHYSICAL_WRITES_PER_S, 10.0)]),
            (
                counter::BLOCK_WRITES,
                80.0,
                &[(column::PHYSICAL_WRITTEN_BLOCKS_PER_S, 40.0), (column::BLOCK_WRITES_PER_TX, 80.0 / n)],
            ),
            (counter::WRITE_BYTES, 8.0 * MIB, &[(column::PHYSICAL_WRITTEN_MIB_PER_S, 4.0)]),
            (counter::UNDO_BYTES, n * KIB, &[(column::UNDO_KIB_PER_TX, 1.0)]),
            (counter::BUFFER_WAIT_NS, 8e8, &[(column::BUFFER_WAIT_PCT, 10.0)]),
            (counter::CHECKPOINTS, 3.0, &[(column::CHECKPOINTS, 3.0)]),
        ];
        let others = [
            (column::ELAPSED_S, 2.0),
            (column::COMMIT_THROUGHPUT_TPS, tps),
            (column::COMMIT_LATENCY_MS, 3.0),
            (column::SQL_SERVICE_TIME_S, 0.002),
            (column::OUTSIDE_TX_PCT, 0.0),
            (column::DEVICE_WRITES_PER_S, 128.0),
            (column::DEVICE_WRITE_MIB_PER_S, 2.0),
            (column::DEVICE_READS_PER_S, 32.0),
            (column::CLIENT_CPU_PCT, 10.0),
            (column::CLIENT_CPU_US_PER_TX, 2e5 / tps),
        ];
        counted.iter().for_each(|(name, grown, _)| case.count(name, *grown));
        let made = case.made(FIGURES);
        for (column, expected) in counted.iter().flat_map(|(.., figures)| figures.iter()).chain(&others) {
            let found = made.figure(column).unwrap_or(f64::NAN);
            assert!((found - expected).abs() <= 1e-3 * expected + 1e-6, "{column}: {found}, not {expected}");
        }
        let counted: Vec<_> =
            counted.iter().flat_map(|(.., figures)| figures.iter().map(|(column, _)| *column)).collect();
        none_is_made_without_counters(&mut case, &counted);
    }

    fn none_is_made_without_counters(case: &mut testing::Case, counted: &[&'static loadline_model::Column]) {
        case.count(counter::COMMITS, 0.0);
        assert_eq!(case.made(FIGURES).figure(column::LOG_GROUP_COMMITS), None, "groups of no commits");
        let readings = &mut case.measured.readings;
        for snapshot in [&mut readings.at_start.snapshot, &mut readings.at_end.snapshot] {
            snapshot.as_mut().unwrap().counters.clear();
        }
        let made = case.made(FIGURES);
        for column in counted {
            assert!(made.figure(column).is_none() && made.absence_reason(column).is_some(), "{column}: not counted");
        }
        for (column, why) in [
            (column::REDO_BLOCKS_PER_S, "the target did not provide the counter at window start and window end"),
            (column::BLOCK_READS_PER_TX, "the target does not provide the counter"),
            (column::READ_WAIT_PCT, "the database does not time its reads"),
            (column::LOG_PART_SYNC_US, "the target does not time the parts of its commits"),
        ] {
            assert_eq!(made.absence_reason(column), Some(why), "{column}");
        }
        let rows: Vec<&String> = RATIOS.values().flat_map(BTreeMap::keys).collect();
        assert!(rows.len() > 20 && rows.iter().all(|id| counted.iter().any(|column| column.id == **id)), "{rows:?}");
    }
}
