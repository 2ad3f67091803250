//! Laws about all tests of a table: their time, and what a transaction does in each.

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::formula::compile;
use crate::audit::interval::{Interval, middle};
use crate::audit::judge::is_most;
use crate::audit::law::Law;
use crate::audit::reason::{Figure, Reason};

/// Times that tests are set to, s.
const NOMINAL: [f64; 22] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 600.0, 900.0, 1200.0,
    1800.0, 2700.0, 3600.0, 7200.0,
];

/// Rows whose left side is far from the median of their series.
pub(super) fn same(law: &'static Law, context: &Context<'_>) {
    if context.swept.is_some_and(|id| id != "jobs") {
        return;
    }
    for pair in law.formulas.iter().filter_map(|text| compile(text, context)).flatten() {
        let named = &context.sheet.columns[pair.columns[pair.columns.len() - 1]];
        for series in &context.series {
            let left = |row: &usize| Some((*row, pair.values(*row, context, false)?.0));
            let all: Vec<(usize, Interval)> =
                series.rows.iter().filter_map(left).filter(|(_, left)| left.high.is_finite()).collect();
            let usual = middle(all.iter().map(|(_, left)| left.at).collect());
            let spread = middle(all.iter().map(|(_, left)| (left.at - usual).abs()).collect());
            let far = (6.0 * spread).max(law.slack * usual.abs());
            let is_far = |left: Interval| left.low > usual + far || left.high < usual - far;
            for (row, left) in all.iter().filter(|(_, left)| all.len() >= 4 && usual > 0.0 && is_far(*left)) {
                let recomputed = named.value(*row).map(|printed| printed * usual / left.at).filter(|r| r.is_finite());
                let why = Reason::Usual(pair.left_text(), Figure(usual));
                context.find((law.id, Severity::Warning), *row, &pair.columns, recomputed, why);
            }
        }
    }
}

pub(super) fn elapsed(law: &'static Law, context: &Context<'_>) {
    let figure = |row| Some((row, context.interval("elapsed_s", row)?));
    let all: Vec<(usize, Interval)> = (0..context.rows()).filter_map(figure).collect();
    let least = all.iter().map(|(_, e)| e.high).filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
    let Some(nominal) = NOMINAL.into_iter().rev().find(|n| *n <= least && least <= n * 1.1) else { return };
    // Where most took quite another time, it is not one that was set.
    if !is_most(all.iter().filter(|(_, e)| e.low <= nominal * 1.1).count(), all.len()) {
        return;
    }
    let rate = if context.resolve("tps").is_some() { "tps" } else { "rows_per_s" };
    let columns = context.places(&[rate, "elapsed_s"]);
    let same = all.len() > 1 && all.iter().all(|(_, e)| e.at == all[0].1.at);
    for (row, time) in all.iter().filter(|(_, e)| e.low > nominal * 1.002) {
        let share = time.at / nominal - 1.0;
        // Little's law may show that the average is not diluted.
        let value = |id| context.value(id, *row).unwrap_or(f64::NAN);
        if value("tps") * value("commit_latency_ms") / 1e3 > value("jobs") * (1.0 - share / 2.0) {
            continue;
        }
        let severity = if share > 0.0101 { Severity::Warning } else { Severity::Info };
        if same {
            let why = Reason::AllElapsed(Figure(time.at), Figure(nominal));
            return context.about_table(law.id, severity, &columns, why);
        }
        let rate = context.value(rate, *row).map_or(f64::INFINITY, |r| r * (1.0 + share));
        let why = Reason::Elapsed(Figure(time.at), Figure(nominal), Figure(rate));
        context.find((law.id, severity), *row, &columns, Some(nominal), why);
    }
}
