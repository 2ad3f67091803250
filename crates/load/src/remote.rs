//! Reports of jobs that run in other processes. How they are reached is another crate's.

use loadline_database::Target;
use loadline_database::machine::boot_id;
use loadline_model::Note;
use loadline_model::record::AgentFigures;
use serde::{Deserialize, Serialize};

/// Commits that the sessions of jobs made for themselves, of each instance, since before they were opened: the server counts them,
/// and the observer of this process does not know of them. They are counted at the window start, when all jobs had passed it, at the
/// window end, when all jobs had passed that, and when all had ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCommits(pub [Vec<u64>; 5]);

impl OwnCommits {
    pub fn merge(&mut self, other: &OwnCommits) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }
}

/// Reports of the jobs of other processes; empty if all of them ran in this one.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// Commits of their sessions for themselves.
    pub own: OwnCommits,
    pub processes: Vec<AgentFigures>,
}

impl Elsewhere {
    pub(crate) fn processes_here(&self) -> impl Iterator<Item = u32> {
        let machine = boot_id();
        let here = move |agent: &&AgentFigures| !agent.machine.is_empty() && agent.machine == machine;
        std::iter::once(std::process::id()).chain(self.processes.iter().filter(here).map(|agent| agent.process))
    }

    /// Ends the sessions that lost agents left on the database: they may hold locks. Returns what was done.
    #[must_use]
    pub fn end_lost(&self, target: &dyn Target) -> Vec<Note> {
        let lost = self.processes.iter().filter(|agent| agent.lost && agent.jobs > 0);
        lost.map(|agent| {
            let ended = target.end_jobs(agent.first_job..agent.first_job.saturating_add(agent.jobs), &agent.sessions);
            let (ended, failed) = ended.map_or_else(|e| (None, Some(e.to_string())), |ended| (ended, None));
            let ended = ended.map(u64::from);
            Note::LostAgent { agent: agent.name.clone(), host: agent.host.clone(), ended, failed }
        })
        .collect()
    }
}
