//! How far the clock of an agent is ahead of the coordinator's, from round trips over the hub.
//!
//! Of a round trip four times are known: sent and returned on the coordinator's clock, received and answered on the agent's.
//! The agent's clock is ahead by ((received - sent) + (answered - returned)) / 2, as in RFC 5905, section 8. That is off by
//! half of the trip's time on the way, if all of it was on one leg, and by no more. So the shortest of many trips is taken.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    pub(crate) sent_ns: u64,
    pub(crate) received_ns: u64,
    pub(crate) answered_ns: u64,
    pub(crate) returned_ns: u64,
}

impl RoundTrip {
    /// Time on the way, both legs, ns.
    pub(crate) fn on_the_way_ns(&self) -> u64 {
        let all = self.returned_ns.saturating_sub(self.sent_ns);
        all.saturating_sub(self.answered_ns.saturating_sub(self.received_ns))
    }
}

/// How far a clock is ahead, with a bound of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// The agent's clock minus the coordinator's, ns.
    pub(crate) ahead_ns: i64,
    /// The true value is within this of it, ns.
    pub(crate) bound_ns: u64,
}

impl Offset {
    /// The offset by the shortest of these round trips. `None` without any.
    pub(crate) fn from_trips(trips: &[RoundTrip]) -> Option<Offset> {
        let best = trips.iter().min_by_key(|trip| trip.on_the_way_ns())?;
        let leg = |later: u64, earlier: u64| i128::from(later) - i128::from(earlier);
        let twice = leg(best.received_ns, best.sent_ns) + leg(best.answered_ns, best.returned_ns);
        let ahead_ns = i64::try_from(twice.div_euclid(2)).ok()?;
        // One more: the half is rounded.
        Some(Offset { ahead_ns, bound_ns: best.on_the_way_ns().div_ceil(2) + 1 })
    }

    /// A time of the coordinator on the agent's clock, ns.
    pub(crate) fn to_agent(self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ahead_ns)
    }

    /// A time of the agent on the coordinator's clock, ns.
    pub(crate) fn to_coordinator(self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ahead_ns.saturating_neg())
    }

    /// Upper bound of the error that `self` had until `later` was measured, ns, if the clocks drifted apart one way.
    pub(crate) fn error_until_ns(&self, later: &Offset) -> u64 {
        self.bound_ns.max(later.ahead_ns.abs_diff(self.ahead_ns).saturating_add(later.bound_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trip(sent_ns: u64, ahead_ns: i64, legs: [u64; 2], thinking: u64) -> RoundTrip {
        let received_ns = (sent_ns + legs[0]).saturating_add_signed(ahead_ns);
        let answered_ns = received_ns + thinking;
        RoundTrip { sent_ns, received_ns, answered_ns, returned_ns: sent_ns + legs[0] + thinking + legs[1] }
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            ahead in -4_000_000_000_000i64..4_000_000_000_000, at in 5_000_000_000_000u64..9_000_000_000_000,
            legs in prop::collection::vec((0u64..50_000_000, 0u64..50_000_000, 0u64..9_000_000), 1..30),
        ) {
            let trips: Vec<RoundTrip> = legs.iter().map(|(a, b, t)| trip(at, ahead, [*a, *b], *t)).collect();
            let offset = Offset::from_trips(&trips).unwrap();
            prop_assert!(offset.ahead_ns.abs_diff(ahead) <= offset.bound_ns, "{offset:?}");
            prop_assert_eq!(Offset::from_trips(&[]), None);
            let shortest = legs.iter().map(|(a, b, _)| a + b).min().unwrap();
            prop_assert!(offset.bound_ns <= shortest / 2 + 2, "no worse than the shortest trip");
            prop_assert!(offset.to_coordinator(offset.to_agent(at)) == at);
        }

        #[test]
        fn drift_between_two_measurements_is_in_the_bound(
            ahead in -1_000_000i64..1_000_000, drift in -5_000_000i64..5_000_000, part in 0.0f64..1.0,
            legs in prop::collection::vec((0u64..2_000_000, 0u64..2_000_000), 2),
        ) {
            let at = 1 << 40;
            let of = |ahead, leg: (u64, u64)| Offset::from_trips(&[trip(at, ahead, [leg.0, leg.1], 0)]).unwrap();
            let (before, after) = (of(ahead, legs[0]), of(ahead + drift, legs[1]));
            let between = ahead + (drift as f64 * part) as i64;
            prop_assert!(before.ahead_ns.abs_diff(between) <= before.error_until_ns(&after));
        }
    }
}
