//! How long an agent works for a run of which it hears nothing.
//!
//! The coordinator says once a second that the run goes on; it is the only message while a window is measured. An agent that
//! misses it for [`LEASE_NS`] ends its jobs, and cancels the sessions of those that have not ended [`CANCEL_AFTER_NS`] later. So
//! nothing keeps loading a database for 5 s after its run, its hub or its network is gone.

/// Time between two beats of the coordinator, ns.
pub(crate) const BEAT_NS: u64 = 1_000_000_000;
/// Without a beat for this long an agent ends its jobs, ns.
pub(crate) const LEASE_NS: u64 = 2_500_000_000;
/// Then the sessions of jobs that have not ended after this long are cancelled, ns.
pub(crate) const CANCEL_AFTER_NS: u64 = 2_000_000_000;

const _: () = assert!(LEASE_NS + CANCEL_AFTER_NS < 5_000_000_000 && LEASE_NS > 2 * BEAT_NS);

/// The lease of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    heard_ns: u64,
}

impl Lease {
    /// A lease that begins now.
    pub(crate) fn new(now_ns: u64) -> Lease {
        Lease { heard_ns: now_ns }
    }

    /// The coordinator was heard.
    pub(crate) fn renew(&mut self, now_ns: u64) {
        self.heard_ns = self.heard_ns.max(now_ns);
    }

    /// When it ends, unless it is renewed, ns.
    pub(crate) fn ends_ns(&self) -> u64 {
        self.heard_ns.saturating_add(LEASE_NS)
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.ends_ns()
    }

    /// Time since the coordinator was heard, s.
    pub(crate) fn silent_s(&self, now_ns: u64) -> f64 {
        now_ns.saturating_sub(self.heard_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlives_two_lost_beats_and_not_three() {
        let mut lease = Lease::new(0);
        lease.renew(BEAT_NS);
        assert!(!lease.is_over(3 * BEAT_NS), "two beats are lost");
        assert!(lease.is_over(4 * BEAT_NS), "three are");
        lease.renew(0);
        assert_eq!(lease.ends_ns(), BEAT_NS + LEASE_NS, "an old beat does not shorten it");
    }
}
