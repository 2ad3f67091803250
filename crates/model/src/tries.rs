//! Tries of a test: a window that others disturbed is measured again. Which try counts follows from the checks of disturbance
//! and of proofs, never from a figure: so no try is chosen for its result. The two windows of a pair are one try.

use std::collections::{BTreeMap, BTreeSet};

use crate::disturbance::severity;
use crate::note::Note;
use crate::record::TestRecord;

pub const MOST_TRIES: u32 = 3;

/// How far others disturbed a try of these windows, by the worst of them: so many times as much as makes a test disturbed. `None` if it
/// ends the tries of its test, and counts: nothing disturbed it, or a proof failed, which no other try may hide.
pub fn disturbed(windows: &[&TestRecord]) -> Option<f64> {
    if windows.iter().any(|r| !r.is_usable()) {
        return None;
    }
    windows.iter().filter(|r| r.is_disturbed()).map(|r| severity(r)).reduce(f64::max)
}

/// The place of the try that counts: the first that was not [disturbed], else the least disturbed one.
pub fn counting(tries: &[Option<f64>]) -> Option<usize> {
    let severity = |place: &usize| tries[*place].unwrap_or(-1.0);
    (0..tries.len()).min_by(|a, b| severity(a).total_cmp(&severity(b)))
}

/// The windows of each complete try of the test whose first window is number `first`, in their order.
pub fn tries<'a>(all: impl Iterator<Item = &'a TestRecord> + Clone, first: u32) -> Vec<Vec<&'a TestRecord>> {
    let in_pair = all.clone().any(|r| r.test == first && r.variant.is_some());
    let is_first = |r: &TestRecord| r.try_of.is_none() && (r.test == first || in_pair && r.test == first + 1);
    let mut windows: Vec<&TestRecord> = all.filter(|r| is_first(r) || r.try_of == Some(first)).collect();
    windows.sort_by_key(|r| r.test);
    let mut tries: Vec<Vec<&TestRecord>> = Vec::new();
    for record in windows {
        match tries.last_mut() {
            Some(pair) if pair.len() == 1 && are_pair(pair[0], record) => pair.push(record),
            _ => tries.push(vec![record]),
        }
    }
    // A killed run may leave a window without its neighbour.
    tries.retain(|windows| windows.iter().all(|r| r.variant.is_none()) || windows.len() == 2);
    tries
}

/// How often a test was measured in the try of these windows: one may follow another of the same jobs.
pub fn measured(windows: &[&TestRecord]) -> u32 {
    let repeated = |r: &&TestRecord| r.notes.iter().any(|note| matches!(note, Note::WindowRepeated { .. }));
    if windows.iter().any(repeated) { 2 } else { 1 }
}

/// Whether two windows are those of a pair, measured one after the other.
fn are_pair(a: &TestRecord, b: &TestRecord) -> bool {
    let Some((x, y)) = a.variant.as_ref().zip(b.variant.as_ref()) else { return false };
    let same_place = (&a.workload, a.jobs, a.repetition) == (&b.workload, b.jobs, b.repetition);
    x.arm != y.arm && x.compares_as(y) && a.test + 1 == b.test && same_place
}

/// Splits the windows of a run into those that count, each at the place of its test's first try and with the number of tries, and others.
#[must_use]
pub fn split(mut all: Vec<TestRecord>) -> (Vec<TestRecord>, Vec<TestRecord>) {
    let firsts: BTreeSet<u32> = all.iter().filter_map(|r| r.try_of).collect();
    all.iter_mut().for_each(|r| r.tries = measured(&[r]));
    if firsts.is_empty() {
        return (all, Vec::new());
    }
    let mut counted: BTreeMap<u32, u32> = BTreeMap::new();
    let mut others: BTreeSet<u32> = all.iter().filter(|r| r.try_of.is_some()).map(|r| r.test).collect();
    for first in firsts {
        let tries = tries(all.iter(), first);
        let counting = counting(&tries.iter().map(|windows| disturbed(windows)).collect::<Vec<_>>());
        for (place, window) in tries.iter().enumerate().flat_map(|(place, of)| of.iter().map(move |r| (place, r.test)))
        {
            if Some(place) == counting {
                others.remove(&window);
                counted.insert(window, tries.iter().map(|windows| measured(windows)).sum());
            } else {
                others.insert(window);
            }
        }
    }
    all.iter_mut().for_each(|r| r.tries = counted.get(&r.test).copied().unwrap_or(r.tries));
    let (others, mut counting): (Vec<TestRecord>, Vec<TestRecord>) =
        all.into_iter().partition(|r| others.contains(&r.test));
    counting.sort_by_key(|r| (r.try_of.unwrap_or(r.test), r.test));
    (counting, others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Check, CheckId, Outcome};
    use crate::column::{COMMIT_THROUGHPUT_TPS, OTHER_CPU_PCT};
    use crate::variant::{InPair, Letter};

    /// A window with its number, the test that it is a try of (0: none), and what others used of the CPU, %.
    fn window(test: u32, try_of: u32, other_pct: f64) -> TestRecord {
        let mut record = TestRecord { test, try_of: (try_of > 0).then_some(try_of), ..TestRecord::blank("X") };
        record.set(OTHER_CPU_PCT, other_pct);
        let outcome = if other_pct >= 20.0 { Outcome::Failed } else { Outcome::Passed };
        record.add_check(Check::new(CheckId::OtherCpu, outcome, ""));
        record
    }

    fn pair(first: u32, try_of: u32, others_pct: [f64; 2]) -> Vec<TestRecord> {
        let arm = |(arm, other_pct): (Letter, f64)| {
            let variant = Some(InPair::of_two(arm));
            TestRecord { variant, ..window(first + arm.index() as u32, try_of, other_pct) }
        };
        Letter::BOTH.into_iter().zip(others_pct).map(arm).collect()
    }

    fn numbers(records: &[TestRecord]) -> Vec<(u32, u32)> {
        records.iter().map(|r| (r.test, r.tries)).collect()
    }

    /// Windows with the numbers and tries of those that count, and of the others.
    type Case<'a> = (Vec<TestRecord>, &'a [(u32, u32)], &'a [(u32, u32)]);

    #[test]
    fn one_try_of_a_test_counts_whatever_its_throughput() {
        let mut repeated = window(1, 0, 30.0);
        repeated.notes.push(Note::WindowRepeated { by: CheckId::OtherCpu, pct: 40.0, tx_per_s: 0.5 });
        let mut refused = window(2, 1, 90.0);
        refused.add_check(Check::new(CheckId::Rate, Outcome::Failed, "too slow"));
        // The worst window says how far a pair was disturbed.
        let pairs = [pair(1, 0, [0.0, 50.0]), pair(3, 1, [30.0, 0.0]), pair(5, 0, [0.0, 0.0])].concat();
        let killed = pairs.iter().filter(|r| r.test != 4).cloned().collect();
        let mut half_refused = [pair(1, 0, [30.0, 0.0]), pair(3, 1, [0.0, 90.0])].concat();
        half_refused[2].add_check(Check::new(CheckId::Rate, Outcome::Failed, "too slow"));
        let cases: [Case<'_>; 9] = [
            // At the place of the first try.
            (
                vec![window(1, 0, 30.0), window(2, 0, 0.0), window(3, 1, 25.0), window(4, 1, 40.0)],
                &[(3, 3), (2, 1)],
                &[(1, 1), (4, 1)],
            ),
            (vec![window(1, 0, 30.0), window(2, 1, 25.0), window(3, 0, 0.0)], &[(2, 2), (3, 1)], &[(1, 1)]),
            // Without its first try.
            (vec![window(2, 1, 25.0)], &[(2, 1)], &[]),
            // A window that another one followed is a try too.
            (vec![repeated.clone(), window(2, 0, 0.0)], &[(1, 2), (2, 1)], &[]),
            (vec![repeated, window(2, 0, 0.0), window(3, 1, 0.0)], &[(3, 3), (2, 1)], &[(1, 2)]),
            // A failed proof is not hidden by another try.
            (vec![window(1, 0, 30.0), refused], &[(2, 2)], &[(1, 1)]),
            (half_refused, &[(3, 2), (4, 2)], &[(1, 1), (2, 1)]),
            // A pair is tried and counts as a whole, also if the run was killed within its second try.
            (pairs, &[(3, 2), (4, 2), (5, 1), (6, 1)], &[(1, 1), (2, 1)]),
            (killed, &[(1, 1), (2, 1), (5, 1), (6, 1)], &[(3, 1)]),
        ];
        for (windows, counts, not) in cases {
            for factor in [1.0_f64, 1e-3, 1e3] {
                let mut tried = windows.clone();
                tried.iter_mut().for_each(|r| r.set(COMMIT_THROUGHPUT_TPS, factor.powf(f64::from(r.test)) * 1e9));
                let (counting, others) = split(tried);
                assert_eq!((numbers(&counting), numbers(&others)), (counts.to_vec(), not.to_vec()), "{factor}");
                // What is split can be split again.
                let mut again = [counting.clone(), others].concat();
                again.sort_by_key(|r| r.test);
                assert_eq!(split(again).0, counting);
            }
        }
    }

    #[test]
    fn the_first_undisturbed_try_counts_else_the_least_disturbed_one() {
        let far = Some(2.0);
        for (tries, counts) in [
            (vec![], None),
            (vec![None], Some(0)),
            (vec![far, None], Some(1)),
            (vec![far, Some(1.5), None], Some(2)),
            (vec![far, Some(1.5), Some(3.0)], Some(1)),
            (vec![far, far], Some(0)),
            // A run that was killed may have one more.
            (vec![far, None, None], Some(1)),
        ] {
            assert_eq!(counting(&tries), counts, "{tries:?}");
        }
    }
}
