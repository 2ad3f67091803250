//! Doubts about the limit of a test: its two measurements differ, or the test got more than it.

use loadline_model::format::number;
use loadline_model::{TestRecord, column};

/// From this factor between its two measurements on, a limit was not steady.
pub const UNSTEADY: f64 = 1.25;
/// Share of the limit from which on the test got more than it, %. Below, it may be the error of the two.
pub const TOO_MUCH: f64 = 105.0;

/// Share from which on syncs that do nothing are a likelier reason, %.
const FAR_TOO_MUCH: f64 = 120.0;
const NO_SYNCS: &str = "that limit is too low, or the database's syncs do nothing (see the check redo-on-device)";
const NOT_STEADY: &str = "the machine or device was not steady";

/// Why the share of the limit of `record` is doubtful, in a sentence without a full stop. With the limit's figures if a unit is given,
/// and what its transactions per second are multiplied by to be of that unit.
pub fn doubt(record: &TestRecord, unit: Option<(f64, &str)>) -> Option<String> {
    let share = record.figure(column::LIMIT_SHARE_PCT)?;
    let samples = &record.limit()?.samples;
    let [low, high] = [samples.iter().copied().reduce(f64::min)?, samples.iter().copied().reduce(f64::max)?];
    let unsteady = high > low * UNSTEADY;
    let values = unit.map_or_else(String::new, |(of_rate, unit)| {
        let decimals = if low * of_rate < 10.0 { 2 } else { 0 };
        let values: Vec<String> = samples.iter().map(|s| number(s * of_rate, decimals)).collect();
        format!(" ({} {unit})", values.join(" and "))
    });
    let durable = record.limit().is_some_and(|limit| limit.redo_bytes_per_tx.is_some());
    let (what, why) = match (share > TOO_MUCH, unsteady) {
        (false, false) => return None,
        (false, true) => ("the limit itself differed when measured twice around the test", NOT_STEADY),
        (true, true) => {
            ("the test got more than its limit, which differed when measured twice around the test", NOT_STEADY)
        }
        (true, false) if share > FAR_TOO_MUCH && durable => ("the test got more than its limit", NO_SYNCS),
        (true, false) => ("the test got more than its limit", "that limit is too low"),
    };
    Some(format!("{what}{values}: {why}"))
}
