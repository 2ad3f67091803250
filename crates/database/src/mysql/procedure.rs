//! The in-database driver: a transaction program as one SQL/PSM procedure with COMMIT in its loop.
//!
//! SQL/PSM has no arrays. The procedure appends three moments per transaction to a text. At a few KiB it
//! moves the text to a temporary table in memory, because each append copies the whole text.

use loadline_workload::{Commit, Effect, Kernel, PAYLOAD_STRIDE, VarType};

use super::kernels;
use super::sql::{MARK, full_name, quoted, renewed, table_name};
use crate::names::own;
use crate::procedure::{self, Body, Dialect, Line};
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

/// Full name of the session's table of moments.
pub(super) fn moments() -> String {
    full_name("moments")
}

/// The statement that creates the session's table of moments.
pub(super) fn create_moments() -> String {
    format!(
        "CREATE TEMPORARY TABLE {} (k BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, t VARBINARY({}) NOT NULL) \
         ENGINE = MEMORY",
        moments(),
        CHUNK + 100
    )
}

/// Full name of the procedure.
pub(super) fn name(work: &Work) -> String {
    full_name(&own(&work.workload, "run"))
}

/// The statement that runs a slice. Arguments: first key, first new key, first draw, pool, end of the slice,
/// next sequence number.
pub(super) fn call(work: &Work) -> String {
    format!("CALL {}(?, ?, ?, ?, ?, ?)", name(work))
}

/// The statement that creates the procedure. In a cluster a transaction can lose against one of another node: it is then tried again
/// with the same values, at once and later with pauses, as by the client driver.
pub(super) fn create(work: &Work, in_cluster: bool) -> String {
    let Body { declarations, text: body, loops, .. } = procedure::body(work, &SqlPsm, 2);
    let loops: String = (1..=loops).map(|depth| format!("  DECLARE {} BIGINT;\n", counter(depth))).collect();
    let wait = match work.program.commit {
        Commit::Wait => "",
        Commit::Nowait => " -- innodb_flush_log_at_trx_commit is not 1",
    };
    let (declare, begin, end, finish) = if in_cluster { again() } else { Default::default() };
    routine(
        &name(work),
        "p_first_key BIGINT, p_new_key BIGINT, p_draw BIGINT, p_pool LONGBLOB, p_until BIGINT, p_next BIGINT",
        &format!("{declarations}{loops}  DECLARE l_seq BIGINT DEFAULT p_next - 1;\n{declare}"),
        &format!("{begin}    START TRANSACTION;\n{body}"),
        &format!("    COMMIT;{wait}\n{end}"),
        "l_end >= p_until",
        &format!("  SET {NEXT} = l_seq + 1;\n{finish}"),
    )
}

/// What a procedure declares, begins and ends a transaction with, and finishes with, so that one that lost is tried again. Errors are
/// those of `Connection::error`. A call that never ends is cancelled at the end of the test.
fn again() -> (String, String, String, String) {
    let [conflicts, failed] = LOST;
    (
        "  DECLARE l_from, l_tried, l_conflicts, l_failed BIGINT DEFAULT 0;\n".to_owned(),
        r"    SET l_from = l_seq, l_tried = 0;
    l_try: LOOP
    IF l_tried > 1 THEN
      DO SLEEP(LEAST(0.0001 * POW(2, LEAST(l_tried - 2, 10)), 0.1));
    END IF;
    SET l_seq = l_from, l_commit = 0;
    BEGIN
    DECLARE EXIT HANDLER FOR 1213, 1020, 1180 BEGIN
      IF l_commit > 0 THEN
        SET l_failed = l_failed + 1;
      END IF;
      ROLLBACK;
      SET l_conflicts = l_conflicts + 1, l_tried = l_tried + 1;
    END;
"
        .to_owned(),
        "    LEAVE l_try;\n    END;\n    END LOOP;\n".to_owned(),
        format!("  SET {conflicts} = l_conflicts, {failed} = l_failed;\n"),
    )
}

/// Name of the procedure that measures the loop itself.
pub(super) fn overhead_name() -> String {
    full_name("overhead_run")
}

/// The same loop without statements and commits, `p_next` times.
pub(super) fn create_overhead() -> String {
    routine(&overhead_name(), "p_next BIGINT", "  DECLARE l_n BIGINT DEFAULT 0;\n", "", "", "l_n >= p_next", "")
        .replace("    SET l_start", "    SET l_n = l_n + 1;\n    SET l_start")
}

fn routine(
    name: &str,
    parameters: &str,
    declare: &str,
    body: &str,
    commit: &str,
    leave_when: &str,
    finish: &str,
) -> String {
    let moments = moments();
    format!(
        r"CREATE PROCEDURE {name}({parameters})
SQL SECURITY INVOKER
COMMENT '{MARK}'
BEGIN
{declare}  DECLARE l_start, l_commit, l_end BIGINT;
  DECLARE l_t VARBINARY({longest}) DEFAULT '';
  l_run: LOOP
    SET l_start = {CLOCK};
{body}    SET l_commit = {CLOCK};
{commit}    SET l_end = {CLOCK};
    SET l_t = CONCAT(l_t, l_start, ' ', l_commit - l_start, ' ', l_end - l_commit, '\n');
    IF LENGTH(l_t) > {CHUNK} THEN
      INSERT INTO {moments} (t) VALUES (l_t);
      SET l_t = '';
    END IF;
    IF {leave_when} THEN
      LEAVE l_run;
    END IF;
  END LOOP;
  INSERT INTO {moments} (t) VALUES (l_t);
{finish}END",
        longest = CHUNK + 100
    )
}

/// SQL/PSM as MariaDB and MySQL have it.
struct SqlPsm;

impl Dialect for SqlPsm {
    fn table(&self, work: &Work, table: &str) -> String {
        table_name(work, table)
    }

    fn variable(&self, name: &str) -> String {
        quoted(&format!("v_{name}"))
    }

    fn declaration(&self, variable: &str, kind: VarType) -> String {
        let kind = match kind {
            VarType::Int => "BIGINT",
            VarType::Bytes => "LONGBLOB",
        };
        format!("DECLARE {variable} {kind};")
    }

    fn assignment(&self, variable: &str, value: &str) -> String {
        format!("SET {variable} = {value};")
    }

    fn sequence(&self, _bound: bool) -> &'static str {
        "GREATEST(l_seq, 0)"
    }

    fn payload(&self, sequence: &str, offsets: u64, bytes: u32) -> String {
        format!("SUBSTRING(p_pool, 1 + {sequence} * {PAYLOAD_STRIDE} MOD {offsets}, {bytes})")
    }

    fn renewed(&self, columns: &[String; 2]) -> String {
        renewed(columns)
    }

    fn modulo(&self, a: &str, b: u64) -> String {
        format!("({a} MOD {b})")
    }

    /// Only the empty query of a limit: this driver lacks the capability to read rows, as a procedure sends those of a SELECT to the
    /// client.
    fn query(&self, _: usize, _: &str, sql: &str, _: Effect) -> Vec<Line> {
        vec![Line(0, format!("DO ({sql});"))]
    }

    fn compute(&self, kernel: Kernel, times: u32, sequence: &str) -> Vec<Line> {
        kernels::compute(kernel, times, sequence)
    }

    fn repetition(&self, depth: usize, times: u64) -> (Vec<Line>, &'static str) {
        let counter = counter(depth);
        let before = vec![
            Line(0, format!("SET {counter} = 0;")),
            Line(0, format!("WHILE {counter} < {times} DO")),
            Line(1, format!("SET {counter} = {counter} + 1;")),
        ];
        (before, "END WHILE;")
    }

    fn else_if(&self) -> &'static str {
        "ELSEIF"
    }

    fn nothing(&self) -> &'static str {
        "DO 0;"
    }

    fn check(&self, place: &str, rows: u64) -> Vec<Line> {
        let text = format!("{place} did not touch {rows} rows");
        vec![
            Line(0, format!("IF ROW_COUNT() <> {rows} THEN")),
            Line(1, format!("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{text}';")),
            Line(0, "END IF;".into()),
        ]
    }
}

/// The counter of a loop.
fn counter(depth: usize) -> String {
    format!("l_repeat_{depth}")
}
