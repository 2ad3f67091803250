//! What disturbed tests, in sentences: one for each cause.

use loadline_model::TestRecord;
use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::number;

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
        out.push(format!("{word} {} {were} disturbed: {} {range} %{kept}.", spans(&tests), kind.words));
    }
    out
}
