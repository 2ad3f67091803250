//! The in-database driver: a transaction program as one PL/pgSQL procedure with COMMIT in its loop.
//!
//! PL/pgSQL initialises every expression again in each transaction, at about 0.5 µs each. So the loop only stores two
//! timestamps per transaction, in arrays that are changed in place; loadline evaluates them. (With sums and histograms
//! in the loop, 20 expressions took 10 µs of each transaction.) A transaction starts when the one before it ends.

use loadline_workload::{Commit, Kernel};

use super::knowledge::KNOWLEDGE;
use super::protocol::{BYTEA, INT8, TIMESTAMPTZ};
use super::versions::Version;
use crate::names::own;
use crate::procedure::{self, Body};
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
    KNOWLEDGE.dialect.full_name(&own(&work.workload, "run"))
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
    let Body { declarations: declare, text: body, counted, .. } = procedure::body(work, &KNOWLEDGE.dialect, 2);
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
    let object = KNOWLEDGE.dialect.full_name("fibonacci");
    let routine = fibonacci.then(|| KNOWLEDGE.routines.text("fibonacci", &[("fibonacci-name", &object)]));
    routine.unwrap_or_default() + &create
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
