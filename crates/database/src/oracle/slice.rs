//! The result of the in-database block, and the server's clock.

use loadline_model::Latencies;

use super::block;
use super::session::{OraSession, Row};
use crate::error::TargetError;
use crate::role::SliceEnd;
use crate::server_clock::ServerClock;

/// What one run of the block returned.
#[derive(Debug)]
pub(super) struct BlockResult {
    pub(super) next: i64,
    first_start_us: i64,
    start_us: i64,
    commit_us: i64,
    end_us: i64,
    /// Whether the last transaction crossed the end of the slice; the times then exclude it.
    pub(super) crossed: bool,
    pub(super) transaction: Latencies,
    pub(super) commit: Latencies,
}

impl BlockResult {
    /// Parses the block's three texts.
    pub(super) fn parse(row: &Row) -> Result<BlockResult, TargetError> {
        let wrong = || TargetError::Statement("the in-database block returned an unreadable result".into());
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
        Ok(BlockResult {
            next,
            first_start_us,
            start_us,
            commit_us,
            end_us,
            crossed: crossed == 1,
            transaction,
            commit,
        })
    }

    pub(super) fn first_start_ns(&self, clock: &ServerClock) -> u64 {
        clock.own_ns(self.first_start_us)
    }

    /// The last transaction.
    pub(super) fn end(&self, clock: &ServerClock) -> SliceEnd {
        clock.end([self.start_us, self.commit_us, self.end_us])
    }
}

/// Parses times written as `µs count;`.
fn times(text: &str) -> Option<Latencies> {
    let mut out = Latencies::default();
    for entry in text.split(';').filter(|e| !e.is_empty()) {
        let (us, count) = entry.split_once(' ')?;
        let (us, count): (u64, u64) = (us.parse().ok()?, count.parse().ok()?);
        // A slice of a second holds fewer: no block returns more.
        if count > 10_000_000 {
            return None;
        }
        (0..count).for_each(|_| out.record(us.saturating_mul(1000)));
    }
    Some(out)
}

/// The server's time, µs since [`block::EPOCH`].
pub(super) fn read_clock(session: &mut dyn OraSession) -> Result<Option<i64>, TargetError> {
    Ok(session.value(&block::clock())?.and_then(|t| t.parse().ok()))
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
        let clock = ServerClock::ahead_by(1_000_000_000);
        let b = BlockResult::parse(&row("8 1000100 1000330 1000340 1000400 1", "100 4;110 3;", "70 6;75 1;")).unwrap();
        assert_eq!((b.next, b.crossed, b.transaction.count(), b.transaction.sum_ns()), (8, true, 7, 730_000));
        assert_eq!((b.commit.count(), b.commit.max_ns()), (7, Some(75_000)));
        assert_eq!(b.first_start_ns(&clock), 100_000);
        assert_eq!(b.end(&clock), SliceEnd { start_ns: 330_000, commit_ns: 340_000, end_ns: 400_000 });
        // A slice whose first transaction crosses the end: an empty text is NULL.
        assert_eq!(BlockResult::parse(&row("1 5 5 6 7 1", "", "")).unwrap().transaction.count(), 0);
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
            assert!(BlockResult::parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_texts_of_a_full_block_fit() {
        assert!(block::MAX_DISTINCT * "2147483647 999999;".len() <= block::MAX_TEXT);
    }

    proptest! {
        #[test]
        fn no_answer_panics(a in "[0-9 ]{0,40}", b in "[0-9 ;]{0,20}", c in "\\PC{0,20}") {
            let _ = BlockResult::parse(&row(&a, &b, &c));
        }
    }
}
