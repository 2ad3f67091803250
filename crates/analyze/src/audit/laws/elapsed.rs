//! Time that a test took against the time that it was meant to take.

use super::little;
use super::work::outliers;
use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading};

/// Times that tests are set to, s.
const NOMINAL: [f64; 22] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 600.0, 900.0, 1200.0,
    1800.0, 2700.0, 3600.0, 7200.0,
];

pub(super) fn check(context: &Context<'_>, findings: &mut Findings) {
    if has_fixed_work(context) {
        return;
    }
    let elapsed = |row| context.interval("elapsed_s", row, Reading::Rounded);
    let rate = if context.has("tps") { "tps" } else { "rows_per_s" };
    let odd = odd_ones(context, findings);
    let least = context
        .rows()
        .filter(|row| !odd[*row])
        .filter_map(elapsed)
        .map(|e| e.high)
        .filter(|s| *s > 0.0)
        .fold(f64::INFINITY, f64::min);
    let Some(nominal) = NOMINAL.into_iter().rev().find(|n| *n <= least && least <= n * 1.1) else { return };
    // Where most took quite another time, it is not one that was set.
    let near = |e: &Interval| e.low <= nominal * 1.1;
    let times = || context.rows().filter_map(elapsed);
    if times().filter(near).count() * 4 < times().count() * 3 {
        return;
    }
    let (mut same, mut first) = (true, None);
    for row in context.rows() {
        same &= *first.get_or_insert(elapsed(row)) == elapsed(row);
    }
    for row in context.rows().filter(|row| !odd[*row]) {
        let Some(time) = elapsed(row).filter(|e| e.low > nominal * 1.002) else { continue };
        let share = time.at / nominal - 1.0;
        if shown_not_diluted(context, row, share) {
            continue;
        }
        let severity = if share > 0.0101 { Severity::Warning } else { Severity::Info };
        if !findings.wants("elapsed", severity) {
            continue;
        }
        let columns = ["elapsed_s", rate];
        let corrected = context.value(rate, row).map(|r| r * (1.0 + share));
        let text = format!(
            "the test took {} s of nominal {} s: if its average is over all of it, it is diluted by up to {} %, and the rate was up to {}",
            shown(time.at, 5),
            shown(nominal, 5),
            shown(share / (1.0 + share) * 100.0, 2),
            shown(corrected.unwrap_or(0.0), 5)
        );
        if same && context.rows().len() > 1 {
            findings.push(context.about_table("elapsed", severity, &columns, format!("all rows: {text}")));
            return;
        }
        findings.push(context.about_row("elapsed", severity, row, &columns, "elapsed_s", Some(nominal), text));
    }
}

/// Whether most tests did the same number of transactions or rows, so that they took the time they took.
fn has_fixed_work(context: &Context<'_>) -> bool {
    let same = |id| {
        let first = context.sheet.text(id, 0);
        let count = context.rows().filter(|row| context.sheet.text(id, *row) == first).count();
        context.rows().len() > 1 && count * 4 >= context.rows().len() * 3
    };
    context.sheet.columns.iter().any(|c| c.counted && same(c.id)) && !same("elapsed_s")
}

/// Whether Little's law, with digits that would show it, leaves no room for a dilution of `share`.
fn shown_not_diluted(context: &Context<'_>, row: usize, share: f64) -> bool {
    little::busy(context, row).is_some_and(|busy: Interval| busy.low > 1.0 - share / 2.0)
}

/// Tests that took quite another time than the others.
fn odd_ones(context: &Context<'_>, findings: &mut Findings) -> Vec<bool> {
    let half =
        |row| Some(context.interval("elapsed_s", row, Reading::Rounded)?.high - context.value("elapsed_s", row)?);
    let all: Vec<(usize, f64, f64)> =
        context.rows().filter_map(|row| Some((row, context.value("elapsed_s", row)?, half(row)?))).collect();
    let round = |s: f64| NOMINAL.into_iter().any(|n| (s / n - 1.0).abs() < 0.005);
    let odd: Vec<(usize, f64)> = if all.iter().all(|(_, s, _)| round(*s)) { Vec::new() } else { outliers(&all, 0.05) };
    let mut is_odd = vec![false; context.rows().len()];
    // Where many differ, each has its own time.
    if odd.len() * 10 > all.len() + 9 {
        return is_odd;
    }
    for (row, usual) in &odd {
        is_odd[*row] = true;
        if findings.wants("elapsed", Severity::Warning) {
            let text = format!("the other tests took about {} s", shown(*usual, 4));
            let (columns, usual) = (["elapsed_s"], Some(*usual));
            context.warn(findings, ("elapsed", *row), (&columns, "elapsed_s"), usual, text);
        }
    }
    is_odd
}
