//! The in-database driver: a transaction program as one anonymous PL/SQL block with the commit in its
//! loop. It needs no privilege to create procedures and leaves nothing behind.
//!
//! Text is in `oracle.toml`, without what differs by workload.

use loadline_model::Latencies;
use loadline_workload::{FACTORS, MODULI, POOL_BYTES};

use super::knowledge::KNOWLEDGE;
use super::session::{MAX_RAW, OraSession, Row, commit, text};
use crate::error::TargetError;
use crate::procedure::{self, Body};
use crate::role::Slice;
use crate::server_clock::ServerClock;
use crate::work::Work;

/// A PL/SQL RAW holds 32,767 bytes, the pool has 65,536. It is bound in pieces that begin at multiples of
/// this and overlap by more than a payload.
const PIECE_STRIDE: usize = 30_000;
const PIECE_BYTES: usize = 32_767;
const _: () = assert!(PIECE_BYTES - PIECE_STRIDE >= MAX_RAW as usize);

/// Longest VARCHAR2 in PL/SQL.
pub(super) const MAX_TEXT: usize = 32_767;
/// Distinct times after which a block ends: each takes at most 18 characters (`2147483647 99999;`
/// and one spare), so that all fit [`MAX_TEXT`].
const MAX_DISTINCT: usize = MAX_TEXT / 18;

/// The pool's pieces in the order in which [`run`] binds them.
pub(super) fn pieces(pool: &[u8]) -> Vec<&[u8]> {
    (0..pool.len()).step_by(PIECE_STRIDE).map(|at| &pool[at..pool.len().min(at + PIECE_BYTES)]).collect()
}

/// The query for the server's time, µs since the epoch of the block's moments.
pub(super) fn clock() -> String {
    KNOWLEDGE.plsql.text("clock", &[])
}

pub(super) fn run(work: &Work) -> String {
    let Body { declarations, text: body, .. } = procedure::body(work, &KNOWLEDGE.dialect, 2);
    let pieces = (0..POOL_BYTES.div_ceil(PIECE_STRIDE)).map(|i| format!("  l_pool({i}) := :pool_{i};\n"));
    block(
        "slice",
        &[
            ("rows", if work.program.reads() { "  l_rows PLS_INTEGER;\n" } else { "" }),
            ("more_functions", &if body.contains("draw_31(") { drawing() } else { String::new() }),
            ("max_text", &MAX_TEXT.to_string()),
            ("max_distinct", &MAX_DISTINCT.to_string()),
            ("pieces", &pieces.collect::<String>()),
            ("commit", commit(work.program.commit)),
            ("declarations", &declarations),
            ("body", &body),
        ],
    )
}

/// A block that runs the loop of [`run`] without statement and commit `iterations` times and returns
/// the time of one iteration, ns.
pub(super) fn overhead(iterations: u32) -> String {
    block("overhead", &[("iterations", &iterations.to_string())])
}

fn block(name: &str, parts: &[(&str, &str)]) -> String {
    let piece_bytes = PIECE_BYTES.to_string();
    KNOWLEDGE.plsql.text(name, &[parts, &[("piece_bytes", piece_bytes.as_str())]].concat())
}

/// The function that draws a number ([`loadline_workload::draw`]), for blocks that need it.
fn drawing() -> String {
    let [m0, m1, m2] = MODULI.map(|n| n.to_string());
    let [f0, f1] = FACTORS.map(|n| n.to_string());
    KNOWLEDGE.plsql.text("drawing", &[("m0", &m0), ("m1", &m1), ("m2", &m2), ("f0", &f0), ("f1", &f1)])
}

/// Result of one run of the block, its three texts: the next sequence number, and its part of the slice. That has an end if the last
/// transaction crossed the end of the slice; the times then exclude it.
pub(super) fn parse(row: &Row, clock: &ServerClock) -> Result<(i64, Slice), TargetError> {
    checked(row, clock)
        .ok_or_else(|| TargetError::Statement("the in-database block returned an unreadable result".into()))
}

fn checked(row: &Row, clock: &ServerClock) -> Option<(i64, Slice)> {
    let numbers = text(row, 0)?.split(' ').map(|n| n.parse().ok()).collect::<Option<Vec<i64>>>()?;
    let &[next, first, start, commit, end, crossed @ 0..=1] = numbers.as_slice() else { return None };
    // An empty text is NULL.
    let [transaction, commits] = [1, 2].map(|i| times(text(row, i).unwrap_or_default()));
    let (transaction, commits) = (transaction?, commits?);
    if ![first, start, commit, end].is_sorted() || transaction.count() != commits.count() {
        return None;
    }
    let end = (crossed == 1).then(|| clock.end([start, commit, end]));
    let first_start_ns = clock.own_ns(first);
    Some((next, Slice { first_start_ns, transaction, commit: commits, end, ..Slice::default() }))
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

pub(super) fn read_clock(session: &mut dyn OraSession) -> Result<Option<i64>, TargetError> {
    Ok(session.value(&clock())?.and_then(|t| t.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::role::SliceEnd;
    use proptest::prelude::*;

    use loadline_workload::{PAYLOAD_STRIDE, Pool, payload_offset};

    #[test]
    fn pieces_give_the_bytes_that_other_drivers_bind() {
        let pool = Pool::new(1, 3, Default::default());
        let pieces = pieces(&pool);
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|p| p.len() <= PIECE_BYTES));
        let payload = &KNOWLEDGE.dialect.language.payload;
        assert_eq!(payload.matches(&PIECE_STRIDE.to_string()).count(), 2, "{payload}");
        for bytes in [16, 950, MAX_RAW] {
            let offsets = (POOL_BYTES - bytes as usize) as u64;
            for seq in (0..200_000).step_by(7) {
                // The arithmetic of the block.
                let offset = (seq * PAYLOAD_STRIDE % offsets) as usize;
                let (piece, at) = (offset / PIECE_STRIDE, offset % PIECE_STRIDE);
                let want = payload_offset(seq, bytes);
                assert_eq!(pieces[piece][at..at + bytes as usize], pool[want..want + bytes as usize]);
            }
        }
    }

    fn row(moments: &str, transactions: &str, commits: &str) -> Row {
        [moments, transactions, commits].map(|t| (!t.is_empty()).then(|| t.to_owned())).into()
    }

    fn read(row: &Row) -> Result<(i64, Slice), TargetError> {
        parse(row, &ServerClock::ahead_by(0))
    }

    #[test]
    fn what_the_block_writes_is_read() {
        let (next, slice) = read(&row("8 1000100 1000330 1000340 1000400 1", "100 4;110 3;", "70 6;75 1;")).unwrap();
        assert_eq!((next, slice.transaction.count(), slice.transaction.sum_ns()), (8, 7, 730_000));
        assert_eq!((slice.commit.count(), slice.commit.max_ns()), (7, Some(75_000)));
        let end = SliceEnd { start_ns: 1_000_330_000, commit_ns: 1_000_340_000, end_ns: 1_000_400_000 };
        assert_eq!((slice.first_start_ns, slice.end), (1_000_100_000, Some(end)));
        // A slice whose first transaction crosses the end: an empty text is NULL.
        assert_eq!(read(&row("1 5 5 6 7 1", "", "")).unwrap().1.transaction.count(), 0);
    }

    #[test]
    fn what_does_not_add_up_is_an_error() {
        for [moments, transactions, commits] in cases::<[String; 3]>("oracle-slices-refused") {
            assert!(read(&row(&moments, &transactions, &commits)).is_err(), "{moments}");
        }
    }

    #[test]
    fn the_texts_of_a_full_block_fit() {
        assert!(MAX_DISTINCT * "2147483647 999999;".len() <= MAX_TEXT);
    }

    proptest! {
        #[test]
        fn no_answer_panics(a in "[0-9 ]{0,40}", b in "[0-9 ;]{0,20}", c in "\\PC{0,20}") {
            let _ = read(&row(&a, &b, &c));
        }
    }
}
