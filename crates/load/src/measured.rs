//! Measurements of a test: the jobs' counts, the database's counters at fixed moments, what was beside them, and reports of jobs that
//! ran in other processes (how these are reached is another crate's).

use std::time::SystemTime;

use loadline_collect::os::Server;
use loadline_collect::{Collected, Surroundings, WindowReading};
use loadline_database::Target;
use loadline_database::machine::boot_id;
use loadline_model::record::AgentFigures;
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Note, Snapshot};
use loadline_storage::now_ns;
use serde::{Deserialize, Serialize};

use crate::job::{JobResult, Tally};
use crate::schedule::{SECOND_NS, Schedule, course_step_ns};
use crate::warmup::{Counts, Load, WarmedUp};

#[derive(Debug)]
pub struct Measured {
    pub schedule: Schedule,
    /// Wall-clock time of the window start.
    pub opened_at: SystemTime,
    pub warmup: WarmedUp,
    /// Counts of warm-up and window.
    pub counts: Counts,
    pub jobs: Vec<JobResult>,
    /// Transactions completed in a window before this one that does not count.
    pub completed_before: u64,
    pub merged: Tally,
    /// Counts of each population's jobs, in the order of [`loadline_model::JobLoad::populations`].
    pub populations: Vec<Tally>,
    /// Counters before the jobs connected.
    pub before: Result<Snapshot, String>,
    pub readings: WindowReadings,
    /// Counters after the jobs disconnected.
    pub after: Result<Snapshot, String>,
    pub collected: Collected,
    /// Surroundings, if anybody looks at them.
    pub around: Option<Around>,
    pub elsewhere: Elsewhere,
}

/// Surroundings of a test: read when all jobs had passed window start and window end, by a thread that does nothing else
/// then.
#[derive(Debug)]
pub struct Around {
    /// At window start and window end.
    pub readings: [Surroundings; 2],
    pub server: Server,
    /// loadline's on this machine.
    pub own: Vec<u32>,
}

impl Measured {
    pub fn waits(&self) -> WaitProfile {
        self.collected.waits_between(self.schedule.open_ns, self.schedule.close_ns)
    }

    /// Snapshots of the counters that could be read, with their names in a run folder.
    pub fn snapshots(&self) -> impl Iterator<Item = (&'static str, &Snapshot)> {
        let readings = &self.readings;
        let named = [
            ("before", &self.before),
            ("open", &readings.at_start.snapshot),
            ("passed open", &readings.after_start.snapshot),
            ("close", &readings.at_end.snapshot),
            ("passed close", &readings.after_end.snapshot),
            ("after", &self.after),
        ];
        named.into_iter().filter_map(|(name, snapshot)| Some((name, snapshot.as_ref().ok()?)))
    }

    pub fn per_second(&self) -> Vec<u64> {
        let steps = SECOND_NS / course_step_ns(self.schedule.window_ns());
        self.merged.per_step.chunks(steps as usize).map(|steps| steps.iter().sum()).collect()
    }

    /// Load of the window in values of 0.1 s. In-database jobs publish once a second only: see [`Measured::per_second`].
    pub fn load(&self) -> Load {
        self.counts.load(self.schedule.open_ns, self.schedule.close_ns, self.jobs.len() as u32, None)
    }
}

/// Counters at window start and window end. Each is read twice: on time, for counters that change continuously (log
/// position, operating system), and again when all jobs have published their counters (commits, syncs), which can
/// take as long as their current transaction.
#[derive(Debug)]
pub struct WindowReadings {
    pub at_start: WindowReading,
    pub at_end: WindowReading,
    pub after_start: WindowReading,
    pub after_end: WindowReading,
}

impl WindowReadings {
    pub(crate) fn unread_because(text: &str) -> WindowReadings {
        let reading = WindowReading::of_database(now_ns(), Err(text.to_owned()));
        WindowReadings {
            at_start: reading.clone(),
            at_end: reading.clone(),
            after_start: reading.clone(),
            after_end: reading,
        }
    }

    /// Takes `own` out of the commits that these snapshots and the one `after` the jobs have.
    pub(crate) fn without(mut self, own: &OwnCommits, after: &mut Result<Snapshot, String>) -> WindowReadings {
        let WindowReadings { at_start, after_start, at_end, after_end } = &mut self;
        let readings = [at_start, after_start, at_end, after_end].map(|reading| &mut reading.snapshot);
        readings.into_iter().chain([after]).zip(&own.0).for_each(|(snapshot, own)| subtract(snapshot, own));
        self
    }

    /// Why the counters could not be read, if so.
    pub fn unread(&self) -> Option<String> {
        let all = [&self.at_start, &self.after_start, &self.at_end, &self.after_end];
        let why = all.iter().find_map(|e| e.snapshot.as_ref().err())?;
        Some(format!("the database's counters could not be read: {why}"))
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
