//! Laws about the work of all tests of a table: blocks, time, redo of a transaction.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::formula::Formula;
use crate::audit::interval::Interval;
use crate::audit::judge::MOST;
use crate::audit::reason::reason;

const MIB: f64 = 1_048_576.0;
/// Times that tests are set to, s.
const NOMINAL: [f64; 22] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 600.0, 900.0, 1200.0,
    1800.0, 2700.0, 3600.0, 7200.0,
];
/// Figures that are the same in all tests of a series, as left sides of formulas; unless the table has the column behind, by which
/// a law holds them.
const SAME: [(&str, &str, &str); 3] = [
    ("redo_kib_per_tx", "redo_kib_per_tx = redo_kib_per_tx", ""),
    ("redo per transaction", "redo_mib_per_s! / tps = tps", "redo_kib_per_tx"),
    ("rows per transaction", "rows_per_s! / tps = tps", "rows_per_tx"),
];

/// Rows whose value is far from the median of all, with that median; `floor` is the relative deviation that is nothing special.
fn outliers(all: &[(usize, Interval)], floor: f64) -> Vec<(usize, f64)> {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let middle = median(all.iter().map(|(_, i)| i.at).collect());
    let spread = median(all.iter().map(|(_, i)| (i.at - middle).abs()).collect());
    let far = (6.0 * spread).max(floor * middle.abs());
    let off =
        |(_, i): &&(usize, Interval)| all.len() >= 4 && middle > 0.0 && (i.low > middle + far || i.high < middle - far);
    all.iter().filter(off).map(|(row, _)| (*row, middle)).collect()
}

pub(super) fn same(context: &Context<'_>, findings: &mut Findings) {
    if context.sheet.swept().is_some_and(|id| id != "jobs") {
        return;
    }
    for (what, text, unless) in SAME {
        let Some(formula) = Formula::compile(text, context).filter(|_| !context.sheet.has(unless)) else { continue };
        let columns = formula.columns(0);
        for series in &context.series {
            let value = |row: &usize| Some((*row, formula.values(0, *row, context, false)?.0));
            let all: Vec<_> = series.rows.iter().filter_map(value).filter(|(_, i)| i.high.is_finite()).collect();
            for (row, usual) in outliers(&all, 0.03) {
                let per = if columns.len() == 1 { Some(1.0) } else { context.value("tps", row) };
                let why = (per.map(|per| per * usual), reason!(Usual, what, usual));
                context.find(findings, ("same-work", Severity::Warning), row, &columns, why);
            }
        }
    }
}

pub(super) fn nominal(context: &Context<'_>, findings: &mut Findings) {
    let columns = context.places(&["workload", "redo_kib_per_tx"]);
    for row in 0..context.rows() {
        let range = context.workload(row).and_then(|w| w.redo_kib);
        let (Some((low, high)), Some(figure)) = (range, context.interval("redo_kib_per_tx", row)) else { continue };
        if figure.low > high || figure.high < low {
            let bound = if figure.low > high { high } else { low };
            let why = (Some(bound), reason!(Defined, low, high));
            context.find(findings, ("nominal-work", Severity::Warning), row, &columns, why);
        }
    }
}

pub(super) fn elapsed(context: &Context<'_>, findings: &mut Findings) {
    let figure = |row| Some((row, context.interval("elapsed_s", row)?));
    let all: Vec<(usize, Interval)> = (0..context.rows()).filter_map(figure).collect();
    let least = all.iter().map(|(_, e)| e.high).filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
    let Some(nominal) = NOMINAL.into_iter().rev().find(|n| *n <= least && least <= n * 1.1) else { return };
    // Where most took quite another time, it is not one that was set.
    if (all.iter().filter(|(_, e)| e.low <= nominal * 1.1).count() as f64) < MOST * all.len() as f64 {
        return;
    }
    let rate = if context.resolve("tps").is_some() { "tps" } else { "rows_per_s" };
    let columns = context.places(&[rate, "elapsed_s"]);
    let same = all.len() > 1 && all.iter().all(|(_, e)| e.at == all[0].1.at);
    for (row, time) in all.iter().filter(|(_, e)| e.low > nominal * 1.002) {
        let share = time.at / nominal - 1.0;
        // Little's law may show that the average is not diluted.
        let [tps, ms, jobs] =
            ["tps", "commit_latency_ms", "jobs"].map(|id| context.value(id, *row).unwrap_or(f64::NAN));
        if tps * ms / 1e3 > jobs * (1.0 - share / 2.0) {
            continue;
        }
        let severity = if share > 0.0101 { Severity::Warning } else { Severity::Info };
        if same {
            let why = reason!(AllElapsed, time.at, nominal);
            return findings.about_table("elapsed", severity, context.ids(&columns), why);
        }
        let rate = context.value(rate, *row).map_or(f64::INFINITY, |r| r * (1.0 + share));
        let why = (Some(nominal), reason!(Elapsed, time.at, nominal, rate));
        context.find(findings, ("elapsed", severity), *row, &columns, why);
    }
}

pub(super) fn data_blocks(context: &Context<'_>, findings: &mut Findings) {
    let pairs =
        [["physical_written_blocks_per_s", "physical_written_mib_per_s"], ["block_reads_per_s", "read_mib_per_s"]];
    for [counted, in_mib] in pairs.into_iter().filter(|pair| pair.iter().all(|id| context.sheet.has(id))) {
        blocks_of(counted, in_mib, context, findings);
    }
}

/// The size of blocks that most rows have, with or without the redo in the bytes, and the rows that do not.
fn blocks_of(counted: &str, in_mib: &str, context: &Context<'_>, findings: &mut Findings) {
    let per_block = |row: usize, log: bool| {
        let redo = context.interval("redo_mib_per_s", row).filter(|_| log).unwrap_or(Interval::exact(0.0)).scaled(MIB);
        // Blocks of the log have headers, and each write may end with padding.
        let padding = context.value("redo_writes_per_s", row).map_or(0.0, |writes| writes * 512.0);
        let log_bytes = Interval { high: if log { redo.high * 1.04 + padding } else { 0.0 }, ..redo };
        let written = context.interval(in_mib, row)?.scaled(MIB).plus(log_bytes.scaled(-1.0));
        let blocks = context.interval(counted, row).filter(|b| b.at > 0.0)?;
        Some((row, Interval { low: written.low.max(0.0), ..written }.over(blocks)))
    };
    let columns = context.places(&[counted, in_mib]);
    let redo_in_it = context.sheet.has("redo_mib_per_s") && in_mib == "physical_written_mib_per_s";
    let sizes = [512.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0];
    let rows = |log| (0..context.rows()).filter_map(|row| per_block(row, log)).collect::<Vec<(usize, Interval)>>();
    let fits = |log, bytes: f64| rows(log).iter().filter(|(_, i)| i.holds(bytes)).count();
    let readings = [true, false].into_iter().filter(|log| redo_in_it || !log);
    // Of readings that fit as well, the last counts: without the redo.
    let all = readings.flat_map(|log| sizes.map(|bytes| (fits(log, bytes), bytes, log)));
    let Some((fits, bytes, log)) = all.max_by_key(|(fits, ..)| *fits).filter(|(fits, ..)| *fits > 0) else { return };
    let all = rows(log);
    if (fits as f64) < MOST * all.len() as f64 {
        return;
    }
    let (severity, less) =
        if log { (Severity::Warning, ", less the redo, which these bytes hold as well") } else { (Severity::Info, "") };
    findings.about_table("data-blocks", severity, context.ids(&columns), reason!(Blocks, bytes, fits, all.len(), less));
    for (row, i) in all.iter().filter(|(_, i)| !i.holds(bytes)) {
        let expected = context.value(in_mib, *row).map(|v| v * bytes / i.at);
        let why = (expected, reason!(Usual, "bytes per block", bytes));
        context.find(findings, ("data-blocks", Severity::Warning), *row, &columns, why);
    }
}

pub(super) fn redo_blocks(context: &Context<'_>, findings: &mut Findings) {
    let columns = context.places(&["redo_blocks_per_s", "redo_mib_per_s"]);
    let per_block = |row: usize| {
        let blocks = context.interval("redo_blocks_per_s", row).filter(|b| b.at > 0.0)?;
        Some((row, context.interval("redo_mib_per_s", row)?.scaled(MIB).over(blocks)))
    };
    let all: Vec<(usize, Interval)> = (0..context.rows()).filter_map(per_block).collect();
    let holds = |bytes: f64| all.iter().filter(|(_, i)| i.low <= bytes).count();
    let is_most = |bytes: &f64| holds(*bytes) as f64 >= MOST * all.len() as f64 && holds(*bytes) > 0;
    let Some(bytes) = [512.0, 1024.0, 4096.0, 8192.0, 16384.0].into_iter().find(is_most) else { return };
    let filled = all.iter().map(|(_, i)| i.at.min(bytes)).sum::<f64>() / all.len() as f64;
    let padding = format!("; {:.1} % is padding", (1.0 - filled / bytes) * 100.0);
    let why = reason!(Blocks, bytes, holds(bytes), all.len(), padding);
    findings.about_table("redo-blocks", Severity::Info, context.ids(&columns), why);
    for (row, _) in all.iter().filter(|(_, i)| i.low > bytes) {
        let most = context.value("redo_blocks_per_s", *row).map(|blocks| blocks * bytes / MIB);
        let why = (most, reason!(Usual, "bytes per block at most", bytes));
        context.find(findings, ("redo-blocks", Severity::Warning), *row, &columns, why);
    }
}
