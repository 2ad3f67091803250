//! The work of a transaction: the same in all tests of a workload, and what the workload is defined by.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, shown};
use crate::audit::interval::Reading;
use crate::audit::names::SETTINGS;

/// Figures that are the same in all tests of a sweep, or are the same share of another one; unless the table has a third one, by
/// which a law holds them.
const COLUMNS: [(&str, &str, &str); 5] = [
    ("redo_kib_per_tx", "", ""),
    ("redo_bytes_per_tx", "", ""),
    ("statements_per_tx", "", ""),
    ("commits", "tps", "elapsed_s"),
    ("rows_per_s", "tps", "rows_per_tx"),
];

/// Rows whose value is far from the median of all, with that median. A value comes with half of the width that its digits
/// leave; `floor` is the relative deviation that is nothing special.
pub(crate) fn outliers(all: &[(usize, f64, f64)], floor: f64) -> Vec<(usize, f64)> {
    if all.len() < 4 {
        return Vec::new();
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let middle = median(&mut all.iter().map(|(_, v, _)| *v).collect());
    let spread = median(&mut all.iter().map(|(_, v, _)| (v - middle).abs()).collect());
    let off = |(_, value, half): &&(usize, f64, f64)| {
        (value - middle).abs() - half > (6.0 * spread).max(floor * middle.abs())
    };
    all.iter().filter(off).map(|(row, ..)| (*row, middle)).collect()
}

pub(super) fn work(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept().is_some_and(|id| id != "jobs") {
        return;
    }
    settings(context, findings);
    for (id, of, unless) in COLUMNS {
        if !context.has(id) || !of.is_empty() && !context.has(of) || !unless.is_empty() && context.has(unless) {
            continue;
        }
        let share = |row: usize, reading| {
            let figure = context.interval(id, row, reading)?;
            if of.is_empty() { Some(figure) } else { Some(figure.over(context.interval(of, row, reading)?)) }
        };
        for series in &context.series {
            let of_row = |row: &usize| {
                let found = share(*row, Reading::Loose).filter(|i| i.high.is_finite())?;
                Some((*row, found.at, (found.high - found.low) / 2.0))
            };
            let all: Vec<(usize, f64, f64)> = series.rows.iter().filter_map(of_row).collect();
            for (row, usual) in outliers(&all, 0.03) {
                let per = if of.is_empty() { String::new() } else { format!(" of {id} per {of}") };
                let text = format!(
                    "the other tests of this workload have {}{per}: other redo, other work, or a wrong digit",
                    shown(usual, 4)
                );
                let expected = if of.is_empty() { Some(usual) } else { context.value(of, row).map(|v| v * usual) };
                context.warn(findings, ("same-work", row), (&[id, of], id), expected, text);
            }
        }
    }
}

/// A test of a sweep that alone has another setting.
fn settings(context: &Context<'_>, findings: &mut Findings) {
    let series_of = |row: usize| context.series.iter().find(|s| s.rows.contains(&row));
    let alone = context.series.iter().filter(|s| s.rows.len() == 1).filter_map(|s| s.rows.first().copied());
    // With many of them, series of one row are what the table is.
    for row in alone.take(LONE) {
        let sweep = |row: Option<usize>| row.and_then(|row| Some((row, series_of(row).filter(|s| s.rows.len() >= 3)?)));
        let (above, below) = (sweep(row.checked_sub(1)), sweep(Some(row + 1)));
        let inside = matches!((&above, &below), (Some((_, a)), Some((_, b))) if a.rows == b.rows);
        let Some((before, _)) = above.or(below) else { continue };
        let jobs = |row| context.value("jobs", row);
        let in_order = |a: usize, b: usize| jobs(a) < jobs(b);
        let rises =
            above.is_none_or(|(a, _)| in_order(a, row)) && (!inside || below.is_none_or(|(b, _)| in_order(row, b)));
        let other = |id: &&&'static str| context.value(id, row) != context.value(id, before);
        let mut others = SETTINGS.iter().filter(|id| **id != "jobs" && context.has(id)).filter(other);
        let (Some(id), None, true) = (others.next(), others.next(), rises) else { continue };
        // At an end of the sweep, only one that nobody chooses.
        let round = |row| context.value(id, row).is_some_and(is_round);
        if !inside && (round(row) || !round(before)) {
            continue;
        }
        let expected = context.value(id, before);
        let text = "the tests above and below it are one sweep with another setting: a wrong digit, or a test of another sweep";
        context.warn(findings, ("same-work", row), (&["jobs", id], id), expected, text.to_owned());
    }
}

/// Whether a setting is one that people choose: one or two digits with zeros behind, or a power of two.
fn is_round(value: f64) -> bool {
    let first = value / 10f64.powf(value.log10().floor());
    (first * 2.0).fract() == 0.0 || value.log2().fract() == 0.0
}

/// Series of one row that are looked at.
const LONE: usize = 100;

pub(super) fn nominal(context: &Context<'_>, findings: &mut Findings) {
    for row in context.rows() {
        let workload = context.sheet.text("workload", row);
        for range in context.expected.iter().filter(|e| e.workload == workload) {
            let Some(figure) = context.interval(range.column, row, Reading::Loose) else { continue };
            let (low, high) = (range.low, range.high);
            if figure.high >= low && figure.low <= high {
                continue;
            }
            let text = format!("{workload} is defined by {} of {} to {}", range.column, shown(low, 4), shown(high, 4));
            let bound = if figure.low > high { high } else { low };
            let columns = ["workload", range.column];
            context.warn(findings, ("nominal-work", row), (&columns, range.column), Some(bound), text);
        }
    }
}
