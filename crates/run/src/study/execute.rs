//! Runs one test of a plan: loads its tables, measures, stores its record.

use std::sync::Arc;

use loadline_database::{RemainingNodes, Target, TargetError, Work, is_temporary, kind_of};
use loadline_load::{Place, Request, TestError, Warmup, end_lost, run_test};
use loadline_model::plan::PlannedWorkload;
use loadline_model::record::AgentFigures;
use loadline_model::{CheckId, Column};
use loadline_workload::{Instrument, SizeScan};

use super::arm_state::ArmsState;
use super::level::OfTest;
use super::native_report::Mark;
use super::proof::BeforeTest;
use super::{Context, StudyError, full_disk, nodes, window_length};
use crate::activity::ReadViews;
use crate::checks::disturbance::undisturbed;
use crate::checks::steady::until_warm;
use crate::checks::{redo_on_device, settings};
use crate::event::{Event, Listener};
use crate::figures::access::only_adds;
use crate::figures::counters::Counters;
use crate::figures::nodes::is_same_cluster;
use crate::instrument::{EndedTest, Instruments, Replicas, RunContext, size_scan};
use crate::live::Pace;
use crate::record::{Finished, Identity};
use loadline_model::live::LiveTest;

/// A test to run.
pub(super) struct PlannedTest<'a> {
    pub(super) workload: &'a PlannedWorkload,
    pub(super) work: Arc<Work>,
    pub(super) position: LiveTest,
    /// Column of the swept parameter; `None` for a sweep over jobs.
    pub(super) swept: Option<&'static Column>,
    /// Its level, in a run of levels.
    pub(super) level: Option<OfTest<'a>>,
}

/// Result of one attempt.
enum Attempt {
    /// Holds what is left of the target, if it lost nodes.
    Done(Box<Finished>, Option<RemainingNodes>),
    /// The window is too short for the transactions. Holds the window needed, s.
    WindowTooShort(f64),
}

impl PlannedTest<'_> {
    /// Runs the test; repeats it once with a longer window if the first was too short.
    pub(super) fn measure(&self, context: &mut Context, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let mut longer_s = None;
        let (mut finished, remaining, drawn) = loop {
            let drawn = context.drawn_anew(&self.work)?;
            let longer = match self.attempt(context, &drawn, longer_s, listener)? {
                Attempt::Done(finished, remaining) => break (finished, remaining, drawn),
                Attempt::WindowTooShort(seconds) => seconds,
            };
            longer_s = Some(longer);
            listener.on(Event::Step(format!(
                "test {}: the window is too short for the transactions; repeating the test with {longer:.0} s",
                self.position.test
            )));
        };
        let allowed = context.manifest.plan.allow_disturbed;
        finished.figures.checks.extend(undisturbed(&finished.figures, allowed));
        let (log, forced) = (context.side.info.storage.get("log"), forced_on_target(context).is_some());
        let on_device = redo_on_device::check(&drawn.program, self.position.jobs, &finished.figures, log, forced);
        finished.figures.checks.extend(on_device);
        if let Some(arms) = &context.manifest.plan.arms {
            let forced = self.forced(context);
            ArmsState::note_what_is_on_purpose(arms, self.workload, &forced, &mut finished.figures.checks);
        }
        if let Some(level) = &self.level {
            level.note_what_is_on_purpose(&mut finished.figures.checks);
        }
        let full = finished.full_disk;
        full_disk::explain(&mut finished.figures.checks, full, context.side.target.as_ref(), &context.side.info);
        let output = finished.output(self.identity(context, drawn));
        context.folder.append(&output)?;
        listener.on(Event::TestDone(&output.record));
        let lost: Vec<AgentFigures> = output.record.by_agent.iter().filter(|agent| agent.lost).cloned().collect();
        context.records.push(output.record);
        if !lost.is_empty() {
            let (test, why) = (self.position.test, AgentFigures::failures(&lost));
            return Err(StudyError::AgentsLost(format!("lost in test {test}, which is invalid: {why}")));
        }
        remaining.map_or(Ok(()), |remaining| {
            context.leave_nodes(remaining, &format!("in test {}", self.position.test), listener)
        })
    }

    fn attempt(
        &self,
        context: &Context,
        drawn: &Arc<Work>,
        longer_s: Option<f64>,
        listener: &mut dyn Listener,
    ) -> Result<Attempt, StudyError> {
        let (work, jobs, target) = (&self.work, self.position.jobs, context.side.target.as_ref());
        let failed = |e| self.target_failed(e);
        listener.on(Event::TestStarted(self.position.clone()));
        let cache_bytes = context.set_cache(work).map_err(failed)?;
        context.load_for_test(work, jobs, listener).map_err(|e| match e {
            StudyError::Target(e) => self.target_failed(e),
            e => e,
        })?;
        target.reset(work, self.workload.driver).map_err(failed)?;
        // A checkpoint here would make some databases log each block once more in the test.
        let steady = work.workload.has(Instrument::Device) && !work.program.reads() && !only_adds(work);
        let unsettled = if steady { None } else { target.settle().map_err(failed)? };
        let before = BeforeTest::query(target, work).map_err(failed)?;
        let info = target.info().map_err(failed)?;
        let plan = &context.manifest.plan;
        let planned_s = window_length::window_s(plan.duration_s, &context.records, work.workload.code, jobs);
        let request = Request {
            target: Arc::clone(&context.side.target),
            work: Arc::clone(drawn),
            driver: self.workload.driver,
            jobs,
            warmup: if plan.auto_warmup { until_warm(plan.warmup_s) } else { Warmup::Seconds(plan.warmup_s) },
            duration_s: longer_s.unwrap_or(planned_s),
            load: plan.load.clone(),
            cpu: context.side.cpu,
            place: context.agents.clone().map_or(Place::Here, Place::Remote),
            disk: context.side.disk.clone(),
            data_disk: context.side.data_disk.clone(),
            interrupted: Arc::clone(&context.interrupted),
        };
        let mut attempt = match work.workload.scan() {
            Some(scan) => self.scan(context, scan, &request, &before, listener)?,
            None => {
                let run = RunContext {
                    manifest: &context.manifest,
                    records: &context.records,
                    repetition: self.position.repetition,
                    references: &context.side.references,
                    data_files: &context.side.data_files,
                    cache_bytes,
                    server_memory: context.side.server_memory,
                };
                self.jobs(context, &run, request, &before, longer_s.is_some(), listener)?
            }
        };
        if let Attempt::Done(finished, remaining) = &mut attempt {
            finished.figures.notes.extend(unsettled.into_iter().chain(context.side.without.clone()));
            // What it spoils are other checks as well: the reason comes first.
            let lost = remaining.as_ref().map(|remaining| nodes::lost_in_test(&remaining.lost));
            finished.figures.checks.splice(0..0, lost);
            // loadline itself changes settings of a private server from test to test; nobody else does. Levels of a user's server
            // are changed as well.
            let start =
                Some(&context.manifest.target).filter(|_| !is_temporary(&plan.target) && context.arms.is_none());
            let of_arm = context.arms.as_ref().zip(plan.arms.as_deref());
            finished.figures.notes.extend(of_arm.and_then(|(state, arms)| state.changed(arms, &context.side.info)));
            let levels = kind_of(&plan.target).ok().filter(|_| plan.levels.is_some());
            let mut now = info.clone();
            for name in levels.map_or(&[][..], |kind| kind.level_settings) {
                now.settings.extend(
                    start.and_then(|start| start.settings.get_key_value(*name)).map(|(n, v)| (n.clone(), v.clone())),
                );
            }
            finished.figures.notes.extend(start.and_then(|start| settings::changed_since(start, &now)));
            finished.figures.checks.push(settings::unchanged(&info, &of_the_rest(context, remaining).info()));
        }
        Ok(attempt)
    }

    /// Runs a scan of sizes. It has no fixed duration.
    fn scan(
        &self,
        context: &Context,
        scan: SizeScan,
        request: &Request,
        before: &BeforeTest,
        listener: &mut dyn Listener,
    ) -> Result<Attempt, StudyError> {
        let LiveTest { test, workload, .. } = &self.position;
        let mark = context.native_mark();
        let (mut last, mut began) = (None, None);
        let scanned = size_scan::scan(request, scan, |done, all| {
            let percent = done * 100 / all.max(1);
            let took_s = began.get_or_insert_with(std::time::Instant::now).elapsed().as_secs_f64();
            if last.replace(percent) != Some(percent) {
                let left_s = took_s / done.max(1) as f64 * all.saturating_sub(done) as f64;
                let left = if done > 0 { format!(", about {left_s:.0} s left") } else { String::new() };
                listener.on(Event::Step(format!("test {test:>2}  {workload}: {percent} % of {all} samples{left}")));
            }
        })
        .map_err(|e| self.failed(e))?;
        let proof = before.proof(context.side.target.as_ref(), &self.work, context.manifest.machine.cpus);
        let mut finished = size_scan::finished(request, scanned, &proof);
        self.report(context, mark, &mut finished, listener);
        Ok(Attempt::Done(Box::new(finished), None))
    }

    /// Runs jobs in a common window, with instruments. With `last`, the window is not extended again.
    fn jobs(
        &self,
        context: &Context,
        run: &RunContext<'_>,
        mut request: Request,
        before: &BeforeTest,
        last: bool,
        listener: &mut dyn Listener,
    ) -> Result<Attempt, StudyError> {
        let replicas = self.level.map(|level| level.instrument());
        let alarm = replicas.as_ref().map(Replicas::alarm).unwrap_or_default();
        let mut instruments = Instruments::of(self.work.workload, replicas);
        instruments.prepare(&mut request, run).map_err(|e| self.target_failed(e))?;
        // Outside the window: taking the mark is work for the database.
        let mark = context.native_mark();
        let views = ReadViews::unless_arms(context.side.target.as_ref(), self.position.arm.is_some());
        let mut pace = Pace::default();
        let measured = run_test(&request, &mut instruments, |tick| {
            let second = pace.second(self.position.test, &request, tick);
            listener.on(Event::Progress { position: self.position.clone(), second });
            if let Some(text) = alarm.take() {
                listener.on(Event::Warning(format!("test {}: {text}", self.position.test)));
            }
        })
        .map_err(|e| self.failed(e))?;
        let ended = end_lost(context.side.target.as_ref(), &measured.agents);
        let lost = measured.jobs.iter().find_map(|j| j.lost.clone());
        let left = lost.is_some() || measured.after.is_err() || !is_same_cluster(&measured);
        let remaining = if left { nodes::without_lost(context.side.target.as_ref()) } else { None };
        let target = of_the_rest(context, &remaining);
        if let Some(lost) = lost.filter(|_| remaining.is_none() && target.info().is_err()) {
            // The server is down, not only a session: the test is not stored, so a resume repeats it.
            return Err(self.target_failed(TargetError::lost(lost, measured.merged.full_disk)));
        }
        // Before the queries that prove the jobs' work, which are loadline's own.
        let views = views.grown(target);
        let proof = before.proof(target, &self.work, context.manifest.machine.cpus);
        let mut finished = Finished::of_jobs(&request, &measured, &proof);
        if let Some(activity) = &mut finished.activity {
            views.add_to(activity);
        }
        let (clean, window_s) = (finished.error_texts.is_empty(), request.duration_s);
        let longer_s = window_length::longer_s(&finished.figures, request.jobs, window_s, clean);
        // With agents that failed, few transactions say nothing of their length.
        let whole = remaining.is_none() && measured.agents.iter().all(|agent| agent.failed.is_none());
        if let Some(seconds) = longer_s.filter(|_| !last && whole) {
            return Ok(Attempt::WindowTooShort(seconds));
        }
        let notes = [
            window_length::longer_note(window_s, context.manifest.plan.duration_s),
            window_length::coarse_note(&finished.figures, request.jobs),
        ];
        finished.figures.notes.extend(notes.into_iter().flatten().chain(ended));
        let counters = Counters::of(&request, &measured);
        let ended =
            EndedTest { request: &request, measured: &measured, counters: &counters, figures: &finished.figures, run };
        let more = instruments.finish(&ended);
        finished.figures.add(more);
        // What a lost replica, node or agent spoils are other checks as well: the reason comes first.
        finished
            .figures
            .checks
            .sort_by_key(|check| ![CheckId::Replicas, CheckId::Cluster, CheckId::Agents].contains(&check.id));
        self.report(context, mark, &mut finished, listener);
        Ok(Attempt::Done(Box::new(finished), remaining))
    }

    /// Adds the database's own report. A missing report is noted; the test stays valid.
    fn report(&self, context: &Context, mark: Mark, finished: &mut Finished, listener: &mut dyn Listener) {
        match context.native_report(mark) {
            Ok(report) => finished.native = report,
            Err(why) => {
                let text = format!("the database's own report of test {} is missing: {why}", self.position.test);
                listener.on(Event::Warning(text.clone()));
                finished.figures.notes.push(text);
            }
        }
    }

    /// What was refused but forced, or is what an arm has on purpose.
    fn forced(&self, context: &Context) -> Vec<String> {
        forced_on_target(context).into_iter().chain(&self.workload.forced).cloned().collect()
    }

    fn identity(&self, context: &Context, work: Arc<Work>) -> Identity {
        let manifest = &context.manifest;
        let label = manifest.plan.arms.as_ref().zip(self.position.arm).map(|(arms, arm)| &arms.get(arm).label);
        Identity {
            platform: label.unwrap_or(&manifest.plan.platform).clone(),
            run: manifest.run.clone(),
            test: self.position.test,
            repetition: self.position.repetition,
            target: context.side.info.url.clone(),
            arm: self.position.arm,
            level: self.level.map(|level| level.point.clone()),
            nodes: work.nodes.unwrap_or(context.side.target.facts().nodes),
            work,
            driver: self.workload.driver,
            jobs: self.position.jobs,
            forced: self.forced(context),
            swept: self.swept.map(|column| column.id.to_owned()),
        }
    }

    fn failed(&self, source: TestError) -> StudyError {
        let LiveTest { test, jobs, .. } = self.position;
        StudyError::Test { test, workload: self.workload.code.clone(), jobs, source }
    }

    fn target_failed(&self, e: TargetError) -> StudyError {
        self.failed(TestError::Target(e))
    }
}

/// What the target, or the arm in force, has that was refused but forced.
fn forced_on_target(context: &Context) -> Option<&String> {
    context.arms.as_ref().map_or(context.side.forced.as_ref(), ArmsState::forced)
}

/// The target over the nodes that are left; if nothing can be measured there, that over all nodes.
fn of_the_rest<'a>(context: &'a Context, remaining: &'a Option<RemainingNodes>) -> &'a dyn Target {
    let rest = remaining.as_ref().and_then(|remaining| remaining.target.as_ref().ok());
    rest.map_or(context.side.target.as_ref(), |target| target.as_ref())
}
