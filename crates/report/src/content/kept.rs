//! Marks and remarks for tests that are disturbed, or valid only by `--allow-cached` or `--force`.

use std::collections::BTreeSet;

use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::TestRecord;

use super::stop;
use crate::doc::Notes;
use crate::words::{cut, grouped};

/// Most characters of a reason; the test's own table has it in full.
const MAX_REASON: usize = 200;

/// The mark for figures of `point` that are valid by an option only.
pub(crate) fn mark(point: &SweepPoint, notes: &Notes) -> Option<usize> {
    point.kept().map(|kept| notes.mark(&cut(&kept, MAX_REASON), ""))
}

/// The tests of `sweep` that are valid by an option only, and those left out of the means; a sentence, or empty.
pub(crate) fn remark(sweep: &Sweep) -> String {
    let pooled = sweep.points.iter().filter_map(|p| Some((p.kept()?, &p.tests)));
    let pooled = pooled.flat_map(|(why, tests)| tests.iter().map(move |test| (why.clone(), *test)));
    let aside = sweep.points.iter().flat_map(|p| &p.set_aside).map(|test| {
        let why = test.kept().unwrap_or_else(|| "its blocks have another source".to_owned());
        let more =
            "not part of the mean, as other tests of the same point are undisturbed, need no option or are closer to device figures";
        (format!("{why}; {more}"), test.test)
    });
    let said = |(why, tests): (String, Vec<(String, u32)>)| {
        let mut tests: Vec<u32> = tests.into_iter().map(|(_, test)| test).collect();
        tests.sort_unstable();
        let (word, are) = if tests.len() == 1 { ("test", "is") } else { ("tests", "are") };
        let numbers: Vec<String> = tests.iter().map(u32::to_string).collect();
        format!("{word} {} {are} {}", numbers.join(", "), cut(stop(&why), MAX_REASON))
    };
    let all = grouped(pooled.chain(aside), |(why, _)| why.clone());
    all.into_iter().map(said).collect::<Vec<_>>().join("; ")
}

/// Number of `records` that are valid by an option only, and the option; `None` if there are none.
pub(crate) fn counted<'a>(records: impl Iterator<Item = &'a TestRecord>) -> Option<(usize, String)> {
    let kept: Vec<Vec<&str>> =
        records.filter(|r| r.valid).map(TestRecord::kept_by).filter(|by| !by.is_empty()).collect();
    let first = kept.first()?;
    if kept.iter().all(|by| by == first) {
        return Some((kept.len(), first.join(" and ")));
    }
    let different: BTreeSet<&str> = kept.iter().flatten().copied().collect();
    Some((kept.len(), different.into_iter().collect::<Vec<_>>().join(" or ")))
}

/// The same as the end of a verdict on `valid` valid tests; empty if there are none.
pub(crate) fn verdict(valid: usize, kept: Option<(usize, String)>) -> String {
    match kept {
        None => String::new(),
        Some((1, by)) if valid == 1 => format!("; it is kept only by {by}"),
        Some((n, by)) if n == valid => format!("; the valid ones are kept only by {by}"),
        Some((n, by)) => format!("; {n} of the valid ones {} kept only by {by}", if n == 1 { "is" } else { "are" }),
    }
}
