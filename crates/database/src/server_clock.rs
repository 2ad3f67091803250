//! Converts between a server's clock and [`loadline_storage::now_ns`], and evaluates the timestamps of an in-database driver.

use crate::error::TargetError;
use crate::role::{Slice, SliceEnd};

/// Age at which the offset is measured again, ns.
const REFRESH_NS: u64 = 5_000_000_000;
/// Assumed maximum drift between two machines' clocks: more than that of any quartz clock that is synchronized.
const DRIFT: f64 = 200e-6;
const REFRESH_PROBES: u32 = 3;

/// Start, commit start and end of a transaction, µs of the server's clock.
pub(crate) type Moments = [i64; 3];

/// Asks the server for its time, µs since an epoch of its own; `None` if it returned no time.
pub(crate) type Ask<'a> = &'a mut dyn FnMut() -> Result<Option<i64>, TargetError>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerClock {
    /// Server time minus our time, ns.
    offset_ns: i128,
    /// Half the round trip of the measurement, ns: the maximum error of the offset.
    uncertainty_ns: u64,
    measured_ns: u64,
}

impl ServerClock {
    /// Asks `probes` times and uses the answer with the shortest round trip.
    pub(crate) fn measure(ask: Ask<'_>, probes: u32) -> Result<ServerClock, TargetError> {
        let mut probe = || {
            let before = loadline_storage::now_ns();
            let answer = ask()?;
            let after = loadline_storage::now_ns();
            let server = answer.ok_or_else(|| TargetError::Statement("the server did not return its time".into()))?;
            let round_trip = after.saturating_sub(before);
            let middle = i128::from(before) + i128::from(round_trip / 2);
            let offset_ns = i128::from(server) * 1000 - middle;
            Ok(ServerClock { offset_ns, uncertainty_ns: round_trip / 2, measured_ns: after })
        };
        let all = (0..probes).map(|_| probe()).collect::<Result<Vec<_>, TargetError>>()?;
        let best = all.into_iter().min_by_key(|clock| clock.uncertainty_ns);
        best.ok_or_else(|| TargetError::Statement("the server's clock was not asked".into()))
    }

    /// Measures again if the offset is old, and keeps the offset with the smaller error.
    pub(crate) fn refresh(&mut self, ask: Ask<'_>) -> Result<(), TargetError> {
        let age = loadline_storage::now_ns().saturating_sub(self.measured_ns);
        if age < REFRESH_NS {
            return Ok(());
        }
        let new = ServerClock::measure(ask, REFRESH_PROBES)?;
        if (new.uncertainty_ns as f64) <= self.uncertainty_ns as f64 + age as f64 * DRIFT {
            *self = new;
        }
        Ok(())
    }

    /// Converts our time to the server's clock, µs; negative if it is before the server's epoch.
    pub(crate) fn server_us(&self, ns: u64) -> i64 {
        i64::try_from((i128::from(ns) + self.offset_ns) / 1000).unwrap_or(i64::MAX)
    }

    /// Converts the server's time (µs) to our clock, ns.
    pub(crate) fn own_ns(&self, server_us: i64) -> u64 {
        u64::try_from(i128::from(server_us) * 1000 - self.offset_ns).unwrap_or(0)
    }

    pub(crate) fn end(&self, [start, commit, end]: Moments) -> SliceEnd {
        SliceEnd { start_ns: self.own_ns(start), commit_ns: self.own_ns(commit), end_ns: self.own_ns(end) }
    }

    /// The transaction times of a slice. The last transaction crossed the end of the slice and is reported apart.
    pub(crate) fn slice(&self, moments: &[Moments]) -> Result<Slice, TargetError> {
        if !moments.as_flattened().is_sorted() {
            let back = "the server's clock went back during the measurement: its times cannot be used";
            return Err(TargetError::Statement(back.into()));
        }
        let whole = &moments[..moments.len().saturating_sub(1)];
        let mut slice = Slice {
            first_start_ns: moments.first().map_or(0, |[start, ..]| self.own_ns(*start)),
            each: Some(whole.iter().map(|[start, _, end]| [self.own_ns(*start), self.own_ns(*end)]).collect()),
            end: moments.last().map(|last| self.end(*last)),
            ..Slice::default()
        };
        for [start, commit, end] in whole {
            slice.transaction.record(end.abs_diff(*start).saturating_mul(1000));
            slice.commit.record(end.abs_diff(*commit).saturating_mul(1000));
        }
        Ok(slice)
    }

    /// A clock that is `offset_ns` ahead of ours.
    #[cfg(test)]
    pub(crate) fn ahead_by(offset_ns: i128) -> ServerClock {
        ServerClock { offset_ns, uncertainty_ns: 0, measured_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_NS: i128 = 790_000_000_123_456_000;

    #[test]
    fn the_last_transaction_is_the_one_that_crossed_the_end() {
        let clock = ServerClock::ahead_by(AHEAD_NS);
        let at = |us: i64| clock.server_us(0) + us;
        let moments = [[100, 150, 200], [210, 250, 320], [330, 340, 400]].map(|m| m.map(at));
        let slice = clock.slice(&moments).unwrap();
        assert_eq!((slice.transaction.count(), slice.transaction.sum_ns()), (2, 210_000));
        assert_eq!((slice.commit.sum_ns(), slice.commit.max_ns()), (120_000, Some(70_000)));
        assert_eq!(slice.each, Some(vec![[100_000, 200_000], [210_000, 320_000]]));
        assert_eq!(slice.first_start_ns, 100_000);
        assert_eq!(slice.end, Some(SliceEnd { start_ns: 330_000, commit_ns: 340_000, end_ns: 400_000 }));
    }

    #[test]
    fn a_clock_that_goes_back_is_an_error() {
        let clock = ServerClock::ahead_by(0);
        for moments in [[[10, 12, 15], [20, 22, 21]], [[10, 12, 15], [14, 22, 25]], [[10, 9, 15], [20, 22, 25]]] {
            assert!(clock.slice(&moments).unwrap_err().to_string().contains("went back"));
        }
    }

    #[test]
    fn the_fastest_answer_wins_and_no_answer_is_an_error() {
        let mut asked = 0;
        let clock = ServerClock::measure(
            &mut || {
                asked += 1;
                // Slow answers have a large error.
                let slow = asked != 3;
                if slow {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                Ok(Some((loadline_storage::now_ns() / 1000) as i64 + if slow { 5_000_000 } else { 1_000_000 }))
            },
            5,
        )
        .unwrap();
        let off = clock.server_us(loadline_storage::now_ns()) - (loadline_storage::now_ns() / 1000) as i64;
        assert!((999_000..1_100_000).contains(&off), "{off}");
        assert!(ServerClock::measure(&mut || Ok(None), 1).is_err());
        assert!(ServerClock::measure(&mut || Ok(Some(1)), 0).is_err());
    }
}
