//! Walks over the steps of a program.

use super::{Arm, Step};

/// Mean of `of` over the arms, weighted by their shares.
pub(super) fn weighted(arms: &[Arm], of: &dyn Fn(&[Step]) -> f64) -> f64 {
    let all: u64 = arms.iter().map(|a| a.share).sum();
    arms.iter().map(|a| a.share as f64 / all.max(1) as f64 * of(&a.body)).sum()
}

/// Calls `see` with every step, nested ones included, in order.
pub(crate) fn each<'a>(steps: &'a [Step], see: &mut dyn FnMut(&'a Step)) {
    for step in steps {
        see(step);
        match step {
            Step::Repeat { body, .. } => each(body, see),
            Step::Choose { arms, .. } => arms.iter().for_each(|arm| each(&arm.body, see)),
            _ => {}
        }
    }
}

/// Calls `change` with every step, nested ones included.
pub(crate) fn each_mut(steps: &mut [Step], change: &mut dyn FnMut(&mut Step)) {
    for step in steps {
        change(step);
        match step {
            Step::Repeat { body, .. } => each_mut(body, change),
            Step::Choose { arms, .. } => arms.iter_mut().for_each(|arm| each_mut(&mut arm.body, change)),
            _ => {}
        }
    }
}

/// Number of statements, if it is the same with every choice and nothing else is done. A repetition means that BEGIN and
/// COMMIT are sent, even if it is done once.
pub(super) fn plain_statements(steps: &[Step]) -> Option<u64> {
    let one = |step: &Step| match step {
        Step::Bind { .. } => Some(0),
        Step::Execute { .. } => Some(1),
        Step::Choose { arms, .. } => {
            let (first, rest) = arms.split_first()?;
            let statements = plain_statements(&first.body)?;
            rest.iter().all(|arm| plain_statements(&arm.body) == Some(statements)).then_some(statements)
        }
        Step::Repeat { .. } | Step::Bulk { .. } | Step::Compute { .. } => None,
    };
    steps.iter().map(one).sum()
}
