//! Length of a test's window: as planned, or longer if transactions are long.

use loadline_model::{CheckId, Outcome, TestRecord, column};

use crate::figures::Figures;

/// Minimum number of transactions per job in a window. With fewer, the count is chance.
const MIN_TRANSACTIONS: f64 = 3.0;
/// Minimum ratio of the transaction count to its error. Jobs count whole transactions, so each job may be off by one,
/// and their sum by about √jobs.
const MIN_COUNT_TO_ERROR: f64 = 8.0;
/// A test is repeated if the error is this many times too large; less is not worth the time.
const REPEAT_FACTOR: f64 = 1.5;
/// Maximum length of a window that loadline extends, s.
const MAX_WINDOW_S: f64 = 120.0;

/// Window of the next test of workload `code`, s: as planned, or longer if earlier tests had long transactions.
pub(super) fn window_s(plan_s: f64, records: &[TestRecord], code: &str, jobs: u32) -> f64 {
    let whole = |r: &&TestRecord| r.by_agent.iter().all(|agent| agent.failed.is_none());
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

/// Whether jobs wait between transactions on purpose.
fn wait(figures: &Figures) -> bool {
    [column::RATE_TPS, column::THINK_TIME_MS_MEAN].iter().any(|c| figures.figure(c).is_some())
}

/// Relative error of a count of whole transactions.
pub(super) fn resolution(transactions: f64, jobs: u32) -> f64 {
    f64::from(jobs).sqrt() / transactions.max(1.0)
}

/// Window, s, with which a test must be repeated because its transactions were too long; `None` if they were not.
/// `clean`: no transaction ended with an error. Failed transactions never extend the window.
pub(super) fn longer_s(figures: &Figures, jobs: u32, window_s: f64, clean: bool) -> Option<f64> {
    let failed = figures.checks.iter().any(|c| c.id == CheckId::Window && c.outcome == Outcome::Failed);
    let few = resolution(figures.figure(column::COMMITS).unwrap_or(0.0), jobs) > REPEAT_FACTOR / MIN_COUNT_TO_ERROR;
    // Nothing completed: assume a transaction as long as the window.
    let transaction_s = figures.figure(column::COMMIT_LATENCY_MS).map_or(window_s, |ms| ms / 1e3);
    let wanted = long_enough_s(window_s, transaction_s * if failed { 1.5 } else { 1.2 }, jobs);
    ((failed || few && !wait(figures)) && clean && wanted > window_s).then_some(wanted)
}

/// Note about rates with a large error.
pub(super) fn coarse_note(figures: &Figures, jobs: u32) -> Option<String> {
    let n = figures.figure(column::COMMITS).filter(|n| *n > 0.0 && figures.figure(column::RATE_TPS).is_none())?;
    // Where most of the time is thinking, transactions come at random, as in a Poisson process.
    let thinking = figures.figure(column::THINKING_PCT).map_or(0.0, |pct| pct / 100.0);
    let share = resolution(n, jobs).max(thinking / n.sqrt());
    (share > 0.5 / MIN_COUNT_TO_ERROR).then(|| {
        format!(
            "only {n:.0} transactions completed in the window: rates are accurate to about {:.0} %; use a longer \
            window (--duration)",
            share * 100.0
        )
    })
}

/// Note about a window that is longer than planned.
pub(super) fn longer_note(window_s: f64, plan_s: f64) -> Option<String> {
    (window_s > plan_s)
        .then(|| format!("the window is {window_s:.1} s instead of {plan_s} s, because transactions are long"))
}

#[cfg(test)]
mod tests {
    use loadline_model::Check;

    use super::*;

    /// Figures of two jobs.
    fn figures(latency_ms: Option<f64>, window_holds: bool) -> Figures {
        let mut figures = Figures::default();
        if let Some(ms) = latency_ms {
            figures.set(column::COMMIT_LATENCY_MS, ms);
            figures.set(column::COMMITS, 2.0 * 1e5 / ms);
        }
        figures.checks.push(Check::require(CheckId::Window, window_holds, String::new()));
        figures
    }

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
        let mut few = figures(Some(200.0), true);
        few.set(column::COMMITS, 14.0);
        assert!(
            coarse_note(&few, 2).unwrap().contains("14 transactions") && coarse_note(&few, 2).unwrap().contains("10 %")
        );
        few.set(column::COMMITS, 100.0);
        assert_eq!(coarse_note(&few, 2), None);
    }

    #[test]
    fn a_test_is_repeated_only_if_its_window_was_too_short() {
        let wanted = |s: f64, margin: f64| Some(s * margin * 8.0 / 2f64.sqrt());
        assert_eq!(longer_s(&figures(Some(750.0), false), 2, 1.0, true), wanted(0.75, 1.5));
        assert_eq!(longer_s(&figures(None, false), 2, 1.0, true), wanted(1.0, 1.5), "nothing completed");
        let few = |commits: f64| {
            let mut few = figures(Some(200.0), true);
            few.set(column::COMMITS, commits);
            few
        };
        assert_eq!(longer_s(&few(7.0), 2, 1.0, true), wanted(0.2, 1.2), "few: 7 ± 1.4");
        assert_eq!(longer_s(&few(9.0), 2, 1.0, true), None, "9 ± 1.4 is not worth the time");
        let mut paced = few(7.0);
        paced.set(column::RATE_TPS, 7.0);
        assert_eq!(longer_s(&paced, 2, 1.0, true), None, "the rate asked for");
        assert_eq!(longer_s(&figures(Some(800.0), true), 2, 1.0, true), None, "the window was long enough");
        assert_eq!(
            longer_s(&figures(None, false), 2, 1.0, false),
            None,
            "failed transactions do not extend the window"
        );
    }
}
