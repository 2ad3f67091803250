//! Qualifications of tests and their figures: others on the machine, options that keep them (`--allow-cached`, `--force`), and what checks
//! noted of the load, such as a rate that was not reached and throughput that was not steady.

use std::collections::BTreeSet;

use loadline_analyze::repeatable::{Repeatable, repeatable};
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::{number, whole};
use loadline_model::{CheckId, Outcome, TestRecord};
use minijinja::context;

use super::stop;
use crate::doc::Notes;
use crate::templates::{items, prose};
use crate::words::{are, cut, grouped, spans, tests_named, validities};

/// Most characters of a reason; the test's own table has it in full.
pub(super) const MAX_REASON: usize = 200;

/// The mark for figures of `point` that are valid by an option only.
pub(crate) fn mark(point: &SweepPoint, notes: &Notes) -> Option<usize> {
    point.kept.says().map(|kept| notes.mark(&cut(&kept, MAX_REASON), ""))
}

/// The tests of `sweep` that are valid by an option only, and those left out of the means; a sentence, or empty.
pub(crate) fn remark(sweep: &Sweep) -> String {
    let pooled = sweep.points.iter().filter_map(|p| Some((p.kept.says()?, &p.tests)));
    let pooled = pooled.flat_map(|(why, tests)| tests.iter().map(move |test| (why.clone(), *test)));
    let aside = sweep.points.iter().flat_map(|p| &p.set_aside).map(|test| {
        let more =
            "not part of the mean, as other tests of the same point are undisturbed, need no option or are closer to device figures";
        (format!("{}; {more}", test.why()), test.test)
    });
    let said = |(why, tests): (String, Vec<(String, u32)>)| {
        let tests: Vec<u32> = tests.into_iter().map(|(_, test)| test).collect();
        format!("{} {} {}", tests_named(&tests), are(tests.len()), cut(stop(&why), MAX_REASON))
    };
    let all = grouped(pooled.chain(aside), |(why, _)| why.clone());
    all.into_iter().map(said).collect::<Vec<_>>().join("; ")
}

/// Number of `records` that are valid by an option only, and the option; `None` if there are none.
pub(crate) fn kept<'a>(records: impl Iterator<Item = &'a TestRecord>) -> Option<(usize, String)> {
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
    let kept = kept(records.clone());
    prose("verdict", context! { tests, valid, kept, counts, classes => validities(records) })
}

/// `Noticed at tests 1–3, 7: other processes on the CPU 23 to 45 %.`, for each cause; then how many had too much for a valid test,
/// with what the check says of the worst.
pub(crate) fn noticed(records: &[TestRecord]) -> Vec<String> {
    let causes = DISTURBANCES.iter().filter_map(|kind| {
        let pct = |r: &TestRecord| r.figure(kind.column).unwrap_or(0.0);
        let noted = || records.iter().filter(|r| r.figure(kind.column).is_some_and(|pct| kind.is_noted(pct)));
        let (low, high) = (noted().map(pct).reduce(f64::min)?, noted().map(pct).reduce(f64::max)?);
        let checks = records.iter().flat_map(|r| r.checks.iter().map(move |check| (r, check)));
        let failed: Vec<_> = checks.filter(|(_, c)| c.id == kind.check && c.outcome == Outcome::Failed).collect();
        let worst = failed.iter().max_by(|a, b| pct(a.0).total_cmp(&pct(b.0)));
        Some(context! {
            tests => noted().map(|r| r.test).collect::<Vec<_>>(),
            words => kind.words,
            range => [low, high].map(|pct| number(pct, 0)),
            failed => failed.len(),
            worst => worst.map(|(r, check)| (r.test, &check.detail)),
        })
    });
    items("noticed", context! { causes => causes.collect::<Vec<_>>() })
}

/// `3 of 61 tests needed a second try.`, if any did.
pub(crate) fn tried_again<'a>(records: impl Iterator<Item = &'a TestRecord> + Clone) -> Option<String> {
    let again = records.clone().filter(|r| r.tries > 1).count();
    (again > 0).then(|| format!("{again} of {} tests needed a second try.", records.count()))
}

/// Differences that the machine of a run can show, if its limits were measured often enough.
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
