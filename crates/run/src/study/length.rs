//! How long a test's window is: as the plan says, unless transactions are too long for it.

use loadline_model::{Outcome, TestRecord, column};

use crate::figures::Figures;

/// A window holds so many transactions of a job at least: what fits in it is chance otherwise.
const TRANSACTIONS: f64 = 3.0;
/// The jobs count whole transactions only, so that each may be off by up to one. Their sum is off by about
/// √jobs, which shall be at most one part in so many of all that completed.
const PARTS: f64 = 8.0;
/// A test is made again where the sum is off by so many times that: a little is not worth the time.
const TOO_COARSE: f64 = 1.5;
/// A window is not made longer than this on loadline's own account, s.
const LONGEST_S: f64 = 120.0;

/// Window of the next test of workload `code`, s: that of the plan, or a longer one where the tests before
/// let expect transactions that are too long for it.
pub(super) fn of(plan_s: f64, records: &[TestRecord], code: &str, jobs: u32) -> f64 {
    let before = records.iter().rev().find(|r| r.workload == code);
    let Some((before, ms)) = before.and_then(|r| Some((r, r.figure(column::COMMIT_LATENCY_MS)?))) else {
        return plan_s;
    };
    // A platform whose throughput no longer grows takes so much longer with more jobs.
    let expected_s = ms / 1e3 * (f64::from(jobs) / f64::from(before.jobs.max(1))).max(1.0);
    enough(plan_s, expected_s, jobs)
}

fn enough(plan_s: f64, transaction_s: f64, jobs: u32) -> f64 {
    let of_each = TRANSACTIONS.max(PARTS / f64::from(jobs.max(1)).sqrt());
    let wanted = transaction_s * of_each;
    if wanted > plan_s && wanted <= LONGEST_S { wanted } else { plan_s }
}

/// By how much the count of whole transactions may be off: a share of it.
pub(super) fn resolution(transactions: f64, jobs: u32) -> f64 {
    f64::from(jobs).sqrt() / transactions.max(1.0)
}

/// The window with which a test has to be made again, because its transactions turned out too long for the
/// one that it had; `None` where they did not. `clean` is whether no transaction ended with an error: what failed
/// is not too long.
pub(super) fn longer(figures: &Figures, jobs: u32, window_s: f64, clean: bool) -> Option<f64> {
    let failed = figures.checks.iter().any(|c| c.id == "window" && c.outcome == Outcome::Failed);
    let few = resolution(figures.figure(column::COMMITS).unwrap_or(0.0), jobs) > TOO_COARSE / PARTS;
    // Nothing completed at all: a transaction takes longer than the window.
    let transaction_s = figures.figure(column::COMMIT_LATENCY_MS).map_or(window_s, |ms| ms / 1e3);
    let wanted = enough(window_s, transaction_s * if failed { 1.5 } else { 1.2 }, jobs);
    let open_loop = figures.figure(column::RATE_TPS).is_some();
    ((failed || few && !open_loop) && clean && wanted > window_s).then_some(wanted)
}

/// What the record says of a rate that is known coarsely.
pub(super) fn coarse(figures: &Figures, jobs: u32) -> Option<String> {
    let open_loop = figures.figure(column::RATE_TPS).is_some();
    let n = figures.figure(column::COMMITS).filter(|n| *n > 0.0 && !open_loop)?;
    let share = resolution(n, jobs);
    (share > 0.5 / PARTS).then(|| {
        format!(
            "only {n:.0} transactions completed in the window, and whole ones are counted: rates are known to about {:.0} %; \
             --duration makes the window longer",
            share * 100.0
        )
    })
}

/// What the record says of a window that is not the plan's.
pub(super) fn note(window_s: f64, plan_s: f64) -> Option<String> {
    (window_s > plan_s).then(|| {
        format!("the window is {window_s:.1} s instead of {plan_s} s, so that some transactions of each job fit in it")
    })
}

#[cfg(test)]
mod tests {
    use loadline_model::Check;

    use super::*;

    /// Of two jobs.
    fn figures(latency_ms: Option<f64>, window_holds: bool) -> Figures {
        let mut figures = Figures::default();
        if let Some(ms) = latency_ms {
            figures.set(column::COMMIT_LATENCY_MS, ms);
            figures.set(column::COMMITS, 2.0 * 1e5 / ms);
        }
        figures.checks.push(Check::require("window", window_holds, String::new()));
        figures
    }

    fn record(latency_ms: f64) -> TestRecord {
        let mut record = TestRecord { jobs: 2, ..TestRecord::blank("DA-SCAN") };
        record.set(column::COMMIT_LATENCY_MS, latency_ms);
        record
    }

    #[test]
    fn long_transactions_get_a_longer_window_and_short_ones_that_of_the_plan() {
        let before = [record(500.0)];
        assert_eq!(of(1.0, &before, "DA-SCAN", 4), 4.0, "twice the jobs, twice the time, four of each: 16 ± 2");
        assert_eq!(of(1.0, &before, "DA-SCAN", 1), 4.0, "eight of one job");
        assert_eq!(of(1.0, &before, "DA-SCAN", 64), 48.0, "three of each of many");
        assert_eq!(of(1.0, &before, "DA-AGG", 4), 1.0, "another workload");
        assert_eq!(of(30.0, &before, "DA-SCAN", 4), 30.0);
        assert_eq!(of(1.0, &[record(1e6)], "DA-SCAN", 2), 1.0, "too long for any window of ours");
    }

    #[test]
    fn a_rate_that_is_known_coarsely_is_called_so() {
        let mut few = figures(Some(200.0), true);
        few.set(column::COMMITS, 14.0);
        assert!(coarse(&few, 2).unwrap().contains("14 transactions") && coarse(&few, 2).unwrap().contains("10 %"));
        few.set(column::COMMITS, 100.0);
        assert_eq!(coarse(&few, 2), None);
    }

    #[test]
    fn a_test_is_made_again_only_where_time_was_short() {
        let wanted = |s: f64, margin: f64| Some(s * margin * 8.0 / 2f64.sqrt());
        assert_eq!(longer(&figures(Some(750.0), false), 2, 1.0, true), wanted(0.75, 1.5));
        assert_eq!(longer(&figures(None, false), 2, 1.0, true), wanted(1.0, 1.5), "nothing completed");
        let few = |commits: f64| {
            let mut few = figures(Some(200.0), true);
            few.set(column::COMMITS, commits);
            few
        };
        assert_eq!(longer(&few(7.0), 2, 1.0, true), wanted(0.2, 1.2), "few: 7 ± 1.4");
        assert_eq!(longer(&few(9.0), 2, 1.0, true), None, "9 ± 1.4 is not worth the time");
        let mut paced = few(7.0);
        paced.set(column::RATE_TPS, 7.0);
        assert_eq!(longer(&paced, 2, 1.0, true), None, "as many as were asked for");
        assert_eq!(longer(&figures(Some(800.0), true), 2, 1.0, true), None, "it holds");
        assert_eq!(longer(&figures(None, false), 2, 1.0, false), None, "what failed is not too long");
    }
}
