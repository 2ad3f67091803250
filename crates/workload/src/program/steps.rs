//! Walks over the steps of a program.

use super::Step;

/// Results of a walk over the steps of a transaction.
pub(super) struct Walk<'a, T> {
    pub(super) step: &'a dyn Fn(&Step) -> T,
    /// Of steps that are repeated, from their result.
    pub(super) repeat: fn(u32, T) -> T,
    /// Of a choice, from the shares and results of its arms.
    pub(super) choose: fn(&[(u64, T)]) -> T,
    /// Of two steps.
    pub(super) all: fn(T, T) -> T,
    pub(super) nothing: T,
}

impl<T: Copy> Walk<'_, T> {
    pub(super) fn over(&self, steps: &[Step]) -> T {
        let one = |step: &Step| match step {
            Step::Repeat { times, body } => (self.repeat)(*times, self.over(body)),
            Step::Choose { arms, .. } => {
                (self.choose)(&arms.iter().map(|arm| (arm.share, self.over(&arm.body))).collect::<Vec<_>>())
            }
            step => (self.step)(step),
        };
        steps.iter().map(one).fold(self.nothing, self.all)
    }
}

pub(super) fn weighted(arms: &[(u64, f64)]) -> f64 {
    let all: u64 = arms.iter().map(|(share, _)| share).sum();
    arms.iter().map(|(share, of)| *share as f64 / all.max(1) as f64 * of).sum()
}

pub(super) fn largest(arms: &[(u64, u64)]) -> u64 {
    arms.iter().map(|(_, of)| *of).max().unwrap_or(0)
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
