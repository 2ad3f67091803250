//! Which kilobyte was meant: that with which throughput × redo per transaction gives the redo rate.

use std::cmp::Reverse;

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::formula::Formula;
use crate::audit::interval::Interval;
use crate::audit::judge::MOST;
use crate::audit::reason::reason;
use crate::audit::sheet::SAMPLE;

/// A kilobyte of 1,000 bytes in KiB, and a megabyte of 1,000,000 in MiB.
const SIZES: [(&str, f64); 2] = [("redo_kib_per_tx", 1000.0 / 1024.0), ("redo_mib_per_s", 1e6 / 1_048_576.0)];

/// Finds out which units fit, and reads the columns with them.
pub(crate) fn settle(context: &mut Context<'_>, findings: &mut Findings) {
    let Some(formula) = Formula::compile("tps * redo_kib_per_tx / 1024 = redo_mib_per_s", context) else { return };
    let ratio = |row| formula.values(0, row, context, false).map(|(left, right)| left.over(right));
    let rows = (0..context.rows().min(SAMPLE)).filter_map(ratio);
    let all: Vec<Interval> = rows.filter(|i| i.high.is_finite()).collect();
    let open = SIZES.map(|(id, _)| context.sheet.column(id).and_then(|c| c.other));
    // The other size of a unit that the header leaves open, or one that the header does not allow.
    let readings = |i: usize| open[i].map_or([(1.0, true), (SIZES[i].1, false)], |other| [(1.0, true), (other, true)]);
    // Rows that fit, whether the headers allow it, and factors of both columns.
    let mut found: Vec<(usize, bool, [f64; 2])> = Vec::new();
    for (small, small_printed) in readings(0) {
        for (large, large_printed) in readings(1) {
            let fits = all.iter().filter(|i| i.holds(large / small)).count();
            found.push((fits, small_printed && large_printed, [small, large]));
        }
    }
    found.sort_by_key(|(fits, printed, _)| Reverse((*fits, *printed)));
    let as_printed = found.iter().filter(|(_, printed, _)| *printed).map(|(fits, ..)| *fits).max().unwrap_or(0);
    let [(fits, printed, factors), (next, ..), ..] = *found.as_slice() else { return };
    let few = (fits as f64) < MOST * all.len() as f64 || fits == 0 || next == fits;
    if few || !printed && (all.len() < 3 || as_printed * 2 > all.len()) {
        return;
    }
    let size = |i: usize| if open[i].is_none() == (factors[i] == 1.0) { "1024" } else { "1000" };
    let (severity, other) = if printed { (Severity::Info, "") } else { (Severity::Warning, ", which is not printed") };
    let columns = context.ids(&context.places(&["tps", SIZES[0].0, SIZES[1].0]));
    findings.about_table("kilobyte", severity, columns, reason!(Kilobyte, fits, all.len(), size(0), size(1), other));
    SIZES.iter().zip(factors).for_each(|((id, _), factor)| context.sheet.scale(id, factor));
}
