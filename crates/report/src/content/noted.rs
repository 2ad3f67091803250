//! What the checks of a test noted of its load, in sentences: a rate that was not reached, throughput that was not steady.

use loadline_model::{CheckId, Outcome, TestRecord};

use super::stop;
use crate::words::spans;

/// Ids of the checks, and what they say of one test and of several.
const SAID: [(CheckId, &str, &str); 3] = [
    (CheckId::Rate, "did not reach the rate asked for", "did not reach the rate asked for"),
    (CheckId::WarmUp, "was not steady at its window start", "were not steady at their window start"),
    (CheckId::Steady, "was not steady", "were not steady"),
];

fn noted(record: &TestRecord, (id, one, _): (CheckId, &str, &str)) -> Option<String> {
    let check = record.checks.iter().find(|c| c.id == id && c.outcome == Outcome::Noted)?;
    Some(format!("Test {} {one}: {}.", record.test, stop(&check.detail)))
}

/// What was noted of the test of `record`.
pub(super) fn of_test(record: &TestRecord) -> impl Iterator<Item = String> {
    SAID.into_iter().filter_map(|said| noted(record, said))
}

/// One sentence for all tests of each kind; the last one stands for the others.
pub(crate) fn sentences(records: &[TestRecord]) -> impl Iterator<Item = String> {
    SAID.into_iter().filter_map(|said| {
        let all: Vec<(u32, String)> = records.iter().filter_map(|r| Some((r.test, noted(r, said)?))).collect();
        let (_, last) = all.last()?;
        if all.len() == 1 {
            return Some(last.clone());
        }
        let tests: Vec<u32> = all.iter().map(|(test, _)| *test).collect();
        Some(format!("Tests {} {}. {last}", spans(&tests), said.2))
    })
}
