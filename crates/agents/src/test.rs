//! A test over agents: sessions are opened, clocks are measured, all start at one moment, and what they counted is fetched.

use std::ops::Range;

use crate::coordinator::{AgentsError, Coordinator, Failure, MOST_SKEW_NS, Member, SILENT_NS};
use crate::hub::Link;
use crate::message::{Answer, Command, JobsOrder, Order};
use crate::offset::Offset;

/// All agents must have the order to start, or that of the window, by then, ns after it is given.
pub(crate) const LEAD_NS: u64 = 400_000_000;
/// How long sessions may take to open, ns.
const OPEN_NS: u64 = 120_000_000_000;
/// How long jobs may take to end after the window, beyond its length, and agents to send all their counts, ns.
const END_NS: u64 = 40_000_000_000;
/// Agents whose counts are fetched at a time: the hub holds them meanwhile.
const FETCH_AT_A_TIME: usize = 8;

impl<L: Link> Coordinator<L> {
    /// Lets all agents open the target, without sessions of jobs, and measures their clocks.
    pub(crate) fn reach(&mut self, order: &JobsOrder) -> Result<(), AgentsError> {
        let who = self.which(|_| true);
        self.tell(&who, OPEN_NS, |_| Order::Open(Box::new(order.clone())), |_, _| Ok(()));
        self.all_well()?;
        self.measure_clocks(&who);
        for agent in who {
            let bound_ns = self.members.get(agent).and_then(|member| Some(member.clock?.bound_ns));
            if let Some(bound_ns) = bound_ns.filter(|bound_ns| *bound_ns > MOST_SKEW_NS) {
                self.note(agent, &Failure::TooFar(bound_ns));
            }
        }
        self.all_well()
    }

    /// Opens the sessions of `order` on the agents, and measures their clocks. `fingerprint` is of the work from a job on.
    pub(crate) fn open(&mut self, order: &JobsOrder, fingerprint: &dyn Fn(u32) -> String) -> Result<(), AgentsError> {
        self.gather()?;
        self.test += 1;
        let most: Vec<u32> = self.members.iter().map(|member| member.presence.most_jobs).collect();
        let Some(jobs) = spread(order.all_jobs, &most) else {
            return Err(AgentsError::TooManyJobs(order.all_jobs, most.into_iter().fold(0, u32::saturating_add)));
        };
        for (member, jobs) in self.members.iter_mut().zip(jobs) {
            member.part.jobs = jobs;
        }
        let (who, test) = (self.at_work(), self.test);
        let open = |member: &Member| {
            Order::Open(Box::new(JobsOrder { test, jobs: member.part.jobs.clone(), ..order.clone() }))
        };
        self.tell(&who, OPEN_NS, open, |member, answer| match answer {
            Answer::Opened(theirs) if theirs.fingerprint == fingerprint(member.part.jobs.start) => Ok(()),
            Answer::Opened(_) => Err(Failure::OtherWork),
            _ => Err(Failure::OtherAnswer),
        });
        if self.all_well().is_ok() {
            self.measure_clocks(&who);
        }
        // What did not open is ended, and one that takes long for it is not lost: the reason is another agent's.
        self.all_well().inspect_err(|_| {
            let who = self.with_jobs();
            self.round(&who, SILENT_NS, |_| Order::Jobs(Command::End { urgent: false }));
        })?;
        self.members.iter_mut().for_each(|member| member.part.clock = member.clock);
        Ok(())
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.part.jobs.is_empty())
    }

    fn at_work(&self) -> Vec<usize> {
        self.which(|member| !member.part.jobs.is_empty() && member.part.failed.is_none())
    }

    /// Tells all to start, or their window. The time of `command` must be [`LEAD_NS`] ahead.
    pub(crate) fn command(&mut self, command: Command) {
        let limit_ns = command.due_ns().map_or(SILENT_NS, |due_ns| due_ns.saturating_sub(self.link.now_ns()));
        let order = |member: &Member| {
            Order::Jobs(command.on(&member.clock.unwrap_or(Offset { ahead_ns: 0, bound_ns: u64::MAX })))
        };
        self.tell(&self.at_work(), limit_ns, order, |_, _| Ok(()));
    }

    fn with_jobs(&self) -> Vec<usize> {
        self.which(|member| !member.part.jobs.is_empty() && !member.lost)
    }

    /// Whether all that have not failed passed the window end.
    pub(crate) fn closed(&self) -> bool {
        self.parts().all(|member| member.part.closed || member.part.failed.is_some())
    }

    /// Ends the jobs, fetches what they counted, and measures the clocks again.
    pub(crate) fn stop(&mut self, window_ns: u64) {
        let (who, limit_ns) = (self.with_jobs(), window_ns.saturating_add(END_NS));
        self.tell(&who, limit_ns, |_| Order::Jobs(Command::End { urgent: false }), |_, _| Ok(()));
        // All jobs have ended: the machines are quiet, and the clocks are measured best.
        self.measure_clocks(&self.at_work());
        for some in self.at_work().chunks(FETCH_AT_A_TIME) {
            self.fetch(some.to_vec());
        }
    }

    fn fetch(&mut self, mut who: Vec<usize>) {
        let more = |member: &Member| Order::Counts(member.part.counts.len());
        let end_ns = self.link.now_ns().saturating_add(END_NS);
        while !who.is_empty() {
            let left_ns = end_ns.saturating_sub(self.link.now_ns());
            self.tell(&who, left_ns, more, |Member { clock, part, .. }, answer| {
                let Answer::Counts(text) = answer else { return Err(Failure::OtherAnswer) };
                part.skew_ns = part.clock.zip(*clock).map(|(before, after)| before.error_until_ns(&after));
                part.counted = text.is_empty();
                part.counts += &text;
                Ok(())
            });
            who.retain(|agent| self.members.get(*agent).is_some_and(|m| !m.part.counted && m.part.failed.is_none()));
        }
    }
}

/// Spreads jobs over agents in their order, as evenly as the most jobs that each runs allow. Each gets a range, so that rows and random
/// streams are those of one process. `None`: they are too many.
fn spread(jobs: u32, most: &[u32]) -> Option<Vec<Range<u32>>> {
    // The smallest limits first: what an agent cannot run is spread over those that can.
    let mut by_limit: Vec<usize> = (0..most.len()).collect();
    by_limit.sort_by_key(|agent| most.get(*agent));
    let (mut left, mut ranges) = (jobs, vec![0..0; most.len()]);
    for (done, agent) in by_limit.iter().enumerate() {
        let (Some(range), Some(limit)) = (ranges.get_mut(*agent), most.get(*agent)) else { continue };
        range.end = left.div_ceil((most.len() - done) as u32).min(*limit);
        left -= range.end;
    }
    let mut next = 0;
    for range in &mut ranges {
        *range = next..next + range.end;
        next = range.end;
    }
    (left == 0).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_job_runs_once_and_as_evenly_as_limits_allow(
            jobs in 1u32..5000, most in prop::collection::vec(0u32..600, 1..40),
        ) {
            let Some(ranges) = spread(jobs, &most) else {
                prop_assert!(jobs > most.iter().sum(), "{jobs} are refused");
                return Ok(());
            };
            prop_assert!(ranges.iter().cloned().flatten().eq(0..jobs), "{ranges:?}");
            let highest = ranges.iter().map(|range| range.len() as u32).max().unwrap();
            for (range, limit) in ranges.iter().zip(&most) {
                let has = range.len() as u32;
                prop_assert!(has == *limit || (has < *limit && has + 1 >= highest), "{ranges:?}");
            }
        }
    }
}
