//! Checks laws: by their formulas, or as a table as a whole by functions of their own.

mod cells;
mod kilobyte;
mod little;
mod order;
mod work;

pub(crate) use kilobyte::settle as settle_kilobyte;
pub(crate) use little::settle as settle_jobs;

use super::context::Context;
use super::finding::Findings;
use super::formula::Formula;
use super::judge;
use super::law::{Grade, Law};

/// Checks a law, and says whether it could be.
pub(crate) fn check(law: &'static Law, context: &Context<'_>, findings: &mut Findings) -> bool {
    if law.needs.is_empty() {
        // Of commits that did not wait, one figure is enough.
        let most = if law.grade == Grade::Waits { 1 } else { usize::MAX };
        let formulas = law.formulas.iter().filter_map(|f| Some((*f, Formula::compile(f, context)?))).take(most);
        let count = formulas.map(|(text, formula)| judge::check(law, text, &formula, context, findings)).count();
        return count > 0;
    }
    let has = |id: &&str| context.resolve(id).is_some();
    let applies = law.needs == [""] && !context.sheet.columns.is_empty() || law.sets().any(|set| set.iter().all(has));
    if applies {
        check_by_function(law.id, context, findings);
    }
    applies
}

fn check_by_function(id: &str, context: &Context<'_>, findings: &mut Findings) {
    match id {
        "little" => little::check(context, findings),
        "data-blocks" => work::data_blocks(context, findings),
        "redo-blocks" => work::redo_blocks(context, findings),
        "elapsed" => work::elapsed(context, findings),
        "same-work" => work::same(context, findings),
        "nominal-work" => work::nominal(context, findings),
        "falling-throughput" => order::falling(context, findings),
        "test-numbers" => order::tests(context, findings),
        "duplicates" => order::duplicates(context, findings),
        "cells" => cells::check(context, findings),
        // Dilution is found with Little's law, and the kilobyte before all laws.
        _ => {}
    }
}
