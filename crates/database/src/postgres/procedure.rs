//! The in-database driver: a transaction program as one PL/pgSQL procedure with COMMIT in its loop.
//!
//! PL/pgSQL initialises every expression again in each transaction, at about 0.5 µs each. So the loop only stores two
//! timestamps per transaction, in arrays that are changed in place; loadline evaluates them. (With sums and histograms
//! in the loop, 20 expressions took 10 µs of each transaction.) A transaction starts when the one before it ends.

use loadline_workload::{Commit, Effect, Kernel, PAYLOAD_STRIDE, VarType};

use super::knowledge::KNOWLEDGE;
use super::protocol::{BYTEA, INT8, TIMESTAMPTZ};
use super::sql::{SCHEMA, quoted, table_name};
use super::versions::Version;
use crate::kernels;
use crate::names::own;
use crate::procedure::{self, Body, Dialect, Line};
use crate::work::Work;

/// The server's clock: in binary form µs since 2000.
pub(super) const CLOCK: &str = "clock_timestamp()";

/// Types of the parameters `$1` … `$6` of [`call`].
pub(super) const CALL_TYPES: [u32; 6] = [INT8, INT8, INT8, BYTEA, TIMESTAMPTZ, INT8];

/// Results of a call after the next sequence number: the start of the first transaction, and arrays with the commit start and
/// the end of each.
const RESULTS: [&str; 3] = ["r_start timestamptz", "r_commit timestamptz[]", "r_end timestamptz[]"];

/// Full name of the procedure.
pub(super) fn name(work: &Work) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(&own(&work.workload, "run")))
}

/// The statement that runs a slice. Parameters: the job's start values (first key, first new key, first draw), pool, end
/// time, next sequence number.
pub(super) fn call(work: &Work) -> String {
    let nulls = vec!["NULL"; RESULTS.len()].join(", ");
    format!("CALL {}($1, $2, $3, $4, $5, $6, {nulls})", name(work))
}

/// The statements that create the procedure.
pub(super) fn create(work: &Work, version: Version) -> String {
    let name = name(work);
    let results = RESULTS.map(|r| format!("  INOUT {r}")).join(",\n");
    let Body { declarations: declare, text: body, counted, .. } = procedure::body(work, &PlPgSql, 2);
    let next = if counted { "cardinality(r_end) + 1" } else { "1" };
    let commit = match work.program.commit {
        Commit::Wait => "COMMIT;",
        Commit::Nowait => "COMMIT; -- the session has synchronous_commit = off",
    };
    let flush = KNOWLEDGE.texts.flush_in_procedure.at(version).map_or(String::new(), |sql| format!("  {sql}\n"));
    let create = [("name", name.as_str()), ("results", &results), ("declare", &declare)];
    let create = KNOWLEDGE.routines.text(
        "run",
        // The user's statements last: nothing is put into them.
        &[&create[..], &[("clock", CLOCK), ("commit", commit), ("next", next), ("flush", &flush), ("body", &body)]]
            .concat(),
    );
    let fibonacci = work.program.computes(Kernel::Fibonacci);
    let routine = fibonacci.then(|| KNOWLEDGE.routines.text("fibonacci", &[("fibonacci-name", &fibonacci_name())]));
    routine.unwrap_or_default() + &create
}

/// Full name of the recursive function.
fn fibonacci_name() -> String {
    format!("{}.{}", quoted(SCHEMA), quoted("fibonacci"))
}

/// Setting in which [`overhead`] returns its result.
pub(super) const OVERHEAD: &str = "loadline.overhead_ns";

/// A block that runs the procedure's loop without statements `iterations` times and stores the time of an iteration
/// without its (empty) commit, in ns, in the setting [`OVERHEAD`]. The commit is needed because PL/pgSQL initialises the
/// loop's expressions again after each.
pub(super) fn overhead(iterations: u32) -> String {
    KNOWLEDGE
        .routines
        .text("overhead", &[("clock", CLOCK), ("setting", OVERHEAD), ("iterations", &iterations.to_string())])
}

/// PL/pgSQL.
struct PlPgSql;

impl Dialect for PlPgSql {
    fn table(&self, work: &Work, table: &str) -> String {
        table_name(work, table)
    }

    fn variable(&self, name: &str) -> String {
        quoted(&format!("v_{name}"))
    }

    fn declaration(&self, variable: &str, kind: VarType) -> String {
        let kind = match kind {
            VarType::Int => "bigint",
            VarType::Bytes => "bytea",
        };
        format!("{variable} {kind};")
    }

    fn sequence(&self, bound: bool) -> &'static str {
        if bound { "l_seq" } else { "greatest(l_seq, 0)" }
    }

    fn counter(&self) -> Option<&'static str> {
        Some("(l_seq + l_tx)")
    }

    fn payload(&self, sequence: &str, offsets: u64, bytes: u32) -> String {
        format!("substr(p_pool, 1 + ({sequence} * {PAYLOAD_STRIDE} % {offsets})::integer, {bytes})")
    }

    fn modulo(&self, a: &str, b: u64) -> String {
        format!("({a} % {b})")
    }

    /// PERFORM executes a query to its end and discards the rows.
    fn query(&self, _: usize, place: &str, sql: &str, effect: Effect) -> Vec<Line> {
        let sql = sql.strip_prefix("SELECT ").map_or_else(|| sql.to_owned(), |rest| format!("PERFORM {rest}"));
        let mut lines = vec![Line(0, format!("{sql};"))];
        lines.extend(effect.rows().into_iter().flat_map(|rows| self.check(place, rows)));
        lines
    }

    fn compute(&self, kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
        kernels::compute(["pl", "plpgsql"], ["", &fibonacci_name()], kernel, times, sequence)
    }

    fn check(&self, place: &str, rows: u64) -> Vec<Line> {
        vec![
            Line(0, "GET DIAGNOSTICS l_rows = ROW_COUNT;".into()),
            Line(0, format!("IF l_rows <> {rows} THEN")),
            Line(1, format!("RAISE EXCEPTION '{place} touched % rows instead of {rows}', l_rows;")),
            Line(0, "END IF;".into()),
        ]
    }
}
