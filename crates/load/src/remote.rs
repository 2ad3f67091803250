//! Jobs that run in other processes. How they are reached is another crate's; here they are opened, started and ended like those
//! of this process.

use std::sync::Arc;

use loadline_database::Target;
use loadline_database::machine::boot_id;
use loadline_model::record::AgentFigures;
use loadline_model::snapshot::counter;
use loadline_model::{Note, Snapshot};
use serde::{Deserialize, Serialize};

use crate::schedule::Shared;
use crate::{Request, RunningJobs, TestError, WindowReadings};

/// Opens jobs in other processes.
pub trait RemoteJobs: Send + Sync {
    /// Opens the sessions of all jobs of a test. What the jobs do is then in `shared`, which is brought up to date until the
    /// window starts, and after its end; in the window nothing is heard of them.
    ///
    /// # Errors
    /// [`TestError::Remote`] names who cannot, and why. No session of those that answer is open then.
    fn open(&self, request: &Request, shared: &Arc<Shared>) -> Result<Box<dyn RunningJobs>, TestError>;
}

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

    /// Takes them out of the commits that the snapshots have.
    pub(crate) fn subtract_from(&self, readings: &mut WindowReadings, after: &mut Result<Snapshot, String>) {
        let WindowReadings { at_start, after_start, at_end, after_end } = readings;
        let readings = [at_start, after_start, at_end, after_end].map(|reading| &mut reading.snapshot);
        readings.into_iter().chain([after]).zip(&self.0).for_each(|(snapshot, own)| subtract(snapshot, own));
    }
}

fn subtract(snapshot: &mut Result<Snapshot, String>, own: &[u64]) {
    let Ok(snapshot) = snapshot else { return };
    if let Some(commits) = snapshot.counters.get_mut(counter::COMMITS) {
        *commits -= own.iter().sum::<u64>() as f64;
    }
    if snapshot.nodes.len() == own.len() {
        for (node, own) in snapshot.nodes.iter_mut().zip(own) {
            node.entry(counter::COMMITS.to_owned()).and_modify(|commits| *commits -= *own as f64);
        }
    }
}

/// Reports of the jobs of other processes; empty if all of them ran in this one.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// Commits of their sessions for themselves.
    pub own: OwnCommits,
    /// Figures of each process.
    pub processes: Vec<AgentFigures>,
}

impl Elsewhere {
    /// loadline's processes on this machine.
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
