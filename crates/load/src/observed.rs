//! A target's observer for the sampler, beside the jobs of a test.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadline_collect::clock::least_disturbed;
use loadline_database::{Observer, TargetError};
use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitSample, counter};
use loadline_storage::now_ns;

use crate::schedule::Shared;

/// A snapshot is repeated if it took longer than the fastest so far by this factor and this time, ns: then somebody waited
/// for a CPU, and the moment of its counters is uncertain.
const DISTURBED: (u64, u64) = (3, 5_000_000);

/// Reads snapshots, each with the jobs' own count: a snapshot read late is compared with what the jobs had done by then.
pub(super) struct Observed {
    observer: Box<dyn Observer>,
    /// `None` for the in-database driver, whose jobs report only once a slice.
    counting: Option<Arc<Shared>>,
    fastest_ns: u64,
}

impl Observed {
    /// `fastest_ns`: how long a snapshot took before.
    pub(super) fn new(observer: Box<dyn Observer>, counting: Option<Arc<Shared>>, fastest_ns: u64) -> Observed {
        Observed { observer, counting, fastest_ns }
    }

    /// Reads a snapshot. Returns how long that took, ns, and the snapshot.
    fn read(&mut self) -> (u64, Result<Snapshot, TargetError>) {
        let completed = |shared: &Option<Arc<Shared>>| shared.as_ref().map(|s| s.completed() as f64);
        let failed = |shared: &Arc<Shared>| shared.failed_commits.load(Ordering::Relaxed) as f64;
        let (begin_ns, before) = (now_ns(), completed(&self.counting));
        let mut snapshot = self.observer.snapshot();
        let (took_ns, after) = (now_ns().saturating_sub(begin_ns), completed(&self.counting));
        if let Ok(snapshot) = &mut snapshot {
            let failed = self.counting.as_ref().map(failed);
            for (name, count) in
                [(counter::JOBS_BEFORE, before), (counter::JOBS_AFTER, after), (counter::FAILED_COMMITS, failed)]
            {
                snapshot.counters.extend(count.map(|n| (name.to_owned(), n)));
            }
        }
        (took_ns, snapshot)
    }
}

impl Observer for Observed {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let usual_ns = self.fastest_ns.saturating_mul(DISTURBED.0).saturating_add(DISTURBED.1);
        let (took_ns, snapshot) = least_disturbed(|took_ns| took_ns > usual_ns, || self.read());
        if snapshot.is_ok() {
            self.fastest_ns = self.fastest_ns.min(took_ns);
        }
        snapshot
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        self.observer.sample_waits()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    /// Takes so many ms for each snapshot, which holds its number. One transaction completes meanwhile.
    struct Slow(Vec<u64>, u64, Arc<Shared>);

    impl Observer for Slow {
        fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
            std::thread::sleep(Duration::from_millis(self.0[self.1 as usize]));
            self.1 += 1;
            self.2.progress[0].set(self.1);
            Ok(Snapshot { at_ns: self.1, ..Snapshot::default() })
        }

        fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
            Ok(None)
        }
    }

    #[test]
    fn a_disturbed_snapshot_is_read_again_and_has_the_jobs_count() {
        let shared = Arc::new(Shared::new(1, Arc::new(AtomicBool::new(false))));
        let slow = Slow(vec![0, 400, 0, 400, 500, 600], 0, Arc::clone(&shared));
        let mut observed = Observed::new(Box::new(slow), Some(shared), u64::MAX);
        let mut next = || {
            let snapshot = observed.snapshot().unwrap();
            let count = |name: &str| snapshot.counters[name];
            (snapshot.at_ns, count(counter::JOBS_BEFORE), count(counter::JOBS_AFTER))
        };
        assert_eq!(next(), (1, 0.0, 1.0));
        assert_eq!(next(), (3, 2.0, 3.0), "the second took too long");
        assert_eq!(next(), (4, 3.0, 4.0), "the shortest of three");
    }
}
