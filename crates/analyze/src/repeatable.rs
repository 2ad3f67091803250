//! How well two runs on a machine agree, from one of them: by the limits that are measured before and after each test. They are the same
//! work each time, so what they differ by is the machine.

use std::collections::BTreeMap;

use loadline_model::limits::LimitSource;
use loadline_model::{TestRecord, Validity};

use crate::sweep::swept_value;

const AGREEING: f64 = 0.9;

/// Differences that a machine can show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeatable {
    /// Share of the windows that nothing disturbed, of all tries.
    pub quiet: f64,
    /// Ratio by which two measurements of the same differ at most in 90 % of cases, less 1: 0.09 is ± 9 %.
    pub within: f64,
}

/// Differences that the machine of a run with these `records` can show; `None` if its limits were not measured often enough to say so, or
/// the windows were pairs of variants, which are compared with each other.
pub fn repeatable(records: &[TestRecord]) -> Option<Repeatable> {
    if records.iter().any(|r| r.variant.is_some()) {
        return None;
    }
    let is_refused = |r: &TestRecord| r.validity() == Some(Validity::Refused);
    // Whether a refused window was quiet, its class does not say.
    let windows: u32 = records.iter().map(|r| r.tries - u32::from(is_refused(r))).sum();
    let quiet = records.iter().filter(|r| !is_refused(r) && r.validity() != Some(Validity::Disturbed)).count();
    let mut differences = differences(records);
    differences.sort_by(f64::total_cmp);
    // The next one is not above the k-th of n with a probability of k/(n + 1).
    let place = (AGREEING * (differences.len() + 1) as f64).ceil() as usize;
    let within = differences.get(place.checked_sub(1)?)?.exp() - 1.0;
    Some(Repeatable { quiet: quiet as f64 / f64::from(windows.max(1)), within })
}

/// Logarithms of the ratios of measurements of the same work that followed each other, without their signs.
fn differences(records: &[TestRecord]) -> Vec<f64> {
    let mut measured: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    let mut in_order: Vec<&TestRecord> = records.iter().collect();
    in_order.sort_by_key(|r| r.test);
    let limits = in_order.into_iter().filter_map(|r| Some((r, r.limit()?)));
    for (record, limit) in limits.filter(|(_, limit)| limit.source == LimitSource::Run) {
        // Limits of one name are of other work in another workload, and with another value of what is swept.
        let redo = limit.redo_bytes_per_tx.map(|bytes| bytes.round() as u64);
        let work = (&record.workload, swept_value(record), &limit.name, limit.jobs, redo);
        measured.entry(work).or_default().extend(limit.samples.iter().filter(|tps| **tps > 0.0 && tps.is_finite()));
    }
    measured.values().flat_map(|of| of.windows(2)).map(|pair| (pair[1] / pair[0]).ln().abs()).collect()
}

#[cfg(test)]
mod tests {
    use loadline_model::check::{Check, CheckId, Outcome};
    use loadline_model::{Detail, Random, TestLimit};

    use super::*;
    use crate::paired::simulated::{normal, unit};

    /// A run of 61 tests on a machine on which measurements of 1000 tps differ by `measure`.
    fn run(mut measure: impl FnMut() -> f64) -> Vec<TestRecord> {
        let mut test = |test: u32| {
            let limit = TestLimit {
                name: "log writer".to_owned(),
                of: String::new(),
                jobs: test % 7,
                redo_bytes_per_tx: None,
                tps: 1000.0,
                samples: vec![1000.0 * measure(), 1000.0 * measure()],
                source: LimitSource::Run,
            };
            TestRecord { test, details: vec![Detail::Limit(limit)], ..TestRecord::blank("X") }
        };
        (1..=61).map(&mut test).collect()
    }

    /// Measurements with a relative standard deviation, of which some share is slowed down by up to a third.
    fn machine(seed: u64, sd: f64, slowed: f64) -> impl FnMut() -> f64 {
        let mut random = Random::new(seed);
        move || {
            let by = if unit(&mut random) < slowed { 1.0 - unit(&mut random) / 3.0 } else { 1.0 };
            (sd * normal(&mut random)).exp() * by
        }
    }

    #[test]
    fn pairs_of_runs_agree_as_often_as_is_said() {
        for (sd, slowed) in [(0.01, 0.0), (0.05, 0.0), (0.03, 0.1), (0.02, 0.3)] {
            let (mut agree, mut all) = (0, 0);
            for seed in 0..50 {
                let mut measure = machine(seed, sd, slowed);
                let within = repeatable(&run(&mut measure)).unwrap().within;
                for _ in 0..100 {
                    let (a, b) = (measure(), measure());
                    agree += u32::from((a / b).max(b / a) <= 1.0 + within);
                    all += 1;
                }
            }
            let share = f64::from(agree) / f64::from(all);
            assert!((0.8..=0.97).contains(&share), "sd {sd}, {slowed} slowed: {share}");
        }
    }

    #[test]
    fn what_is_not_of_quiet_windows_alike_says_nothing() {
        let all = run(machine(1, 0.02, 0.0));
        assert_eq!([&all[..7], &[]].map(repeatable), [None, None]);
        assert!(repeatable(&all[..14]).is_some());
        // Limits of one name in two workloads are not compared.
        let mut two = all.clone();
        for (place, record) in two.iter_mut().enumerate().filter(|(place, _)| place % 2 == 1) {
            "Y".clone_into(&mut record.workload);
            record.test = place as u32 + 1;
            let Some(Detail::Limit(limit)) = record.details.first_mut() else { panic!() };
            limit.samples.iter_mut().for_each(|tps| *tps *= 10.0);
        }
        assert!(repeatable(&two).unwrap().within < 0.2);
        // Tries that do not count were not quiet.
        let mut tried = all;
        tried[0].tries = 3;
        tried[1].add_check(Check::new(CheckId::OtherCpu, Outcome::Failed, ""));
        assert_eq!(repeatable(&tried).unwrap().quiet, 60.0 / 63.0);
    }
}
