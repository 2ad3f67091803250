//! Laws about the work of all tests of a table: blocks, time, redo of a transaction.

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::formula::{Pair, compile};
use crate::audit::interval::{Interval, middle};
use crate::audit::judge::is_most;
use crate::audit::law::Law;
use crate::audit::reason::{Figure, Reason};

/// Times that tests are set to, s.
const NOMINAL: [f64; 22] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 600.0, 900.0, 1200.0,
    1800.0, 2700.0, 3600.0, 7200.0,
];

/// The left side of a formula in a row.
#[derive(Clone, Copy)]
struct Left {
    row: usize,
    value: Interval,
}

/// Formulas of `law` whose columns are there.
fn formulas(law: &'static Law, context: &Context<'_>) -> impl Iterator<Item = Pair> {
    law.formulas.iter().filter_map(|text| compile(text, context)).flatten()
}

fn lefts(pair: &Pair, rows: impl Iterator<Item = usize>, context: &Context<'_>) -> Vec<Left> {
    let left = |row| Some(Left { row, value: pair.values(row, context, false)?.0 });
    rows.filter_map(left).filter(|left| left.value.high.is_finite()).collect()
}

/// Says by `why` of rows whose left side is not `usual`.
fn unusual(
    law: &Law,
    pair: &Pair,
    rows: impl Iterator<Item = Left>,
    (why, usual): (fn(String, Figure) -> Reason, f64),
    context: &Context<'_>,
) {
    let named = pair.columns[pair.columns.len() - 1];
    for left in rows {
        let printed = context.sheet.columns[named].value(left.row);
        // The named figure with which the left side is 1.
        let one = pair.solve(named, left.row, context);
        let recomputed = printed.zip(one).map(|(printed, one)| printed + one * (usual - left.value.at));
        let why = why(pair.left_text(), Figure(usual));
        context.find((law.id, Severity::Warning), left.row, &pair.columns, recomputed, why);
    }
}

/// Rows that are far from the median of their series.
pub(super) fn same(law: &'static Law, context: &Context<'_>) {
    if context.swept.is_some_and(|id| id != "jobs") {
        return;
    }
    for pair in formulas(law, context) {
        for series in &context.series {
            let all = lefts(&pair, series.rows.iter().copied(), context);
            let usual = middle(all.iter().map(|left| left.value.at).collect());
            let spread = middle(all.iter().map(|left| (left.value.at - usual).abs()).collect());
            let far = (6.0 * spread).max(law.slack * usual.abs());
            let is_far = |left: &Left| left.value.low > usual + far || left.value.high < usual - far;
            let known = all.len() >= 4 && usual > 0.0;
            unusual(law, &pair, all.into_iter().filter(|left| known && is_far(left)), (Reason::Usual, usual), context);
        }
    }
}

pub(super) fn nominal(law: &'static Law, context: &Context<'_>) {
    let columns = context.places(&["workload", "redo_kib_per_tx"]);
    for row in 0..context.rows() {
        let range = context.workload(row).and_then(|w| w.redo_kib);
        let (Some((low, high)), Some(figure)) = (range, context.interval("redo_kib_per_tx", row)) else { continue };
        if figure.low > high || figure.high < low {
            let bound = if figure.low > high { high } else { low };
            let why = Reason::Defined(Figure(low), Figure(high));
            context.find((law.id, Severity::Warning), row, &columns, Some(bound), why);
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

/// The size of blocks that most rows have, with or without the redo in the bytes, and the rows that do not.
pub(super) fn data_blocks(law: &'static Law, context: &Context<'_>) {
    for pair in formulas(law, context) {
        let &[counted, in_mib] = pair.columns.as_slice() else { continue };
        let mib = |left: &Left| context.sheet.columns[in_mib].interval(left.row, false);
        let printed = lefts(&pair, 0..context.rows(), context);
        // Blocks of the log have headers, and each write may end with padding.
        let less_redo = |left: &Left| {
            let redo = context.interval("redo_mib_per_s", left.row)?.scaled(1_048_576.0);
            let padding = context.value("redo_writes_per_s", left.row).map_or(0.0, |writes| writes * 512.0);
            let redo = Interval { high: redo.high * 1.04 + padding, ..redo };
            let data = mib(left)?.scaled(1_048_576.0).plus(redo.scaled(-1.0));
            let data = Interval { low: data.low.max(0.0), ..data };
            Some(Left { value: data.over(context.sheet.columns[counted].interval(left.row, false)?), ..*left })
        };
        let redo_in_it =
            context.sheet.columns[in_mib].id == "physical_written_mib_per_s" && context.sheet.has("redo_mib_per_s");
        let without = if redo_in_it { printed.iter().filter_map(less_redo).collect() } else { Vec::new() };
        let fits = |all: &[Left], bytes| all.iter().filter(|left| left.value.holds(bytes)).count();
        // Of readings that fit as well, the last counts: as printed.
        let sizes = [512.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0];
        let readings =
            [&without, &printed].into_iter().flat_map(|all| sizes.map(|bytes| (fits(all, bytes), bytes, all)));
        let Some((fits, bytes, all)) = readings.max_by_key(|(fits, ..)| *fits) else { continue };
        if fits == 0 || !is_most(fits, all.len()) {
            continue;
        }
        let (severity, less) = if std::ptr::eq(all, &without) {
            (Severity::Warning, ", less the redo, which these bytes hold as well")
        } else {
            (Severity::Info, "")
        };
        context.about_table(
            law.id,
            severity,
            &pair.columns,
            Reason::Blocks(Figure(bytes), fits, all.len(), less.to_owned()),
        );
        unusual(
            law,
            &pair,
            all.iter().copied().filter(|left| !left.value.holds(bytes)),
            (Reason::Usual, bytes),
            context,
        );
    }
}

/// The smallest block that holds the redo of most rows, and the rows whose redo it does not hold.
pub(super) fn redo_blocks(law: &'static Law, context: &Context<'_>) {
    for pair in formulas(law, context) {
        let all = lefts(&pair, 0..context.rows(), context);
        let holds = |bytes: f64| all.iter().filter(|left| left.value.low <= bytes).count();
        let holds_most = |bytes: &f64| holds(*bytes) > 0 && is_most(holds(*bytes), all.len());
        let Some(bytes) = [512.0, 1024.0, 4096.0, 8192.0, 16384.0].into_iter().find(holds_most) else { return };
        let filled = all.iter().map(|left| left.value.at.min(bytes)).sum::<f64>() / all.len() as f64;
        let padding = format!("; {:.1} % is padding", (1.0 - filled / bytes) * 100.0);
        let why = Reason::Blocks(Figure(bytes), holds(bytes), all.len(), padding);
        context.about_table(law.id, Severity::Info, &pair.columns, why);
        let larger = all.iter().copied().filter(|left| left.value.low > bytes);
        unusual(law, &pair, larger, (Reason::AtMost, bytes), context);
    }
}
