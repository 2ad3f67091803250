//! A figure of a point of a sweep as a cell, or why there is none.

use loadline_analyze::{Estimate, SweepPoint};
use loadline_model::{Column, TestRecord};

use crate::columns::value;
use crate::doc::{Cell, Notes};

/// What is marked if an interval is that of a single window.
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
    let of_point = records.iter().filter(|r| point.tests.contains(&r.test));
    of_point.filter_map(|r| r.why_absent(column)).next()
}

/// `14,900 ± 120`, or the mean alone without an interval.
pub(crate) fn with_interval(column: &Column, e: &Estimate) -> String {
    let mean = value(column, e.mean);
    e.half_width().map_or(mean.clone(), |half| format!("{mean} ± {}", value(column, half)))
}
