//! The in-database driver: a transaction program as one PL/pgSQL procedure with COMMIT in its loop.
//!
//! PL/pgSQL sets every expression up anew in each transaction, at about half a µs each. So the loop
//! does no more than note three moments per transaction, in arrays that are changed in place; what
//! they add up to is worked out by loadline. (With sums and histograms in the loop, 20 expressions
//! took 10 µs of each transaction's time.)

use loadline_workload::{Commit, Generator, PAYLOAD_STRIDE, POOL_BYTES, Program, Step, VarType};

use super::protocol::{BYTEA, INT8, TIMESTAMPTZ};
use super::render::{SCHEMA, prefix, quoted, table_name};
use super::versions::Version;
use crate::work::Work;

/// The server's clock: µs since 2000 in binary form.
pub(super) const CLOCK: &str = "clock_timestamp()";

/// Types of the parameters `$1` … `$4` of [`call`].
pub(super) const CALL_TYPES: [u32; 4] = [INT8, BYTEA, TIMESTAMPTZ, INT8];

/// What a call returns after the next sequence, one moment for each transaction: when it started,
/// when its commit began, when that returned.
const RESULTS: [&str; 3] = ["r_start", "r_commit", "r_end"];

/// Full name of the procedure.
pub(super) fn name(work: &Work) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(&format!("{}_run", prefix(work))))
}

/// The statement that runs a slice: first key, pool, end, next sequence.
pub(super) fn call(work: &Work) -> String {
    let nulls = vec!["NULL"; RESULTS.len()].join(", ");
    format!("CALL {}($1, $2, $3, $4, {nulls})", name(work))
}

/// The statements that make the procedure.
pub(super) fn create(work: &Work, version: Version) -> String {
    let name = name(work);
    let results = RESULTS.map(|r| format!("  INOUT {r} timestamptz[]")).join(",\n");
    let mut writer = Writer::new(&work.program);
    writer.steps(work, &work.program.body, 2);
    let (declare, body) = (writer.declarations(), writer.text);
    let commit = match work.program.commit {
        Commit::Wait => "COMMIT;",
        Commit::Nowait => "COMMIT; -- the session has synchronous_commit = off",
    };
    let flush = version.flush_stats_in_procedure().map_or(String::new(), |sql| format!("  {sql}\n"));
    format!(
        r"DROP PROCEDURE IF EXISTS {name};
CREATE PROCEDURE {name}(
  p_first_key bigint,
  p_pool bytea,
  p_until timestamptz,
  INOUT p_next bigint,
{results}
) LANGUAGE plpgsql AS $procedure$
DECLARE
  l_seq bigint := p_next - 1;
  l_rows bigint;
{declare}BEGIN
  r_start := '{{}}';
  r_commit := '{{}}';
  r_end := '{{}}';
  FOR l_tx IN 1..2147483647 LOOP
    r_start[l_tx] := {CLOCK};
{body}    r_commit[l_tx] := {CLOCK};
    {commit}
    r_end[l_tx] := {CLOCK};
    EXIT WHEN r_end[l_tx] >= p_until;
  END LOOP;
  p_next := l_seq + 1;
{flush}END
$procedure$;"
    )
}

/// Setting in which [`overhead`] leaves its result.
pub(super) const OVERHEAD: &str = "loadline.overhead_ns";

/// A block that runs the procedure's loop without a statement `iterations` times and leaves what an
/// iteration takes besides its (empty) commit, in ns, in the setting [`OVERHEAD`]. The commit is
/// there because the loop's expressions are set up anew after each.
pub(super) fn overhead(iterations: u32) -> String {
    format!(
        r"DO $block$
DECLARE
  p_until timestamptz := 'infinity';
  r_start timestamptz[] := '{{}}';
  r_commit timestamptz[] := '{{}}';
  r_end timestamptz[] := '{{}}';
  l_all interval;
  l_commits interval;
BEGIN
  FOR l_tx IN 1..{iterations} LOOP
    r_start[l_tx] := {CLOCK};
    r_commit[l_tx] := {CLOCK};
    COMMIT;
    r_end[l_tx] := {CLOCK};
    EXIT WHEN r_end[l_tx] >= p_until;
  END LOOP;
  l_all := r_end[{iterations}] - r_start[1];
  SELECT sum(e - c) INTO l_commits FROM unnest(r_end, r_commit) AS t(e, c);
  PERFORM set_config('{OVERHEAD}', (extract(epoch FROM l_all - l_commits) * 1e9 / {iterations})::text, false);
END
$block$"
    )
}

/// Writes the program's steps.
struct Writer<'a> {
    program: &'a Program,
    text: String,
    depth: usize,
    /// Whether the sequence has been bound, so that `l_seq` is not below 0.
    sequence_bound: bool,
}

impl<'a> Writer<'a> {
    fn new(program: &'a Program) -> Writer<'a> {
        Writer { program, text: String::new(), depth: 0, sequence_bound: false }
    }

    /// Whether any statement uses the variable.
    fn is_used(&self, var: &str) -> bool {
        self.program.statements.iter().any(|s| s.template.vars().any(|v| v == var))
    }

    fn declarations(&self) -> String {
        let used = self.program.vars().into_iter().filter(|(var, _)| self.is_used(var));
        used.map(|(var, generator)| {
            let kind = match generator.var_type() {
                VarType::Int => "bigint",
                VarType::Bytes => "bytea",
            };
            format!("  {} {kind};\n", variable(var))
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
                    let depth = self.depth;
                    self.line(level, &format!("FOR l_repeat_{depth} IN 1..{times} LOOP"));
                    self.steps(work, body, level + 1);
                    self.line(level, "END LOOP;");
                    self.depth -= 1;
                }
                Step::Execute { statement } => self.execute(work, *statement, level),
            }
        }
    }

    fn bind(&mut self, var: &str, generator: Generator, level: usize) {
        if generator == Generator::Sequence {
            self.line(level, "l_seq := l_seq + 1;");
            self.sequence_bound = true;
        }
        if !self.is_used(var) {
            return;
        }
        let seq = if self.sequence_bound { "l_seq" } else { "greatest(l_seq, 0)" };
        let value = match generator {
            Generator::Sequence => "l_seq".to_owned(),
            Generator::OwnRow { rows } => format!("p_first_key + {seq} % {}", rows.max(1)),
            Generator::Payload { bytes } => {
                // As `loadline_workload::payload_offset`.
                let room = (POOL_BYTES as u64).saturating_sub(u64::from(bytes)).max(1);
                format!("substr(p_pool, 1 + ({seq} * {PAYLOAD_STRIDE} % {room})::integer, {bytes})")
            }
        };
        self.line(level, &format!("{} := {value};", variable(var)));
    }

    fn execute(&mut self, work: &Work, number: usize, level: usize) {
        // A program is checked before it is rendered: a statement that is missing is not reached.
        let Some(statement) = self.program.statements.get(number) else { return };
        let sql = statement.template.render(|table| table_name(work, table), variable);
        let rows = statement.rows;
        self.line(level, &format!("{sql};"));
        self.line(level, "GET DIAGNOSTICS l_rows = ROW_COUNT;");
        self.line(level, &format!("IF l_rows <> {rows} THEN"));
        self.line(
            level + 1,
            &format!("RAISE EXCEPTION 'statement {number} touched % rows instead of {rows}', l_rows;"),
        );
        self.line(level, "END IF;");
    }
}

/// A program's variable in PL/pgSQL: a name that no column has.
fn variable(name: &str) -> String {
    quoted(&format!("v_{name}"))
}
