//! Which kilobyte was meant: that with which throughput × redo per transaction gives the redo rate.

use std::cmp::Reverse;

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::formula::compile;
use crate::audit::interval::Interval;
use crate::audit::judge::is_most;
use crate::audit::law::law;
use crate::audit::reason::Reason;
use crate::audit::sheet::SAMPLE;

/// A kilobyte of 1,000 bytes in KiB, and a megabyte of 1,000,000 in MiB.
const SIZES: [(&str, f64); 2] = [("redo_kib_per_tx", 1000.0 / 1024.0), ("redo_mib_per_s", 1e6 / 1_048_576.0)];

/// Finds out which units fit, and reads the columns with them.
pub(crate) fn settle(context: &mut Context<'_>) {
    let law = law("kilobyte");
    let Some(pairs) = compile(law.formulas[0], context) else { return };
    let ratio = |row| pairs[0].values(row, context, false).map(|(left, right)| left.over(right));
    let rows = (0..context.rows().min(SAMPLE)).filter_map(ratio);
    let all: Vec<Interval> = rows.filter(|i| i.high.is_finite()).collect();
    let open = SIZES.map(|(id, _)| context.sheet.column(id).and_then(|c| c.other));
    // The other size of a unit that the header leaves open, or one that the header does not allow.
    let readings = |i: usize| [(1.0, true), open[i].map_or((SIZES[i].1, false), |other| (other, true))];
    // Rows that fit, whether the headers allow it, and factors of both columns.
    let mut found: Vec<(usize, bool, [f64; 2])> = Vec::new();
    for (small, small_printed) in readings(0) {
        for (large, large_printed) in readings(1) {
            let fits = all.iter().filter(|i| i.holds(large / small)).count();
            found.push((fits, small_printed && large_printed, [small, large]));
        }
    }
    found.sort_by_key(|(fits, printed, _)| Reverse((*fits, *printed)));
    let as_printed = found.iter().find(|(_, printed, _)| *printed).map_or(0, |(fits, ..)| *fits);
    let ((fits, printed, factors), rows) = (found[0], all.len());
    let unclear = !is_most(fits, rows) || fits == 0 || found[1].0 == fits;
    if unclear || !printed && (rows < 3 || as_printed * 2 > rows) {
        return;
    }
    let size = |i: usize| if open[i].is_none() == (factors[i] == 1.0) { 1024 } else { 1000 };
    let (severity, other) = if printed { (Severity::Info, "") } else { (Severity::Warning, ", which is not printed") };
    let columns = context.places(&["tps", SIZES[0].0, SIZES[1].0]);
    context.about_table(law.id, severity, &columns, Reason::Kilobyte(fits, rows, size(0), size(1), other));
    SIZES.iter().zip(factors).for_each(|((id, _), factor)| context.sheet.scale(id, factor));
}
