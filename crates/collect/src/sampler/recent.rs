//! The newest readings of a sampler, for those who watch a test. They read what it has anyway.

use std::sync::{Arc, Mutex, PoisonError};

use loadline_model::snapshot::WaitProfile;

use super::worker::Shared;
use super::{Point, Rates};

/// Readings closer than this give no rate of a second: window start and end are read beside those of each second, and others between. ns.
const APART_NS: u64 = 800_000_000;
/// Readings looked at for one that is far enough from the newest.
const BACK: usize = 16;

/// The newest readings of a running sampler.
#[derive(Debug)]
pub struct Recent {
    shared: Arc<Mutex<Shared>>,
    /// Wait samples that were handed out already.
    waits: usize,
}

/// Readings of the last second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Of the operating system.
    pub rates: Rates,
    /// Waits sampled since the call before.
    pub waits: WaitProfile,
}

impl Recent {
    pub(super) fn new(shared: Arc<Mutex<Shared>>) -> Recent {
        Recent { shared, waits: 0 }
    }

    /// The newest second. Holds up the sampler's thread for some microseconds and asks nobody.
    pub fn second(&mut self) -> Second {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waits = WaitProfile::default();
        shared.read.wait_samples.iter().skip(self.waits).for_each(|(_, sample)| waits.add(sample));
        self.waits = shared.read.wait_samples.len();
        Second { rates: rates(&shared.read.points).unwrap_or_default(), waits }
    }
}

/// Between the newest point and the last one well before it.
fn rates(points: &[Point]) -> Option<Rates> {
    let newest = points.last()?.system;
    let mut before = points.iter().rev().take(BACK).map(|p| p.system);
    before.find(|a| a.at_ns.saturating_add(APART_NS) <= newest.at_ns).map(|a| a.rates_until(&newest))
}

#[cfg(test)]
mod tests {
    use loadline_model::snapshot::WaitSample;

    use super::*;
    use crate::os::CpuTimes;
    use crate::sampler::System;

    #[test]
    fn rates_are_those_of_the_last_second_and_waits_are_handed_out_once() {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let mut recent = Recent::new(Arc::clone(&shared));
        assert_eq!(recent.second(), Second::default(), "nothing was read yet");
        let point = |at_ns: u64, user: u64, idle: u64| {
            let cpu = CpuTimes::parse(&format!("cpu {user} 0 0 {idle} 0 0 0 0 0 0\n")).unwrap();
            Point { system: System { at_ns, cpu: Some(cpu), ..System::default() }, snapshot: None }
        };
        let sample = |n: u32| WaitSample { sessions: [("CPU".to_owned(), n)].into(), ..WaitSample::default() };
        {
            let mut shared = shared.lock().unwrap();
            shared.read.points = vec![point(0, 0, 0), point(1_000_000_000, 30, 70), point(1_001_000_000, 30, 70)];
            shared.read.wait_samples = vec![(1, sample(2)), (2, sample(4))];
        }
        let second = recent.second();
        assert_eq!(
            second.rates.cpu.map(|c| c.busy_pct.round()),
            Some(30.0),
            "not the reading of the window start beside it"
        );
        assert_eq!((second.waits.samples, second.waits.sessions["CPU"]), (2, 6));
        assert_eq!(recent.second().waits, WaitProfile::default());
    }
}
