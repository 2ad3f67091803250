//! A run of levels of replication: each level and distance is measured in pairs of windows with the baseline, in which a commit
//! waits for its own disk alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loadline_analyze::arms::ERROR;
use loadline_analyze::paired::order;
use loadline_analyze::paired::ratio::least_pairs;
use loadline_database::{Level, Link, TargetError, Work, kind_of};
use loadline_load::TestError;
use loadline_model::arms::ArmName;
use loadline_model::column;
use loadline_model::format::bytes;
use loadline_model::plan::{Levels, Plan, PlannedWorkload};
use loadline_model::record::LevelPoint;

use super::arms::seed_of;
use super::execute::PlannedTest;
use super::level::OfTest;
use super::{Context, StudyError};
use crate::event::{Event, Listener};
use crate::plan::arms::job_counts;
use crate::plan::duration::DurationEstimate;
use loadline_model::live::LiveTest;

/// The link of a delay.
fn link(levels: &Levels, delay_ms: f64) -> Link {
    let time = |ms: f64| Duration::from_nanos((ms * 1e6) as u64);
    Link { delay: time(delay_ms), jitter: time(levels.jitter_ms), bytes_per_s: levels.bytes_per_s }
}

impl Context {
    /// Measures all pairs that are missing. A level that cannot be brought about is left out, and the run ends with its error;
    /// the others go on.
    pub(super) fn measure_levels(&mut self, levels: &Levels, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let plan = self.manifest.plan.clone();
        let known = (kind_of(&plan.target)?.levels)();
        let pairs = levels.pairs as usize;
        let least = least_pairs(ERROR, true);
        if pairs < least && !self.tries.is_end {
            listener
                .on(Event::Warning(format!("{pairs} pairs have no interval of 95 %: that takes {least} (--pairs)")));
        }
        let points = points(&plan, levels);
        let window_s = DurationEstimate::of(&plan).window_s();
        let mut works = BTreeMap::new();
        let mut failed = None;
        // Said once.
        let mut narrow = levels.bytes_per_s;
        for (at, (workload, jobs, point)) in points.iter().enumerate() {
            let Some(level) = known.iter().find(|level| level.name == point.level) else { continue };
            let planned = &plan.workloads[*workload];
            if self.refused.leaves_out(&planned.code, *jobs, None) {
                continue;
            }
            let places = order(seed_of(levels.seed, &format!("{} {point:?}", planned.code), *jobs), pairs);
            'cell: for (index, pair) in places.into_iter().enumerate() {
                let number = index as u32 + 1;
                while let Some(try_of) = self.next_pair(&planned.code, *jobs, Some(point), number, listener) {
                    if self.stopped() {
                        return Err(StudyError::Interrupted);
                    }
                    let Some(work) = self.prepared(planned, &mut works, listener)? else { break 'cell };
                    let first = self.next_test();
                    for (place, arm) in pair.into_iter().enumerate() {
                        if self.stopped() {
                            return Err(StudyError::Interrupted);
                        }
                        let left = 2 * (points.len() - at) * pairs - 2 * index - place;
                        let position = LiveTest {
                            test: self.next_test(),
                            workload: planned.code.clone(),
                            jobs: *jobs,
                            repetition: number,
                            repeat: levels.pairs,
                            arm: Some(arm),
                            try_of,
                            left_s: self.left_s(left as f64 * window_s),
                            left_exact: true,
                        };
                        let level = (arm == ArmName::B).then_some(level);
                        let level = Some(OfTest { point, level, replicas: levels.replicas });
                        let work = Arc::clone(&work);
                        let test = PlannedTest { workload: planned, work, position, swept: None, level };
                        if let Some(e) = self.level_window(&test, link(levels, point.delay_ms), listener)? {
                            listener.on(Event::Warning(format!("level {} is left out: {e}", point.level)));
                            // The first reason is the run's error.
                            failed.get_or_insert(e);
                            break 'cell;
                        }
                        if let Some(text) = narrow.and_then(|most| self.falls_behind(most)) {
                            narrow = None;
                            listener.on(Event::Warning(text));
                        }
                    }
                    self.judge_try(first, try_of);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Brings the level of `test` about and measures it. Returns why it cannot be, if the other levels can.
    fn level_window(
        &mut self,
        test: &PlannedTest<'_>,
        link: Link,
        listener: &mut dyn Listener,
    ) -> Result<Option<StudyError>, StudyError> {
        let level = test.level.and_then(|of_test| of_test.level);
        if let Err(e) = self.bring_level_about(level, link, listener) {
            return if self.stopped() { Err(StudyError::Interrupted) } else { Ok(Some(e.into())) };
        }
        match test.measure(self, listener) {
            // The next level starts a replica again that hangs.
            Err(e @ StudyError::Test { source: TestError::Target(_) | TestError::Counters(_), .. })
                if !self.stopped() =>
            {
                Ok(Some(e))
            }
            done => done.map(|()| None),
        }
    }

    /// That the last test wrote more redo than the links carry in the same time, `bytes_per_s`: then the replicas are waited for
    /// before the next one.
    fn falls_behind(&self, bytes_per_s: u64) -> Option<String> {
        let last = self.newest()?;
        let redo = last.figure(column::REDO_MIB_PER_S)? * 1_048_576.0;
        let elapsed_s = last.figure(column::ELAPSED_S)?;
        (redo > bytes_per_s as f64).then(|| {
            format!(
                "test {} wrote {} of redo per second and the links carry {}: before each test that follows such a one, the replicas \
                 have to catch up, for about {:.0} s",
                last.test,
                bytes(redo),
                bytes(bytes_per_s as f64),
                (redo / bytes_per_s as f64 - 1.0) * elapsed_s
            )
        })
    }

    /// The work of `planned`, prepared in the baseline and without a distance. `None`: the server refuses the workload.
    fn prepared(
        &mut self,
        planned: &PlannedWorkload,
        works: &mut BTreeMap<String, Arc<Work>>,
        listener: &mut dyn Listener,
    ) -> Result<Option<Arc<Work>>, StudyError> {
        if let Some(work) = works.get(&planned.code) {
            return Ok(Some(Arc::clone(work)));
        }
        self.bring_level_about(None, Link::default(), listener)?;
        let work = self.prepare_or_leave_out(planned, listener)?;
        works.extend(work.clone().map(|work| (planned.code.clone(), work)));
        Ok(work)
    }

    fn bring_level_about(
        &self,
        level: Option<&Level>,
        link: Link,
        listener: &mut dyn Listener,
    ) -> Result<(), TargetError> {
        let name = level.map(|level| level.name.as_str());
        let own = self.manifest.plan.levels.as_ref().is_some_and(|levels| !levels.standbys.is_empty());
        let way = if own { String::new() } else { format!(", {} ms one way", link.delay.as_secs_f64() * 1e3) };
        listener.on(Event::Step(format!("level {}{way}", name.unwrap_or("of the baseline"))));
        let replication = self.side.target.abilities().replication;
        replication
            .ok_or_else(|| TargetError::Unsupported("the target has no replicas".into()))?
            .bring_about(name, link)
    }
}

/// The index of the workload, the jobs, and the level and distance of each cell, in the order in which they are measured.
fn points(plan: &Plan, levels: &Levels) -> Vec<(usize, u32, LevelPoint)> {
    let mut out = Vec::new();
    for workload in 0..plan.workloads.len() {
        for jobs in job_counts(plan) {
            for level in &levels.levels {
                for delay_ms in &levels.delays_ms {
                    out.push((workload, *jobs, LevelPoint { level: level.clone(), delay_ms: *delay_ms }));
                }
            }
        }
    }
    out
}
