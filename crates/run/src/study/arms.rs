//! A run of two arms: brings an arm about before each of its windows, and measures the windows in pairs.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_analyze::arms::{Cell, ERROR, cells};
use loadline_analyze::paired::flips::FEW_BLOCKS;
use loadline_analyze::paired::order::BLOCK;
use loadline_analyze::paired::ratio::least_pairs;
use loadline_analyze::paired::{looks, order, paired_ratio};
use loadline_database::{TargetError, Work};
use loadline_model::TestRecord;
use loadline_model::arms::ArmName;
use loadline_model::manifest::{ArmFound, Calibration};
use loadline_model::plan::{Arms, Plan, PlannedWorkload};
use loadline_model::record::LevelPoint;

use super::arm_state::{ArmsState, Values};
use super::execute::PlannedTest;
use super::refused::Refused;
use super::side::{fit_jobs, fit_workloads, forced};
use super::{Context, Side, StudyError, Switch, until_released};
use crate::event::{Event, Listener};
use crate::plan::arms::{differing, in_one_place, job_counts, same_kind, same_target};
use crate::plan::duration::DurationEstimate;
use crate::plan::{PlanError, workloads_of};
use loadline_model::live::LiveTest;

/// Whether the arms need a target each: they name two, or their settings differ and the target cannot change its own.
pub(super) fn two_sides(plan: &Plan, side: &Side) -> bool {
    plan.arms.as_ref().is_some_and(|arms| {
        !same_target(arms) || (arms.a.settings != arms.b.settings && side.target.abilities().settings.is_none())
    })
}

/// The plan as arm B has it, without workloads that arm A cannot run.
pub(super) fn plan_of_b(plan: &Plan) -> Plan {
    let mut of_b = plan.clone();
    if let Some(arms) = &plan.arms {
        of_b.target.clone_from(&arms.b.target);
        of_b.settings.clone_from(&arms.b.settings);
        of_b.workloads.clone_from(&arms.b.workloads);
        of_b.workloads.retain(|b| plan.workloads.iter().any(|a| a.code == b.code));
    }
    of_b
}

/// Keeps the workloads that arm B can run as well, in the same place.
pub(super) fn keep(plan: &mut Plan, mut of_b: Plan) -> Result<(), StudyError> {
    // What the servers that are there cannot do may have changed a driver.
    let apart =
        in_one_place(&workloads_of(plan)?, [&plan.target, &of_b.target], [&mut plan.workloads, &mut of_b.workloads])?;
    of_b.workloads.retain(|b| apart.iter().all(|skipped| skipped.code != b.code));
    plan.workloads.retain(|a| of_b.workloads.iter().any(|b| b.code == a.code));
    plan.skipped = of_b.skipped.into_iter().chain(apart).collect();
    if plan.workloads.is_empty() {
        let reasons = crate::plan::reasons(&plan.skipped);
        return Err(PlanError::Nothing { target: of_b.target, reasons }.into());
    }
    if let Some(arms) = &mut plan.arms {
        arms.a.workloads.clone_from(&plan.workloads);
        arms.b.workloads = of_b.workloads;
    }
    Ok(())
}

impl Context {
    fn arms(&self) -> Option<Arms> {
        self.manifest.plan.arms.as_deref().cloned()
    }

    /// Brings both arms about, B first. Sees what each is, what it can run, and that their settings took effect.
    pub(super) fn try_arms(&mut self, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let Some(arms) = self.arms() else { return Ok(()) };
        let mut found: [(ArmFound, Values); 2] = Default::default();
        for arm in [ArmName::B, ArmName::A] {
            self.take(arm, listener)?;
            let (doctor, forced) = if self.other.is_some() && arms.a.switch.is_none() {
                (self.side.findings.clone(), self.side.forced.clone())
            } else {
                let own: Vec<&str> = arms.get(arm).settings.keys().map(String::as_str).collect();
                let doctor = self.side.target.doctor()?;
                let forced = forced(&self.side.changes, &doctor, self.manifest.plan.force, &own)?;
                if self.other.is_none() {
                    self.fit_arm(arm, &own)?;
                }
                (doctor, forced)
            };
            if let Some(state) = &mut self.arms {
                state.forced[arm as usize] = forced;
            }
            let target = self.side.info.clone();
            found[arm as usize] = (ArmFound { target, doctor }, self.given_values(&arms)?);
        }
        let [(a, of_a), (b, of_b)] = &mut found;
        if let Some((name, value)) = of_a.iter().find(|(name, value)| of_b.get(*name) == Some(*value)) {
            let shown = value.as_deref().unwrap_or("not a setting of the server");
            return Err(PlanError::Value(format!(
                "the setting '{name}' is the same in both arms ({shown}), as the server states it: give values that differ"
            ))
            .into());
        }
        let alike = a.target.settings == b.target.settings && a.target.version == b.target.version;
        if arms.a.switch.is_some() && same_target(&arms) && alike {
            let text = format!(
                "after --switch-a and --switch-b all {} settings that loadline reads are the same, and so is the version: whether the \
                 commands changed anything else is not known",
                a.target.settings.len()
            );
            listener.on(Event::Warning(text.clone()));
            [a, b].into_iter().for_each(|arm| arm.target.notes.push(text.clone()));
        }
        if self.manifest.arms.is_none() {
            self.manifest.target.clone_from(&found[0].0.target);
            self.manifest.arms = Some(Box::new([found[0].0.clone(), found[1].0.clone()]));
        }
        if let Some(state) = &mut self.arms {
            state.found = Some(found);
        }
        Ok(())
    }

    /// Skips or marks the workloads that `arm`, which is in force on the target of both, cannot run. `own`: its settings.
    fn fit_arm(&mut self, arm: ArmName, own: &[&str]) -> Result<(), StudyError> {
        let (plan, target) = (&mut self.manifest.plan, self.side.target.as_ref());
        let named = |e| {
            match e {
            StudyError::Plan(PlanError::Nothing { target, reasons }) => PlanError::Nothing {
                target,
                reasons: format!("in arm {arm}, {reasons}. An arm may be so on purpose: --force measures and marks what can be forced"),
            }
            .into(),
            e => e,
        }
        };
        let fit =
            |plan: &mut Plan| fit_workloads(plan, target, own).map_err(named).and_then(|()| fit_jobs(plan, target));
        if arm == ArmName::A {
            fit(plan)?;
        }
        let mut of_b = plan_of_b(plan);
        if arm == ArmName::B {
            fit(&mut of_b)?;
        }
        keep(plan, of_b)
    }

    /// The settings that the arms give, as the target of both states them; none if each has its own.
    fn given_values(&self, arms: &Arms) -> Result<Values, StudyError> {
        let settings = self.side.target.abilities().settings.filter(|_| self.other.is_none());
        let Some(settings) = settings else { return Ok(Values::new()) };
        let value = |name: &String| Ok((name.clone(), settings.setting(name)?));
        differing(&arms.a.settings, &arms.b.settings).into_iter().map(value).collect()
    }

    /// Brings `arm` about, in the same steps whether or not it is in force, and reads its settings back.
    fn take(&mut self, arm: ArmName, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let (Some(arms), Some(mut state)) = (self.arms(), self.arms.take()) else { return Ok(()) };
        let taken =
            self.bring_about(arm, &arms, &mut state, listener).and_then(|()| self.see_in_force(&arms, &mut state));
        // What worked before is no mistake of the user's.
        let measuring = state.found.is_some();
        self.arms = Some(state);
        taken.map_err(|e| match e {
            StudyError::Target(TargetError::Usage(text)) if measuring => TargetError::Refused(text).into(),
            e => e,
        })
    }

    fn bring_about(
        &mut self,
        arm: ArmName,
        arms: &Arms,
        state: &mut ArmsState,
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        listener.on(Event::Step(format!("arm {}", arms.get(arm).label)));
        if let Some(other) = self.other.as_mut().filter(|_| state.now != arm) {
            std::mem::swap(&mut self.side, other);
        }
        let changed = std::mem::replace(&mut state.now, arm) != arm;
        let command = arms.get(arm).switch.as_ref();
        if let Some(command) = command {
            self.side.lock = None;
            Switch { arm, command }.run(&self.interrupted)?;
        }
        let settings = self.side.target.abilities().settings;
        let settings = settings.filter(|_| self.other.is_none() && arms.a.settings != arms.b.settings);
        if let Some(settings) = settings {
            let (target, restarted) = settings.switch(&state.requests[arm as usize], state.restart)?;
            state.restart |= restarted && changed;
            if restarted {
                self.side.lock = None;
            }
            self.side.target = Arc::from(target);
        }
        if self.side.lock.is_none() {
            self.side.lock = Some(until_released(|| self.side.target.lock())?);
        }
        Ok(())
    }

    /// Reads back what the arm in force is; an error names settings that did not take effect.
    fn see_in_force(&mut self, arms: &Arms, state: &mut ArmsState) -> Result<(), StudyError> {
        let values = self.given_values(arms)?;
        self.side.read_back(&values)?;
        let info = &self.side.info;
        let wrong = state.not_in_force(arms, &values, info);
        if !wrong.is_empty() {
            let label = &arms.get(state.now).label;
            return Err(
                TargetError::Refused(format!("arm '{label}' was not brought about: {}", wrong.join("; "))).into()
            );
        }
        Ok(())
    }

    /// Makes arm A's side the present one, and leaves arm A in force if commands of the user's bring arms about.
    pub(super) fn put_back(&mut self, listener: &mut dyn Listener) {
        let now = self.arms.as_mut().map(|state| std::mem::replace(&mut state.now, ArmName::A));
        if let Some(other) = self.other.as_mut().filter(|_| now == Some(ArmName::B)) {
            std::mem::swap(&mut self.side, other);
        }
        let Some(command) = self.arms().and_then(|arms| arms.a.switch) else { return };
        self.side.lock = None;
        // Ctrl-C has ended the run; this must still be done.
        if let Err(e) = (Switch { arm: ArmName::A, command: &command }).run(&Arc::default()) {
            listener.on(Event::Warning(format!("arm A is not in force again: {e}")));
        }
    }

    /// Measures all pairs that are missing. Windows of a pair follow each other; a resumed run measures a broken pair anew.
    pub(super) fn measure_pairs(&mut self, arms: &Arms, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let plan = self.manifest.plan.clone();
        let length = DurationEstimate::of(&plan);
        let comparisons = plan.workloads.len() * job_counts(&plan).len();
        let pairs = arms.pairs as usize;
        let windows = 2 * pairs * comparisons;
        let least = least_pairs(ERROR / comparisons as f64, pairs.div_ceil(BLOCK) < FEW_BLOCKS);
        if pairs < least && !self.tries.is_end {
            let of = if comparisons == 1 { String::new() } else { format!(" among {comparisons} comparisons") };
            listener.on(Event::Warning(format!(
                "{pairs} pairs are too few to show a difference{of}, however large: that takes {least} (--pairs)"
            )));
        }
        let mut works: BTreeMap<(ArmName, String), Arc<Work>> = BTreeMap::new();
        let mut before = 0;
        for (a, b) in arms.a.workloads.iter().zip(&arms.b.workloads) {
            'jobs: for jobs in job_counts(&plan).iter().copied() {
                for (index, pair) in order(seed_of(arms.seed, &a.code, jobs), pairs).into_iter().enumerate() {
                    let number = index as u32 + 1;
                    if !self.tries.is_end && self.precise(arms, &a.code, jobs, index) {
                        break;
                    }
                    while let Some(try_of) = self.next_pair(&a.code, jobs, None, number, listener) {
                        let first = self.next_test();
                        for (place, arm) in pair.into_iter().enumerate() {
                            if self.stopped() {
                                return Err(StudyError::Interrupted);
                            }
                            let workload = if arm == ArmName::A { a } else { b };
                            let work = self.arm_work(arms, arm, workload, &mut works, listener)?;
                            let Some(work) = work else { break 'jobs };
                            let left = windows.saturating_sub(before + 2 * index + place);
                            let position = LiveTest {
                                test: self.next_test(),
                                workload: a.code.clone(),
                                jobs,
                                repetition: number,
                                repeat: arms.pairs,
                                arm: Some(arm),
                                try_of,
                                left_s: self.left_s(left as f64 * length.window_s()),
                                left_exact: arms.precision.is_none(),
                            };
                            let test = PlannedTest { workload, work, position, swept: None, level: None };
                            if let Err(e) = test.measure(self, listener) {
                                self.leave_out_refused(a, Refused::Jobs(jobs), e, listener)?;
                                break 'jobs;
                            }
                        }
                        self.judge_try(first, try_of);
                    }
                }
                before += 2 * pairs;
            }
            for ((arm, code), work) in &works {
                if *code == a.code {
                    self.take(*arm, listener)?;
                    self.drop_unneeded_tables(work, listener);
                }
            }
        }
        Ok(())
    }

    /// Whether the comparison has reached its precision at a declared look, with `done` pairs.
    fn precise(&self, arms: &Arms, code: &str, jobs: u32, done: usize) -> bool {
        let Some(precision) = arms.precision.filter(|_| arms.looks.contains(&done)) else { return false };
        let cells = cells(&self.records, arms.pairs);
        let Some(cell) = cells.iter().find(|cell| cell.workload == code && cell.jobs == jobs) else { return false };
        let mut pairs = cell.main_pairs();
        pairs.truncate(done);
        let ratio = paired_ratio(&pairs, ERROR / arms.looks.len().max(1) as f64);
        ratio.is_some_and(|ratio| looks::precise_enough(&ratio, precision))
    }

    /// Whether a pair is measured now: `Some(None)` if it is missing, and with the number of its first window if it is due again.
    pub(super) fn next_pair(
        &mut self,
        code: &str,
        jobs: u32,
        level: Option<&LevelPoint>,
        number: u32,
        listener: &mut dyn Listener,
    ) -> Option<Option<u32>> {
        let is_meant = |r: &TestRecord| {
            (r.workload.as_str(), r.jobs, r.level.as_ref(), r.repetition) == (code, jobs, level, number)
        };
        match self.due_again(is_meant, listener) {
            Some((first, _)) => Some(Some(first)),
            None => (!self.tries.is_end && !self.has_pair(code, jobs, level, number)).then_some(None),
        }
    }

    /// Whether both windows of a pair are there, measured one after the other.
    fn has_pair(&self, code: &str, jobs: u32, level: Option<&LevelPoint>, number: u32) -> bool {
        let of = |r: &&TestRecord| {
            (r.workload.as_str(), r.jobs, r.level.as_ref(), r.repetition) == (code, jobs, level, number)
        };
        let found: Vec<&TestRecord> = self.records.iter().filter(of).collect();
        Cell::last_pair(&found).is_some()
    }

    /// Brings `arm` about and returns its work, with its tables there. Work that differs on the same target is prepared anew.
    /// `None`: the server refuses the workload.
    fn arm_work(
        &mut self,
        arms: &Arms,
        arm: ArmName,
        workload: &PlannedWorkload,
        works: &mut BTreeMap<(ArmName, String), Arc<Work>>,
        listener: &mut dyn Listener,
    ) -> Result<Option<Arc<Work>>, StudyError> {
        let one_target = self.other.is_none();
        let of = |arm: ArmName| arms.get(arm).workloads.iter().find(|w| w.code == workload.code);
        let work = |arm: ArmName| of(arm).map(|w| (w.driver, &w.parameters));
        let shared = one_target && work(ArmName::A) == work(ArmName::B);
        let key = (if shared { ArmName::A } else { arm }, workload.code.clone());
        // The work is calibrated in arm A, because both do the same.
        if arm == ArmName::B && !self.manifest.calibration.contains_key(&workload.code) {
            let of_a = of(ArmName::A).unwrap_or(workload).clone();
            self.take(ArmName::A, listener)?;
            let Some(work) = self.prepare_or_leave_out(&of_a, listener)? else { return Ok(None) };
            works.insert((ArmName::A, workload.code.clone()), work);
        }
        self.take(arm, listener)?;
        if let Some(work) = works.get(&key).filter(|_| shared || !one_target) {
            return Ok(Some(Arc::clone(work)));
        }
        let work = self.prepare_or_leave_out(workload, listener)?;
        works.extend(work.clone().map(|work| (key, work)));
        Ok(work)
    }

    /// Key of a workload's calibration: arms on databases of different kinds have one each.
    pub(super) fn calibration_key(&self, code: &str) -> String {
        let own = self.arms.as_ref().is_some_and(|state| state.now == ArmName::B)
            && self.manifest.plan.arms.as_deref().is_some_and(|arms| !same_kind(arms));
        if own { format!("{code}{}", Calibration::IN_ARM_B) } else { code.to_owned() }
    }
}

/// Seed of the order of the windows of one comparison: of its own for each, or one unlucky order would hold for all.
pub(super) fn seed_of(seed: u64, cell: &str, jobs: u32) -> u64 {
    cell.bytes().fold(seed ^ u64::from(jobs), |seed, byte| {
        seed.wrapping_mul(0x0000_0100_0000_01b3).wrapping_add(u64::from(byte))
    })
}
