//! The in-database driver: a transaction program as one SQL/PSM procedure with COMMIT in its loop.
//!
//! SQL/PSM has no arrays. The procedure appends three moments per transaction to a text. At a few KiB it
//! moves the text to a temporary table in memory, because each append copies the whole text.

use loadline_workload::{Commit, Kernel};

use super::knowledge::KNOWLEDGE;
use crate::dialect::MARK;
use crate::names::own;
use crate::procedure::{self, Body};
use crate::work::Work;

/// The server's clock in µs since 1970: unlike NOW(), SYSDATE() is read when it is called. The
/// session's time zone is UTC.
pub(super) const CLOCK: &str = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)";

/// Session variable in which the procedure returns the next sequence number.
pub(super) const NEXT: &str = "@loadline_next";

/// Session variables in which the procedure of a cluster returns how many attempts lost against other transactions, and how many
/// of them at their COMMIT.
pub(super) const LOST: [&str; 2] = ["@loadline_conflicts", "@loadline_failed_commits"];

/// A longer text of moments moves to the table, bytes.
const CHUNK: usize = 3000;
const LONGEST: usize = CHUNK + 100;

/// The session's table of moments, and the procedure that measures the loop itself.
pub(super) const MOMENTS: &str = "`loadline`.`moments`";
pub(super) const OVERHEAD: &str = "`loadline`.`overhead_run`";

/// The statement that creates the session's table of moments.
pub(super) fn create_moments() -> String {
    format!(
        "CREATE TEMPORARY TABLE {MOMENTS} (k BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, t VARBINARY({LONGEST}) NOT NULL) \
         ENGINE = MEMORY"
    )
}

pub(super) fn name(work: &Work) -> String {
    KNOWLEDGE.dialect.full_name(&own(&work.workload, "run"))
}

/// The statement that runs a slice. Arguments: first key, first new key, first draw, pool, end of the slice,
/// next sequence number.
pub(super) fn call(work: &Work) -> String {
    format!("CALL {}(?, ?, ?, ?, ?, ?)", name(work))
}

/// The statement that creates the procedure. In a cluster a transaction can lose against one of another node: it is then tried again
/// with the same values, at once and later with pauses, as by the client driver.
pub(super) fn create(work: &Work, in_cluster: bool) -> String {
    let Body { declarations, text: body, loops, .. } = procedure::body(work, &KNOWLEDGE.dialect, 2);
    let loops: String = (1..=loops).map(|depth| format!("  DECLARE l_repeat_{depth} BIGINT;\n")).collect();
    let wait = match work.program.commit {
        Commit::Wait => "",
        Commit::Nowait => " -- innodb_flush_log_at_trx_commit is not 1",
    };
    // Errors are those of `Connection::error`. A call that never ends is cancelled at the end of the test.
    let again = |part: &str| if in_cluster { KNOWLEDGE.routines.text(part, &[]) } else { String::new() };
    let parameters =
        "p_first_key BIGINT, p_new_key BIGINT, p_draw BIGINT, p_pool LONGBLOB, p_until BIGINT, p_next BIGINT";
    let declare =
        format!("{declarations}{loops}  DECLARE l_seq BIGINT DEFAULT p_next - 1;\n{}", again("again-declare"));
    let body = format!("{}    START TRANSACTION;\n{body}", again("again-begin"));
    let commit = format!("    COMMIT;{wait}\n{}", again("again-end"));
    let finish = format!("  SET {NEXT} = l_seq + 1;\n{}", again("again-finish"));
    routine(&name(work), parameters, &declare, ["", &body, &commit, "l_end >= p_until", &finish])
}

/// This loop without statements and commits, `p_next` times.
pub(super) fn create_overhead() -> String {
    let each = ["    SET l_n = l_n + 1;\n", "", "", "l_n >= p_next", ""];
    routine(OVERHEAD, "p_next BIGINT", "  DECLARE l_n BIGINT DEFAULT 0;\n", each)
}

/// A procedure with what it does in each transaction before it, in it, and at its commit; when it ends, and what it does then.
fn routine(
    name: &str,
    parameters: &str,
    declare: &str,
    [count, body, commit, leave_when, finish]: [&str; 5],
) -> String {
    let (chunk, longest) = (CHUNK.to_string(), LONGEST.to_string());
    let text = [("clock", CLOCK), ("mark", MARK), ("moments", MOMENTS), ("chunk", &chunk), ("longest", &longest)];
    let own = [("name", name), ("parameters", parameters), ("declare", declare), ("count", count)];
    let end = [("commit", commit), ("leave-when", leave_when), ("finish", finish), ("body", body)];
    KNOWLEDGE.routines.text("run", &[&text[..], &own, &end].concat())
}

/// The recursive procedure that the program calls, if it does: its name and its CREATE statement.
pub(super) fn recursive(work: &Work) -> Option<(String, String)> {
    let name = KNOWLEDGE.dialect.full_name("fibonacci");
    let create = || KNOWLEDGE.routines.text("fibonacci", &[("fibonacci-name", &name), ("mark", MARK)]);
    work.program.computes(Kernel::Fibonacci).then(|| (name.clone(), create()))
}
