//! The in-database driver: a transaction program as one anonymous PL/SQL block with the commit in its
//! loop. It needs no privilege to create procedures and leaves nothing behind.
//!
//! Its text is in `oracle.toml`, without what differs by workload.

use std::borrow::Cow;

use loadline_model::Latencies;
use loadline_workload::{Effect, FACTORS, Kernel, MODULI, PAYLOAD_STRIDE, POOL_BYTES, Template, VarType};

use super::knowledge::KNOWLEDGE;
use super::session::{OraSession, Row, text};
use super::sql::{MAX_RAW, commit, first_rows, insert_all, quoted, table_name};
use crate::error::TargetError;
use crate::kernels;
use crate::procedure::{self, Body, Dialect, Line};
use crate::server_clock::Moments;
use crate::work::Work;

/// A PL/SQL RAW holds 32,767 bytes, the pool has 65,536. It is bound in pieces that begin at multiples of
/// this and overlap by more than a payload.
pub(super) const PIECE_STRIDE: usize = 30_000;
const PIECE_BYTES: usize = 32_767;
const _: () = assert!(PIECE_BYTES - PIECE_STRIDE >= MAX_RAW as usize);

/// Longest VARCHAR2 in PL/SQL.
pub(super) const MAX_TEXT: usize = 32_767;
/// Distinct times after which a block ends: each takes at most 18 characters (`2147483647 99999;`
/// and one spare), so that all fit [`MAX_TEXT`].
pub(super) const MAX_DISTINCT: usize = MAX_TEXT / 18;

/// Moments are µs since this time, in the block and in loadline.
pub(super) const EPOCH: &str = "TIMESTAMP '2000-01-01 00:00:00.000000 +00:00'";

/// The pool's pieces in the order in which [`run`] binds them.
pub(super) fn pieces(pool: &[u8]) -> Vec<&[u8]> {
    (0..pool.len()).step_by(PIECE_STRIDE).map(|at| &pool[at..pool.len().min(at + PIECE_BYTES)]).collect()
}

/// The query for the server's time, µs since [`EPOCH`].
pub(super) fn clock() -> String {
    format!("SELECT {} FROM (SELECT SYSTIMESTAMP - {EPOCH} AS s FROM DUAL)", micros("s"))
}

/// An interval in µs.
fn micros(interval: &str) -> String {
    let part = |unit: &str| format!("EXTRACT({unit} FROM {interval})");
    format!(
        "ROUND(((({} * 24 + {}) * 60 + {}) * 60 + {}) * 1000000)",
        part("DAY"),
        part("HOUR"),
        part("MINUTE"),
        part("SECOND")
    )
}

/// The block that runs a slice.
pub(super) fn run(work: &Work) -> String {
    let Body { declarations, text: body, .. } = procedure::body(work, &PlSql, 2);
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
    let (piece_bytes, micros) = (PIECE_BYTES.to_string(), micros("l_since"));
    let mut all = vec![("piece_bytes", piece_bytes.as_str()), ("epoch", EPOCH), ("micros", &micros)];
    all.extend(parts);
    KNOWLEDGE.plsql.text(name, &all)
}

/// The function that draws a number ([`loadline_workload::draw`]), for blocks that need it.
fn drawing() -> String {
    let [m0, m1, m2] = MODULI.map(|n| n.to_string());
    let [f0, f1] = FACTORS.map(|n| n.to_string());
    KNOWLEDGE.plsql.text("drawing", &[("m0", &m0), ("m1", &m1), ("m2", &m2), ("f0", &f0), ("f1", &f1)])
}

/// PL/SQL.
struct PlSql;

impl Dialect for PlSql {
    fn table(&self, work: &Work, table: &str) -> String {
        quoted(&table_name(work, table))
    }

    fn variable(&self, name: &str) -> String {
        quoted(&format!("V_{}", name.to_uppercase()))
    }

    fn declaration(&self, variable: &str, kind: VarType) -> String {
        let kind = match kind {
            VarType::Int => "NUMBER".to_owned(),
            VarType::Bytes => format!("RAW({MAX_RAW})"),
        };
        format!("{variable} {kind};")
    }

    fn first_key(&self) -> &'static str {
        "l_first_key"
    }

    fn payload(&self, sequence: &str, offsets: u64, bytes: u32) -> String {
        // A NUMBER holds 38 digits.
        let offset = format!("MOD({sequence} * {PAYLOAD_STRIDE}, {offsets})");
        let piece = format!("l_pool(TRUNC({offset} / {PIECE_STRIDE}))");
        format!("UTL_RAW.SUBSTR({piece}, MOD({offset}, {PIECE_STRIDE}) + 1, {bytes})")
    }

    fn draw_start(&self) -> &'static str {
        "l_draw"
    }

    fn new_key(&self, sequence: &str) -> String {
        format!("l_new_key + {sequence}")
    }

    fn draw_31(&self, sequence: &str, salt: u64) -> String {
        format!("draw_31({sequence}, {salt})")
    }

    /// A cursor FOR loop, which fetches 100 rows at a time.
    fn query(&self, number: usize, place: &str, sql: &str, effect: Effect) -> Vec<Line> {
        let row = format!("l_row_{number}");
        let mut lines = vec![
            Line(0, "l_rows := 0;".into()),
            Line(0, format!("FOR {row} IN ({sql}) LOOP")),
            Line(1, "l_rows := l_rows + 1;".into()),
            Line(0, "END LOOP;".into()),
        ];
        lines.extend(
            effect.rows().into_iter().flat_map(|rows| count_check("l_rows", &format!("{place} returned"), rows)),
        );
        lines
    }

    fn first_rows(&self, rows: u64, after: u64) -> String {
        first_rows(rows, after)
    }

    fn compute(&self, kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
        let recursive = KNOWLEDGE.plsql.text("fibonacci", &[]);
        kernels::compute(["pl", "plsql"], [&recursive, "fibonacci"], kernel, times, sequence)
    }

    fn template<'a>(&self, template: &'a Template) -> Cow<'a, Template> {
        insert_all(template).map_or(Cow::Borrowed(template), Cow::Owned)
    }

    /// DDL is not part of PL/SQL.
    fn command(&self, sql: &str) -> String {
        format!("EXECUTE IMMEDIATE '{}';", sql.replace('\'', "''"))
    }

    fn repetition(&self, depth: usize, times: u64) -> (Vec<Line>, &'static str) {
        (vec![Line(0, format!("FOR l_repeat_{depth} IN 1 .. {times} LOOP"))], "END LOOP;")
    }

    fn check(&self, place: &str, rows: u64) -> Vec<Line> {
        count_check("SQL%ROWCOUNT", &format!("{place} touched"), rows).into()
    }
}

/// Lines that fail the transaction if `count` is not `rows`.
fn count_check(count: &str, what: &str, rows: u64) -> [Line; 3] {
    let text = format!("'{what} ' || {count} || ' rows instead of {rows}'");
    [
        Line(0, format!("IF {count} <> {rows} THEN")),
        Line(1, format!("RAISE_APPLICATION_ERROR(-20001, {text});")),
        Line(0, "END IF;".into()),
    ]
}

/// What one run of the block returned.
#[derive(Debug)]
pub(super) struct BlockResult {
    pub(super) next: i64,
    pub(super) first_start_us: i64,
    /// The last transaction.
    pub(super) end: Moments,
    /// Whether the last transaction crossed the end of the slice; the times then exclude it.
    pub(super) crossed: bool,
    pub(super) transaction: Latencies,
    pub(super) commit: Latencies,
}

impl BlockResult {
    /// Parses the block's three texts.
    pub(super) fn parse(row: &Row) -> Result<BlockResult, TargetError> {
        BlockResult::checked(row)
            .ok_or_else(|| TargetError::Statement("the in-database block returned an unreadable result".into()))
    }

    fn checked(row: &Row) -> Option<BlockResult> {
        let numbers = text(row, 0)?.split(' ').map(|n| n.parse().ok()).collect::<Option<Vec<i64>>>()?;
        let &[next, first_start_us, start, commit, end, crossed @ 0..=1] = numbers.as_slice() else { return None };
        // An empty text is NULL.
        let [transaction, commits] = [1, 2].map(|i| times(text(row, i).unwrap_or_default()));
        let (transaction, commits) = (transaction?, commits?);
        let is_ordered = [first_start_us, start, commit, end].is_sorted() && transaction.count() == commits.count();
        let (end, crossed) = ([start, commit, end], crossed == 1);
        is_ordered.then_some(BlockResult { next, first_start_us, end, crossed, transaction, commit: commits })
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

/// The server's time, µs since [`EPOCH`].
pub(super) fn read_clock(session: &mut dyn OraSession) -> Result<Option<i64>, TargetError> {
    Ok(session.value(&clock())?.and_then(|t| t.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use loadline_workload::{payload_offset, pool};

    #[test]
    fn pieces_give_the_bytes_that_other_drivers_bind() {
        let pool = pool(1, 3, 0.0);
        let pieces = pieces(&pool);
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|p| p.len() <= PIECE_BYTES));
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

    #[test]
    fn what_the_block_writes_is_read() {
        let b = BlockResult::parse(&row("8 1000100 1000330 1000340 1000400 1", "100 4;110 3;", "70 6;75 1;")).unwrap();
        assert_eq!((b.next, b.crossed, b.transaction.count(), b.transaction.sum_ns()), (8, true, 7, 730_000));
        assert_eq!((b.commit.count(), b.commit.max_ns()), (7, Some(75_000)));
        assert_eq!((b.first_start_us, b.end), (1_000_100, [1_000_330, 1_000_340, 1_000_400]));
        // A slice whose first transaction crosses the end: an empty text is NULL.
        assert_eq!(BlockResult::parse(&row("1 5 5 6 7 1", "", "")).unwrap().transaction.count(), 0);
    }

    #[test]
    fn what_does_not_add_up_is_an_error() {
        for [moments, transactions, commits] in [
            ["", "", ""],
            ["1 5 5 6 7", "", ""],
            ["1 5 5 6 7 2", "", ""],
            ["1 6 5 6 7 1", "", ""],
            ["1 5 5 8 7 1", "", ""],
            ["1 5 5 6 7 0", "3 2;", "3 1;"],
            ["1 5 5 6 7 0", "3;", "3 1;"],
            ["1 5 5 6 7 0", "3 99999999999;", "3 99999999999;"],
        ] {
            assert!(BlockResult::parse(&row(moments, transactions, commits)).is_err(), "{moments}");
        }
    }

    #[test]
    fn the_texts_of_a_full_block_fit() {
        assert!(MAX_DISTINCT * "2147483647 999999;".len() <= MAX_TEXT);
    }

    proptest! {
        #[test]
        fn no_answer_panics(a in "[0-9 ]{0,40}", b in "[0-9 ;]{0,20}", c in "\\PC{0,20}") {
            let _ = BlockResult::parse(&row(&a, &b, &c));
        }
    }
}
