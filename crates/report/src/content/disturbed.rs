//! What disturbed tests, in sentences: one for each cause.

use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::number;
use loadline_model::{Outcome, TestRecord};

use crate::words::spans;

/// `Tests 1–3, 7 were disturbed: other processes on the CPU 23 to 45 %.`, for each cause.
pub(crate) fn sentences(records: &[TestRecord]) -> Vec<String> {
    let mut out = Vec::new();
    for kind in DISTURBANCES {
        let of = |r: &TestRecord| Some((r.test, r.figure(kind.column).filter(|pct| kind.is_noted(*pct))?, r.valid));
        let disturbed: Vec<(u32, f64, bool)> = records.iter().filter_map(of).collect();
        let low = disturbed.iter().map(|(_, pct, _)| *pct).fold(f64::INFINITY, f64::min);
        let high = disturbed.iter().map(|(_, pct, _)| *pct).fold(0.0, f64::max);
        if disturbed.is_empty() {
            continue;
        }
        let [low, high] = [low, high].map(|pct| number(pct, 0));
        let tests: Vec<u32> = disturbed.iter().map(|(test, ..)| *test).collect();
        let (word, were) = if tests.len() == 1 { ("Test", "was") } else { ("Tests", "were") };
        let range = if low == high { high } else { format!("{low} to {high}") };
        let allowed = |(_, pct, valid): &(u32, f64, bool)| *valid && kind.is_invalid(*pct);
        let kept = if disturbed.iter().any(allowed) { " (kept by --allow-disturbed)" } else { "" };
        let failed = |r: &&TestRecord| r.checks.iter().any(|c| c.id == kind.check && c.outcome == Outcome::Failed);
        let pct = |r: &TestRecord| r.figure(kind.column).unwrap_or(0.0);
        let invalid: Vec<&TestRecord> = records.iter().filter(failed).collect();
        let mut said = format!("{word} {} {were} disturbed: {} {range} %{kept}.", spans(&tests), kind.words);
        if let Some(worst) = invalid.iter().max_by(|a, b| pct(a).total_cmp(&pct(b))) {
            let check = worst.checks.iter().find(|c| c.id == kind.check);
            let detail = check.map_or("", |c| c.detail.strip_prefix("disturbed: ").unwrap_or(&c.detail));
            if tests.len() == 1 {
                said = format!("{word} {} {were} disturbed: {detail}.", worst.test);
            } else {
                let are = if invalid.len() == 1 { "is" } else { "are" };
                said +=
                    &format!(" {} of them {are} invalid, most of all test {}: {detail}.", invalid.len(), worst.test);
            }
        }
        out.push(said);
    }
    out
}
