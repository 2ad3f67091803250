//! Checks laws: by their formulas, or as a table as a whole by functions of their own.

mod cells;
mod kilobyte;
mod little;
mod order;
mod work;

pub(crate) use kilobyte::settle as settle_kilobyte;
pub(crate) use little::settle as settle_jobs;

use super::context::Context;
use super::finding::Severity;
use super::formula::{Pair, compile};
use super::judge::{Held, is_most};
use super::law::{Grade, Law};
use super::reason::Reason;

/// Checks a law in a table as a whole.
type Function = fn(&'static Law, &Context<'_>);

/// Laws with functions of their own. Dilution is found with Little's law, and the kilobyte before all laws.
const FUNCTIONS: [(&str, Function); 9] = [
    ("little", little::check),
    ("dilution", |_, _| {}),
    ("kilobyte", |_, _| {}),
    ("elapsed", work::elapsed),
    ("same-work", work::same),
    ("falling-throughput", order::falling),
    ("test-numbers", order::tests),
    ("duplicates", order::duplicates),
    ("cells", cells::check),
];

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
    let most = if law.grade == Grade::Waits { 1 } else { usize::MAX };
    let pairs = |text: &&'static str| match law.values.split_first() {
        Some((word, values)) => with_values(law, text, (word, values), context),
        None => compile(text, context),
    };
    let check = |pairs: Vec<Pair>| pairs.iter().for_each(|pair| Held { law, pair, context }.check());
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
    let plainest = found.last()?.2.columns.len();
    let is_found = |(fits, rows, _): &(usize, usize, Pair)| *fits > 0 && is_most(*fits, *rows);
    let at = if found[0].2.equal {
        let (at, _) = found.iter().enumerate().max_by_key(|(_, (fits, ..))| *fits)?;
        Some(at).filter(|at| is_found(&found[*at]))
    } else {
        found.iter().position(is_found)
    };
    let Some(at) = at else { return Some(Vec::new()) };
    let (fits, rows, pair) = found.swap_remove(at);
    let severity = if pair.columns.len() > plainest { Severity::Warning } else { Severity::Info };
    context.about_table(law.id, severity, &pair.columns, Reason::Fits(pair.text.clone(), fits, rows));
    Some(vec![pair])
}
