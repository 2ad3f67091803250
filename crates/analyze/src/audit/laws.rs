//! Checks laws: by their formulas, or as a table as a whole by functions of their own.

mod cells;
mod kilobyte;
mod little;
mod order;
mod work;

pub(crate) use kilobyte::settle as settle_kilobyte;
pub(crate) use little::settle as settle_jobs;

use super::context::Context;
use super::formula;
use super::judge::Held;
use super::law::{Grade, Law};

/// Checks a law in a table as a whole.
type Function = fn(&'static Law, &Context<'_>);

/// Laws with functions of their own. Dilution is found with Little's law, and the kilobyte before all laws.
const FUNCTIONS: [(&str, Function); 12] = [
    ("little", little::check),
    ("dilution", |_, _| {}),
    ("kilobyte", |_, _| {}),
    ("data-blocks", work::data_blocks),
    ("redo-blocks", work::redo_blocks),
    ("elapsed", work::elapsed),
    ("same-work", work::same),
    ("nominal-work", work::nominal),
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
    // Of commits that did not wait, one figure is enough.
    let most = if law.grade == Grade::Waits { 1 } else { usize::MAX };
    let formulas = law.formulas.iter().filter_map(|text| formula::compile(text, context)).take(most);
    let check = |pairs: Vec<formula::Pair>| pairs.iter().for_each(|pair| Held { law, pair, context }.check());
    formulas.map(check).count() > 0
}
