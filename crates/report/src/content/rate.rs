//! Tests of an open loop that did not reach the rate asked for, in sentences.

use loadline_model::{Outcome, TestRecord};

use super::stop;
use crate::words::spans;

/// Why the test of `record` did not reach its rate, if so.
pub(super) fn missed(record: &TestRecord) -> Option<String> {
    let check = record.checks.iter().find(|c| c.id == "rate" && c.outcome == Outcome::Noted)?;
    Some(format!("Test {} did not reach the rate asked for: {}.", record.test, stop(&check.detail)))
}

/// One sentence for all tests; the last one stands for the others.
pub(crate) fn sentence(records: &[TestRecord]) -> Option<String> {
    let all: Vec<(u32, String)> = records.iter().filter_map(|r| Some((r.test, missed(r)?))).collect();
    let (_, last) = all.last()?;
    if all.len() == 1 {
        return Some(last.clone());
    }
    let tests: Vec<u32> = all.iter().map(|(test, _)| *test).collect();
    Some(format!("Tests {} did not reach the rate asked for. {last}", spans(&tests)))
}
