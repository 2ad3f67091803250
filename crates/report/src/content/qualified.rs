//! A figure of a point of a sweep as a cell, or why there is none; the limit beside a peak; and what qualifies figures and tests: others on
//! the machine, options that keep them (`--allow-cached`, `--force`), and what checks noted of the load, such as a rate that was not reached.

use std::collections::BTreeSet;

use loadline_analyze::kept::{Caveats, OTHER_SOURCE, doubt};
use loadline_analyze::kpi::THROUGHPUT;
use loadline_analyze::repeatable::{Repeatable, repeatable};
use loadline_analyze::{Estimate, Sweep, SweepPoint};
use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::{counted, number, whole};
use loadline_model::{CheckId, Column, Outcome, TestRecord, column};
use minijinja::context;

use super::stop;
use crate::doc::{Cell, Standing};
use crate::templates::{items, prose, stored};
use crate::words::{are, cut, grouped, spans, tests_named, unit, validities, value};

pub(super) const LIMIT: &Column = column::LIMIT_TPS;
const SHARE: &Column = column::LIMIT_SHARE_PCT;
/// Title of the column, whose unit is that of the peak.
pub(super) const TITLE: &str = "Limit";

/// Mark of an interval that is that of a single window.
const WITHIN_WINDOW: &str = "± is from the course of a single window (95 %): what differs from window to window is not in it, --repeat shows that";

/// A figure of `point` with its interval, or `–` with the reason.
pub(crate) fn figure(records: &[TestRecord], point: &SweepPoint, column: &Column) -> Cell {
    let Some(e) = point.figure(column) else {
        return absent(records, point, column, &column.heading());
    };
    match point.within_window(column).filter(|share| *share < 1.0) {
        Some(share) => Cell::from(format!("{} ± {}", value(column, e.mean), value(column, e.mean * share)))
            .noted([WITHIN_WINDOW], ""),
        None => with_interval(column, e).into(),
    }
}

pub(crate) fn absent(records: &[TestRecord], point: &SweepPoint, column: &Column, title: &str) -> Cell {
    Cell::absent(reason(records, point, column).unwrap_or("the record gives no reason"), title)
}

pub(crate) fn reason<'a>(records: &'a [TestRecord], point: &SweepPoint, column: &Column) -> Option<&'a str> {
    of_point(records, point).find_map(|r| r.why_absent(column))
}

/// `14,900 ± 120`, or the mean alone without an interval.
pub(crate) fn with_interval(column: &Column, e: &Estimate) -> String {
    let mean = value(column, e.mean);
    e.half_width().map_or(mean.clone(), |half| format!("{mean} ± {}", value(column, half)))
}

pub(super) fn limit(records: &[TestRecord], sweep: &Sweep, peak: &SweepPoint) -> Cell {
    let Some(e) = peak.figure(LIMIT) else {
        // Older records have a reason for the share only.
        let column = if reason(records, peak, LIMIT).is_some() { LIMIT } else { SHARE };
        return absent(records, peak, column, TITLE);
    };
    let (of_rate, shown) = in_unit_of(sweep, peak);
    let e = Estimate { mean: e.mean * of_rate, sd: e.sd.map(|sd| sd * of_rate), n: e.n };
    let limits = of_point(records, peak).filter_map(|r| r.limit());
    Cell::from(with_interval(shown, &e)).noted(limits.map(|limit| prose("limit", stored(limit))), TITLE)
}

/// The share of the limit at `peak`, with a note if it is doubtful or of other transactions than the peak.
pub(super) fn share(records: &[TestRecord], sweep: &Sweep, peak: &SweepPoint) -> Cell {
    figure(records, peak, SHARE).noted(doubts_of_share(records, sweep, peak), "Of limit")
}

/// Doubts about the share of the limit at `peak`, and of what it is if not of the peak.
pub(super) fn doubts_of_share(records: &[TestRecord], sweep: &Sweep, peak: &SweepPoint) -> Vec<String> {
    if peak.figure(SHARE).is_none() {
        return Vec::new();
    }
    let (of_rate, shown) = in_unit_of(sweep, peak);
    let mut doubts = of_point(records, peak).filter_map(|r| doubt(r, Some((of_rate, &unit(shown)))));
    let first = doubts.next().map(|first| match doubts.count() {
        0 => first,
        more => format!("{first} (similar in {})", counted(more, "more test")),
    });
    let of_others = (sweep.rate != shown).then(|| "the share is that of all transactions of the window".to_owned());
    first.into_iter().chain(of_others).collect()
}

/// Factor from transactions per second to the unit of the peak, and the column of that unit. A rate of
/// some of the transactions, as inside checkpoints, is not proportional to all of them.
fn in_unit_of(sweep: &Sweep, peak: &SweepPoint) -> (f64, &'static Column) {
    let both = sweep.rate_at(peak).zip(peak.throughput()).filter(|(_, tps)| sweep.rate.unit != "tps" && tps.mean > 0.0);
    both.map_or((1.0, THROUGHPUT), |(rate, tps)| (rate.mean / tps.mean, sweep.rate))
}

fn of_point<'a>(records: &'a [TestRecord], point: &SweepPoint) -> impl Iterator<Item = &'a TestRecord> {
    let tests = point.tests.clone();
    records.iter().filter(move |r| tests.contains(&r.test))
}

/// Most characters of a reason; the test's own table has it in full.
const MAX_REASON: usize = 200;

/// The option by which figures of `point` are valid only.
pub(crate) fn kept_by(point: &SweepPoint) -> Option<String> {
    point.kept.says().map(|kept| cut(&kept, MAX_REASON))
}

/// The tests of `sweep` that are valid by an option only, and those left out of the means; a sentence, or empty.
pub(crate) fn remark(sweep: &Sweep) -> String {
    let pooled = sweep.points.iter().map(|p| (&p.kept, p.tests.as_slice(), ""));
    let aside = sweep.points.iter().flat_map(|p| &p.set_aside);
    let more = "; not part of the mean, as other tests of the same point are undisturbed, need no option or are closer to device figures";
    let aside = aside.map(|of| (&of.kept, std::slice::from_ref(&of.test), more));
    let said = |(_, of): (_, Vec<(&Caveats, &[u32], &str)>)| {
        let why = Caveats::say_together(&of.iter().map(|(kept, ..)| *kept).collect::<Vec<_>>());
        let more = of.first().map_or("", |(.., more)| more);
        let why = why.or_else(|| (!more.is_empty()).then(|| OTHER_SOURCE.to_owned()))?;
        let tests: Vec<u32> = of.into_iter().flat_map(|(_, tests, _)| tests).copied().collect();
        Some(format!("{} {} {}", tests_named(&tests), are(tests.len()), cut(stop(&format!("{why}{more}")), MAX_REASON)))
    };
    let all = grouped(pooled.chain(aside), |(kept, _, more)| (kept.without_bound(), *more));
    all.into_iter().filter_map(said).collect::<Vec<_>>().join("; ")
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

/// Disturbance is a mark; all else that is not plainly valid is a fault.
pub(crate) fn standing<'a>(records: impl Iterator<Item = &'a TestRecord> + Clone) -> Standing {
    let is_wrong = kept(records.clone()).is_some() || records.clone().any(|r| !r.valid && !r.is_disturbed());
    Standing::new(is_wrong, records.clone().any(|r| !r.valid))
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

/// One sentence for all tests of each kind; the last one stands for the others.
pub(crate) fn noted_sentences(records: &[TestRecord]) -> impl Iterator<Item = String> {
    SAID.into_iter().filter_map(|(id, one, several)| {
        let noted = |r: &TestRecord| {
            let check = r.checks.iter().find(|c| c.id == id && c.outcome == Outcome::Noted)?;
            Some((r.test, format!("Test {} {one}: {}.", r.test, stop(&check.detail))))
        };
        let (tests, said): (Vec<u32>, Vec<String>) = records.iter().filter_map(noted).unzip();
        let last = said.last()?;
        Some(if tests.len() == 1 { last.clone() } else { format!("Tests {} {several}. {last}", spans(&tests)) })
    })
}
