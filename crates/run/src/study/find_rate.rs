//! Finds the highest rate of an open loop that meets an objective, before the test that is stored is measured at it. Each look is a
//! window of its own, with draws of its own. `analyze/src/rate.rs` chooses the rates and computes the answer.

use std::rc::Rc;

use loadline_analyze::rate::{FoundRate, RateSearch, WINDOWS};
use loadline_database::TargetError;
use loadline_load::run_test;
use loadline_model::format::{counted, number};
use loadline_model::load::{RateLook, RateLooks, RateObjective};
use loadline_model::{Latencies, Note, TestRecord, column};

use super::measure::PlannedTest;
use super::quiet::{Others, WhenQuiet};
use super::{Context, StudyError};
use crate::checks::load::keeps_rate;

/// A rate that is a little higher than the throughput of the closed loop may be kept: its jobs wait for each other.
const ABOVE_CLOSED_LOOP: f64 = 1.1;

/// A rate that was found, and what for.
pub(super) struct Searched {
    pub(super) found: FoundRate,
    pub(super) objective: RateObjective,
    disturbed: Option<Note>,
}

impl Searched {
    fn of_test(r: &TestRecord, objective: RateObjective) -> Option<Searched> {
        let [rate, low, high] = [column::RATE_TPS, column::RATE_LOW_TPS, column::RATE_HIGH_TPS].map(|c| r.figure(c));
        let found = FoundRate { rate: rate?, low: low?, high: high? };
        let disturbed = r.notes.iter().find(|note| matches!(note, Note::DisturbedLooks { .. })).cloned();
        Some(Searched { found, objective, disturbed })
    }

    /// Notes of a test at the rate, which had these response times.
    pub(super) fn remarks(&self, response: Option<&Latencies>) -> [Option<Note>; 3] {
        let latency_ns = response.and_then(|times| self.objective.latency_ns(times));
        let [objective_ms, _] = self.objective.figures();
        let missed = latency_ns.filter(|ns| *ns > self.objective.ns as f64).map(|ns| {
            let of = self.objective.name();
            Note::ObjectiveMissed { of, ms: ns / 1e6, objective_ms }
        });
        let unbounded = (self.found.low <= 0.0).then_some(Note::UnboundedRate {});
        [self.disturbed.clone(), missed, unbounded]
    }
}

impl PlannedTest<'_> {
    /// The highest rate that meets the plan's objective; `None` if it has none. A second try of a disturbed test takes that of the first.
    pub(super) fn find_rate(&self, context: &mut Context<'_>) -> Result<Option<Searched>, StudyError> {
        let Some(objective) = context.manifest.plan.load.objective else { return Ok(None) };
        let first = self.position.try_of.and_then(|first| context.windows().find(|r| r.test == first));
        if let Some(searched) = first.and_then(|r| Searched::of_test(r, objective)) {
            return Ok(Some(searched));
        }
        let (objective_ns, window_s) = (objective.ns as f64, context.manifest.plan.duration_s);
        let (mut disturbed, mut number_of) = (0, 0..);
        let mut look = |jobs, rate| {
            let look = self.look_once(context, objective, number_of.next().unwrap_or_default(), (jobs, rate))?;
            disturbed += usize::from(look.disturbed);
            Ok::<RateLook, StudyError>(look)
        };
        let idle = look(1, None)?;
        if idle.latency_ns > objective_ns {
            let (asked, ms) = (objective.words(), number(idle.latency_ns / 1e6, 3));
            return Err(StudyError::Objective(format!(
                "--rate auto: {} of one job of {}, which waits for no other, is {ms} ms, so no rate has {asked}: ask for a longer time",
                objective.name(),
                self.workload.code,
            )));
        }
        let full = look(self.position.jobs, None)?;
        let mut search = RateSearch::new(objective_ns, idle.latency_ns, full.tps * ABOVE_CLOSED_LOOP);
        while let Some(rate) = search.next_rate() {
            let look = look(self.position.jobs, Some(rate))?;
            search.add(rate, if keeps_rate(look.tps, rate, window_s) { objective_ns / look.latency_ns } else { 0.0 });
        }
        let found = search.answer();
        let test = self.position.test;
        context.step(format!(
            "test {test}: the highest rate is {} tps ({} to {})",
            number(found.rate, 1),
            number(found.low, 1),
            number(found.high, 1)
        ));
        let disturbed = (disturbed > 0).then_some(Note::DisturbedLooks { disturbed, windows: WINDOWS });
        Ok(Some(Searched { found, objective, disturbed }))
    }

    /// Look number `n`. If it was made before the run was resumed, it is not made again: which looks follow depends on it alone.
    fn look_once(
        &self,
        context: &mut Context<'_>,
        objective: RateObjective,
        n: usize,
        (jobs, rate_tps): (u32, Option<f64>),
    ) -> Result<RateLook, StudyError> {
        let (test, workload) = (self.position.test, &self.workload.code);
        let search = &mut context.manifest.search;
        search.take_if(|of| (of.test, &of.workload, of.jobs) != (test, workload, self.position.jobs));
        let none = || RateLooks { test, workload: workload.clone(), jobs: self.position.jobs, looks: Vec::new() };
        let search = search.get_or_insert_with(none);
        if let Some(made) = search.made(n, jobs, rate_tps) {
            return Ok(made.clone());
        }
        search.looks.truncate(n);
        let look = self.look(context, objective, jobs, rate_tps)?;
        if let Some(search) = &mut context.manifest.search {
            search.looks.push(look.clone());
        }
        context.folder.write_manifest(&context.manifest)?;
        Ok(look)
    }

    /// A window of so many jobs at a rate; without one, in a closed loop.
    fn look(
        &self,
        context: &mut Context<'_>,
        objective: RateObjective,
        jobs: u32,
        rate_tps: Option<f64>,
    ) -> Result<RateLook, StudyError> {
        let mut prepared = self.prepare(context, None, rate_tps)?;
        prepared.request.jobs = jobs;
        // As the window of a test, that of a look is held back until others are quiet.
        let mut hold = context.hold(Others::beside(context));
        let held = Rc::clone(&hold.shown);
        let mut hooks = WhenQuiet(&mut [], &mut hold);
        let test = self.position.test;
        let measured = run_test(&prepared.request, &mut hooks, |_| {
            if let Some(held) = held.take() {
                context.step(format!("test {test}: {held}"));
            }
        })
        .map_err(|e| self.failed(e))?;
        let disturbed = hold.was_disturbed();
        context.book_hold(&hold, self.position.try_of);
        if let Some(lost) = measured.jobs.iter().find_map(|job| job.lost.clone()) {
            return Err(TargetError::lost(lost, measured.merged.full_disk).into());
        }
        let merged = &measured.merged;
        let times = if rate_tps.is_some() { merged.response.as_ref() } else { Some(&merged.transaction) };
        let tps = merged.transaction.count() as f64 / measured.schedule.window_s();
        let at = rate_tps.map_or("a closed loop".to_owned(), |rate| format!("{} tps", number(rate, 1)));
        let Some(latency_ns) = times.and_then(|times| objective.latency_ns(times)).filter(|ns| *ns > 0.0) else {
            return Err(StudyError::Objective(format!(
                "--rate auto: {}: no transaction was due or completed in a window of {} s at {at}: use a longer --duration",
                self.workload.code, prepared.request.duration_s
            )));
        };
        let (jobs, of, ms) = (counted(jobs as usize, "job"), objective.name(), number(latency_ns / 1e6, 3));
        context.step(format!("test {test}: look at {at} of {jobs}: {of} {ms} ms, {} tps", number(tps, 1)));
        Ok(RateLook { jobs: prepared.request.jobs, rate_tps, tps, latency_ns, disturbed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_misses_the_objective_and_a_rate_without_bounds_say_so() {
        let objective = RateObjective { pct: 0, ns: 5_000_000 };
        let searched = |low| Searched { found: FoundRate { rate: 9.0, low, high: 11.0 }, objective, disturbed: None };
        let times = |ns| {
            let mut times = Latencies::new();
            times.record(ns);
            times
        };
        assert_eq!(searched(8.0).remarks(Some(&times(4_000_000))), [None, None, None]);
        let [_, missed, unbounded] = searched(0.0).remarks(Some(&times(6_000_000)));
        assert_eq!(unbounded, Some(Note::UnboundedRate {}));
        let missed = missed.unwrap().to_string();
        assert!(missed.starts_with("mean latency of this window is ") && missed.contains("above the 5 ms"), "{missed}");
    }
}
