//! Nodes of the target and agents, over which the jobs of a test are spread.

use std::sync::Arc;

use loadline_database::{Facts, Nodes, RemainingNodes, Runs, Target, Work, kind_of};
use loadline_model::TestRecord;
use loadline_model::format::counted;
use loadline_model::plan::{OnNodeLoss, Plan, PlannedWorkload};
use loadline_model::record::AgentFigures;
use loadline_workload::Workloads;
use thiserror::Error;

use super::{Context, Study, StudyError};
use crate::figures::nodes::are;
use crate::instrument::data_files;
use crate::live::{Event, Listener};
use crate::plan::sweep::SweepPoints;
use crate::plan::{PlanError, work_of};

/// Loss that ends a run.
#[derive(Debug, Error)]
pub enum Loss {
    #[error(
        "{} lost: the run ends here, and a test in which that happened is stored as refused. To measure on over the nodes that \
         are left, begin a run with --on-node-loss continue; a resumed run needs all nodes",
        are(.0)
    )]
    Nodes(Vec<String>),
    #[error("{} lost, and {why}: the run ends here, and a test in which that happened is stored as refused", are(.lost))]
    LastNode { lost: Vec<String>, why: String },
    #[error(
        "lost in test {test}, which is refused: {why}. The run ends here: start others in their place and resume it, or resume it with \
         fewer (--agents)"
    )]
    Agents { test: u32, why: String },
}

/// The agents that were lost in a test, if some were.
pub(super) fn lost_in(record: &TestRecord) -> Option<Loss> {
    let lost: Vec<AgentFigures> = record.by_agent().iter().filter(|agent| agent.lost).cloned().collect();
    (!lost.is_empty()).then(|| Loss::Agents { test: record.test, why: AgentFigures::failures(&lost) })
}

/// Nodes on which `work` can run: all, but those that take writes only if it writes.
pub(super) fn most(work: &Work, facts: &Facts) -> u32 {
    let read_only = if work.program.writes() { facts.read_only_nodes } else { 0 };
    facts.nodes.saturating_sub(read_only).max(1)
}

/// Numbers of nodes over which `workload` is measured, rising: those of the plan that it can run on, by default all at once.
pub(super) fn counts(known: &Workloads, plan: &Plan, workload: &PlannedWorkload, facts: &Facts) -> Vec<u32> {
    let most = work_of(known, plan, workload, &Default::default()).map_or(facts.nodes, |work| most(&work, facts));
    if plan.node_counts().is_empty() {
        return vec![most];
    }
    plan.node_counts().iter().copied().filter(|n| *n <= most).collect()
}

/// Checks that the targets that `study` would open have the plan's numbers of nodes.
pub(super) fn check(study: &Study) -> Result<(), StudyError> {
    for request in study.requests() {
        let nodes = kind_of(&request.url)?.check_url(&request.url)? + request.nodes.len() as u32;
        if let Some(n) = study.plan.node_counts().iter().find(|n| **n > nodes) {
            return Err(PlanError::Value(format!(
                "--nodes {n}: the target has {}; a node is added with --node, to a private server with a number in its URL (see \
                 `loadline targets`)",
                counted(nodes as usize, "node")
            ))
            .into());
        }
    }
    Ok(())
}

/// Says which of the plan's numbers of nodes are left out of an open target; an error if the plan's agents cannot reach it.
pub(super) fn check_open(
    plan: &Plan,
    known: &Workloads,
    facts: &Facts,
    listener: &mut dyn Listener,
) -> Result<(), PlanError> {
    if plan.agents().is_some() && facts.runs == Runs::InProcess {
        let text = "runs inside loadline's own process: agents on other machines cannot load it";
        return Err(PlanError::Value(format!("{} {text}", plan.target)));
    }
    for workload in &plan.workloads {
        let fitting = counts(known, plan, workload, facts);
        let left_out: Vec<String> =
            plan.node_counts().iter().filter(|n| !fitting.contains(n)).map(u32::to_string).collect();
        if !left_out.is_empty() {
            let code = &workload.code;
            listener.on(Event::Warning(format!(
                "{code} is not measured over {} nodes: it writes, and the last {} are read-only",
                left_out.join(", "),
                facts.read_only_nodes
            )));
        }
        let jobs = |n: &u32| plan.jobs_over(*n).unwrap_or_default();
        let few = fitting.iter().flat_map(|n| jobs(n).into_iter().filter(|jobs| jobs < n).map(move |jobs| (jobs, n)));
        let few: Vec<String> = few.map(|(jobs, n)| format!("{jobs} over {n}")).collect();
        if !few.is_empty() {
            let (code, few) = (&workload.code, few.join(", "));
            listener.on(Event::Warning(format!("{code}: fewer jobs than nodes are not measured ({few})")));
        }
    }
    Ok(())
}

/// Rest of a target that has lost nodes; `None` if it has lost none, or cannot say.
pub(super) fn without_lost(target: &dyn Target) -> Option<RemainingNodes> {
    target.abilities().nodes.and_then(Nodes::without_lost)
}

impl Context<'_> {
    /// Planned tests over numbers of nodes that were there when the run began, and were not measured.
    pub(super) fn not_measured(&self, all_nodes: &Facts) -> Vec<String> {
        let (plan, mut out) = (&self.manifest.plan, Vec::new());
        for workload in plan.workloads.iter().filter(|w| SweepPoints::new(&self.known, w).over_jobs) {
            for nodes in counts(&self.known, plan, workload, all_nodes) {
                if (1..=plan.repeat).any(|repetition| self.next_jobs(workload, repetition, nodes).is_some()) {
                    out.push(format!("{} over {nodes} nodes", workload.code));
                }
            }
        }
        out
    }

    /// Looks for lost nodes between tests, and leaves them if the plan says so. Returns whether there were any.
    pub(super) fn left_lost_nodes(&mut self) -> Result<bool, StudyError> {
        let Some(remaining) = without_lost(self.side.target.as_ref()) else { return Ok(false) };
        let when = format!("before test {}", self.next_test());
        self.leave_nodes(remaining, &when)?;
        Ok(true)
    }

    /// Goes on with what is left of the target, unless the plan says that the run ends, or nothing can be measured there ([`Loss`]).
    /// Clusters that are compared must be the same throughout, so a run of pairs ends.
    pub(super) fn leave_nodes(&mut self, remaining: RemainingNodes, when: &str) -> Result<(), StudyError> {
        // Also if the run ends: its tables are removed at a node that answers.
        match remaining.target {
            Ok(target) => self.side.target = Arc::from(target),
            Err(why) => return Err(Loss::LastNode { lost: remaining.lost, why }.into()),
        }
        let plan = &self.manifest.plan;
        if plan.on_node_loss() != Some(OnNodeLoss::Continue) || plan.paired.is_some() {
            return Err(Loss::Nodes(remaining.lost).into());
        }
        let left = self.side.target.facts().nodes;
        let left_out: Vec<String> = plan.node_counts().iter().filter(|n| **n > left).map(u32::to_string).collect();
        self.side.read_back(&Default::default())?;
        self.side.data_files = data_files(self.side.target.as_ref(), &self.side.info);
        let note = format!(
            "{} lost {when}: {} left",
            are(&remaining.lost),
            if left == 1 { "1 node is".to_owned() } else { format!("{left} nodes are") }
        );
        let skipped = match &left_out[..] {
            [] => String::new(),
            numbers => format!("; tests over {} nodes are skipped from here on", numbers.join(", ")),
        };
        self.warn(format!("{note} for later tests{skipped}"));
        self.manifest.target.notes.push(format!("{note}{skipped}"));
        self.side.without = Some(match self.side.without.take() {
            Some(before) => format!("{before}; {note}"),
            None => note,
        });
        Ok(self.folder.write_manifest(&self.manifest)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{planned, target};

    #[test]
    fn writes_stay_on_the_nodes_that_take_them() {
        let plan = |workload: &str, more: &str| {
            planned(&format!("target = 'null:'\nworkload = ['{workload}']\njobs = [1, 4]\n{more}"))
        };
        let null = target("null:", &std::env::temp_dir());
        let facts = Facts { nodes: 3, read_only_nodes: 2, ..null.facts().clone() };
        let of = |code: &str, nodes| {
            let plan = plan(code, nodes);
            counts(&Workloads::default(), &plan, &plan.workloads[0], &facts)
        };
        assert_eq!([of("LGWR-LAT1", ""), of("TP-LOOKUP", "")], [[1], [3]]);
        assert_eq!(of("LGWR-LAT1", "nodes = [3, 1]"), [1]);
        assert_eq!(of("TP-LOOKUP", "nodes = [3, 1]"), [1, 3]);
        let each = plan("TP-LOOKUP", "jobs-per-node = true");
        assert_eq!((each.jobs_over(1), each.jobs_over(3)), (Some(vec![1, 4]), Some(vec![3, 12])));
        let all = Facts { read_only_nodes: 0, ..facts.clone() };
        let log = plan("LGWR-LAT1", "");
        assert_eq!(counts(&Workloads::default(), &log, &log.workloads[0], &all), [3]);
    }
}
