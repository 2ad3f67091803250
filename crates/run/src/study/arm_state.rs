//! What a run of two arms remembers, and what the arms differ in.

use std::collections::BTreeMap;

use loadline_database::{OpenRequest, is_temporary};
use loadline_model::Note;
use loadline_model::arms::ArmName;
use loadline_model::manifest::{ArmFound, TargetInfo};
use loadline_model::plan::{Arm, Arms, PlannedWorkload};

use crate::checks::settings;
use crate::plan::arms::{differing, same_kind, same_target};

/// What a run of two arms remembers.
pub(super) struct ArmsState {
    /// The arm in force.
    pub(super) now: ArmName,
    /// How each arm's target is opened.
    pub(super) requests: [OpenRequest; 2],
    /// Whether a setting of the arms needs a restart: then each window begins after one, so that all begin alike.
    pub(super) restart: bool,
    /// What was refused in each arm and the user has on purpose.
    pub(super) forced: [Option<String>; 2],
    /// The arms as this process found them, and the values of the settings that they give; `None` until both were in force.
    pub(super) found: Option<[(ArmFound, Values); 2]>,
}

/// Values of settings as the target states them; `None` if it has no such setting.
pub(super) type Values = BTreeMap<String, Option<String>>;

impl ArmsState {
    pub(super) fn new(a: &OpenRequest, b: &OpenRequest) -> ArmsState {
        let requests = [a.clone(), b.clone()];
        ArmsState { now: ArmName::A, requests, restart: false, forced: [None, None], found: None }
    }

    /// What was refused in the arm in force.
    pub(super) fn forced(&self) -> Option<&String> {
        self.forced[self.now as usize].as_ref()
    }

    /// What has changed in the target of the arm in force, which is `info` now, since it was found; for a note.
    pub(super) fn changed(&self, arms: &Arms, info: &TargetInfo) -> Option<Note> {
        // loadline itself changes settings of a private server from test to test; nobody else does.
        let found = self.found.as_ref().filter(|_| !is_temporary(&arms.get(self.now).target))?;
        settings::changed_since(&found[self.now as usize].0.target, info)
    }

    /// Settings that are not as they were when arm `now` was first in force, though the arms differ in them.
    pub(super) fn not_in_force(&self, arms: &Arms, values: &Values, info: &TargetInfo) -> Vec<String> {
        let Some(found) = &self.found else { return Vec::new() };
        let of = |arm: ArmName| &found[arm as usize];
        let ((own, own_values), (other, other_values)) = (of(self.now), of(self.now.other()));
        let given = &arms.get(self.now).settings;
        // loadline itself may change what an arm leaves as it is, such as the size of the cache.
        let lost = |name: &String, now: &Option<String>| {
            Some(now) != own_values.get(name) && (given.contains_key(name) || Some(now) == other_values.get(name))
        };
        let shown = |value: Option<&String>| value.map_or("unknown", String::as_str).to_owned();
        let said = |name: &String, now: Option<&String>, was: Option<&String>| {
            format!("{name} is {}, and was {} when the arm was first in force", shown(now), shown(was))
        };
        let mut wrong: Vec<String> = values
            .iter()
            .filter(|(name, now)| lost(name, now))
            .map(|(name, now)| said(name, now.as_ref(), own_values.get(name).and_then(Option::as_ref)))
            .collect();
        if arms.get(self.now).switch.is_some() && same_target(arms) {
            let differing = differing(&own.target.settings, &other.target.settings).into_iter();
            let values = differing.map(|name| (name, info.settings.get(name), own.target.settings.get(name)));
            wrong.extend(values.filter(|(_, now, was)| now != was).map(|(name, now, was)| said(name, now, was)));
        }
        wrong
    }
}

/// Whether something in which the arms differ can change how much redo the rows of `workload` are, which were calibrated in arm A.
pub(super) fn may_change_redo(arms: &Arms, workload: &PlannedWorkload) -> bool {
    let parameters = |arm: &Arm| {
        let of = arm.workloads.iter().find(|w| w.code == workload.code);
        of.map(|w| w.parameters.clone())
    };
    let (a, b) = (&arms.a, &arms.b);
    let differ = a.settings != b.settings || a.switch != b.switch || !same_target(arms);
    same_kind(arms) && (differ || parameters(a) != parameters(b))
}

#[cfg(test)]
mod tests {
    use loadline_model::Driver;

    use super::*;

    fn arms() -> Arms {
        let workload = PlannedWorkload::of("LGWR-LAT1", Driver::Client);
        let arm = || Arm {
            label: String::new(),
            target: "postgres-temp:".into(),
            settings: BTreeMap::new(),
            workloads: vec![workload.clone()],
            switch: None,
        };
        Arms { a: arm(), b: arm(), pairs: 6, precision: None, looks: vec![6], margin: 0.02, seed: 1 }
    }

    #[test]
    fn only_what_arms_differ_in_may_change_redo() {
        let may = |arms: &Arms| may_change_redo(arms, &arms.a.workloads[0]);
        let mut differ = arms();
        differ.b.workloads[0].driver = Driver::Database;
        assert!(!may(&differ), "a driver changes no redo");
        differ.b.workloads[0].parameters.insert("rows".into(), 2);
        assert!(may(&differ));
        let mut differ = arms();
        differ.b.settings.insert("wal_compression".into(), "on".into());
        assert!(may(&differ));
        differ.b.target = "mariadb-temp:".into();
        assert!(!may(&differ), "each is calibrated");
    }

    #[test]
    fn a_setting_that_is_lost_is_named() {
        let mut arms = arms();
        arms.b.settings.insert("work_mem".into(), "8MB".into());
        let values = |work_mem: &str| Values::from([("work_mem".to_owned(), Some(work_mem.to_owned()))]);
        let info =
            |jit: &str| TargetInfo { settings: [("jit".to_owned(), jit.to_owned())].into(), ..TargetInfo::default() };
        let found = |jit, work_mem| (ArmFound { target: info(jit), doctor: Vec::new() }, values(work_mem));
        let request = OpenRequest::new("postgres-temp:", std::path::PathBuf::new());
        let mut state = ArmsState::new(&request, &request);
        state.found = Some([found("on", "4MB"), found("off", "8MB")]);
        let wrong =
            |state: &ArmsState, arms: &Arms, work_mem, jit| state.not_in_force(arms, &values(work_mem), &info(jit));
        // Arm A leaves it as it is: only the value of B is wrong there.
        assert!(wrong(&state, &arms, "4MB", "on").is_empty() && wrong(&state, &arms, "5MB", "on").is_empty());
        assert!(wrong(&state, &arms, "8MB", "on")[0].contains("work_mem is 8MB, and was 4MB"));
        state.now = ArmName::B;
        assert!(wrong(&state, &arms, "8MB", "on").is_empty(), "no command says that jit must be off");
        assert!(wrong(&state, &arms, "5MB", "off")[0].contains("work_mem is 5MB"));
        (arms.a.switch, arms.b.switch) = (Some("a".into()), Some("b".into()));
        assert!(wrong(&state, &arms, "8MB", "on")[0].contains("jit is on, and was off"));
    }
}
