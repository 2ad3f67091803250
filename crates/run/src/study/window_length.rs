//! Length of a test's window: as planned, or longer if transactions are long.

use loadline_load::{Measured, Request};
use loadline_model::{Note, Outcome, TestRecord, column};

use crate::checks::window;
use crate::evidence::Evidence;
use crate::test::Test;

/// Minimum number of transactions per job in a window. With fewer, the count is chance.
const MIN_TRANSACTIONS: f64 = 3.0;
/// Minimum ratio of the count of whole transactions to its error: each job may be off by one, and their sum by about √jobs.
const MIN_COUNT_TO_ERROR: f64 = 8.0;
/// A rate that is known less exactly than this share has a note that says how exactly.
const EXACT: f64 = 0.01;
/// A test is repeated if the error is this many times too large; less is not worth the time.
const REPEAT_FACTOR: f64 = 1.5;
/// Maximum length of a window that loadline extends, s.
const MAX_WINDOW_S: f64 = 120.0;

/// Window of the next test of workload `code`, s: as planned, or longer if earlier tests had long transactions.
pub(super) fn window_s(plan_s: f64, records: &[TestRecord], code: &str, jobs: u32) -> f64 {
    let whole = |r: &&TestRecord| r.by_agent().iter().all(|agent| agent.failed.is_none());
    let before = records.iter().rev().filter(whole).find(|r| r.workload == code);
    let Some((before, ms)) = before.and_then(|r| Some((r, r.figure(column::COMMIT_LATENCY_MS)?))) else {
        return plan_s;
    };
    // On a saturated platform, transaction time grows with the number of jobs.
    let expected_s = ms / 1e3 * (f64::from(jobs) / f64::from(before.jobs.max(1))).max(1.0);
    long_enough_s(plan_s, expected_s, jobs)
}

fn long_enough_s(plan_s: f64, transaction_s: f64, jobs: u32) -> f64 {
    let of_each = MIN_TRANSACTIONS.max(MIN_COUNT_TO_ERROR / f64::from(jobs.max(1)).sqrt());
    let wanted = transaction_s * of_each;
    if wanted > plan_s && wanted <= MAX_WINDOW_S { wanted } else { plan_s }
}

/// Relative error of a count of whole transactions.
fn resolution(transactions: f64, jobs: u32) -> f64 {
    f64::from(jobs).sqrt() / transactions.max(1.0)
}

/// Transactions of a window.
#[derive(Debug, Clone, Copy)]
struct Seen {
    count: f64,
    mean_s: Option<f64>,
    /// Whether all jobs ran through the window and completed transactions.
    is_full: bool,
    /// Whether jobs wait between transactions on purpose.
    waits: bool,
    has_errors: bool,
}

/// Window, s, with which a test must be repeated because its transactions were too long; `None` if they were not.
pub(super) fn longer_s(request: &Request, measured: &Measured) -> Option<f64> {
    let (load, merged) = (&request.load, &measured.merged);
    let seen = Seen {
        count: merged.transaction.count() as f64,
        mean_s: merged.transaction.mean_ns().map(|ns| ns / 1e9),
        is_full: window(measured).outcome != Outcome::Failed,
        waits: load.rate_tps.is_some() || (load.thinks() && merged.thoughts > 0),
        has_errors: !merged.error_texts.is_empty(),
    };
    long_enough_for(seen, request.jobs, request.duration_s)
}

/// Failed transactions never extend the window.
fn long_enough_for(seen: Seen, jobs: u32, window_s: f64) -> Option<f64> {
    let few = resolution(seen.count, jobs) > REPEAT_FACTOR / MIN_COUNT_TO_ERROR;
    // Nothing completed: assume a transaction as long as the window.
    let transaction_s = seen.mean_s.unwrap_or(window_s);
    let wanted = long_enough_s(window_s, transaction_s * if seen.is_full { 1.2 } else { 1.5 }, jobs);
    ((!seen.is_full || few && !seen.waits) && !seen.has_errors && wanted > window_s).then_some(wanted)
}

/// Notes about a window that is longer than planned, or shorter than its transactions need.
pub(crate) fn notes(e: &Evidence<'_>, test: &mut Test) {
    let (window_s, planned_s) = (e.request.duration_s, e.run.manifest.plan.duration_s);
    let longer = (window_s > planned_s).then_some(Note::LongerWindow { window_s, planned_s });
    let coarse = coarse_note(test, e.request.jobs, e.merged().transaction.spread());
    test.notes.extend(longer.into_iter().chain(coarse));
}

/// Note about rates with a large error. [`loadline_load::tps`] counts parts of transactions by time: known as well as these are alike.
fn coarse_note(figures: &Test, jobs: u32, spread: f64) -> Option<Note> {
    let n = figures.figure(column::COMMITS).filter(|n| *n > 0.0 && figures.figure(column::RATE_TPS).is_none())?;
    // Where most of the time is thinking, transactions come at random, as in a Poisson process.
    let thinking = figures.figure(column::THINKING_PCT).map_or(0.0, |pct| pct / 100.0);
    let share = (spread.min(1.0) * resolution(n, jobs)).max(thinking / n.sqrt());
    (share > EXACT).then_some(Note::FewTransactions { transactions: n, error_pct: share * 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(latency_ms: f64) -> TestRecord {
        let mut record = TestRecord { jobs: 2, ..TestRecord::blank("DA-SCAN") };
        record.set(column::COMMIT_LATENCY_MS, latency_ms);
        record
    }

    #[test]
    fn long_transactions_get_a_longer_window() {
        let before = [record(500.0)];
        assert_eq!(window_s(1.0, &before, "DA-SCAN", 4), 4.0, "twice the jobs, twice the time, four of each: 16 ± 2");
        assert_eq!(window_s(1.0, &before, "DA-SCAN", 1), 4.0, "eight of one job");
        assert_eq!(window_s(1.0, &before, "DA-SCAN", 64), 48.0, "three of each of many");
        assert_eq!(window_s(1.0, &before, "DA-AGG", 4), 1.0, "another workload");
        assert_eq!(window_s(30.0, &before, "DA-SCAN", 4), 30.0);
        assert_eq!(window_s(1.0, &[record(1e6)], "DA-SCAN", 2), 1.0, "longer than the maximum window");
    }

    #[test]
    fn an_inaccurate_rate_is_noted() {
        let mut few = crate::testing::figures(&[(column::COMMITS, 14.0)]);
        let Some(Note::FewTransactions { transactions, error_pct }) = coarse_note(&few, 2, 0.5) else {
            panic!("14 ± 0.7")
        };
        assert_eq!([transactions, error_pct.round()], [14.0, 5.0]);
        assert_eq!(coarse_note(&few, 2, 0.01), None, "transactions that are alike are counted in parts");
        few.set(column::COMMITS, 100.0);
        assert_eq!(coarse_note(&few, 2, 0.5), None);
        few.set(column::THINKING_PCT, 90.0);
        assert!(coarse_note(&few, 2, 0.0).is_some(), "they come at random: 100 ± 9");
    }

    #[test]
    fn a_test_is_repeated_only_if_its_window_was_too_short() {
        let wanted = |s: f64, margin: f64| Some(s * margin * 8.0 / 2f64.sqrt());
        // Transactions of two jobs in a window of 1 s.
        let of = |count: f64, mean_s, is_full| Seen { count, mean_s, is_full, waits: false, has_errors: false };
        let longer = |seen| long_enough_for(seen, 2, 1.0);
        assert_eq!(longer(of(270.0, Some(0.75), false)), wanted(0.75, 1.5));
        assert_eq!(longer(of(0.0, None, false)), wanted(1.0, 1.5), "nothing completed");
        let few = |count| of(count, Some(0.2), true);
        assert_eq!(longer(few(7.0)), wanted(0.2, 1.2), "few: 7 ± 1.4");
        assert_eq!(longer(few(9.0)), None, "9 ± 1.4 is not worth the time");
        assert_eq!(longer(Seen { waits: true, ..few(7.0) }), None, "the rate asked for");
        assert_eq!(longer(of(250.0, Some(0.8), true)), None, "the window was long enough");
        let failed = Seen { has_errors: true, ..of(0.0, None, false) };
        assert_eq!(longer(failed), None, "failed transactions do not extend the window");
    }
}
