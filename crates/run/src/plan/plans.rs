//! Plans that come with loadline: files of the repository, built into the program.

use loadline_model::format::did_you_mean;

use super::{PlanError, PlanSpec, planfile};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPlan {
    pub name: &'static str,
    /// The file as it is, TOML with comments, for users to copy and change.
    pub text: &'static str,
}

/// The plan of a run that names none.
pub const DEFAULT_PLAN: &str = "quick";

/// All of them, the shortest first. To add one, write its file into `plans/` and name it here.
pub static PLANS: &[NamedPlan] = &[
    NamedPlan { name: "quick", text: include_str!("../../../../plans/quick.toml") },
    NamedPlan { name: "compare", text: include_str!("../../../../plans/compare.toml") },
    NamedPlan { name: "full", text: include_str!("../../../../plans/full.toml") },
    NamedPlan { name: "log-writer", text: include_str!("../../../../plans/log-writer.toml") },
    NamedPlan { name: "storage", text: include_str!("../../../../plans/storage.toml") },
    NamedPlan { name: "data-load", text: include_str!("../../../../plans/data-load.toml") },
    NamedPlan { name: "data-analytics", text: include_str!("../../../../plans/data-analytics.toml") },
    NamedPlan { name: "transaction-processing", text: include_str!("../../../../plans/transaction-processing.toml") },
    NamedPlan { name: "procedural-code", text: include_str!("../../../../plans/procedural-code.toml") },
    NamedPlan { name: "cluster", text: include_str!("../../../../plans/cluster.toml") },
    NamedPlan { name: "aging", text: include_str!("../../../../plans/aging.toml") },
];

/// The plan called `name`, in any case; an error has the known names and the nearest.
pub fn find(name: &str) -> Result<&'static NamedPlan, PlanError> {
    PLANS.iter().find(|p| p.name.eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
        let hint = did_you_mean(name, PLANS.iter().map(|p| p.name));
        let known = PLANS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        let own = "a plan file of your own: loadline run FILE";
        PlanError::Value(format!("there is no plan '{name}'{hint} (known: {known}; {own})"))
    })
}

impl NamedPlan {
    pub fn spec(&self) -> Result<PlanSpec, PlanError> {
        let broken = |e: String| PlanError::Value(format!("loadline's own plan '{}' cannot be read: {e}", self.name));
        planfile::parse(self.text).map_err(broken)
    }

    /// One-line description: the first sentence of its file.
    pub fn summary(&self) -> String {
        let comment: Vec<_> = self.text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        let comment = comment.join(" ");
        comment.find(". ").map_or(comment.as_str(), |end| &comment[..=end]).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use loadline_model::Plan;
    use loadline_model::column::TABLES;
    use loadline_model::plan::{Jobs, PlannedWorkload};
    use loadline_workload::CATALOGUE;

    use super::*;
    use crate::make_plan;

    fn on(name: &str, target: &str) -> Result<Plan, PlanError> {
        make_plan(&PlanSpec { target: Some(target.into()), ..find(name)?.spec()? })
    }

    fn codes(plan: &Plan) -> BTreeSet<&str> {
        let planned = plan.workloads.iter().map(|w| w.code.as_str());
        planned.chain(plan.skipped.iter().map(|s| s.code.as_str())).collect()
    }

    #[test]
    fn every_plan_is_a_plan_on_every_target_that_needs_no_address() {
        for named in PLANS {
            for target in ["sqlite:", "postgres-temp:", "mariadb-temp:", "mysql-temp:"] {
                let made = on(named.name, target);
                // A database without a language of its own has no procedural code.
                if (named.name, target) == ("procedural-code", "sqlite:") {
                    let e = made.unwrap_err().to_string();
                    let count = e.matches("no stored procedures").count();
                    assert!(e.contains("PLS-ADD, PLS-FIBO") && (1..=2).contains(&count), "grouped: {e}");
                } else {
                    assert!(!made.unwrap().workloads.is_empty(), "{} on {target}", named.name);
                }
            }
            let summary = named.summary();
            assert!((20..140).contains(&summary.len()) && summary.ends_with('.'), "{}: {summary}", named.name);
        }
    }

    #[test]
    fn every_plan_in_the_repository_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter_map(|n| n.strip_suffix(".toml").map(str::to_owned))
            .collect();
        let mut known: Vec<&str> = PLANS.iter().map(|p| p.name).collect();
        files.sort_unstable();
        known.sort_unstable();
        assert_eq!(files, known, "name every file of plans/ in crates/run/src/plan/plans.rs");
    }

    #[test]
    fn the_quick_plan_goes_through_all_groups() {
        let all: BTreeSet<String> = TABLES.iter().map(|table| table.group.to_owned()).collect();
        for target in ["postgres-temp:", "mariadb-temp:", "mysql-temp:"] {
            let plan = on(DEFAULT_PLAN, target).unwrap();
            assert!(plan.skipped.is_empty(), "{:?}", plan.skipped);
            let group = |w: &PlannedWorkload| loadline_workload::find(&w.code).unwrap().group.clone();
            let found: BTreeSet<String> = plan.workloads.iter().map(group).collect();
            assert!(found.is_superset(&all), "{found:?} on {target}");
        }
    }

    #[test]
    fn the_full_plan_leaves_no_workload_out() {
        let plan = on("Full", "sqlite:").unwrap();
        assert_eq!(
            codes(&plan),
            CATALOGUE.iter().map(|w| w.code.as_str()).collect(),
            "name the rest in plans/full.toml"
        );
        assert_eq!((plan.duration_s, plan.repeat), (300.0, 1));
    }

    #[test]
    fn the_log_writer_plan_doubles_its_jobs() {
        let plan = on("Log-Writer", "sqlite:").unwrap();
        assert_eq!(codes(&plan), BTreeSet::from(["LGWR-LAT1", "LGWR-LAT25", "LGWR-LAT125", "LGWR-THR"]));
        let Jobs::List(jobs) = &plan.jobs else { panic!("{:?}", plan.jobs) };
        assert!(jobs.len() > 4 && jobs[0] == 1 && jobs.windows(2).all(|w| w[1] == 2 * w[0]), "{jobs:?}");
    }
}
