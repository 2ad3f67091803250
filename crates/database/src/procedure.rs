//! Renders a transaction program in the procedure language of a database. The walk over its steps is the same for
//! all; a [`Dialect`] writes each step. The code around the body (loop, timestamps, commit, return of times) is in
//! each database's module.

use std::borrow::Cow;

use loadline_workload::{
    Arg, Arm, Effect, FACTORS, Generator, JobStart, Kernel, MODULI, POOL_BYTES, Program, SECOND, Step, Template,
    VarType, limit, salt_offset, swapped,
};

use crate::work::Work;

/// Arguments of a slice of a job's procedure, in the order of its parameters: what tells the job from others, its pool of bytes, when to
/// stop, µs of the server's clock, and the number of its next transaction.
pub(crate) fn arguments<'a>(start: &JobStart, pool: &'a [u8], until_us: i64, next: i64) -> [Arg<'a>; 6] {
    let JobStart { first_key, new_key, draw } = *start;
    [
        Arg::Int(first_key),
        Arg::Int(new_key),
        Arg::Int(draw as i64),
        Arg::Bytes(pool),
        Arg::Int(until_us),
        Arg::Int(next),
    ]
}

/// How a procedure language writes the parts of a program.
pub(crate) trait Dialect {
    /// Full name of a table of the workload.
    fn table(&self, work: &Work, table: &str) -> String;

    /// Name of a program's variable; no column has the same name.
    fn variable(&self, name: &str) -> String;

    /// The line that declares `variable`.
    fn declaration(&self, variable: &str, kind: VarType) -> String;

    /// The statement that sets `variable`.
    fn assignment(&self, variable: &str, value: &str) -> String {
        format!("{variable} := {value};")
    }

    /// The sequence number of the current transaction; −1 until it is `bound` for the first time.
    fn sequence(&self, bound: bool) -> &'static str {
        if bound { "l_seq" } else { "GREATEST(l_seq, 0)" }
    }

    /// The same as a function of the loop's own counter, for programs that take one number per transaction, before all else.
    fn counter(&self) -> Option<&'static str> {
        None
    }

    /// The parameter that holds [`loadline_workload::JobStart::first_key`].
    fn first_key(&self) -> &'static str {
        "p_first_key"
    }

    /// `bytes` bytes of the pool at the offset of [`loadline_workload::payload_offset`], which is below `offsets`.
    fn payload(&self, sequence: &str, offsets: u64, bytes: u32) -> String;

    /// `a` modulo `b`; `a` may be any term.
    fn modulo(&self, a: &str, b: u64) -> String {
        format!("MOD({a}, {b})")
    }

    /// The parameter that holds [`loadline_workload::JobStart::draw`].
    fn draw_start(&self) -> &'static str {
        "p_draw"
    }

    /// Random number below 2³¹ of `sequence` and `salt`: the arithmetic of [`loadline_workload::draw`].
    fn draw_31(&self, sequence: &str, salt: u64) -> String {
        let step = self.modulo(sequence, MODULI[0]);
        let start = self.draw_start();
        let index = self.modulo(&format!("({step} * {} + {start} + {salt})", FACTORS[0]), MODULI[0]);
        let square = self.modulo(&format!("({index} * {index})"), MODULI[1]);
        self.modulo(&format!("({square} * {})", FACTORS[1]), MODULI[2])
    }

    /// A new key, unique per job and `sequence`.
    fn new_key(&self, sequence: &str) -> String {
        format!("p_new_key + {sequence}")
    }

    /// Lines that execute query number `number`, fetch all rows, and fail the transaction, with `place` as in [`Dialect::check`], if
    /// the number of rows differs from `effect`.
    fn query(&self, number: usize, place: &str, sql: &str, effect: Effect) -> Vec<Line>;

    /// The statement in the words of the language, if they differ.
    fn template<'a>(&self, template: &'a Template) -> Cow<'a, Template> {
        Cow::Borrowed(template)
    }

    /// The line that executes a statement that creates or drops an object.
    fn command(&self, sql: &str) -> String {
        format!("{sql};")
    }

    /// See [`loadline_workload::Piece::Renew`].
    fn renewed(&self, columns: &[String; 2]) -> String {
        swapped(columns)
    }

    /// The clause for the first `rows` rows of a query, after skipping `after`.
    fn first_rows(&self, rows: u64, after: u64) -> String {
        limit(rows, after)
    }

    /// Lines that run a computation `times` times, starting from the transaction's `sequence`; none if the language
    /// has no kernels.
    fn compute(&self, _kernel: Kernel, _times: u32, _sequence: &str) -> Vec<Line> {
        Vec::new()
    }

    /// Lines before and after a block that runs `times` times; `depth` is the number of open loops, including this
    /// one.
    fn repetition(&self, depth: usize, times: u64) -> (Vec<Line>, &'static str) {
        (vec![Line(0, format!("FOR l_repeat_{depth} IN 1..{times} LOOP"))], "END LOOP;")
    }

    /// The empty statement.
    fn nothing(&self) -> &'static str {
        "NULL;"
    }

    /// The keyword of a further condition of an IF.
    fn else_if(&self) -> &'static str {
        "ELSIF"
    }

    /// Lines that fail the transaction if a statement did not touch `rows` rows. `place`: what it is called, as part of a text of SQL.
    fn check(&self, place: &str, rows: u64) -> Vec<Line>;
}

/// An indentation level, relative to the surrounding lines, and a line.
pub(crate) struct Line(pub(crate) usize, pub(crate) String);

/// Splits a text into lines; two leading spaces are one level.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let rest = line.trim_start_matches(' ');
        Line((line.len() - rest.len()) / 2, rest.to_owned())
    };
    text.lines().map(line).collect()
}

/// A rendered program.
pub(crate) struct Body {
    /// Declarations of the used variables.
    pub(crate) declarations: String,
    /// Its statements, one per line.
    pub(crate) text: String,
    /// Deepest nesting of loops.
    pub(crate) loops: usize,
    /// Whether the sequence is [`Dialect::counter`].
    pub(crate) counted: bool,
}

/// Renders the program of `work`, indented by `level`.
pub(crate) fn body(work: &Work, dialect: &dyn Dialect, level: usize) -> Body {
    let mut writer = Writer {
        work,
        dialect,
        program: &work.program,
        text: String::new(),
        depth: 0,
        loops: 0,
        sequence_bound: false,
        counter: dialect.counter().filter(|_| work.program.numbers_transactions()),
    };
    writer.steps(&work.program.body, level);
    let declarations = writer.declarations();
    Body { declarations, text: writer.text, loops: writer.loops, counted: writer.counter.is_some() }
}

struct Writer<'a> {
    work: &'a Work,
    dialect: &'a dyn Dialect,
    program: &'a Program,
    text: String,
    depth: usize,
    loops: usize,
    /// Whether the sequence is bound, so it is at least 0.
    sequence_bound: bool,
    /// See [`Dialect::counter`].
    counter: Option<&'static str>,
}

impl Writer<'_> {
    /// Whether a statement, a choice or another variable uses the variable.
    fn is_used(&self, var: &str) -> bool {
        self.program.statements.iter().any(|s| s.template.vars().any(|v| v == var))
            || self.program.vars().iter().any(|(_, g)| matches!(g, Generator::Plus { var: of, .. } if *of == var))
            || chooses_by(&self.program.body, var)
    }

    /// The sequence number of the transaction.
    fn sequence(&self) -> &'static str {
        self.counter.unwrap_or_else(|| self.dialect.sequence(self.sequence_bound))
    }

    /// The variable, or the sum that it stands for: each assignment costs time in every transaction.
    fn term(&self, var: &str) -> String {
        match self.program.sum(var) {
            Some((of, by)) => format!("({} + {by})", self.term(of)),
            None => self.dialect.variable(var),
        }
    }

    fn declarations(&self) -> String {
        let stored = |var: &str| self.is_used(var) && self.program.sum(var).is_none();
        let used = self.program.vars().into_iter().filter(|(var, _)| stored(var));
        used.map(|(var, generator)| {
            let line = self.dialect.declaration(&self.dialect.variable(var), generator.var_type());
            format!("  {line}\n")
        })
        .collect()
    }

    fn line(&mut self, level: usize, text: &str) {
        self.text.push_str(&"  ".repeat(level));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn lines(&mut self, level: usize, lines: &[Line]) {
        lines.iter().for_each(|Line(indent, text)| self.line(level + indent, text));
    }

    fn steps(&mut self, steps: &[Step], level: usize) {
        for step in steps {
            match step {
                Step::Bind { var, generator } => self.bind(var, generator, level),
                Step::Repeat { times, body } => {
                    self.depth += 1;
                    self.loops = self.loops.max(self.depth);
                    let (before, after) = self.dialect.repetition(self.depth, u64::from(*times));
                    self.lines(level, &before);
                    self.steps(body, level + 1);
                    self.line(level, after);
                    self.depth -= 1;
                }
                Step::Execute { statement } => self.execute(*statement, level),
                Step::Choose { var, arms } => self.choose(var, arms, level),
                Step::Compute { kernel, times } => {
                    let lines = self.dialect.compute(*kernel, *times, self.sequence());
                    self.lines(level, &lines);
                }
                // The capability is missing: no procedure can load in bulk.
                Step::Bulk { .. } => {}
            }
        }
    }

    fn choose(&mut self, var: &str, arms: &[Arm], level: usize) {
        let (var, mut below) = (self.dialect.variable(var), 0);
        let bound = self.sequence_bound;
        for (i, arm) in arms.iter().enumerate() {
            below += arm.share;
            let word = if i == 0 { "IF" } else { self.dialect.else_if() };
            // The shares cover all values, so the last arm is ELSE.
            match i + 1 == arms.len() && i > 0 {
                true => self.line(level, "ELSE"),
                false => self.line(level, &format!("{word} {var} < {below} THEN")),
            }
            self.sequence_bound = bound;
            self.steps(&arm.body, level + 1);
            if arm.body.is_empty() {
                let nothing = self.dialect.nothing();
                self.line(level + 1, nothing);
            }
        }
        self.sequence_bound = bound;
        self.line(level, "END IF;");
    }

    fn bind(&mut self, var: &str, generator: &Generator, level: usize) {
        if *generator == Generator::Sequence {
            if self.counter.is_none() {
                let next = self.dialect.assignment("l_seq", "l_seq + 1");
                self.line(level, &next);
            }
            self.sequence_bound = true;
        }
        if !self.is_used(var) || self.program.sum(var).is_some() {
            return;
        }
        let sequence = self.sequence();
        let value = match *generator {
            Generator::Sequence => sequence.to_owned(),
            Generator::OwnRow { rows } => {
                format!("{} + {}", self.dialect.first_key(), self.turn(sequence, rows))
            }
            Generator::OwnRange { rows, ranges } => {
                format!("{} + {} * {rows}", self.dialect.first_key(), self.turn(sequence, ranges))
            }
            Generator::Payload { bytes } => {
                let offsets = (POOL_BYTES as u64).saturating_sub(u64::from(bytes)).max(1);
                self.dialect.payload(sequence, offsets, bytes)
            }
            Generator::Uniform { from, range, salt } => self.uniform(sequence, from, range, salt),
            Generator::Turn { of } => self.turn(sequence, of),
            Generator::NewKey => self.dialect.new_key(sequence),
            Generator::Constant(value) => value.to_string(),
            Generator::Plus { ref var, by } => format!("{} + {by}", self.term(var)),
        };
        let assignment = self.dialect.assignment(&self.dialect.variable(var), &value);
        self.line(level, &assignment);
    }

    /// The place in a cycle of `of` places.
    fn turn(&self, sequence: &str, of: u64) -> String {
        self.dialect.modulo(&format!("({sequence} + {})", self.dialect.draw_start()), of.max(1))
    }

    /// The arithmetic of [`loadline_workload::draw`].
    fn uniform(&self, sequence: &str, from: i64, range: u64, salt: u32) -> String {
        let modulo = |a: &str, b: u64| self.dialect.modulo(a, b);
        let part = |salt: u32| self.dialect.draw_31(sequence, salt_offset(salt));
        let number = if range <= MODULI[2] {
            part(salt)
        } else {
            format!("({} * {} + {})", part(salt + SECOND), 1_u64 << 31, part(salt))
        };
        let number = modulo(&number, range.max(1));
        if from == 0 { number } else { format!("{from} + {number}") }
    }

    fn execute(&mut self, number: usize, level: usize) {
        // Unreachable: a program is checked before it is rendered.
        let Some(statement) = self.program.statements.get(number) else { return };
        let dialect = self.dialect;
        let template = dialect.template(&statement.template);
        let sql = template.render_with(
            |table| dialect.table(self.work, table),
            |var| self.term(var),
            |rows, after| dialect.first_rows(rows, after),
            |columns| dialect.renewed(columns),
        );
        let place = match statement.place.as_str() {
            "" => format!("statement {number}"),
            // Neither ends the text nor is a place for a value in it.
            place => place.replace('\'', "''").replace(['%', '\\'], "_"),
        };
        if statement.effect.reads() {
            return self.lines(level, &dialect.query(number, &place, &sql, statement.effect));
        }
        let text = if statement.effect == Effect::Command { dialect.command(&sql) } else { format!("{sql};") };
        self.line(level, &text);
        if let Some(rows) = statement.effect.rows() {
            self.lines(level, &dialect.check(&place, rows));
        }
    }
}

/// Whether a choice in `steps` depends on `var`.
fn chooses_by(steps: &[Step], var: &str) -> bool {
    steps.iter().any(|step| match step {
        Step::Choose { var: by, arms } => *by == var || arms.iter().any(|arm| chooses_by(&arm.body, var)),
        Step::Repeat { body, .. } => chooses_by(body, var),
        _ => false,
    })
}

#[cfg(test)]
mod tests {

    use loadline_workload::{Commit, Statement};

    use super::*;

    struct Plain;

    impl Dialect for Plain {
        fn table(&self, _: &Work, table: &str) -> String {
            format!("t_{table}")
        }
        fn variable(&self, name: &str) -> String {
            format!("v_{name}")
        }
        fn declaration(&self, variable: &str, kind: VarType) -> String {
            format!("{variable} {kind:?}")
        }
        fn payload(&self, sequence: &str, offsets: u64, bytes: u32) -> String {
            format!("payload({sequence}, {}, {bytes})", offsets + u64::from(bytes) == POOL_BYTES as u64)
        }
        fn check(&self, place: &str, rows: u64) -> Vec<Line> {
            vec![Line(1, format!("check {place} {rows}"))]
        }
        fn query(&self, number: usize, place: &str, sql: &str, effect: Effect) -> Vec<Line> {
            vec![Line(0, format!("query {number} {place} {effect:?}: {sql}"))]
        }
    }

    #[test]
    fn loops_nest_and_unused_variables_are_not_bound() {
        let bind = Step::bind;
        let program = Program {
            statements: vec![
                Statement::new("UPDATE {redo} SET p = :p WHERE k = :k", Effect::Change(1)).unwrap(),
                Statement::new("SELECT :k, :k4", Effect::ReadAny).unwrap(),
            ],
            body: vec![
                bind("unused", Generator::Payload { bytes: 9 }),
                bind("k", Generator::OwnRow { rows: 0 }),
                Step::Repeat {
                    times: 2,
                    body: vec![
                        bind("s", Generator::Sequence),
                        Step::Repeat { times: 3, body: vec![bind("p", Generator::Payload { bytes: 8 })] },
                        Step::Execute { statement: 0 },
                        Step::Execute { statement: 7 },
                    ],
                },
                Step::Repeat { times: 4, body: vec![] },
                bind("k4", Generator::Plus { var: "k".to_owned(), by: 4 }),
                Step::Execute { statement: 1 },
            ],
            commit: Commit::Wait,
        };
        let work = Work { program, ..Work::of("LGWR-LAT1", &[]).unwrap() };
        let body = body(&work, &Plain, 1);
        assert_eq!((body.declarations.as_str(), body.loops), ("  v_k Int\n  v_p Bytes\n", 2));
        let sql = work.program.statements[0].template.render(|t| format!("t_{t}"), |v| format!("v_{v}"));
        let want = format!(
            "  v_k := p_first_key + MOD((GREATEST(l_seq, 0) + p_draw), 1);
  FOR l_repeat_1 IN 1..2 LOOP
    l_seq := l_seq + 1;
    FOR l_repeat_2 IN 1..3 LOOP
      v_p := payload(l_seq, true, 8);
    END LOOP;
    {sql};
      check statement 0 1
  END LOOP;
  FOR l_repeat_1 IN 1..4 LOOP
  END LOOP;
  query 1 statement 1 ReadAny: SELECT v_k, (v_k + 4)
"
        );
        assert_eq!(body.text, want);
    }

    #[test]
    fn a_choice_is_one_if_and_an_empty_arm_has_the_empty_statement() {
        let arm = |share, body| Arm { share, body };
        let program = Program {
            statements: vec![Statement::new("UPDATE {redo} SET n = 1 WHERE k = :k", Effect::Change(1)).unwrap()],
            body: vec![
                Step::bind("s", Generator::Sequence),
                Step::bind("c", Generator::Turn { of: 10 }),
                Step::Choose {
                    var: "c".to_owned(),
                    arms: vec![
                        arm(7, vec![Step::bind("k", Generator::NewKey), Step::Execute { statement: 0 }]),
                        arm(2, vec![]),
                        arm(1, vec![Step::Repeat { times: 10, body: vec![Step::bind("s", Generator::Sequence)] }]),
                    ],
                },
            ],
            commit: Commit::Wait,
        };
        program.check().unwrap();
        let work = Work { program, ..Work::of("LGWR-LAT1", &[]).unwrap() };
        let body = body(&work, &Plain, 0);
        assert_eq!(body.declarations, "  v_c Int\n  v_k Int\n");
        let want = "l_seq := l_seq + 1;
v_c := MOD((l_seq + p_draw), 10);
IF v_c < 7 THEN
  v_k := p_new_key + l_seq;
  UPDATE t_redo SET n = 1 WHERE k = v_k;
    check statement 0 1
ELSIF v_c < 9 THEN
  NULL;
ELSE
  FOR l_repeat_1 IN 1..10 LOOP
    l_seq := l_seq + 1;
  END LOOP;
END IF;
";
        assert_eq!(body.text, want);
    }
}
