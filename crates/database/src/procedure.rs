//! Renders a transaction program in the procedure language of a database, in the words of its [`Language`]. The code around the body
//! (loop, timestamps, commit, return of times) is in each database's file.

use std::fmt::Display;

use loadline_model::load::MILLION;
use loadline_workload::{
    Arg, Arm, Effect, FACTORS, Generator, JobStart, Kernel, MODULI, PAYLOAD_CYCLE, PAYLOAD_STRIDE, POOL_BYTES,
    RankRange, SECOND, SHARES, Skew, Step, VarType, new_payloads, salt_offset,
};

use crate::descriptor::fill;
use crate::dialect::{Dialect, Language};
use crate::kernels;
use crate::work::Work;

/// Arguments of a slice of a job's procedure, in the order of its parameters: what tells the job from others, its pool of bytes, when to
/// stop, µs of the server's clock, and the number of its next transaction.
pub(crate) fn arguments<'a>(start: &JobStart, pool: &'a [u8], until_us: i64, next: i64) -> [Arg<'a>; 6] {
    let [first_key, new_key, draw] = [start.first_key, start.new_key, start.draw as i64].map(Arg::Int);
    [first_key, new_key, draw, Arg::Bytes(pool), Arg::Int(until_us), Arg::Int(next)]
}

/// Variables with which skewed keys are drawn.
const SKEW_VARIABLES: &[&str] = &["l_last", "l_drawn", "l_low", "l_rank", "l_base", "l_size", "l_step"];
/// The number that was drawn last for a skewed key.
const NUMBER: &str = "(l_last * 2147483648 + l_low)";
/// The step of a candidate that won: more than there are coins.
const WON: u64 = 1 << 30;

pub(crate) struct Body {
    pub(crate) declarations: String,
    pub(crate) text: String,
    /// Deepest nesting of loops.
    pub(crate) loops: usize,
    /// Whether the sequence is [`Language::counter`].
    pub(crate) counted: bool,
}

pub(crate) fn body(work: &Work, dialect: &Dialect, level: usize) -> Body {
    let language = &dialect.language;
    let mut writer = Writer {
        work,
        dialect,
        language,
        text: String::new(),
        depth: 0,
        loops: 0,
        sequence_bound: false,
        counter: if work.program.numbers_transactions() { language.counter.as_deref() } else { None },
    };
    writer.steps(&work.program.body, level);
    let declarations = writer.declarations();
    Body { declarations, text: writer.text, loops: writer.loops, counted: writer.counter.is_some() }
}

struct Writer<'a> {
    work: &'a Work,
    dialect: &'a Dialect,
    language: &'a Language,
    text: String,
    depth: usize,
    loops: usize,
    /// Whether the sequence is bound, so it is at least 0.
    sequence_bound: bool,
    counter: Option<&'a str>,
}

impl<'a> Writer<'a> {
    /// Whether a statement, a choice or another variable uses the variable.
    fn is_used(&self, var: &str) -> bool {
        self.work.program.statements.iter().any(|s| s.template.vars().any(|v| v == var))
            || self.work.program.vars().iter().any(|(_, g)| matches!(g, Generator::Plus { var: of, .. } if *of == var))
            || self.work.program.steps().iter().any(|s| matches!(s, Step::Choose { var: by, .. } if by == var))
    }

    fn sequence(&self) -> &'a str {
        self.counter.unwrap_or(&self.language.sequence[usize::from(self.sequence_bound)])
    }

    /// Name of a program's variable; no column has the same name.
    fn variable(&self, var: &str) -> String {
        self.dialect.quoted(&format!("v_{var}"))
    }

    /// The variable, or the sum that it stands for: each assignment costs time in every transaction.
    fn term(&self, var: &str) -> String {
        match self.work.program.sum(var) {
            Some((of, by)) => format!("({} + {by})", self.term(of)),
            None => self.variable(var),
        }
    }

    fn declarations(&self) -> String {
        let stored = |var: &str| self.is_used(var) && self.work.program.sum(var).is_none();
        let line = |variable: &str, kind: &str| {
            format!("  {}\n", fill(&self.language.declare, &[("variable", variable), ("type", kind)]))
        };
        let used: Vec<_> = self.work.program.vars().into_iter().filter(|(var, _)| stored(var)).collect();
        let skewed = used.iter().any(|(_, generator)| matches!(generator, Generator::Skewed { .. }));
        let of_skews = if skewed { SKEW_VARIABLES } else { &[] };
        let variables = used.into_iter().map(|(var, generator)| match generator.var_type() {
            VarType::Int => line(&self.variable(var), &self.language.number),
            VarType::Bytes => line(&self.variable(var), &self.language.bytes),
        });
        variables.chain(of_skews.iter().map(|variable| line(variable, &self.language.number))).collect()
    }

    fn line(&mut self, level: usize, text: &str) {
        self.text.push_str(&"  ".repeat(level));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds the lines of `text` with `parts` in it; two leading spaces are one level.
    fn lines(&mut self, level: usize, text: &str, parts: &[(&str, &str)]) {
        for line in text.lines() {
            let rest = line.trim_start_matches(' ');
            self.line(level + (line.len() - rest.len()) / 2, &fill(rest, parts));
        }
    }

    fn assign(&mut self, level: usize, variable: &str, value: &str) {
        let language = self.language;
        self.lines(level, &language.assign, &[("variable", variable), ("value", value)]);
    }

    fn steps(&mut self, steps: &[Step], level: usize) {
        let language = self.language;
        for step in steps {
            match step {
                Step::Bind { var, generator } => self.bind(var, generator, level),
                Step::Repeat { times, body } => {
                    self.depth += 1;
                    self.loops = self.loops.max(self.depth);
                    let (depth, times) = (self.depth.to_string(), times.to_string());
                    self.lines(level, &language.repeat, &[("depth", &depth), ("times", &times)]);
                    self.steps(body, level + 1);
                    self.line(level, &language.end_repeat);
                    self.depth -= 1;
                }
                Step::Execute { statement } => self.execute(*statement, level),
                Step::Choose { var, arms } => self.choose(var, arms, level),
                Step::Compute { kernel, times } => self.compute(*kernel, *times, level),
                // The capability is missing: no procedure can load in bulk.
                Step::Bulk { .. } => {}
            }
        }
    }

    /// Begins branch number `i` of `all`. Their conditions cover all values, so the last is ELSE.
    fn branch(&mut self, level: usize, (i, all): (usize, usize), condition: impl Display) {
        let word = if i == 0 { "IF" } else { &self.language.else_if };
        let last = i > 0 && i + 1 == all;
        self.line(level, &if last { "ELSE".to_owned() } else { format!("{word} {condition} THEN") });
    }

    fn compute(&mut self, kernel: Kernel, times: u32, level: usize) {
        let Language { kernels: words, fibonacci, .. } = self.language;
        let object = if fibonacci.is_empty() { self.dialect.full_name("fibonacci") } else { "fibonacci".to_owned() };
        let text = kernels::compute(words, [fibonacci, &object], kernel, times, self.sequence());
        self.lines(level, &text, &[]);
    }

    fn choose(&mut self, var: &str, arms: &[Arm], level: usize) {
        let (var, mut below) = (self.variable(var), 0);
        let bound = self.sequence_bound;
        for (i, arm) in arms.iter().enumerate() {
            below += arm.share;
            self.branch(level, (i, arms.len()), format_args!("{var} < {below}"));
            self.sequence_bound = bound;
            let begins_at = self.text.len();
            self.steps(&arm.body, level + 1);
            // Without steps, or with bindings only that stand where they are used.
            if self.text.len() == begins_at {
                self.line(level + 1, &self.language.nothing);
            }
        }
        self.sequence_bound = bound;
        self.line(level, "END IF;");
    }

    fn bind(&mut self, var: &str, generator: &Generator, level: usize) {
        if *generator == Generator::Sequence {
            if self.counter.is_none() {
                self.assign(level, "l_seq", "l_seq + 1");
            }
            self.sequence_bound = true;
        }
        if !self.is_used(var) || self.work.program.sum(var).is_some() {
            return;
        }
        let (sequence, language) = (self.sequence(), self.language);
        let first_key = &language.first_key;
        let value = match *generator {
            Generator::Sequence => sequence.to_owned(),
            Generator::OwnRow { rows } => format!("{first_key} + {}", self.turn(sequence, rows)),
            Generator::OwnRange { rows, ranges } => {
                format!("{first_key} + {} * {rows}", self.turn(sequence, ranges))
            }
            Generator::Payload { bytes } => {
                let offsets = (POOL_BYTES as u64).saturating_sub(u64::from(bytes)).max(1);
                let [stride, offsets, bytes] = [PAYLOAD_STRIDE, offsets, bytes.into()].map(|n| n.to_string());
                let number = self.payload_number(sequence);
                let parts =
                    [("sequence", number.as_str()), ("stride", &stride), ("offsets", &offsets), ("bytes", &bytes)];
                fill(&language.payload, &parts)
            }
            Generator::Uniform { from, range, salt } => self.uniform(sequence, from, range, salt),
            Generator::Skewed { from, ref skew, salt } => {
                let variable = self.variable(var);
                return self.skewed(sequence, (&variable, from), skew, salt, level);
            }
            Generator::Turn { of } => self.turn(sequence, of),
            Generator::NewKey => format!("{} + {sequence}", language.new_key),
            Generator::Constant(value) => value.to_string(),
            Generator::Plus { ref var, by } => format!("{} + {by}", self.term(var)),
        };
        let variable = self.variable(var);
        self.assign(level, &variable, &value);
    }

    /// `a` and `b`, which may be any terms: `a` modulo `b`.
    fn modulo(&self, a: &str, b: impl Display) -> String {
        fill(&self.language.modulo, &[("a", a), ("b", &b.to_string())])
    }

    /// The sequence number whose payload is taken: the arithmetic of [`loadline_workload::Pool::offset`].
    fn payload_number(&self, sequence: &str) -> String {
        let new = new_payloads(self.work.payload);
        if new == PAYLOAD_CYCLE {
            return sequence.to_owned();
        }
        let turn = self.modulo(sequence, PAYLOAD_CYCLE);
        format!("({sequence} - {turn} + {})", self.modulo(&turn, new))
    }

    fn turn(&self, sequence: &str, of: u64) -> String {
        self.modulo(&format!("({sequence} + {})", self.language.first_draw), of.max(1))
    }

    /// A random number below 2³¹: the arithmetic of [`loadline_workload::draw`].
    fn draw_31(&self, sequence: &str, salt: &str) -> String {
        if !self.language.draw.is_empty() {
            return fill(&self.language.draw, &[("sequence", sequence), ("salt", salt)]);
        }
        let (step, start) = (self.modulo(sequence, MODULI[0]), &self.language.first_draw);
        let index = self.modulo(&format!("({step} * {} + {start} + {salt})", FACTORS[0]), MODULI[0]);
        let square = self.modulo(&format!("({index} * {index})"), MODULI[1]);
        self.modulo(&format!("({square} * {})", FACTORS[1]), MODULI[2])
    }

    fn uniform(&self, sequence: &str, from: i64, range: u64, salt: u32) -> String {
        let part = |salt: u32| self.draw_31(sequence, &salt_offset(salt).to_string());
        let number = if range <= MODULI[2] {
            part(salt)
        } else {
            format!("({} * {} + {})", part(salt + SECOND), 1_u64 << 31, part(salt))
        };
        let number = self.modulo(&number, range.max(1));
        if from == 0 { number } else { format!("{from} + {number}") }
    }

    /// Draws the next number of the chain of [`Skew::draw`], which is then [`NUMBER`].
    fn chain(&mut self, sequence: &str, level: usize) {
        self.assign(level, "l_drawn", "l_drawn + 1");
        let low = self.draw_31(sequence, "l_last + l_drawn");
        self.assign(level, "l_low", &low);
        let last = self.draw_31(sequence, "l_low");
        self.assign(level, "l_last", &last);
    }

    /// The arithmetic of [`Skew::draw`]. `l_step` counts the coins of a candidate, and is below 0 before there is one.
    fn skewed(&mut self, sequence: &str, (variable, from): (&str, i64), skew: &Skew, salt: u32, level: usize) {
        let Skew { ref pieces, whole, rest } = *skew;
        self.assign(level, "l_last", &salt_offset(salt).to_string());
        self.assign(level, "l_drawn", "0");
        let language = self.language;
        let done = if rest == 0 { whole } else { WON };
        self.assign(level, "l_step", "-1");
        self.lines(level, &language.repeat_while, &[("condition", &format!("l_step < {done}"))]);
        self.chain(sequence, level + 1);
        self.line(level + 1, "IF l_step < 0 THEN");
        let share = self.modulo(NUMBER, SHARES);
        self.assign(level + 2, "l_rank", &share);
        for (i, RankRange { base, size, below }) in pieces.iter().enumerate() {
            self.branch(level + 2, (i, pieces.len()), format_args!("l_rank < {below}"));
            self.assign(level + 3, "l_base", &base.to_string());
            self.assign(level + 3, "l_size", &size.to_string());
        }
        self.line(level + 2, "END IF;");
        self.chain(sequence, level + 2);
        let rank = format!("l_base + {}", self.modulo(NUMBER, "l_size"));
        self.assign(level + 2, "l_rank", &rank);
        self.assign(level + 2, "l_step", "0");
        self.line(level + 1, &format!("{} {} < l_base THEN", language.else_if, self.modulo(NUMBER, "l_rank")));
        self.assign(level + 2, "l_step", &format!("CASE WHEN l_step < {whole} THEN l_step + 1 ELSE {WON} END"));
        self.line(level + 1, &format!("{} l_step < {whole} THEN", language.else_if));
        self.assign(level + 2, "l_step", "-1");
        self.line(level + 1, "ELSE");
        self.chain(sequence, level + 2);
        let lost = self.modulo(NUMBER, format!("((l_step - {whole} + 1) * {MILLION})"));
        self.assign(level + 2, "l_step", &format!("CASE WHEN {lost} < {rest} THEN -1 ELSE l_step + 1 END"));
        self.line(level + 1, "END IF;");
        self.line(level, &language.end_repeat);
        self.assign(level, variable, &format!("{} + l_rank", from - 1));
    }

    fn execute(&mut self, number: usize, level: usize) {
        // Unreachable: a program is checked before it is rendered.
        let Some(statement) = self.work.program.statements.get(number) else { return };
        let language = self.language;
        let sql = self.dialect.rendered(self.work, &statement.template, |var| self.term(var));
        let (number, rows) = (number.to_string(), statement.effect.rows().map(|rows| rows.to_string()));
        let place = match statement.place.as_str() {
            "" => format!("statement {number}"),
            // Neither ends the text nor is a place for a value in it.
            place => place.replace('\'', "''").replace(['%', '\\'], "_"),
        };
        let check = if statement.effect.reads() {
            let rest = if language.select.is_empty() { None } else { sql.strip_prefix("SELECT ") };
            let sql = rest.map_or(sql.clone(), |rest| format!("{} {rest}", language.select));
            self.lines(level, &language.read, &[("number", &number), ("sql", &sql)]);
            &language.check_read
        } else if statement.effect == Effect::Command && !language.command.is_empty() {
            self.lines(level, &language.command, &[("sql", &sql.replace('\'', "''"))]);
            &language.check
        } else {
            self.line(level, &format!("{sql};"));
            &language.check
        };
        if let Some(rows) = rows {
            self.lines(level, check, &[("place", &place), ("rows", &rows)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use loadline_workload::{Commit, Program, Statement};

    use super::*;
    use crate::registry::TARGETS;

    /// A body that no workload of the catalogue has, whose texts `crates/cli/tests/net` keeps: loops in loops, an empty arm, unused variables.
    #[test]
    fn loops_nest_an_arm_without_a_line_does_nothing_and_unused_variables_are_not_bound() {
        let bind = Step::bind;
        let (sequence, payload) =
            (|| bind("s", Generator::Sequence), |var, bytes| bind(var, Generator::Payload { bytes }));
        let (run, repeat) = (|statement| Step::Execute { statement }, |times, body| Step::Repeat { times, body });
        let arm = |share, body| Arm { name: String::new(), share, body };
        let arms = vec![
            arm(7, vec![payload("p", 7), run(0)]),
            arm(2, vec![payload("unused", 9)]),
            arm(1, vec![repeat(10, vec![sequence()])]),
        ];
        let program = Program {
            statements: vec![
                Statement::new("UPDATE {redo} SET p = :p WHERE k = :k", Effect::Change(1)).unwrap(),
                Statement::new("SELECT :k, :k4", Effect::ReadAny).unwrap(),
            ],
            body: vec![
                payload("unused", 9),
                bind("k", Generator::OwnRow { rows: 0 }),
                bind("k4", Generator::Plus { var: "k".to_owned(), by: 4 }),
                repeat(2, vec![sequence(), repeat(3, vec![payload("p", 8)]), run(0), run(7)]),
                repeat(4, vec![]),
                bind("c", Generator::Turn { of: 10 }),
                Step::Choose { var: "c".to_owned(), arms },
                run(1),
            ],
            commit: Commit::Wait,
        };
        let work = Work { program, ..Work::from_catalogue("LGWR-LAT1", &[]).unwrap() };
        let target = TARGETS.iter().find(|target| target.scheme() == "mysql").unwrap();
        let mut pieces = target.render(&work).into_iter();
        let procedure = pieces.find(|piece| piece.driver == Some(loadline_model::Driver::Database)).unwrap();
        insta::assert_snapshot!("nested", procedure.sql);
    }
}
