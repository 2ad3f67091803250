//! The in-database driver: a transaction program as one SQL/PSM procedure with COMMIT in its loop.
//!
//! SQL/PSM has no arrays. The procedure notes three moments per transaction in a text, and puts it
//! into a temporary table in memory whenever it has grown to a few KiB: a text is copied as a whole
//! each time something is added to it.

use loadline_workload::{Commit, Generator, PAYLOAD_STRIDE, POOL_BYTES, Program, Step, VarType};

use super::render::{DATABASE, MARK, prefix, quoted, table_name};
use crate::work::Work;

/// The server's clock in µs since 1970: unlike NOW(), SYSDATE() is read when it is called. The
/// session's time zone is UTC.
pub(super) const CLOCK: &str = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)";

/// Session variable in which the procedure leaves the sequence that comes next.
pub(super) const NEXT: &str = "@loadline_next";

/// A text of moments goes into the table when it is longer than this.
const CHUNK: usize = 3000;

/// Full name of the session's table of moments.
pub(super) fn moments() -> String {
    format!("{}.{}", quoted(DATABASE), quoted("moments"))
}

/// The statement that makes the session's table of moments.
pub(super) fn create_moments() -> String {
    format!(
        "CREATE TEMPORARY TABLE {} (k BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, t VARBINARY({}) NOT NULL) \
         ENGINE = MEMORY",
        moments(),
        CHUNK + 100
    )
}

fn full_name(name: &str) -> String {
    format!("{}.{}", quoted(DATABASE), quoted(name))
}

/// Full name of the procedure.
pub(super) fn name(work: &Work) -> String {
    full_name(&format!("{}_run", prefix(work)))
}

/// The statement that runs a slice: first key, pool, end, next sequence.
pub(super) fn call(work: &Work) -> String {
    format!("CALL {}(?, ?, ?, ?)", name(work))
}

/// The statement that makes the procedure.
pub(super) fn create(work: &Work) -> String {
    let mut writer = Writer { program: &work.program, text: String::new(), depth: 0, declared: Vec::new() };
    writer.steps(work, &work.program.body, 2);
    let loops: String = writer.declared.iter().map(|d| format!("  DECLARE {d} BIGINT;\n")).collect();
    let (declare, body) = (writer.declarations(), writer.text);
    let wait = match work.program.commit {
        Commit::Wait => "",
        Commit::Nowait => " -- innodb_flush_log_at_trx_commit is not 1",
    };
    routine(
        &name(work),
        "p_first_key BIGINT, p_pool LONGBLOB, p_until BIGINT, p_next BIGINT",
        &format!("{declare}{loops}  DECLARE l_seq BIGINT DEFAULT p_next - 1;\n"),
        &format!("    START TRANSACTION;\n{body}"),
        &format!("    COMMIT;{wait}\n"),
        "l_end >= p_until",
        &format!("  SET {NEXT} = l_seq + 1;\n"),
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
  DECLARE l_t VARBINARY({room}) DEFAULT '';
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
        room = CHUNK + 100
    )
}

/// Writes the program's steps.
struct Writer<'a> {
    program: &'a Program,
    text: String,
    depth: usize,
    /// Counters of loops.
    declared: Vec<String>,
}

impl Writer<'_> {
    /// Whether any statement uses the variable.
    fn is_used(&self, var: &str) -> bool {
        self.program.statements.iter().any(|s| s.template.vars().any(|v| v == var))
    }

    fn declarations(&self) -> String {
        let used = self.program.vars().into_iter().filter(|(var, _)| self.is_used(var));
        used.map(|(var, generator)| {
            let kind = match generator.var_type() {
                VarType::Int => "BIGINT",
                VarType::Bytes => "LONGBLOB",
            };
            format!("  DECLARE {} {kind};\n", variable(var))
        })
        .collect()
    }

    fn line(&mut self, level: usize, text: &str) {
        self.text.push_str(&"  ".repeat(level));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn steps(&mut self, work: &Work, steps: &[Step], level: usize) {
        for step in steps {
            match step {
                Step::Bind { var, generator } => self.bind(var, *generator, level),
                Step::Repeat { times, body } => {
                    self.depth += 1;
                    let counter = format!("l_repeat_{}", self.depth);
                    if !self.declared.contains(&counter) {
                        self.declared.push(counter.clone());
                    }
                    self.line(level, &format!("SET {counter} = 0;"));
                    self.line(level, &format!("WHILE {counter} < {times} DO"));
                    self.line(level + 1, &format!("SET {counter} = {counter} + 1;"));
                    self.steps(work, body, level + 1);
                    self.line(level, "END WHILE;");
                    self.depth -= 1;
                }
                Step::Execute { statement } => self.execute(work, *statement, level),
            }
        }
    }

    fn bind(&mut self, var: &str, generator: Generator, level: usize) {
        if generator == Generator::Sequence {
            self.line(level, "SET l_seq = l_seq + 1;");
        }
        if !self.is_used(var) {
            return;
        }
        let value = match generator {
            Generator::Sequence => "l_seq".to_owned(),
            Generator::OwnRow { rows } => format!("p_first_key + GREATEST(l_seq, 0) MOD {}", rows.max(1)),
            Generator::Payload { bytes } => {
                // As `loadline_workload::payload_offset`.
                let room = (POOL_BYTES as u64).saturating_sub(u64::from(bytes)).max(1);
                format!("SUBSTRING(p_pool, 1 + GREATEST(l_seq, 0) * {PAYLOAD_STRIDE} MOD {room}, {bytes})")
            }
        };
        self.line(level, &format!("SET {} = {value};", variable(var)));
    }

    fn execute(&mut self, work: &Work, number: usize, level: usize) {
        // A program is checked before it is rendered: a statement that is missing is not reached.
        let Some(statement) = self.program.statements.get(number) else { return };
        let sql = statement.template.render(|table| table_name(work, table), variable);
        let rows = statement.rows;
        self.line(level, &format!("{sql};"));
        self.line(level, &format!("IF ROW_COUNT() <> {rows} THEN"));
        let text = format!("statement {number} did not touch {rows} rows");
        self.line(level + 1, &format!("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{text}';"));
        self.line(level, "END IF;");
    }
}

/// A program's variable in SQL/PSM: a name that no column has.
fn variable(name: &str) -> String {
    quoted(&format!("v_{name}"))
}
