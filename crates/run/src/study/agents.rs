//! Agents that are lost in a run.

use loadline_database::Target;
use loadline_model::plan::OnAgentLoss;
use loadline_model::record::AgentFigures;

use super::{Context, StudyError, are};
use crate::event::{Event, Listener};

/// Ends the sessions that lost agents left on the database: they may hold locks. Returns what was done, in words.
pub(super) fn end_lost(target: &dyn Target, agents: &[AgentFigures]) -> Vec<String> {
    let lost = agents.iter().filter(|agent| agent.lost);
    lost.map(|agent| {
        let who = format!("agent {} on {}", agent.name, agent.host);
        match target.end_jobs(agent.first_job..agent.first_job.saturating_add(agent.jobs)) {
            Ok(Some(0)) => format!("{who} left no sessions on the database"),
            Ok(Some(n)) => format!("{n} sessions that {who} left on the database were ended"),
            Ok(None) => format!(
                "the database cannot tell which sessions {who} left: they end with its process, or when it no longer hears of the run"
            ),
            Err(e) => format!("the sessions that {who} left on the database could not be ended: {e}"),
        }
    })
    .collect()
}

impl Context {
    /// Goes on without agents that were lost in a test, or ends the run.
    ///
    /// # Errors
    /// [`StudyError::AgentsLost`] if the plan says that the run ends.
    pub(super) fn leave_agents(
        &self,
        lost: Vec<String>,
        test: u32,
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        if lost.is_empty() {
            return Ok(());
        }
        match self.manifest.plan.agents.as_ref().map(|agents| agents.on_loss) {
            Some(OnAgentLoss::Continue) => {
                let text = format!("{} lost in test {test}: later tests are spread over the others", are(&lost));
                listener.on(Event::Warning(text));
                Ok(())
            }
            _ => Err(StudyError::AgentsLost(lost)),
        }
    }
}
