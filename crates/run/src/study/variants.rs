//! Variants while they are measured: brings one about before each of its windows, and sees that it is in force. The arms of
//! `loadline ab`, and levels of replication.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::Duration;

use loadline_collect::os::listeners;
use loadline_database::{Level, Target, TargetError, Way, is_temporary, kind_of, redact};
use loadline_model::Finding;
use loadline_model::manifest::{Calibration, TargetInfo, VariantFound};
use loadline_model::plan::{Plan, PlannedWorkload};
use loadline_model::variant::{InPair, Letter, LevelPoint, Links, Paired, Variant};

use super::side::{fit_jobs, fit_workloads, forced, until_released};
use super::{Context, StudyError, switch};
use crate::instrument::Levels;
use crate::plan::PlanError;
use crate::plan::variants::{differing, keep_common, same_kind};

/// State of the variants of a run that are brought about.
#[derive(Default)]
pub(super) struct VariantsState {
    /// Index of the variant in force.
    now: usize,
    /// Whether a setting of the variants needs a restart: then each window begins after one, so that all begin alike.
    restart: bool,
    /// The variants as this process found them; empty until all were in force.
    found: Vec<Found>,
}

#[derive(Clone, Default)]
struct Found {
    of: VariantFound,
    /// Of the settings that the variants give.
    values: Values,
    /// Refusals that the user has on purpose.
    forced: Option<String>,
}

/// Values of settings as the target states them; `None` if it has no such setting.
type Values = BTreeMap<String, Option<String>>;

impl VariantsState {
    /// Settings that are not as they were when the variant in force was first so. `shared`: all have one target.
    fn not_in_force(&self, paired: &Paired, shared: bool, values: &Values, info: &TargetInfo) -> Vec<String> {
        let Some((own, variant)) = self.found.get(self.now).zip(paired.variants.get(self.now)) else {
            return Vec::new();
        };
        let others = || self.found.iter().enumerate().filter(|(n, _)| *n != self.now).map(|(_, found)| found);
        // loadline itself may change what a variant leaves as it is, such as the size of the cache.
        let lost = |name: &String, now: &Option<String>| {
            let is_other = || others().any(|found| found.values.get(name) == Some(now));
            Some(now) != own.values.get(name) && (variant.settings.contains_key(name) || is_other())
        };
        let shown = |value: Option<&String>| value.map_or("unknown", String::as_str).to_owned();
        let said = |name: &String, now: Option<&String>, was: Option<&String>| {
            format!("{name} is {}, and was {} when the arm was first in force", shown(now), shown(was))
        };
        let mut wrong: Vec<String> = values
            .iter()
            .filter(|(name, now)| lost(name, now))
            .map(|(name, now)| said(name, now.as_ref(), own.values.get(name).and_then(Option::as_ref)))
            .collect();
        if variant.switch.is_some() && shared {
            let all = self.found.iter().map(|found| &found.of.target.settings);
            let first = &own.of.target.settings;
            let values = differing(all).into_iter().map(|name| (name, info.settings.get(name), first.get(name)));
            wrong.extend(values.filter(|(_, now, was)| now != was).map(|(name, now, was)| said(name, now, was)));
        }
        wrong
    }
}

/// Whether something in which the variants differ can change how much redo the rows of `workload` are: the first was calibrated.
pub(super) fn may_change_redo(plan: &Plan, workload: &PlannedWorkload) -> bool {
    let Some((a, others)) = plan.arms().and_then(|paired| paired.variants.split_first()) else { return false };
    let parameters = |variant| plan.workload_of(variant, &workload.code).map(|w| &w.parameters);
    others.iter().any(|b| {
        let differ = a.settings != b.settings || a.switch != b.switch || a.target != b.target;
        same_kind(plan, [a, b]) && (differ || parameters(a) != parameters(b))
    })
}

/// The plan as the variant `n` has it, without workloads that the plan no longer has.
pub(super) fn plan_of(plan: &Plan, n: usize) -> Plan {
    let mut own = plan.clone();
    // The plan is that of the first.
    if n > 0
        && let Some(variant) = plan.arms().and_then(|paired| paired.variants.get(n))
    {
        plan.target_of(variant).clone_into(&mut own.target);
        own.settings.clone_from(&variant.settings);
        own.workloads.iter_mut().for_each(|w| {
            if let Some(of) = variant.workloads.iter().find(|of| of.code == w.code) {
                w.clone_from(of);
            }
        });
    }
    own
}

/// Keeps the workloads that all variants can run, in one place; `plans` are those of the variants.
pub(super) fn keep(plan: &mut Plan, mut plans: Vec<Plan>) -> Result<(), StudyError> {
    // What the servers that are there cannot do may have changed a driver.
    keep_common(&mut plans)?;
    if let Some(first) = plans.first() {
        plan.workloads.clone_from(&first.workloads);
        plan.skipped.clone_from(&first.skipped);
    }
    let variants = plan.paired.iter_mut().flat_map(|paired| &mut paired.variants);
    variants.zip(plans).for_each(|(variant, own)| variant.workloads = own.workloads);
    Ok(())
}

/// The level and distance that `window` is measured under; `None` in the baseline, which has the distance of its pair.
fn point(window: &InPair) -> Option<&LevelPoint> {
    if window.arm == Letter::A { None } else { window.level.as_ref() }
}

/// The level in force in `window`; `None` in the baseline, and in a run without levels.
pub(super) fn level_in_force(plan: &Plan, window: Option<&InPair>) -> Option<Level> {
    let point = point(window?)?;
    kind_of(&plan.target).ok()?.levels().into_iter().find(|level| level.name == point.level)
}

/// Watch over the replicas of a run of levels in `window`, which says by `alarm` while the test still runs that one is gone.
pub(super) fn watch_over_level(plan: &Plan, window: Option<&InPair>, alarm: Sender<String>) -> Option<Levels> {
    let (_, links) = plan.levels()?;
    let level = level_in_force(plan, window).map(|level| (level.name, level.waits_for));
    Some(Levels::new(level, links.replicas, alarm))
}

impl Context<'_> {
    /// Brings all variants about, the first one last. Sees what each is, what it can run, and that their settings took effect.
    pub(super) fn try_variants(&mut self) -> Result<(), StudyError> {
        let Some(paired) = self.manifest.plan.arms().cloned() else { return Ok(()) };
        let mut found = vec![Found::default(); paired.variants.len()];
        for (n, variant) in paired.variants.iter().enumerate().rev() {
            self.take(&paired, n, None)?;
            let (doctor, forced) = self.doctor_of(n, variant)?;
            let of = VariantFound { target: self.side.info.clone(), doctor };
            found[n] = Found { of, values: self.given_values(&paired)?, forced };
        }
        self.see_that_they_differ(&paired, &mut found)?;
        if self.manifest.variants.is_empty() {
            self.manifest.target.clone_from(&found[0].of.target);
            self.manifest.variants = found.iter().map(|found| found.of.clone()).collect();
        }
        self.variants.found = found;
        Ok(())
    }

    /// The doctor's findings on the variant in force, and what of them is refused but forced. Fits the plan to it.
    fn doctor_of(&mut self, n: usize, variant: &Variant) -> Result<(Vec<Finding>, Option<String>), StudyError> {
        let is_alone = !self.shares_target();
        if is_alone && variant.switch.is_none() {
            return Ok((self.side.findings.clone(), self.side.forced.clone()));
        }
        let own: Vec<&str> = variant.settings.keys().map(String::as_str).collect();
        let doctor = self.side.target.doctor()?;
        let forced = forced(self.side.change.as_ref(), &doctor, self.manifest.plan.force, &own)?;
        if !is_alone {
            fit_variant(&mut self.manifest.plan, self.side.target.as_ref(), n, &own)?;
        }
        Ok((doctor, forced))
    }

    /// Refuses settings that are the same in two variants although they should differ, and says so of commands that change nothing.
    fn see_that_they_differ(&mut self, paired: &Paired, found: &mut [Found]) -> Result<(), StudyError> {
        let Some((Found { of: first, values, .. }, others)) = found.split_first() else { return Ok(()) };
        for (other, variant) in others.iter().zip(&paired.variants[1..]) {
            let names = differing([&paired.variants[0].settings, &variant.settings].into_iter());
            let same = names
                .into_iter()
                .find(|name| values.get(*name).is_some_and(|value| other.values.get(*name) == Some(value)));
            if let Some(name) = same {
                let shown = values.get(name).and_then(Option::as_deref).unwrap_or("not a setting of the server");
                return Err(PlanError::Value(format!(
                    "the setting '{name}' is the same in both arms ({shown}), as the server states it: give values that differ"
                ))
                .into());
            }
        }
        let alike = |Found { of: VariantFound { target, .. }, .. }: &Found| {
            (&target.settings, &target.version) == (&first.target.settings, &first.target.version)
        };
        let switched = paired.variants.iter().all(|v| v.switch.is_some() && v.target == paired.variants[0].target);
        if switched && others.iter().all(alike) {
            let text = format!(
                "after the commands of --switch-a, --switch-b and so on, all {} settings that loadline reads are the same, and so is the \
                 version: whether the commands changed anything else is not known",
                first.target.settings.len()
            );
            self.warn(text.clone());
            found.iter_mut().for_each(|found| found.of.target.notes.push(text.clone()));
        }
        Ok(())
    }

    /// The settings that the variants give, as the target of all states them; none if some have their own.
    fn given_values(&self, paired: &Paired) -> Result<Values, StudyError> {
        let settings = if self.shares_target() { self.side.target.abilities().settings } else { None };
        let Some(settings) = settings else { return Ok(Values::new()) };
        let value = |name: &String| Ok((name.clone(), settings.setting(name)?));
        differing(paired.variants.iter().map(|variant| &variant.settings)).into_iter().map(value).collect()
    }

    /// Whether all variants have one open target; if not, each has its own.
    pub(super) fn shares_target(&self) -> bool {
        self.parked.is_empty()
    }

    /// Brings a variant about, in force or not, for a `window` if they are levels, and reads its settings back.
    pub(super) fn take(&mut self, paired: &Paired, n: usize, window: Option<&InPair>) -> Result<(), StudyError> {
        if let Some(links) = &paired.links {
            return Ok(self.bring_level_about(links, window)?);
        }
        let taken = self.bring_about(n, paired).and_then(|()| self.see_in_force(paired));
        taken.map_err(|e| match e {
            // What worked before is no mistake of the user's.
            StudyError::Target(TargetError::Usage(text)) if !self.variants.found.is_empty() => {
                TargetError::Refused(text).into()
            }
            e => e,
        })
    }

    /// Brings about the level of `window`, or the baseline, with the delay of its pair to the replicas; `None`: without any.
    pub(super) fn bring_level_about(&mut self, links: &Links, window: Option<&InPair>) -> Result<(), TargetError> {
        let delay_ms = window.and_then(|window| window.level.as_ref()).map_or(0.0, |point| point.delay_ms);
        let name = window.and_then(point).map(|point| point.level.as_str());
        let way = if links.standbys.is_empty() { format!(", {delay_ms} ms one way") } else { String::new() };
        self.step(format!("level {}{way}", name.unwrap_or("of the baseline")));
        let levels = self.side.target.abilities().levels;
        let levels = levels.ok_or_else(|| TargetError::Unsupported("the target has no replicas".into()))?;
        levels.bring_about(name, Duration::from_nanos((delay_ms * 1e6) as u64))
    }

    fn bring_about(&mut self, n: usize, paired: &Paired) -> Result<(), StudyError> {
        let variant = &paired.variants[n];
        self.step(format!("arm {}", variant.label));
        let changed = self.variants.now != n;
        self.turn_to(n);
        if let Some(found) = self.variants.found.get(n) {
            self.side.forced.clone_from(&found.forced);
        }
        if let Some(command) = &variant.switch {
            self.side.lock = None;
            switch::run(Letter::nth(n), command, &self.interrupted)?;
        }
        let differ = !differing(paired.variants.iter().map(|variant| &variant.settings)).is_empty();
        let switches = differ && self.shares_target();
        let settings = if switches { self.side.target.abilities().settings } else { None };
        if let Some(settings) = settings {
            let (target, restarted) = settings.switch(&self.requests[n], self.variants.restart)?;
            self.variants.restart |= restarted && changed;
            if restarted {
                self.side.lock = None;
            }
            self.side.target = Arc::from(target);
        }
        if self.side.lock.is_none() {
            self.side.lock = Some(until_released(|| self.side.target.lock())?);
        }
        if paired.has_via() {
            self.lead(n)?;
        }
        Ok(())
    }

    /// Leads the jobs on the way of the variant `n`.
    fn lead(&mut self, n: usize) -> Result<(), StudyError> {
        let request = &self.requests[n];
        let Some(ways) = self.side.target.abilities().ways else {
            let why = "loadline leads no jobs of this database through a proxy";
            return Err(
                TargetError::Unsupported(format!("--via does not apply to {}: {why}", redact(&request.url))).into()
            );
        };
        let address = ways.lead(request)?;
        let is_via = matches!(request.way, Way::Via(_));
        let listeners = || listeners(&address.ok_or("the proxy is on another machine")?);
        self.via = is_via.then(listeners);
        Ok(())
    }

    /// Makes the open target of the variant `to` the present one, and parks the present one, if each has its own.
    fn turn_to(&mut self, to: usize) {
        let now = std::mem::replace(&mut self.variants.now, to);
        if let Some(side) = self.parked.remove(&to) {
            self.parked.insert(now, std::mem::replace(&mut self.side, side));
        }
    }

    /// Reads back what the variant in force is; an error names settings that did not take effect.
    fn see_in_force(&mut self, paired: &Paired) -> Result<(), StudyError> {
        let values = self.given_values(paired)?;
        self.side.read_back(&values)?;
        let wrong = self.variants.not_in_force(paired, self.shares_target(), &values, &self.side.info);
        if !wrong.is_empty() {
            let label = &paired.variants[self.variants.now].label;
            return Err(
                TargetError::Refused(format!("arm '{label}' was not brought about: {}", wrong.join("; "))).into()
            );
        }
        Ok(())
    }

    /// Makes the first variant's target the present one, and leaves that variant in force if commands of the user's bring them about.
    pub(super) fn put_back(&mut self) {
        self.turn_to(0);
        let first = self.manifest.plan.arms().and_then(|paired| paired.variants.first());
        let Some(command) = first.and_then(|variant| variant.switch.as_ref()) else { return };
        self.side.lock = None;
        // Ctrl-C has ended the run; this must still be done.
        if let Err(e) = switch::run(Letter::A, command, &AtomicBool::new(false)) {
            self.warn(format!("arm A is not in force again: {e}"));
        }
    }

    /// The target, or the arm in force, as it was found. `None` if it is private: loadline itself changes its settings from test to
    /// test, and nobody else does.
    pub(super) fn found_target(&self) -> Option<&TargetInfo> {
        let now = self.variants.now;
        let of_arm = self.variants.found.get(now).map(|found| &found.of.target);
        if is_temporary(&self.requests.get(now)?.url) { None } else { Some(of_arm.unwrap_or(&self.manifest.target)) }
    }

    /// Key of a workload's calibration: variants on databases of different kinds have one each.
    pub(super) fn calibration_key(&self, code: &str) -> String {
        let plan = &self.manifest.plan;
        let now = self.variants.now;
        let variants = plan.arms().and_then(|paired| Some([paired.variants.first()?, paired.variants.get(now)?]));
        let own = variants.is_some_and(|both| !same_kind(plan, both));
        Calibration::key(code, if own { Letter::nth(now) } else { Letter::A })
    }

    /// The variant whose tables are loaded now, if some have a target of their own.
    pub(super) fn loaded_variant(&self) -> Option<Letter> {
        (!self.shares_target()).then(|| Letter::nth(self.variants.now))
    }
}

/// Skips or marks the workloads that the variant `n`, which is in force on a `target` that others share, cannot run. `own`: its settings.
fn fit_variant(plan: &mut Plan, target: &dyn Target, n: usize, own: &[&str]) -> Result<(), StudyError> {
    let count = plan.arms().map_or(0, |paired| paired.variants.len());
    let mut plans: Vec<Plan> = (0..count).map(|n| plan_of(plan, n)).collect();
    fit_workloads(&mut plans[n], target, own).map_err(|e| match e {
        StudyError::Plan(PlanError::Nothing { target, reasons }) => {
            let arm = Letter::nth(n);
            let way = "An arm may be so on purpose: --force measures and marks what can be forced";
            PlanError::Nothing { target, reasons: format!("in arm {arm}, {reasons}. {way}") }.into()
        }
        e => e,
    })?;
    fit_jobs(&plans[n], target)?;
    keep(plan, plans)
}

#[cfg(test)]
mod tests {
    use loadline_model::Driver;

    use super::*;

    /// The first variant differs from the others in what `change` makes of them.
    fn plan(change: impl Fn(&mut Variant)) -> Plan {
        let workloads = vec![PlannedWorkload::new("LGWR-LAT1", Driver::Client)];
        let first = Variant { target: "postgres-temp:".into(), workloads, ..Variant::default() };
        let mut other = first.clone();
        change(&mut other);
        let paired = Paired { variants: vec![first, other], pairs: 6, looks: vec![6], ..Paired::default() };
        Plan { paired: Some(Box::new(paired)), ..Plan::default() }
    }

    #[test]
    fn only_what_arms_differ_in_may_change_redo() {
        let may = |change: &dyn Fn(&mut Variant)| {
            may_change_redo(&plan(change), &PlannedWorkload::new("LGWR-LAT1", Driver::Client))
        };
        assert!(!may(&|b| b.workloads[0].driver = Driver::Database), "a driver changes no redo");
        assert!(may(&|b| b.workloads[0].parameters = [("rows".to_owned(), 2)].into()));
        let compress = |b: &mut Variant| b.settings = [("wal_compression".to_owned(), "on".to_owned())].into();
        assert!(may(&compress));
        let elsewhere = |b: &mut Variant| {
            compress(b);
            b.target = "mariadb-temp:".into();
        };
        assert!(!may(&elsewhere), "each is calibrated");
    }

    #[test]
    fn a_setting_that_is_lost_is_named() {
        let plan = plan(|b| b.settings = [("work_mem".to_owned(), "8MB".to_owned())].into());
        let mut arms = plan.arms().unwrap().clone();
        let values = |work_mem: &str| Values::from([("work_mem".to_owned(), Some(work_mem.to_owned()))]);
        let info =
            |jit: &str| TargetInfo { settings: [("jit".to_owned(), jit.to_owned())].into(), ..TargetInfo::default() };
        let of = |jit| VariantFound { target: info(jit), doctor: Vec::new() };
        let found = |jit, work_mem| Found { of: of(jit), values: values(work_mem), forced: None };
        let mut state =
            VariantsState { found: vec![found("on", "4MB"), found("off", "8MB")], ..VariantsState::default() };
        let wrong = |state: &VariantsState, arms: &Paired, work_mem, jit| {
            state.not_in_force(arms, true, &values(work_mem), &info(jit))
        };
        // Arm A leaves it as it is: only the value of B is wrong there.
        assert!(wrong(&state, &arms, "4MB", "on").is_empty() && wrong(&state, &arms, "5MB", "on").is_empty());
        assert!(wrong(&state, &arms, "8MB", "on")[0].contains("work_mem is 8MB, and was 4MB"));
        state.now = 1;
        assert!(wrong(&state, &arms, "8MB", "on").is_empty(), "no command says that jit must be off");
        assert!(wrong(&state, &arms, "5MB", "off")[0].contains("work_mem is 5MB"));
        arms.variants.iter_mut().for_each(|variant| variant.switch = Some("x".into()));
        assert!(wrong(&state, &arms, "8MB", "on")[0].contains("jit is on, and was off"));
    }
}
