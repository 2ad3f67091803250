//! Marks and remarks for tests that are disturbed, or valid only by `--allow-cached` or `--force`.

use std::collections::BTreeSet;

use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::TestRecord;
use minijinja::context;

use super::stop;
use crate::doc::Notes;
use crate::templates::prose;
use crate::words::{are, cut, grouped, tests_named, validities};

/// Most characters of a reason; the test's own table has it in full.
pub(super) const MAX_REASON: usize = 200;

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
        let tests: Vec<u32> = tests.into_iter().map(|(_, test)| test).collect();
        format!("{} {} {}", tests_named(&tests), are(tests.len()), cut(stop(&why), MAX_REASON))
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

/// How many tests there are, and of which validity: `13 tests, all valid.`, or if `counts` in any case `13 tests: 13 valid.`
pub(crate) fn verdict<'a>(records: impl Iterator<Item = &'a TestRecord> + Clone, counts: bool) -> String {
    let (tests, valid) = (records.clone().count(), records.clone().filter(|r| r.valid).count());
    let kept = counted(records.clone());
    prose("verdict", context! { tests, valid, kept, counts, classes => validities(records) })
}
