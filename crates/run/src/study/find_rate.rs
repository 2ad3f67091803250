//! Finds the highest rate of an open loop that meets an objective, before the test that is stored is measured at it. Each look is a
//! window of its own, with draws of its own. `analyze/src/rate.rs` chooses the rates and computes the answer.

use std::rc::Rc;

use loadline_analyze::rate::{FoundRate, LOOKS, WINDOWS, find_rate};
use loadline_database::TargetError;
use loadline_load::run_test;
use loadline_model::format::{counted, number};
use loadline_model::load::{RateLook, RateLooks, RateObjective};
use loadline_model::{Latencies, Note, TestRecord, column};

use super::measure::PlannedTest;
use super::quiet::{Others, WhenQuiet};
use super::{Context, StudyError};
use crate::checks::load::keeps_rate;
use crate::evidence::{Evidence, Instrument};
use crate::test::Test;

/// A rate that is a little higher than the throughput of the closed loop may be kept: its jobs wait for each other.
const ABOVE_CLOSED_LOOP: f64 = 1.1;

/// A rate that was found, and what for.
pub(super) struct Searched {
    pub(super) found: FoundRate,
    objective: RateObjective,
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
    fn notes(&self, response: Option<&Latencies>) -> Vec<Note> {
        let latency_ns = response.and_then(|times| self.objective.latency_ns(times));
        let missed = latency_ns.filter(|ns| *ns > self.objective.ns as f64).map(|ns| {
            let (of, [objective_ms, _]) = (self.objective.name(), self.objective.figures());
            Note::ObjectiveMissed { of, ms: ns / 1e6, objective_ms }
        });
        let unbounded = (self.found.low <= 0.0).then_some(Note::UnboundedRate {});
        self.disturbed.clone().into_iter().chain(missed).chain(unbounded).collect()
    }
}

impl Instrument for Searched {
    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        let [ms, pct] = self.objective.figures();
        let figures = [self.found.low, self.found.high, LOOKS as f64, ms, pct];
        column::RATE_SEARCH.into_iter().zip(figures).for_each(|(column, figure)| test.set(column, figure));
        test.notes.extend(self.notes(e.merged().response.as_ref()));
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
        let (test, workload, jobs) = (self.position.test, self.workload.code.clone(), self.position.jobs);
        let (objective_ns, window_s) = (objective.ns as f64, context.manifest.plan.duration_s);
        // Looks that were made before the run was resumed are not made again: which follow depends on them alone.
        let is_this = |of: &RateLooks| (of.test, &of.workload, of.jobs) == (test, &workload, jobs);
        let earlier = context.manifest.search.take().filter(is_this);
        let mut earlier = earlier.map_or_else(Vec::new, |of| of.looks).into_iter();
        let mut search = RateLooks { test, workload, jobs, looks: Vec::new() };
        let mut look = |jobs, rate_tps: Option<f64>| {
            // A rate that was stored may differ in its last digit.
            let is_at = |rate: f64, asked: f64| (rate - asked).abs() <= 1e-9 * asked;
            let is_asked =
                |look: &RateLook| look.jobs == jobs && is_at(look.rate_tps.unwrap_or(0.0), rate_tps.unwrap_or(0.0));
            let made = earlier.next().filter(is_asked);
            let is_new = made.is_none();
            let look = made.map_or_else(|| self.look(context, objective, jobs, rate_tps), Ok)?;
            search.looks.push(look.clone());
            context.manifest.search = Some(search.clone());
            if is_new {
                earlier = Vec::new().into_iter();
                context.folder.write_manifest(&context.manifest)?;
            }
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
        let highest = look(jobs, None)?.tps * ABOVE_CLOSED_LOOP;
        let found = find_rate(objective_ns / idle.latency_ns, highest, |rate| -> Result<f64, StudyError> {
            let look = look(jobs, Some(rate))?;
            Ok(if keeps_rate(look.tps, rate, window_s) { objective_ns / look.latency_ns } else { 0.0 })
        })?;
        let [rate, low, high] = [found.rate, found.low, found.high].map(|tps| number(tps, 1));
        context.step(format!("test {test}: the highest rate is {rate} tps ({low} to {high})"));
        let disturbed = search.looks.iter().filter(|look| look.disturbed).count();
        let disturbed = (disturbed > 0).then_some(Note::DisturbedLooks { disturbed, windows: WINDOWS });
        Ok(Some(Searched { found, objective, disturbed }))
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
        let notes = |low, ns| {
            let mut times = Latencies::new();
            times.record(ns);
            Searched { found: FoundRate { rate: 9.0, low, high: 11.0 }, objective, disturbed: None }.notes(Some(&times))
        };
        assert_eq!(notes(8.0, 4_000_000), []);
        let missed = Note::ObjectiveMissed { of: "mean latency".to_owned(), ms: 6.0, objective_ms: 5.0 };
        assert_eq!(notes(0.0, 6_000_000), [missed, Note::UnboundedRate {}]);
    }
}
