//! Checks laws: by their formulas, or as a table as a whole by functions of their own.

use super::context::Context;
use super::finding::{Reason, Severity};
use super::formula::{Pair, compile, is_unknown};
use super::functions::FUNCTIONS;
use super::interval::Interval;
use super::judge::{GROUPS, Judge, is_most};
use super::law::{Grade, Law, law};
use super::sheet::SAMPLE;

/// Checks a law, and says whether it could be.
pub(crate) fn check(law: &'static Law, context: &Context<'_>) -> bool {
    if let Some((_, function)) = FUNCTIONS.iter().find(|(id, _)| *id == law.id) {
        let has = |id: &&&str| context.resolve(id).is_some();
        let applies = law.needed().any(|(least, of)| of.iter().filter(has).count() >= least);
        if applies {
            function(law, context);
        }
        return applies;
    }
    let most = if matches!(law.grade, Grade::Waits | Grade::Jobs) { 1 } else { usize::MAX };
    let pairs = |text: &&'static str| match law.values.split_first() {
        Some((word, values)) if is_unknown(word) => with_values(law, text, (word, values), context),
        _ => compile(text, context),
    };
    let check = |pairs: Vec<Pair>| pairs.iter().for_each(|pair| Judge::check(law, pair, context));
    law.formulas.iter().filter_map(pairs).take(most).map(check).count() > 0
}

/// The reading of a formula and the value of `word` that most rows have; of those that as many have, the last, and for an upper bound the
/// first.
fn with_values(
    law: &Law,
    text: &str,
    (word, values): (&str, &[&'static str]),
    context: &Context<'_>,
) -> Option<Vec<Pair>> {
    let readings = text.split(" or ").flat_map(|reading| values.iter().map(move |value| reading.replace(word, value)));
    let mut found: Vec<(usize, usize, Pair)> = Vec::new();
    for pair in readings.filter_map(|reading| compile(&reading, context)).flatten() {
        let meets = |row| {
            let (left, right) = pair.values(row, context, false)?;
            Some(left.low <= right.high && (!pair.equal || right.low <= left.high))
        };
        let rows: Vec<bool> = (0..context.rows()).filter_map(meets).collect();
        found.push((rows.iter().filter(|meets| **meets).count(), rows.len(), pair));
    }
    let (plainest, equal) = found.last().map(|(.., pair)| (pair.columns.len(), pair.equal))?;
    let is_found = |(fits, rows, _): &(usize, usize, Pair)| *fits > 0 && is_most(*fits, *rows);
    let best = if equal { found.into_iter().max_by_key(|(fits, ..)| *fits) } else { found.into_iter().find(is_found) };
    let Some((fits, rows, pair)) = best.filter(is_found) else { return Some(Vec::new()) };
    let severity = if pair.columns.len() > plainest { Severity::Warning } else { Severity::Info };
    context.about_table(law.id, severity, &pair.columns, Reason::Fits(pair.text.clone(), fits, rows));
    Some(vec![pair])
}

/// Finds out what the jobs are a product of, if those of the column called so are too few.
pub(crate) fn settle_jobs(context: &mut Context<'_>) {
    let law = law("little");
    let busy = |context: &Context<'_>| -> Vec<Interval> {
        let pair = law.formulas.iter().find_map(|text| compile(text, context)?.pop());
        pair.map_or_else(Vec::new, |pair| Judge::ratios(law, &pair, context))
    };
    let fits = |all: &[Interval]| all.iter().filter(|b| b.holds(1.0) || (b.at - 1.0).abs() < GROUPS).count();
    let alone = busy(context);
    if context.sheet.has("jobs") && alone.iter().all(|b| b.low <= 1.0 + law.slack) {
        return;
    }
    for product in &law.values[1..] {
        context.jobs = product.split('*').collect();
        let all = busy(context);
        let count = fits(&all);
        if count >= 2 && is_most(count, all.len()) && count > fits(&alone) {
            let why = Reason::Sessions(count, all.len(), context.jobs.join(" × "));
            return context.about_table(law.id, Severity::Info, &context.places(&["jobs"]), why);
        }
    }
    context.jobs = vec!["jobs"];
}

/// Finds out which kilobyte was meant, where headers leave it open: that with which throughput × redo per transaction is the redo rate.
pub(crate) fn settle_kilobyte(context: &mut Context<'_>) {
    const SIZES: [&str; 2] = ["redo_kib_per_tx", "redo_mib_per_s"];
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
    for (id, factor) in SIZES.into_iter().zip(factors) {
        context.sheet.columns.iter_mut().filter(|c| c.id == id).for_each(|c| c.scale(factor));
    }
}
