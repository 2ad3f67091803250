//! The work of a transaction: the same in all tests of a workload, and what the workload is defined by.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::Reading;
use crate::sheet::SETTINGS;

pub(crate) static WORK: Law = Law {
    id: "same-work",
    name: "The same work in each test",
    formula: "redo_kib_per_tx, redo_bytes_per_tx and statements_per_tx are the same over the jobs of a workload, and so is a setting within a sweep",
    needs: &[&["redo_kib_per_tx"], &["redo_bytes_per_tx"], &["statements_per_tx"], &["jobs", "rows_per_tx"]],
    tolerance: "3 %, or six times the median deviation of the series; always a warning",
    meaning: "Other redo than that of the transactions (checkpoints, the first change of a block after one), a wrong digit, or other work",
    check: Check::Own(work),
};

pub(crate) static NOMINAL: Law = Law {
    id: "nominal-work",
    name: "The work that the workload is defined by",
    formula: "redo_kib_per_tx within the range of the workload in loadline's catalogue",
    needs: &[&["workload", "redo_kib_per_tx"]],
    tolerance: "the range of the workload; always a warning",
    meaning: "The test is not quite that workload, and does not compare with others of it",
    check: Check::Own(nominal),
};

const COLUMNS: [&str; 3] = ["redo_kib_per_tx", "redo_bytes_per_tx", "statements_per_tx"];

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

fn work(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept().is_some_and(|id| id != "jobs") {
        return;
    }
    settings(context, findings);
    for id in COLUMNS.into_iter().filter(|id| context.has(id)) {
        for series in &context.series {
            let of = |row: &usize| {
                let interval = context.interval(id, *row, Reading::Loose)?;
                Some((*row, context.value(id, *row)?, (interval.high - interval.low) / 2.0))
            };
            let all: Vec<(usize, f64, f64)> = series.rows.iter().filter_map(of).collect();
            for (row, expected) in outliers(&all, 0.03) {
                let text = format!(
                    "the other tests of this workload have {}: other redo, other work, or a wrong digit",
                    shown(expected, 4)
                );
                findings.push(context.about_row(WORK.id, Severity::Warning, row, &[id], id, Some(expected), text));
            }
        }
    }
}

/// A test inside of a sweep that alone has another setting.
fn settings(context: &Context<'_>, findings: &mut Findings) {
    let series_of = |row: usize| context.series.iter().find(|s| s.rows.contains(&row));
    let alone = context.series.iter().filter(|s| s.rows.len() == 1).filter_map(|s| s.rows.first().copied());
    // With many of them, series of one row are what the table is.
    for row in alone.take(LONE) {
        let Some(before) = row.checked_sub(1) else { continue };
        let sweep = series_of(before).filter(|s| s.rows.len() >= 3 && s.rows.contains(&(row + 1)));
        let jobs = |row| context.value("jobs", row);
        let rises = jobs(before) < jobs(row) && jobs(row) < jobs(row + 1);
        if sweep.is_none() || !rises {
            continue;
        }
        let other = |id: &&&'static str| context.value(id, row) != context.value(id, before);
        let mut others = SETTINGS.iter().filter(|id| **id != "jobs" && context.has(id)).filter(other);
        let (Some(id), None) = (others.next(), others.next()) else { continue };
        let expected = context.value(id, before);
        let text = "the tests above and below it are one sweep with another setting: a wrong digit, or a test of another sweep";
        findings.push(context.about_row(WORK.id, Severity::Warning, row, &["jobs", id], id, expected, text.to_owned()));
    }
}

/// Series of one row that are looked at.
const LONE: usize = 100;

fn nominal(context: &Context<'_>, findings: &mut Findings) {
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
            findings.push(context.about_row(
                NOMINAL.id,
                Severity::Warning,
                row,
                &columns,
                range.column,
                Some(bound),
                text,
            ));
        }
    }
}
