//! What a run of the in-database block brought, and the two clocks.

use loadline_model::Latencies;

use super::block;
use super::session::{Row, Session};
use crate::clock;
use crate::error::TargetError;
use crate::session::SliceEnd;

/// How long an offset is used before it is measured anew, ns.
const REFRESH_NS: u64 = 5_000_000_000;
/// By how much two machines' clocks may drift apart: 200 µs per second.
const DRIFT: f64 = 200e-6;

/// What one run of the block returned.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) next: i64,
    first_start_us: i64,
    start_us: i64,
    commit_us: i64,
    end_us: i64,
    /// Whether the last transaction crossed the end of the slice; it is then not among the times.
    pub(super) crossed: bool,
    pub(super) transaction: Latencies,
    pub(super) commit: Latencies,
}

impl Brought {
    /// Reads the block's three texts.
    pub(super) fn parse(row: &Row) -> Result<Brought, TargetError> {
        let wrong = || TargetError::Statement("the in-database block returned what loadline cannot read".into());
        let text = |i: usize| row.get(i).cloned().flatten().unwrap_or_default();
        let moments = text(0);
        let numbers: Vec<i64> = moments.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let &[next, first_start_us, start_us, commit_us, end_us, crossed] = numbers.as_slice() else {
            return Err(wrong());
        };
        let ordered = first_start_us <= start_us && start_us <= commit_us && commit_us <= end_us;
        let (transaction, commit) = (times(&text(1)).ok_or_else(wrong)?, times(&text(2)).ok_or_else(wrong)?);
        if !ordered || transaction.count() != commit.count() || !(0..=1).contains(&crossed) {
            return Err(wrong());
        }
        Ok(Brought { next, first_start_us, start_us, commit_us, end_us, crossed: crossed == 1, transaction, commit })
    }

    pub(super) fn first_start_ns(&self, clock: &ServerClock) -> u64 {
        clock.own_ns(self.first_start_us)
    }

    /// The last transaction.
    pub(super) fn end(&self, clock: &ServerClock) -> SliceEnd {
        SliceEnd {
            start_ns: clock.own_ns(self.start_us),
            commit_ns: clock.own_ns(self.commit_us),
            end_ns: clock.own_ns(self.end_us),
        }
    }
}

/// Times written as «µs count;».
fn times(text: &str) -> Option<Latencies> {
    let mut out = Latencies::default();
    for entry in text.split(';').filter(|e| !e.is_empty()) {
        let (us, count) = entry.split_once(' ')?;
        let (us, count): (u64, u64) = (us.parse().ok()?, count.parse().ok()?);
        // A slice of a second holds fewer; more is no answer of the block.
        if count > 10_000_000 {
            return None;
        }
        (0..count).for_each(|_| out.record(us.saturating_mul(1000)));
    }
    Some(out)
}

/// The server's clock against [`crate::clock`].
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerClock {
    /// Server's time since [`block::EPOCH`] less ours, ns.
    offset_ns: i128,
    /// Half the round trip in which it was measured, ns: it is no further off than that.
    uncertainty_ns: u64,
    measured_ns: u64,
}

impl ServerClock {
    /// Asks `probes` times and keeps the answer that came back fastest.
    pub(super) fn measure(session: &mut dyn Session, probes: u32) -> Result<ServerClock, TargetError> {
        let sql = block::clock();
        let mut best: Option<ServerClock> = None;
        for _ in 0..probes {
            let before = clock::now_ns();
            let told = session.value(&sql)?;
            let after = clock::now_ns();
            let Some(server) = told.and_then(|t| t.parse::<i64>().ok()) else {
                return Err(TargetError::Statement("the server did not tell its time".into()));
            };
            let round_trip = after.saturating_sub(before);
            let middle = i128::from(before) + i128::from(round_trip / 2);
            let offset_ns = i128::from(server) * 1000 - middle;
            let probe = ServerClock { offset_ns, uncertainty_ns: round_trip / 2, measured_ns: after };
            if best.is_none_or(|b| probe.uncertainty_ns < b.uncertainty_ns) {
                best = Some(probe);
            }
        }
        best.ok_or_else(|| TargetError::Statement("the server's clock was not asked".into()))
    }

    /// Measures anew when it is time, and keeps what is then the more certain.
    pub(super) fn refresh(&mut self, session: &mut dyn Session) -> Result<(), TargetError> {
        let age = clock::now_ns().saturating_sub(self.measured_ns);
        if age < REFRESH_NS {
            return Ok(());
        }
        let new = ServerClock::measure(session, 3)?;
        if (new.uncertainty_ns as f64) <= self.uncertainty_ns as f64 + age as f64 * DRIFT {
            *self = new;
        }
        Ok(())
    }

    /// A moment of ours on the server's clock, µs.
    pub(super) fn server_us(&self, ns: u64) -> i64 {
        i64::try_from((i128::from(ns) + self.offset_ns) / 1000).unwrap_or(i64::MAX)
    }

    /// A moment of the server's (µs) on our clock, ns.
    fn own_ns(&self, server_us: i64) -> u64 {
        u64::try_from(i128::from(server_us) * 1000 - self.offset_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(moments: &str, transactions: &str, commits: &str) -> Row {
        [moments, transactions, commits].map(|t| (!t.is_empty()).then(|| t.to_owned())).into()
    }

    #[test]
    fn what_the_block_writes_is_read() {
        let clock = ServerClock { offset_ns: 1_000_000_000, uncertainty_ns: 0, measured_ns: 0 };
        let b = Brought::parse(&row("8 1000100 1000330 1000340 1000400 1", "100 4;110 3;", "70 6;75 1;")).unwrap();
        assert_eq!((b.next, b.crossed, b.transaction.count(), b.transaction.sum_ns()), (8, true, 7, 730_000));
        assert_eq!((b.commit.count(), b.commit.max_ns()), (7, Some(75_000)));
        assert_eq!(b.first_start_ns(&clock), 100_000);
        assert_eq!(b.end(&clock), SliceEnd { start_ns: 330_000, commit_ns: 340_000, end_ns: 400_000 });
        // A slice whose first transaction crosses the end: an empty text is NULL.
        assert_eq!(Brought::parse(&row("1 5 5 6 7 1", "", "")).unwrap().transaction.count(), 0);
    }

    #[test]
    fn what_does_not_add_up_is_an_error() {
        for bad in [
            row("", "", ""),
            row("1 5 5 6 7", "", ""),
            row("1 5 5 6 7 2", "", ""),
            row("1 6 5 6 7 1", "", ""),
            row("1 5 5 8 7 1", "", ""),
            row("1 5 5 6 7 0", "3 2;", "3 1;"),
            row("1 5 5 6 7 0", "3;", "3 1;"),
            row("1 5 5 6 7 0", "3 99999999999;", "3 99999999999;"),
            vec![],
        ] {
            assert!(Brought::parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_texts_of_a_full_block_fit() {
        assert!(block::MAX_DISTINCT * "2147483647 999999;".len() <= block::MAX_TEXT);
    }

    proptest! {
        #[test]
        fn no_answer_panics(a in "[0-9 ]{0,40}", b in "[0-9 ;]{0,20}", c in "\\PC{0,20}") {
            let _ = Brought::parse(&row(&a, &b, &c));
        }
    }
}
