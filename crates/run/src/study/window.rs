//! How long a test's window is: as the plan says, unless transactions are too long for it.

use loadline_model::TestRecord;

/// A window holds so many transactions of a job at least: what fits in it is chance otherwise.
const TRANSACTIONS: f64 = 4.0;
/// A window is not made longer than this on loadline's own account, s.
const LONGEST_S: f64 = 120.0;

/// Window of the next test of workload `code`, s: that of the plan, or a longer one where the tests before
/// let expect transactions that are too long for it. `longer` is what was found to be needed.
pub(super) fn of(plan_s: f64, records: &[TestRecord], code: &str, jobs: u32, longer: Option<f64>) -> f64 {
    if let Some(longer) = longer {
        return longer;
    }
    let before = records.iter().rev().find(|r| r.workload == code);
    let Some((before, ms)) = before.and_then(|r| Some((r, r.figure("commit_latency_ms")?))) else { return plan_s };
    // A platform whose throughput no longer grows takes so much longer with more jobs.
    let expected_s = ms / 1e3 * (f64::from(jobs) / f64::from(before.jobs.max(1))).max(1.0);
    enough(plan_s, expected_s)
}

fn enough(plan_s: f64, transaction_s: f64) -> f64 {
    let wanted = transaction_s * TRANSACTIONS;
    if wanted > plan_s && wanted <= LONGEST_S { wanted } else { plan_s }
}

/// The window with which a test has to be made again, because its transactions turned out too long for the
/// one that it had; `None` where they did not, or where it has been made again already.
pub(super) fn longer(record: &TestRecord, window_s: f64, again: bool) -> Option<f64> {
    let failed = record.checks.iter().any(|c| c.id == "window" && c.outcome == loadline_model::Outcome::Failed);
    let transaction_s = record.figure("commit_latency_ms").map(|ms| ms / 1e3);
    // Nothing completed at all: a transaction takes longer than the window.
    let transaction_s = transaction_s.unwrap_or(window_s);
    let wanted = enough(window_s, transaction_s * 1.5);
    (!again && failed && record.figure("errors") == Some(0.0) && wanted > window_s).then_some(wanted)
}

/// What the record says of a window that is not the plan's.
pub(super) fn note(window_s: f64, plan_s: f64) -> Option<String> {
    (window_s > plan_s).then(|| {
        format!("the window is {window_s:.1} s instead of {plan_s} s, so that some transactions of each job fit in it")
    })
}
