//! A figure of a point of a sweep as a cell, or why there is none; and the limit beside a peak: in the unit of the peak, with what it is of
//! and what makes it doubtful.

use loadline_analyze::kpi::THROUGHPUT;
use loadline_analyze::limit::doubt;
use loadline_analyze::{Estimate, Sweep, SweepPoint};
use loadline_model::format::counted;
use loadline_model::{Column, TestRecord, column};

use crate::columns::value;
use crate::doc::{Cell, Notes};
use crate::templates::{prose, stored};
use crate::words::unit;

pub(super) const LIMIT: &Column = column::LIMIT_TPS;
const SHARE: &Column = column::LIMIT_SHARE_PCT;
/// Title of the column, whose unit is that of the peak.
pub(super) const TITLE: &str = "Limit";

/// Mark of an interval that is that of a single window.
const WITHIN_WINDOW: &str = "± is from the course of a single window (95 %): what differs from window to window is not in it, --repeat shows that";

/// A figure of `point` with its interval, or `–` with the reason.
pub(crate) fn figure(records: &[TestRecord], point: &SweepPoint, column: &Column, notes: &Notes) -> Cell {
    let Some(e) = point.figure(column) else {
        return absent(records, point, column, &column.heading(), notes);
    };
    match point.within_window(column).filter(|share| *share < 1.0) {
        Some(share) => Cell::from(format!("{} ± {}", value(column, e.mean), value(column, e.mean * share)))
            .marked([notes.mark(WITHIN_WINDOW, "")]),
        None => with_interval(column, e).into(),
    }
}

/// A missing figure of `column`, with the reason.
pub(crate) fn absent(records: &[TestRecord], point: &SweepPoint, column: &Column, title: &str, notes: &Notes) -> Cell {
    let reason = reason(records, point, column).unwrap_or("the record gives no reason");
    Cell::absent(notes.mark(reason, title))
}

/// Why the tests of `point` have no figure of `column`.
pub(crate) fn reason<'a>(records: &'a [TestRecord], point: &SweepPoint, column: &Column) -> Option<&'a str> {
    of_point(records, point).find_map(|r| r.why_absent(column))
}

/// `14,900 ± 120`, or the mean alone without an interval.
pub(crate) fn with_interval(column: &Column, e: &Estimate) -> String {
    let mean = value(column, e.mean);
    e.half_width().map_or(mean.clone(), |half| format!("{mean} ± {}", value(column, half)))
}

/// The limit of `peak`, with a note on its source.
pub(super) fn limit(records: &[TestRecord], sweep: &Sweep, peak: &SweepPoint, notes: &Notes) -> Cell {
    let Some(e) = peak.figure(LIMIT) else {
        // Older records have a reason for the share only.
        let column = if reason(records, peak, LIMIT).is_some() { LIMIT } else { SHARE };
        return absent(records, peak, column, TITLE, notes);
    };
    let (of_rate, shown) = in_unit_of(sweep, peak);
    let e = Estimate { mean: e.mean * of_rate, sd: e.sd.map(|sd| sd * of_rate), n: e.n };
    let limits = of_point(records, peak).filter_map(|r| r.limit());
    Cell::from(with_interval(shown, &e)).marked(limits.map(|limit| notes.mark(&prose("limit", stored(limit)), TITLE)))
}

/// The share of the limit at `peak`, with a note if it is doubtful or of other transactions than the peak.
pub(super) fn share(records: &[TestRecord], sweep: &Sweep, peak: &SweepPoint, notes: &Notes) -> Cell {
    let cell = figure(records, peak, SHARE, notes);
    cell.marked(doubts_of_share(records, sweep, peak).iter().map(|text| notes.mark(text, "Of limit")))
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
