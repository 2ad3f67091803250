//! Counts of an agent on their way to the coordinator. Nothing is lost: histograms go bucket by bucket, sums to the nanosecond.

use loadline_load::{JobResult, OwnCommits, Tally};
use loadline_model::record::LinkUse;
use serde::{Deserialize, Serialize};

use crate::offset::Offset;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Counts of each part of the jobs.
    pub(crate) tallies: Vec<Tally>,
    /// Each job, times on the agent's clock.
    pub(crate) jobs: Vec<JobResult>,
    /// Transactions of its jobs at times on its clock.
    pub(crate) counts: Vec<(u64, u64)>,
    /// Commits of their sessions for themselves.
    pub(crate) own: OwnCommits,
    /// CPU time of its process in the window, ns.
    pub(crate) process_cpu_ns: Option<u64>,
    /// CPU time of its machine that was used in the window, %.
    pub(crate) machine_cpu_pct: Option<f64>,
    /// The busiest network link of its machine in the window.
    pub(crate) network: Option<LinkUse>,
}

impl Counted {
    pub(crate) fn tally(&self) -> Tally {
        let mut all = Tally::default();
        self.tallies.iter().for_each(|tally| all.merge(tally));
        all
    }

    pub(crate) fn text(&self) -> String {
        // Plain data with text keys: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Self::text`] made, if it is of so many jobs and adds up. Times are then on the coordinator's clock.
    pub(crate) fn read(text: &str, jobs: usize, clock: &Offset) -> Result<Counted, String> {
        let wrong = |what: &str| format!("what it counted cannot be read ({what})");
        let mut counted: Counted = serde_json::from_str(text).map_err(|e| wrong(&e.to_string()))?;
        let n = counted.jobs.len();
        if n != jobs {
            return Err(format!("it counted {n} jobs, not {jobs}"));
        }
        // What comes from elsewhere is compared with itself: the parts must add up to the whole.
        fn sum<T>(all: &[T], of: fn(&T) -> u64) -> Option<u64> {
            all.iter().try_fold(0, |sum: u64, one| sum.checked_add(of(one)))
        }
        let (jobs, tallies) = (&counted.jobs, &counted.tallies);
        let of_jobs = sum(jobs, |job| job.completed).zip(sum(jobs, |job| job.total));
        let of_tallies = sum(tallies, |tally| tally.transaction.count()).zip(sum(tallies, |tally| tally.total));
        if of_jobs.is_none() || of_jobs != of_tallies {
            return Err(wrong("its jobs do not add up to its histogram"));
        }
        let times = counted.jobs.iter_mut().flat_map(|job| {
            let ends = job.first_start_ns.iter_mut().chain([&mut job.ran_until_ns]);
            ends.chain(&mut job.intended_ns)
        });
        for ns in times.chain(counted.counts.iter_mut().map(|(at_ns, _)| at_ns)) {
            *ns = clock.to_coordinator(*ns);
        }
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_model::Latencies;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_on_the_way(
            times in prop::collection::vec(1u64..4_000_000_000_000, 0..3000), ahead in -(1i64 << 50)..1i64 << 50,
            intended in prop::collection::vec(1u64 << 51..1u64 << 52, 0..2000), open in proptest::bool::ANY,
        ) {
            let mut tally = Tally { response: open.then(Latencies::new), ..Tally::default() };
            for ns in &times {
                tally.transaction.record(*ns);
                tally.response.iter_mut().for_each(|r| r.record(*ns + 5));
            }
            // A sum of more than 64 bits.
            tally.transaction.add_sum(1 << 70, 0);
            let n = times.len() as u64;
            (tally.total, tally.per_step) = (n, vec![n / 2, n - n / 2]);
            tally.error_texts.insert("é 'x'".into(), 3);
            let job = JobResult { completed: n, total: n, intended_ns: intended, ..JobResult::default() };
            let counted = Counted { tallies: vec![Tally::default(), tally], jobs: vec![job], ..Counted::default() };
            let text = counted.text();
            let clock = Offset { ahead_ns: ahead, bound_ns: 1 };
            let read = Counted::read(&text, 1, &clock).unwrap();
            prop_assert_eq!(read.tallies.len(), 2);
            let (ours, theirs) = (&counted.tallies[1], &read.tallies[1]);
            prop_assert!(ours.transaction.histogram() == theirs.transaction.histogram());
            let sums = |tally: &Tally| [Some(&tally.transaction), tally.response.as_ref()].map(|of| of.map(|of| (of.sum_ns(), of.max_ns())));
            prop_assert_eq!(sums(ours), sums(theirs));
            prop_assert_eq!(&ours.error_texts, &theirs.error_texts);
            let intended = read.jobs[0].intended_ns.iter().map(|ns| clock.to_agent(*ns));
            prop_assert!(intended.eq(counted.jobs[0].intended_ns.iter().copied()));
            prop_assert!(Counted::read(&text, 2, &clock).is_err(), "a job is missing");
            let cut = text.get(..text.len() / 2).unwrap_or_default();
            prop_assert!(Counted::read(cut, 1, &clock).is_err(), "half of it");
        }
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let mut counted = Counted { tallies: vec![Tally::default()], ..Counted::default() };
        counted.tallies[0].transaction.record(5);
        let clock = Offset { ahead_ns: 0, bound_ns: 0 };
        let why = Counted::read(&counted.text(), 0, &clock).err().unwrap();
        assert!(why.contains("do not add up"), "{why}");
        counted.jobs = [u64::MAX, 2].map(|completed| JobResult { completed, ..JobResult::default() }).into();
        assert!(Counted::read(&counted.text(), 2, &clock).is_err(), "a sum that wraps to 1");
    }
}
