//! What was noticed at tests, in sentences, one for each cause: others on the machine, and what checks noted of the load, such as a rate
//! that was not reached and throughput that was not steady.

use loadline_analyze::repeatable::{Repeatable, repeatable};
use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::{number, whole};
use loadline_model::{CheckId, Outcome, TestRecord};

use super::stop;
use crate::words::{spans, tests_named};

/// `Noticed at tests 1–3, 7: other processes on the CPU 23 to 45 %.`, for each cause; then how many had too much for a valid test,
/// with what the check says of the worst.
pub(crate) fn sentences(records: &[TestRecord]) -> Vec<String> {
    let mut out = Vec::new();
    for kind in DISTURBANCES {
        let of = |r: &TestRecord| Some((r.test, r.figure(kind.column).filter(|pct| kind.is_noted(*pct))?));
        let noted: Vec<(u32, f64)> = records.iter().filter_map(of).collect();
        if noted.is_empty() {
            continue;
        }
        let low = noted.iter().map(|(_, pct)| *pct).fold(f64::INFINITY, f64::min);
        let high = noted.iter().map(|(_, pct)| *pct).fold(0.0, f64::max);
        let [low, high] = [low, high].map(|pct| number(pct, 0));
        let range = if low == high { high } else { format!("{low} to {high}") };
        let tests: Vec<u32> = noted.iter().map(|(test, _)| *test).collect();
        let mut said = format!("Noticed at {}: {} {range} %.", tests_named(&tests), kind.words);
        let checks = records.iter().flat_map(|r| r.checks.iter().map(move |check| (r, check)));
        let failed: Vec<_> = checks.filter(|(_, c)| c.id == kind.check && c.outcome == Outcome::Failed).collect();
        let pct = |r: &TestRecord| r.figure(kind.column).unwrap_or(0.0);
        if let Some((worst, check)) = failed.iter().max_by(|a, b| pct(a.0).total_cmp(&pct(b.0))) {
            said += &match (tests.len(), failed.len()) {
                (1, _) => format!(" That is too much for a valid test: {}.", check.detail),
                (_, 1) => format!(" Test {} had too much for a valid test: {}.", worst.test, check.detail),
                (_, n) => {
                    format!(
                        " {n} of them had too much for a valid test, most of all test {}: {}.",
                        worst.test, check.detail
                    )
                }
            };
        }
        out.push(said);
    }
    out
}

/// `3 of 61 tests needed a second try.`, if any did.
pub(crate) fn tried_again<'a>(records: impl Iterator<Item = &'a TestRecord> + Clone) -> Option<String> {
    let again = records.clone().filter(|r| r.tries > 1).count();
    (again > 0).then(|| format!("{again} of {} tests needed a second try.", records.count()))
}

/// What the machine of a run can tell apart, if its limits were measured often enough.
pub(crate) fn tells_apart(records: &[TestRecord]) -> Option<String> {
    let Repeatable { quiet, within } = repeatable(records)?;
    Some(format!(
        "{} % of the windows were quiet, and two runs on this machine agree within ± {} % (90 %); smaller differences: loadline ab.",
        number(100.0 * quiet, 0),
        whole(100.0 * within)
    ))
}

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
pub(super) fn noted_of(record: &TestRecord) -> impl Iterator<Item = String> {
    SAID.into_iter().filter_map(|said| noted(record, said))
}

/// One sentence for all tests of each kind; the last one stands for the others.
pub(crate) fn noted_sentences(records: &[TestRecord]) -> impl Iterator<Item = String> {
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
