//! The nodes of a target over which the jobs of a test are spread.

use loadline_database::{Facts, Work};
use loadline_model::plan::{Jobs, Plan, PlannedWorkload};

use super::StudyError;
use crate::event::{Event, Listener};
use crate::plan::{PlanError, planned};

/// Nodes on which a workload can run: all, but those that take writes only if it writes.
pub(super) fn most(workload: &PlannedWorkload, facts: &Facts) -> u32 {
    let writes = planned(workload, &Default::default(), 1 << 20)
        .is_ok_and(|(found, params)| Work::new(found, params, 0, 0.0).program.writes());
    let read_only = if writes { facts.read_only_nodes } else { 0 };
    facts.nodes.saturating_sub(read_only).max(1)
}

/// Numbers of nodes over which `workload` is measured, rising: those of the plan that it can run on, by default all at once.
pub(super) fn counts(plan: &Plan, workload: &PlannedWorkload, facts: &Facts) -> Vec<u32> {
    let most = most(workload, facts);
    if plan.node_counts.is_empty() {
        return vec![most];
    }
    plan.node_counts.iter().copied().filter(|n| *n <= most).collect()
}

/// Checks the plan's numbers of nodes, and says what is left out.
pub(super) fn fit(plan: &Plan, facts: &Facts, listener: &mut dyn Listener) -> Result<(), StudyError> {
    if let Some(more) = plan.node_counts.iter().find(|n| **n > facts.nodes) {
        return Err(PlanError::Value(format!(
            "--nodes {more}: the target has {}; a node is added with --node, to a private server with a number in its URL \
             (see `loadline targets`)",
            if facts.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", facts.nodes) }
        ))
        .into());
    }
    for workload in &plan.workloads {
        let fitting = counts(plan, workload, facts);
        let left_out: Vec<String> =
            plan.node_counts.iter().filter(|n| !fitting.contains(n)).map(u32::to_string).collect();
        if !left_out.is_empty() {
            let code = &workload.code;
            listener.on(Event::Warning(format!(
                "{code} is not measured over {} nodes: it writes, and the last {} are read-only",
                left_out.join(", "),
                facts.read_only_nodes
            )));
        }
        if let Jobs::List(list) = &plan.jobs {
            let few: Vec<String> = fitting
                .iter()
                .flat_map(|n| list.iter().filter(move |jobs| *jobs < n).map(move |jobs| format!("{jobs} over {n}")))
                .collect();
            if !few.is_empty() {
                listener.on(Event::Warning(format!(
                    "{}: fewer jobs than nodes are not measured ({})",
                    workload.code,
                    few.join(", ")
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use loadline_model::plan::{JobsSpec, PlanSpec};

    use super::*;
    use crate::event::Silent;
    use crate::make_plan;

    fn plan(workload: &str, nodes: Option<Vec<u32>>) -> Plan {
        let workload = Some(vec![workload.to_owned()]);
        let jobs = Some(JobsSpec::List(vec![1, 4]));
        make_plan(&PlanSpec { target: Some("null:".into()), workload, nodes, jobs, ..PlanSpec::default() }).unwrap()
    }

    #[test]
    fn writes_stay_on_the_nodes_that_take_them() {
        let target = loadline_database::open(&loadline_database::OpenRequest::new("null:", std::env::temp_dir()));
        let facts = Facts { nodes: 3, read_only_nodes: 2, ..target.unwrap().facts().clone() };
        let of = |code: &str, nodes| {
            let plan = plan(code, nodes);
            counts(&plan, &plan.workloads[0], &facts)
        };
        assert_eq!(of("LGWR-LAT1", None), [1]);
        assert_eq!(of("TP-LOOKUP", None), [3]);
        assert_eq!(of("LGWR-LAT1", Some(vec![3, 1])), [1]);
        assert_eq!(of("TP-LOOKUP", Some(vec![3, 1])), [1, 3]);
        let all = Facts { read_only_nodes: 0, ..facts.clone() };
        assert_eq!(counts(&plan("LGWR-LAT1", None), &plan("LGWR-LAT1", None).workloads[0], &all), [3]);
        let refused = fit(&plan("TP-LOOKUP", Some(vec![4])), &facts, &mut Silent).unwrap_err().to_string();
        assert!(refused.contains("the target has 3 nodes"), "{refused}");
    }

    #[test]
    fn numbers_of_nodes_that_mean_nothing_are_refused() {
        for (nodes, says) in [(vec![0], "between 1"), (vec![2, 2], "given twice"), (vec![], "[]")] {
            let spec = PlanSpec { target: Some("null:".into()), nodes: Some(nodes), ..PlanSpec::default() };
            let e = make_plan(&spec).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
    }
}
