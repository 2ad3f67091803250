//! Which kilobyte was meant, where a header leaves it open: that with which throughput × redo per transaction is the redo rate.

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::formula::compile;
use crate::audit::interval::Interval;
use crate::audit::judge::is_most;
use crate::audit::law::law;
use crate::audit::reason::Reason;
use crate::audit::sheet::SAMPLE;

const SIZES: [&str; 2] = ["redo_kib_per_tx", "redo_mib_per_s"];

/// Finds out which kilobytes fit, and reads the columns with them.
pub(crate) fn settle(context: &mut Context<'_>) {
    let law = law("kilobyte");
    let Some(pairs) = compile(law.formulas[0], context) else { return };
    let ratio = |row| pairs[0].values(row, context, false).map(|(left, right)| left.over(right));
    let rows = (0..context.rows().min(SAMPLE)).filter_map(ratio);
    let all: Vec<Interval> = rows.filter(|i| i.high.is_finite()).collect();
    let open = SIZES.map(|id| context.sheet.column(id).and_then(|c| c.other));
    let readings = |i: usize| std::iter::once(1.0).chain(open[i]);
    let fits = |[small, large]: [f64; 2]| all.iter().filter(|i| i.holds(large / small)).count();
    let both = readings(0).flat_map(|small| readings(1).map(move |large| [small, large]));
    let mut found: Vec<(usize, [f64; 2])> = both.map(|factors| (fits(factors), factors)).collect();
    found.sort_by_key(|(fits, _)| std::cmp::Reverse(*fits));
    let (fits, factors) = found[0];
    if fits == 0 || !is_most(fits, all.len()) || found.get(1).is_some_and(|next| next.0 == fits) {
        return;
    }
    let size = |i: usize| if open[i].is_none() == (factors[i] == 1.0) { 1024 } else { 1000 };
    let columns = context.places(&["tps", SIZES[0], SIZES[1]]);
    context.about_table(law.id, Severity::Info, &columns, Reason::Kilobyte(fits, all.len(), size(0), size(1)));
    SIZES.into_iter().zip(factors).for_each(|(id, factor)| context.sheet.scale(id, factor));
}
