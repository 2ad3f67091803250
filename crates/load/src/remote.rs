//! Jobs that run in other processes. How they are reached is another crate's; here they are opened, started and ended like those
//! of this process.

use std::sync::Arc;

use loadline_database::Hindrance;
use loadline_model::Snapshot;
use loadline_model::record::AgentFigures;
use loadline_model::snapshot::counter;
use serde::{Deserialize, Serialize};

use crate::client_job::Timing;
use crate::crew::Crew;
use crate::job::{JobResult, Tally};
use crate::schedule::{Schedule, Shared};
use crate::warmup::Counts;
use crate::{Edges, Place, Request, TestError};

/// Opens jobs in other processes.
pub trait RemoteJobs: Send + Sync {
    /// Opens the sessions of all jobs of a test. What the jobs do is then in `shared`, which is brought up to date until the
    /// window starts, and after its end; in the window nothing is heard of them.
    ///
    /// # Errors
    /// [`TestError::Remote`] names who cannot, and why; [`TestError::AgentsLost`] who is gone: the others may run the test. No session
    /// of those that answer is open then.
    fn open(&self, request: &Request, shared: &Arc<Shared>) -> Result<Box<dyn RemoteCrew>, TestError>;

    /// Processes that are not lost.
    fn left(&self) -> usize;
}

/// Jobs in other processes, with open sessions. If it is dropped, they end.
pub trait RemoteCrew {
    /// How far ahead an order must be given, ns.
    fn lead_ns(&self) -> u64;

    /// Tells all jobs when to start.
    fn start(&mut self, timing: Timing);

    /// Tells all jobs when the window is.
    fn set_window(&mut self, schedule: Schedule);

    /// Ends all jobs and collects what they counted.
    fn end(self: Box<Self>) -> Ended;
}

/// Commits that the sessions of jobs made for themselves, of each instance, since before they were opened: the server counts them,
/// and the observer of this process does not know of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCommits {
    /// At the window start.
    pub open: Vec<u64>,
    /// When all jobs had passed it.
    pub passed_open: Vec<u64>,
    /// At the window end.
    pub close: Vec<u64>,
    /// When all jobs had passed it.
    pub passed_close: Vec<u64>,
    /// When all jobs had ended.
    pub end: Vec<u64>,
}

impl OwnCommits {
    /// Adds those of another process.
    pub fn merge(&mut self, other: &OwnCommits) {
        let all = [
            (&mut self.open, &other.open),
            (&mut self.passed_open, &other.passed_open),
            (&mut self.close, &other.close),
            (&mut self.passed_close, &other.passed_close),
            (&mut self.end, &other.end),
        ];
        for (mine, theirs) in all {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    /// Takes them out of the commits that the snapshots have.
    pub(crate) fn subtract_from(&self, edges: &mut Edges, after: &mut Result<Snapshot, String>) {
        let of_edges = [
            (&mut edges.at_open, &self.open),
            (&mut edges.passed_open, &self.passed_open),
            (&mut edges.at_close, &self.close),
            (&mut edges.passed_close, &self.passed_close),
        ];
        of_edges.into_iter().for_each(|(edge, own)| subtract(&mut edge.snapshot, own));
        subtract(after, &self.end);
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

/// What all jobs of a test did.
pub struct Ended {
    /// What their sessions committed for themselves, if the jobs ran in other processes.
    pub own: OwnCommits,
    /// What they counted together, for each part of them.
    pub tallies: Vec<Tally>,
    /// Each job, in the order of their numbers; times are on the clock of this machine.
    pub jobs: Vec<JobResult>,
    /// Jobs on a thread, at most.
    pub sessions_per_thread: u32,
    /// Transactions of all jobs, at times about 0.1 s apart.
    pub counts: Counts,
    /// What each process did.
    pub agents: Vec<AgentFigures>,
}

/// The jobs of a test, wherever they are.
pub(crate) enum AnyCrew {
    Here(Crew),
    Remote(Box<dyn RemoteCrew>),
}

impl AnyCrew {
    /// Opens all sessions.
    pub(crate) fn open(request: &Request, shared: &Arc<Shared>) -> Result<AnyCrew, TestError> {
        Ok(match &request.place {
            Place::Here | Place::Part { .. } => AnyCrew::Here(Crew::open(request, shared)?),
            Place::Remote(jobs) => AnyCrew::Remote(jobs.open(request, shared)?),
        })
    }

    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, AnyCrew::Remote(_))
    }

    /// Threads of this machine that run the jobs.
    pub(crate) fn tasks(&self) -> &[u32] {
        match self {
            AnyCrew::Here(crew) => crew.tasks(),
            AnyCrew::Remote(_) => &[],
        }
    }

    /// What keeps the jobs of this process from ending their transactions, if the database says so.
    pub(crate) fn hindrance(&self) -> Option<Hindrance> {
        match self {
            AnyCrew::Here(crew) => crew.hindrance(),
            AnyCrew::Remote(_) => None,
        }
    }

    /// How far ahead an order must be given, ns.
    pub(crate) fn lead_ns(&self) -> u64 {
        match self {
            AnyCrew::Here(_) => 0,
            AnyCrew::Remote(crew) => crew.lead_ns(),
        }
    }

    pub(crate) fn start(&mut self, timing: Timing) {
        match self {
            AnyCrew::Here(crew) => crew.start(timing),
            AnyCrew::Remote(crew) => crew.start(timing),
        }
    }

    /// Jobs of this process find the window in [`Shared`].
    pub(crate) fn set_window(&mut self, schedule: Schedule) {
        if let AnyCrew::Remote(crew) = self {
            crew.set_window(schedule);
        }
    }

    /// Ends all jobs. `counts`: those that were made here. Calls `meanwhile` while it waits for jobs of this process.
    pub(crate) fn end(self, counts: Counts, meanwhile: &mut dyn FnMut()) -> Ended {
        match self {
            AnyCrew::Here(crew) => {
                let sessions_per_thread = crew.sessions_per_thread();
                let (tallies, jobs) = crew.end_with(meanwhile);
                Ended { own: OwnCommits::default(), tallies, jobs, sessions_per_thread, counts, agents: Vec::new() }
            }
            AnyCrew::Remote(crew) => crew.end(),
        }
    }
}
