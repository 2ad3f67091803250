//! The in-database driver: a transaction program as one PL/pgSQL procedure with COMMIT in its loop.

use loadline_model::histogram::LogLinear;
use loadline_workload::{Commit, Generator, PAYLOAD_STRIDE, POOL_BYTES, Program, Step, VarType};

use super::protocol::{BYTEA, FLOAT8, INT8};
use super::render::{SCHEMA, prefix, quoted, table_name};
use super::versions::Version;
use crate::work::Work;

/// The server's clock, in seconds since 1970 as float8. It ticks in µs, and a float8 of that size
/// holds them to a quarter, so a difference rounded to whole µs is exact. (EXTRACT would be numeric,
/// and slow.)
pub(super) const CLOCK: &str = "date_part('epoch', clock_timestamp())";

/// Types of the parameters `$1` … `$4` of [`call`].
pub(super) const CALL_TYPES: [u32; 4] = [INT8, BYTEA, FLOAT8, INT8];

/// What a call returns, in the order of the columns of its row.
const RESULTS: [(&str, &str); 11] = [
    ("r_first_start", "double precision"),
    ("r_done", "bigint"),
    ("r_tx_sum", "double precision"),
    ("r_tx_max", "double precision"),
    ("r_commit_sum", "double precision"),
    ("r_commit_max", "double precision"),
    ("r_tx_histogram", "bigint[]"),
    ("r_commit_histogram", "bigint[]"),
    ("r_end_start", "double precision"),
    ("r_end_commit", "double precision"),
    ("r_end_end", "double precision"),
];

/// Number of columns of the row that a call returns: the next sequence and [`RESULTS`].
pub(super) const RESULT_COLUMNS: usize = 1 + RESULTS.len();

/// Full name of the procedure.
pub(super) fn name(work: &Work) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(&format!("{}_run", prefix(work))))
}

/// The statement that runs a slice: first key, pool, end (s since 1970), next sequence.
pub(super) fn call(work: &Work) -> String {
    let nulls = vec!["NULL"; RESULTS.len()].join(", ");
    format!("CALL {}($1, $2, $3, $4, {nulls})", name(work))
}

/// The statements that make the procedure.
pub(super) fn create(work: &Work, version: Version) -> String {
    let name = name(work);
    let results: Vec<String> = RESULTS.iter().map(|(n, t)| format!("  INOUT {n} {t}")).collect();
    let mut writer = Writer::new(&work.program);
    writer.steps(work, &work.program.body, 2);
    let (declare, body) = (writer.declarations(), writer.text);
    let commit = match work.program.commit {
        Commit::Wait => "COMMIT;",
        Commit::Nowait => "COMMIT; -- the session has synchronous_commit = off",
    };
    let tx = count("tx");
    let committed = count("commit");
    let flush = version.flush_stats_in_procedure().map_or(String::new(), |sql| format!("  {sql}\n"));
    let buckets = LogLinear::BUCKETS;
    format!(
        r"DROP PROCEDURE IF EXISTS {name};
CREATE PROCEDURE {name}(
  p_first_key bigint,
  p_pool bytea,
  p_until double precision,
  INOUT p_next bigint,
{results}
) LANGUAGE plpgsql AS $procedure$
DECLARE
  l_seq bigint := p_next - 1;
  l_rows bigint;
  l_start double precision;
  l_commit double precision;
  l_end double precision;
  l_us double precision;
  l_octave double precision;
  l_bucket integer;
{declare}BEGIN
  r_done := 0;
  r_tx_sum := 0;
  r_tx_max := 0;
  r_commit_sum := 0;
  r_commit_max := 0;
  r_tx_histogram := array_fill(0::bigint, ARRAY[{buckets}]);
  r_commit_histogram := array_fill(0::bigint, ARRAY[{buckets}]);
  r_first_start := {CLOCK};
  l_start := r_first_start;
  LOOP
{body}    l_commit := {CLOCK};
    {commit}
    l_end := {CLOCK};
    EXIT WHEN l_end >= p_until;
    IF l_commit < l_start OR l_end < l_commit THEN
      RAISE EXCEPTION 'the clock of the server went back during the measurement: its times cannot be used';
    END IF;
    r_done := r_done + 1;
{tx}{committed}    l_start := {CLOCK};
  END LOOP;
  r_end_start := l_start;
  r_end_commit := l_commit;
  r_end_end := l_end;
  p_next := l_seq + 1;
{tx_cut}{commit_cut}{flush}END
$procedure$;",
        results = results.join(",\n"),
        tx_cut = cut("tx"),
        commit_cut = cut("commit"),
    )
}

/// A DO block that does what the loop does around statements and commit, `iterations` times, and
/// raises the time it took (s) as an exception's message would: it is left in a setting instead.
pub(super) fn overhead(iterations: u32) -> String {
    let buckets = LogLinear::BUCKETS;
    let (tx, committed) = (count("tx"), count("commit"));
    format!(
        r"DO $block$
DECLARE
  r_done bigint := 0;
  r_tx_sum double precision := 0;
  r_tx_max double precision := 0;
  r_commit_sum double precision := 0;
  r_commit_max double precision := 0;
  r_tx_histogram bigint[] := array_fill(0::bigint, ARRAY[{buckets}]);
  r_commit_histogram bigint[] := array_fill(0::bigint, ARRAY[{buckets}]);
  l_begin double precision := {CLOCK};
  l_until double precision := l_begin + 3600;
  l_start double precision := l_begin;
  l_commit double precision;
  l_end double precision;
  l_us double precision;
  l_octave double precision;
  l_bucket integer;
BEGIN
  FOR l_i IN 1..{iterations} LOOP
    l_commit := {CLOCK};
    l_end := {CLOCK};
    EXIT WHEN l_end >= l_until;
    IF l_commit < l_start OR l_end < l_commit THEN
      RAISE EXCEPTION 'the clock of the server went back during the measurement: its times cannot be used';
    END IF;
    r_done := r_done + 1;
{tx}{committed}    l_start := {CLOCK};
  END LOOP;
  PERFORM set_config('loadline.overhead', (l_start - l_begin)::text, false);
END
$block$"
    )
}

/// Lines that add a time to sum, maximum and histogram of `what` (`tx` or `commit`): the layout is
/// that of [`LogLinear`], counted from 1.
fn count(what: &str) -> String {
    let from = if what == "tx" { "l_start" } else { "l_commit" };
    let per = LogLinear::PER_OCTAVE;
    let last = LogLinear::BUCKETS;
    let offset = per - 1;
    format!(
        "    l_us := round((l_end - {from}) * 1000000);
    r_{what}_sum := r_{what}_sum + l_us;
    r_{what}_max := greatest(r_{what}_max, l_us);
    l_us := greatest(l_us, 1);
    l_octave := floor(ln(l_us) / ln(2::double precision));
    l_bucket := least({per} * l_octave + floor({per} * l_us / power(2::double precision, l_octave)) - {offset}, {last});
    r_{what}_histogram[l_bucket] := r_{what}_histogram[l_bucket] + 1;
"
    )
}

/// Lines that cut the empty end off a histogram.
fn cut(what: &str) -> String {
    let per = LogLinear::PER_OCTAVE;
    // The bucket after that of the maximum is within the array or past its end; both are well.
    format!(
        "  l_octave := floor(ln(greatest(r_{what}_max, 1)) / ln(2::double precision));
  r_{what}_histogram := r_{what}_histogram[1 : {per} * (l_octave::integer + 2)];
"
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
