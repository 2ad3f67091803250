//! Runs one test of a plan, in a straight line: prepare, measure, evidence, test, store.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use loadline_collect::CpuSource;
use loadline_database::{NativeReports, Refusal, RemainingNodes, Target, TargetError, Work, kind_of};
use loadline_load::{JobResult, Measured, Parts, Request, TestError, Warmup, run_test};
use loadline_model::column::COLUMNS;
use loadline_model::live::{LiveSecond, LiveTest};
use loadline_model::manifest::TargetInfo;
use loadline_model::plan::PlannedWorkload;
use loadline_model::{Activity, CheckId, Column, Detail, Forced, InPair, JobLoad, Note, TestRecord};
use loadline_store::{NativeFile, TestOutput};
use loadline_workload::{Instrument, SizeScan};

use super::native_report::Mark;
use super::quiet::{Others, WhenQuiet};
use super::variants::{level_in_force, may_change_redo, watch_over_level};
use super::{Context, StudyError, native_report, refused, spread, window_length};
use crate::activity::ReadViews;
use crate::checks::steady::until_warm;
use crate::checks::{self, settings};
use crate::evidence::{BeforeTest, Evidence, Excuse, Excuses, Jobs, Proof, RunContext};
use crate::figures::nodes::has_same_members;
use crate::figures::volume::only_adds;
use crate::instrument::{self, Instruments, size_scan};
use crate::live::{Event, Pace};
use crate::test::{Test, failed};
use crate::{record, steps};

pub(super) struct PlannedTest<'a> {
    pub(super) workload: &'a PlannedWorkload,
    pub(super) work: Arc<Work>,
    pub(super) position: LiveTest,
    /// Column of the swept parameter; `None` for a sweep over jobs.
    pub(super) swept: Option<&'static Column>,
    /// Place in a run of pairs.
    pub(super) in_pair: Option<InPair>,
}

/// A test that may begin.
pub(super) struct Prepared {
    pub(super) request: Request,
    before: BeforeTest,
    info: TargetInfo,
    cache_bytes: Option<u64>,
    /// Why the target did not come to rest, if so.
    unsettled: Option<String>,
}

struct Ended {
    measured: Measured,
    instruments: Instruments,
    /// Activity by the target's statistics views.
    views: Activity,
    proof: Proof,
    mark: Mark,
    /// Rest of a target that lost nodes.
    remaining: Option<RemainingNodes>,
    /// Fate of lost sessions; windows that did not count.
    notes: Vec<Note>,
}

impl Ended {
    /// Window, s, with which the test must be repeated because its transactions were too long for a first one.
    fn needs_longer_s(&self, prepared: &Prepared) -> Option<f64> {
        // If jobs are missing, few transactions say nothing of their length.
        let is_whole =
            self.remaining.is_none() && self.measured.elsewhere.processes.iter().all(|of| of.failed.is_none());
        if is_whole { window_length::longer_s(&prepared.request, &self.measured) } else { None }
    }
}

impl PlannedTest<'_> {
    pub(super) fn measure(&self, context: &mut Context<'_>) -> Result<(), StudyError> {
        let measured = match &self.work.workload.scan {
            Some(scan) => self.scan(context, scan).map(|output| (output, None)),
            None => self.jobs(context),
        };
        let (output, remaining) = measured.map_err(|e| match e {
            StudyError::Target(e) => self.failed(e.into()),
            e => e,
        })?;
        self.store(context, output, remaining)
    }

    /// Scans sizes by one session of loadline's own. That has no fixed duration.
    fn scan(&self, context: &mut Context<'_>, scan: &SizeScan) -> Result<TestOutput, StudyError> {
        let LiveTest { test, workload, try_of, .. } = &self.position;
        let prepared = self.prepare(context, None, None)?;
        context.wait_until_quiet(*test, *try_of);
        let mark = native_report::mark(native_reports(context));
        let (mut last, mut began) = (None, None);
        let idle_s = context.manifest.plan.idle_s().to_vec();
        let scanned = size_scan::scan(&prepared.request, scan, &idle_s, |done, all| {
            let percent = done * 100 / all.max(1);
            let took_s = began.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
            if last.replace(percent) != Some(percent) {
                let left_s = took_s / done.max(1) as f64 * all.saturating_sub(done) as f64;
                let left = if done > 0 { format!(", about {left_s:.0} s left") } else { String::new() };
                context.step(format!("test {test:>2}  {workload}: {percent} % of {all} samples{left}"));
            }
        });
        let scanned = scanned.map_err(|e| self.failed(e))?;
        let proof = prepared.before.proof(context.side.target.as_ref(), &self.work);
        let (native, missing) = self.report(context, mark);
        let (run, after) = (self.run_context(context, prepared.cache_bytes), context.side.target.info());
        let evidence = self.evidence_of(context, &run, &prepared, &proof, after, scanned).and_remarks(missing);
        let (test, id) = (steps::test_of_scan(&evidence), self.identity(context));
        Ok(record::of_scan(evidence, test, id, native))
    }

    /// Runs jobs in a window, and again in a longer one if it was too short. Also returns what is left of a target that lost nodes.
    fn jobs(&self, context: &mut Context<'_>) -> Result<(TestOutput, Option<RemainingNodes>), StudyError> {
        let searched = self.find_rate(context)?;
        let rate_tps = searched.as_ref().map(|searched| searched.found.rate);
        let mut prepared = self.prepare(context, None, rate_tps)?;
        let mut ended = self.run_jobs(context, &mut prepared)?;
        if let Some(longer_s) = ended.needs_longer_s(&prepared) {
            let test = self.position.test;
            context.step(format!(
                "test {test}: the window is too short for the transactions; repeating the test with {longer_s:.0} s"
            ));
            prepared = self.prepare(context, Some(longer_s), rate_tps)?;
            ended = self.run_jobs(context, &mut prepared)?;
        }
        let run = self.run_context(context, prepared.cache_bytes);
        let (mut instruments, views) = (std::mem::take(&mut ended.instruments), std::mem::take(&mut ended.views));
        instruments.extend(instrument::boxed(searched));
        let mut evidence = self.evidence(context, &run, &prepared, &ended, instruments);
        // A limit is that of the work that the jobs did, which their figures say.
        let figures = steps::figures_of(&evidence);
        evidence.seen.instruments.iter_mut().for_each(|of| of.complete(&prepared.request, &run, &figures));
        let (native, missing) = self.report(context, ended.mark.clone());
        let evidence = evidence.and_remarks(missing);
        let test = steps::with_checks(figures, &evidence);
        let output = record::of_jobs(&evidence, test, self.identity(context), native, views);
        Ok((output, ended.remaining))
    }

    fn store(
        &self,
        context: &mut Context<'_>,
        output: TestOutput,
        remaining: Option<RemainingNodes>,
    ) -> Result<(), StudyError> {
        let missing = output.record.notes.iter().find(|note| matches!(note, Note::NoNativeReport { .. }));
        if let Some(note) = missing {
            context.warn(format!("{note}"));
        }
        context.folder.append(&output)?;
        context.manifest.search = None;
        context.listener.on(Event::TestDone(&output.record));
        let lost = spread::lost_in(&output.record);
        context.add_record(output.record);
        if let Some(lost) = lost {
            return Err(lost.into());
        }
        remaining.map_or(Ok(()), |remaining| context.leave_nodes(remaining, &format!("in test {}", self.position.test)))
    }

    /// Loads the tables, and asks what must be known before the jobs start. `rate_tps`: in place of the plan's rate.
    pub(super) fn prepare(
        &self,
        context: &mut Context<'_>,
        longer_s: Option<f64>,
        rate_tps: Option<f64>,
    ) -> Result<Prepared, StudyError> {
        let drawn = context.drawn_anew(&self.work)?;
        let (work, jobs, target) = (&self.work, self.position.jobs, Arc::clone(&context.side.target));
        context.listener.on(Event::TestStarted(self.position.clone()));
        let cache_bytes = context.set_cache(work)?;
        // Rows of each of the jobs, and those that earlier tests deleted.
        context.load_watched(work, jobs).1?;
        target.reset(work, self.workload.driver)?;
        // A checkpoint here would make some databases log each block once more in the test.
        let steady = work.workload.has(Instrument::Device) && !work.program.reads() && !only_adds(work);
        let unsettled = if steady { None } else { target.settle()? };
        let before = BeforeTest::query(target.as_ref(), work)?;
        let info = target.info()?;
        let (plan, at) = (&context.manifest.plan, &context.side.info);
        let planned_s = window_length::window_s(plan.duration_s, &context.records, &work.workload.code, jobs);
        let request = Request {
            target,
            work: drawn,
            driver: self.workload.driver,
            jobs,
            warmup: if plan.auto_warmup() { until_warm(plan.warmup_s) } else { Warmup::Seconds(plan.warmup_s) },
            duration_s: longer_s.unwrap_or(planned_s),
            load: JobLoad { rate_tps: rate_tps.or(plan.load.rate_tps), objective: None, ..plan.load.clone() },
            cpu: if at.local { CpuSource::Local } else { CpuSource::Snapshot },
            place: context.place.clone(),
            disk: at.device("log").map(str::to_owned),
            data_disk: at.device("data").map(str::to_owned),
            perf_events: plan.perf_events(),
            parts: Parts::One,
            proxy: context.via.clone(),
            interrupted: Arc::clone(&context.interrupted),
        };
        Ok(Prepared { request, before, info, cache_bytes, unsettled })
    }

    /// The instruments of the test, which have measured what they measure before it. `say`: for what must be known while it runs.
    fn instruments(
        &self,
        context: &Context<'_>,
        prepared: &mut Prepared,
        say: &Sender<String>,
    ) -> Result<Instruments, StudyError> {
        let plan = &context.manifest.plan;
        let levels = watch_over_level(plan, self.in_pair.as_ref(), say.clone());
        let mut instruments = instrument::listed_by(&self.work.workload, levels, plan);
        let run = self.run_context(context, prepared.cache_bytes);
        instruments.iter_mut().try_for_each(|of| of.prepare(&mut prepared.request, &run))?;
        Ok(instruments)
    }

    /// Runs jobs in a common window, with instruments, and asks what proves their work.
    fn run_jobs(&self, context: &mut Context<'_>, prepared: &mut Prepared) -> Result<Ended, StudyError> {
        let (say, alarm) = channel();
        let mut others = Others::beside(context);
        let mut instruments = self.instruments(context, prepared, &say)?;
        if !others.were_quiet() {
            instruments.iter_mut().for_each(|of| of.forget());
        }
        let LiveTest { test, try_of, .. } = self.position;
        let mut hold = context.hold(others);
        // The windows of a pair are repeated together.
        hold.may_repeat =
            self.in_pair.is_none() && try_of.is_none() && !instruments.iter().any(|of| of.follows_window());
        let held = Rc::clone(&hold.shown);
        let request = &prepared.request;
        // Outside the window: taking the mark is work for the database.
        let mark = native_report::mark(native_reports(context));
        let views = ReadViews::new(context.side.target.as_ref(), self.in_pair.is_some());
        let mut pace = Pace::default();
        let mut hooks = WhenQuiet(&mut instruments, &mut hold);
        let measured = run_test(request, &mut hooks, |tick| {
            let second = LiveSecond { held: held.get(), ..pace.second(test, request, tick) };
            context.listener.on(Event::Progress(second));
            if let Ok(text) = alarm.try_recv() {
                context.warn(format!("test {test}: {text}"));
            }
        });
        if matches!(measured, Err(TestError::Interrupted)) {
            self.store_parts(context, request, &instruments)?;
        }
        let measured = measured.map_err(|e| self.failed(e))?;
        context.book_hold(&hold, try_of);
        // What the server refuses to each job from its first transaction on is no test.
        let refused = |job: &JobResult| if job.total == 0 && job.lost.is_some() { job.refused.clone() } else { None };
        let refusals: Option<Vec<Refusal>> = measured.jobs.iter().map(refused).collect();
        if let Some(refusal) = refusals.and_then(|all| all.into_iter().next()) {
            return Err(TargetError::from(refusal).into());
        }
        let sessions = measured.elsewhere.end_lost(context.side.target.as_ref());
        let lost = measured.jobs.iter().find_map(|j| j.lost.clone());
        let left = lost.is_some() || measured.after.is_err() || !has_same_members(&measured);
        let remaining = if left { spread::without_lost(context.side.target.as_ref()) } else { None };
        let target = of_the_rest(context, &remaining);
        if let Some(lost) = lost
            && remaining.is_none()
            && target.info().is_err()
        {
            // The server is down, not only a session: the test is not stored, so a resume repeats it.
            return Err(TargetError::lost(lost, measured.merged.full_disk).into());
        }
        // Before the queries that prove the jobs' work, which are loadline's own.
        let views = views.grown(target);
        let proof = prepared.before.proof(target, &self.work);
        let tx_per_s = measured.completed_before as f64 / measured.schedule.window_s();
        let again = hold.repeated.map(|(by, pct)| Note::WindowRepeated { by: by.check, pct, tx_per_s });
        let notes = sessions.into_iter().chain(again).collect();
        Ok(Ended { measured, instruments, views, proof, mark, remaining, notes })
    }

    /// Stores what is known of the parts of a window that was interrupted, if they were recorded.
    fn store_parts(
        &self,
        context: &mut Context<'_>,
        request: &Request,
        instruments: &Instruments,
    ) -> Result<(), StudyError> {
        let mut test = Test::default();
        let known = instruments.iter().filter_map(|of| of.report_interrupted(&mut test)).reduce(f64::max);
        let Some(known_s) = known else { return Ok(()) };
        let why =
            format!("interrupted: {known_s:.1} s of a window of {} s are known, without proofs", request.duration_s);
        COLUMNS.iter().for_each(|column| test.set_fallback_reason(column, &why));
        test.check(CheckId::Window, failed(why));
        self.store(context, record::of_parts(request, test, self.identity(context), known_s), None)
    }

    /// The evidence of jobs. What instruments can only measure now is added to it by [`Instrument::complete`].
    fn evidence<'a>(
        &self,
        context: &Context<'_>,
        run: &'a RunContext<'a>,
        prepared: &'a Prepared,
        ended: &'a Ended,
        instruments: Instruments,
    ) -> Evidence<'a> {
        let measured = &ended.measured;
        let (side, full) = (&context.side, measured.merged.full_disk);
        let full_disk = match checks::have_failed(measured) {
            true => refused::advice(full, side.target.as_ref(), &side.info),
            false => None,
        };
        let jobs = Jobs {
            instruments,
            lost_nodes: ended.remaining.as_ref().map_or(&[], |remaining| &remaining.lost),
            full_disk,
            ..Jobs::from(&prepared.request, measured)
        };
        let after = of_the_rest(context, &ended.remaining).info();
        self.evidence_of(context, run, prepared, &ended.proof, after, jobs).and_remarks(ended.notes.iter().cloned())
    }

    fn evidence_of<'a, S>(
        &self,
        context: &Context<'_>,
        run: &'a RunContext<'a>,
        prepared: &'a Prepared,
        proof: &'a Proof,
        after: Result<TargetInfo, TargetError>,
        seen: S,
    ) -> Evidence<'a, S> {
        Evidence {
            request: &prepared.request,
            run,
            proof,
            target: (&prepared.info, after),
            excuses: self.excuses(context),
            remarks: self.remarks(context, prepared),
            seen,
        }
    }

    fn run_context<'a>(&self, context: &'a Context<'_>, cache_bytes: Option<u64>) -> RunContext<'a> {
        RunContext {
            manifest: &context.manifest,
            records: &context.records,
            repetition: self.position.repetition,
            references: &context.side.references,
            data_files: &context.side.data_files,
            log: context.side.info.storage.get("log"),
            cache_bytes,
            server_memory: context.side.server_memory,
        }
    }

    /// The database's own report, and a note if it is missing; the test stays valid.
    fn report(&self, context: &Context<'_>, mark: Mark) -> (Option<NativeFile>, Option<Note>) {
        let kind = kind_of(&context.manifest.plan.target).map_err(|e| e.to_string());
        match kind.and_then(|kind| native_report::report(native_reports(context), kind, mark)) {
            Ok(report) => (report, None),
            Err(why) => (None, Some(Note::NoNativeReport { test: self.position.test, why })),
        }
    }

    fn remarks(&self, context: &Context<'_>, prepared: &Prepared) -> Vec<Note> {
        let (plan, start) = (&context.manifest.plan, context.found_target());
        let mut now = if plan.arms().is_some() { &context.side.info } else { &prepared.info }.clone();
        // loadline itself changes levels of a user's server.
        let levels = if plan.levels().is_some() { kind_of(&plan.target).ok() } else { None };
        for name in levels.map_or(&[][..], |kind| kind.level_settings()) {
            let at_start = start.and_then(|start| start.settings.get_key_value(*name));
            now.settings.extend(at_start.map(|(name, value)| (name.clone(), value.clone())));
        }
        let changed = start.and_then(|start| settings::changed_since(start, &now));
        let unsettled = prepared.unsettled.clone().map(|why| Note::Unsettled { why });
        let lost = context.side.without.clone().map(|lost| Note::NodesLost { lost });
        [unsettled, lost, changed].into_iter().flatten().collect()
    }

    /// States of the test on purpose. Both arms are excused: if windows of one arm alone counted as failed, that would be a choice
    /// among its windows.
    fn excuses(&self, context: &Context<'_>) -> Excuses {
        let (plan, forced) = (&context.manifest.plan, self.forced(context));
        let has_forced = plan.arms().is_some() && !forced.is_empty();
        // Commits that do not wait for their disk are what such a level is, and do not make its windows refused.
        let of_level = level_in_force(plan, self.in_pair.as_ref()).filter(|level| !level.durable);
        Excuses {
            forced: context.side.forced.is_some(),
            commits: if has_forced { Some(Excuse::ArmHas(forced)) } else { of_level.map(|of| Excuse::Level(of.name)) },
            redo: may_change_redo(plan, self.workload).then_some(Excuse::CalibratedInArmA),
        }
    }

    /// Refusals that were forced, or that an arm has on purpose.
    fn forced(&self, context: &Context<'_>) -> Vec<String> {
        context.side.forced.iter().chain(&self.workload.forced).cloned().collect()
    }

    fn identity(&self, context: &Context<'_>) -> TestRecord {
        let (manifest, work) = (&context.manifest, &self.work);
        let arm = manifest.plan.arms().zip(self.in_pair.as_ref());
        let label = arm.and_then(|(paired, window)| Some(&paired.variants.get(window.arm.index())?.label));
        let forced = self.forced(context);
        let refused = (!forced.is_empty()).then(|| forced.join("; "));
        TestRecord {
            platform: label.unwrap_or(&manifest.plan.platform).clone(),
            run: manifest.run.clone(),
            test: self.position.test,
            repetition: self.position.repetition,
            target: context.side.info.url.clone(),
            variant: self.in_pair.clone(),
            try_of: self.position.try_of,
            nodes: work.nodes.unwrap_or(context.side.target.facts().nodes),
            forced: Forced { refused, ..Forced::default() },
            details: self.swept.map(|column| Detail::Swept(column.id.to_owned())).into_iter().collect(),
            ..TestRecord::blank(&work.workload.code)
        }
    }

    pub(super) fn failed(&self, source: TestError) -> StudyError {
        let LiveTest { test, jobs, .. } = self.position;
        StudyError::Test { test, workload: self.workload.code.clone(), jobs, source }
    }
}

/// The target over the nodes that are left; if nothing can be measured there, that over all nodes.
fn of_the_rest<'a>(context: &'a Context<'_>, remaining: &'a Option<RemainingNodes>) -> &'a dyn Target {
    let rest = remaining.as_ref().and_then(|remaining| remaining.target.as_ref().ok());
    rest.map_or(context.side.target.as_ref(), |target| target.as_ref())
}

/// Maker of the database's own reports, if the plan asks for them.
fn native_reports<'a>(context: &'a Context<'_>) -> Option<&'a dyn NativeReports> {
    if context.manifest.plan.native_report() { context.side.target.abilities().native_reports } else { None }
}
