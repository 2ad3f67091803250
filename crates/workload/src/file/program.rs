//! The transaction program of a workload file for given parameters.
//!
//! [`program`] walks over the steps of the file and makes those of the [`Program`]. It is also how a file is checked: reading
//! a file makes its program with the default, lowest and highest parameters.

use std::ops::Range;

use super::expression::{MAX_COPIES, Scope};
use super::reader::{Fields, Source, Value};
use super::tables::{MAX_PAYLOAD, unique};
use super::words::KERNELS;
use super::{MAX_ROWS, UserError, intern};
use crate::params::Params;
use crate::program::{Arm, Commit, Effect, Generator, Program, Statement, Step, VarType, each, each_mut};
use crate::table::{LogicalType, RowCount, Table};
use crate::template::{IndexAtom, Piece, Template};

/// Most repetitions of a block, or rows of a bulk.
const MAX_TIMES: i64 = 10_000_000;
/// Most steps of a program, those of written-out repetitions included.
const MAX_WRITTEN: usize = 100_000;
/// Prefix of the variables that loadline creates for choices.
const CHOICE: &str = "choice_";
/// Lowest and highest number of a draw.
const DRAWN: (i64, i64) = (-(1 << 60), 1 << 60);

/// A statement with its name and what its execution needs.
struct Named {
    name: String,
    at: Range<usize>,
    sql_at: Range<usize>,
    statement: Statement,
    executed: bool,
}

/// Makes the program of a file.
pub(super) fn program(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    params: &Params,
    tables: &[Table],
    is_own: bool,
) -> Result<Program, UserError> {
    let scope = Scope { params, tables, numbers: Vec::new() };
    let mut walk =
        Walk { source, scope, statements: Vec::new(), types: Vec::new(), salt: 0, choices: 0, turn: None, written: 0 };
    let commit = walk.commit(fields)?;
    walk.statements(fields, is_own)?;
    let at = fields.required("program")?;
    let list = source.list(at, "'program' of the workload")?;
    let mut body = Vec::new();
    walk.steps(&list, &mut Bound::default(), &mut body)?;
    if let Some(unused) = walk.statements.iter().find(|s| !s.executed) {
        let text =
            format!("the statement '{}' is never executed: add {{ execute = \"{0}\" }} to the program", unused.name);
        return Err(source.error(unused.at.clone(), text));
    }
    walk.check_new_keys(&body)?;
    // Those of branches that are not taken are left out.
    let mut used = Vec::new();
    let mut works = false;
    each(&body, &mut |step| match step {
        Step::Execute { statement } => used.push(*statement),
        step => works |= matches!(step, Step::Bulk { .. } | Step::Compute { .. }),
    });
    if walk.statements.is_empty() && !works {
        return Err(source.error(at.span(), "the program does nothing: it needs a statement to execute"));
    }
    used.sort_unstable();
    used.dedup();
    each_mut(&mut body, &mut |step| {
        if let Step::Execute { statement } = step {
            *statement = used.binary_search(statement).unwrap_or(0);
        }
    });
    let all = walk.statements.into_iter().enumerate().filter(|(i, _)| used.binary_search(i).is_ok());
    Ok(Program { statements: all.map(|(_, s)| s.statement).collect(), body, commit })
}

/// Parses `sql`, which must be one statement on known tables.
pub(super) fn template(
    source: &Source<'_>,
    value: &Value<'_>,
    what: &str,
    scope: &mut Scope<'_>,
) -> Result<Template, UserError> {
    let refuse = |why: String| source.error(value.span(), format!("{what}: {why}"));
    let sql = scope.text(source.text(value, what)?).map_err(|e| refuse(e.to_string()))?;
    let template = Template::parse(&sql).map_err(|e| refuse(e.to_string()))?;
    let tables = scope.tables;
    for piece in &template.pieces {
        let (table, column) = match piece {
            Piece::Table(name) => (Some(name.as_str()), None),
            Piece::Index(atom) => IndexAtom::parse(atom).map_or((None, None), |i| (Some(i.table), Some(i.column))),
            Piece::Renew(_) if verb(&template) != "UPDATE" => {
                return Err(refuse("only an UPDATE can renew columns".to_owned()));
            }
            Piece::Renew(columns) => {
                let known = tables.iter().flat_map(|t| t.columns).filter(|c| c.logical == LogicalType::Bytes);
                if let Some(name) = columns.iter().find(|name| !known.clone().any(|c| c.name == **name)) {
                    return Err(source.unknown(value, &format!("{what}: the column"), name, known.map(|c| c.name)));
                }
                continue;
            }
            Piece::Sql(sql) if sql.contains(';') => {
                return Err(refuse("it must be one statement, without semicolon".to_owned()));
            }
            _ => continue,
        };
        let found = tables.iter().find(|t| Some(t.name) == table);
        let Some(found) = found else {
            let known = tables.iter().map(|t| t.name);
            return Err(source.unknown(value, &format!("{what}: the table"), table.unwrap_or_default(), known));
        };
        if let Some(name) = column.filter(|name| !found.columns.iter().any(|c| c.name == *name)) {
            let known = found.columns.iter().map(|c| c.name);
            return Err(source.unknown(value, &format!("{what}: the column"), name, known));
        }
    }
    Ok(template)
}

fn verb(template: &Template) -> String {
    let first = template.pieces.first().map_or("", |p| if let Piece::Sql(sql) = p { sql.as_str() } else { "" });
    first.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_uppercase()
}

/// Variables bound before a step.
#[derive(Clone, Default)]
struct Bound {
    vars: Vec<&'static str>,
    sequence: bool,
}

struct Walk<'s, 'a, 'p> {
    source: &'s Source<'a>,
    scope: Scope<'p>,
    statements: Vec<Named>,
    types: Vec<(&'static str, VarType)>,
    /// Last salt given out: each random number has its own, so they are independent.
    salt: u32,
    choices: u32,
    /// Position of the program's turn.
    turn: Option<Range<usize>>,
    written: usize,
}

/// The kinds of steps with their keys.
const STEPS: [(&str, &[&str]); 8] = [
    ("bind", &["bind", "to"]),
    ("execute", &["execute"]),
    ("repeat", &["repeat", "steps"]),
    ("choose", &["choose", "by", "as", "salt"]),
    ("bulk", &["bulk", "rows"]),
    ("compute", &["compute", "times"]),
    ("unroll", &["unroll", "from", "to", "steps"]),
    ("when", &["when", "steps", "otherwise"]),
];
/// The kinds of values with their keys.
const VALUES: [(&str, &[&str]); 7] = [
    ("own-row", &["own-row"]),
    ("own-range", &["own-range", "rows"]),
    ("row", &["row", "salt"]),
    ("payload", &["payload"]),
    ("uniform", &["uniform", "salt"]),
    ("constant", &["constant"]),
    ("plus", &["plus"]),
];

impl<'a> Walk<'_, 'a, '_> {
    fn amount(&self, value: &Value<'a>, what: &str, range: (i64, i64)) -> Result<i64, UserError> {
        self.source.amount(value, what, &self.scope, range)
    }

    /// A name in which numbers are written out.
    fn name(&mut self, value: &Value<'a>, what: &str, also: char) -> Result<String, UserError> {
        let text = self.written_out(value, what)?;
        self.source.name(value, &text, what, also, 30)
    }

    fn written_out(&mut self, value: &Value<'a>, what: &str) -> Result<String, UserError> {
        let text = self.source.text(value, what)?;
        self.scope.text(text).map_err(|e| self.source.error(value.span(), format!("{what}: {e}")))
    }

    fn commit(&self, fields: &Fields<'_, 'a>) -> Result<Commit, UserError> {
        let Some(value) = fields.optional("commit") else { return Ok(Commit::Wait) };
        let what = "'commit' of the workload";
        let waits = if value.get_ref().is_str() {
            self.source.word(value, what, &["wait", "nowait"])? == "wait"
        } else {
            let f = self.source.fields(value, what, &["wait-if"])?;
            self.amount(f.required("wait-if")?, what, (0, 1))? == 1
        };
        Ok(if waits { Commit::Wait } else { Commit::Nowait })
    }

    fn statements(&mut self, fields: &Fields<'_, 'a>, is_own: bool) -> Result<(), UserError> {
        let source = self.source;
        for value in fields.list("statement")? {
            let f = source.fields(value, "a statement", &["name", "sql", "effect"])?;
            let at = f.required("name")?;
            let name = self.name(at, "the statement", '-')?;
            unique(source, at, "statement", &name, self.statements.iter().map(|s| s.name.as_str()))?;
            let sql_at = f.required("sql")?;
            let what = format!("the SQL of '{name}'");
            let template = template(source, sql_at, &what, &mut self.scope)?;
            let effect_at = f.required("effect")?;
            let effect = self.effect(effect_at, &name)?;
            let verb = verb(&template);
            let of_index = template.pieces.iter().any(|p| matches!(p, Piece::Index(_)));
            let (fits, needs) = match verb.as_str() {
                "SELECT" => (effect.reads(), "{ read = ROWS } or \"read-any\""),
                "INSERT" | "UPDATE" | "DELETE" => (
                    matches!(effect, Effect::Change(_) | Effect::ChangeBetween(..)),
                    "{ change = ROWS } or { change = [FEWEST, MOST] }",
                ),
                "CREATE" | "DROP" if of_index => (effect == Effect::Command, "\"command\""),
                _ => {
                    let text = format!(
                        "{what} starts with '{verb}': a statement must be SELECT, INSERT, UPDATE or DELETE, or create or \
                         drop an index"
                    );
                    return Err(source.error(sql_at.span(), text));
                }
            };
            if !fits {
                let text = format!("the effect of '{name}' does not fit: {verb} needs {needs}");
                return Err(source.error(effect_at.span(), text));
            }
            let (at, sql_at) = (at.span(), sql_at.span());
            let place = format!("'{name}' ({}:{})", source.file, source.line(&at));
            let statement = Statement { template, effect, place: if is_own { place } else { String::new() } };
            self.statements.push(Named { name, at, sql_at, statement, executed: false });
        }
        Ok(())
    }

    fn effect(&self, value: &Value<'a>, name: &str) -> Result<Effect, UserError> {
        let source = self.source;
        let what = format!("the effect of '{name}'");
        if value.get_ref().is_str() {
            return Ok(match source.word(value, &what, &["read-any", "command"])? {
                "command" => Effect::Command,
                _ => Effect::ReadAny,
            });
        }
        let rows = |v, least| self.amount(v, &what, (least, MAX_ROWS)).map(i64::cast_unsigned);
        let f = source.fields(value, &what, &["change", "read"])?;
        match (f.optional("change"), f.optional("read")) {
            (Some(v), None) if v.get_ref().is_array() => {
                let [low, high] = source.list(v, &what)?[..] else {
                    return Err(source.error(v.span(), format!("{what} must be [FEWEST, MOST]")));
                };
                let (low, high) = (rows(low, 0)?, rows(high, 1)?);
                if low > high {
                    let text = format!("{what} is [FEWEST, MOST], and {low} is more than {high}");
                    return Err(source.error(v.span(), text));
                }
                Ok(Effect::ChangeBetween(low, high))
            }
            (Some(v), None) => Ok(Effect::Change(rows(v, 1)?)),
            (None, Some(v)) => Ok(Effect::Read(rows(v, 0)?)),
            _ => {
                let forms =
                    "{ change = ROWS }, { change = [FEWEST, MOST] }, { read = ROWS }, \"read-any\" or \"command\"";
                Err(source.error(value.span(), format!("{what} must be {forms}")))
            }
        }
    }

    fn steps(&mut self, list: &[&Value<'a>], bound: &mut Bound, out: &mut Vec<Step>) -> Result<(), UserError> {
        for value in list {
            self.written += 1;
            if self.written > MAX_WRITTEN {
                let text = format!("the program has more than {MAX_WRITTEN} steps, written out: use 'repeat'");
                return Err(self.source.error(value.span(), text));
            }
            self.step(value, bound, out)?;
        }
        Ok(())
    }

    /// The steps of an optional list.
    fn block(&mut self, of: Option<&Value<'a>>, bound: &mut Bound) -> Result<Vec<Step>, UserError> {
        let mut out = Vec::new();
        if let Some(value) = of {
            let list = self.source.list(value, "the steps")?;
            self.steps(&list, bound, &mut out)?;
        }
        Ok(out)
    }

    fn step(&mut self, value: &Value<'a>, bound: &mut Bound, out: &mut Vec<Step>) -> Result<(), UserError> {
        let source = self.source;
        let (kind, f) = source.kind(value, "a step", &STEPS)?;
        let at = f.required(kind)?;
        let step = match kind {
            "bind" => self.bind(at, f.required("to")?, bound)?,
            "execute" => self.execute(at, bound)?,
            "repeat" => {
                let times = self.amount(at, "'repeat'", (0, MAX_TIMES))? as u32;
                Step::Repeat { times, body: self.block(Some(f.required("steps")?), bound)? }
            }
            "bulk" => self.bulk(at, f.required("rows")?, bound)?,
            "compute" => {
                let kernel = source.one_of(at, "the computation", KERNELS)?;
                Step::Compute { kernel, times: self.amount(f.required("times")?, "'times'", (1, MAX_TIMES))? as u32 }
            }
            "unroll" => return self.unroll(&f, at, bound, out),
            "when" => {
                let holds = self.amount(at, "'when'", (i64::MIN, i64::MAX))? != 0;
                // Both are read, so that both are checked and random numbers do not depend on the branch.
                let mut branches = [bound.clone(), bound.clone()];
                let steps = self.block(Some(f.required("steps")?), &mut branches[0])?;
                let otherwise = self.block(f.optional("otherwise"), &mut branches[1])?;
                let [then, other] = branches;
                let (taken, body) = if holds { (then, steps) } else { (other, otherwise) };
                *bound = taken;
                out.extend(body);
                return Ok(());
            }
            _ => return self.choose(&f, at, bound, out),
        };
        out.push(step);
        Ok(())
    }

    fn unroll(
        &mut self,
        f: &Fields<'_, 'a>,
        at: &Value<'a>,
        bound: &mut Bound,
        out: &mut Vec<Step>,
    ) -> Result<(), UserError> {
        let name = self.name(at, "the number", '-')?;
        let range = (-MAX_COPIES, MAX_COPIES);
        let from = f.optional("from").map_or(Ok(1), |v| self.amount(v, "'from'", range))?;
        let to = self.amount(f.required("to")?, "'to'", range)?;
        let steps = self.source.list(f.required("steps")?, "the steps")?;
        for number in from..=to {
            self.scope.numbers.push((name.clone(), number));
            self.steps(&steps, bound, out)?;
            self.scope.numbers.pop();
        }
        Ok(())
    }

    fn bind(&mut self, at: &Value<'a>, to: &Value<'a>, bound: &mut Bound) -> Result<Step, UserError> {
        let name = self.name(at, "the variable", '_')?;
        if name.starts_with(CHOICE) {
            let text = format!("the variable '{name}' is not allowed: {CHOICE}1, {CHOICE}2, … are loadline's own");
            return Err(self.source.error(at.span(), text));
        }
        let generator = self.generator(to, &name, bound)?;
        let var = intern(&name);
        let kind = generator.var_type();
        if self.types.iter().any(|(v, was)| *v == var && *was != kind) {
            let text = format!("the variable '{name}' is bound to numbers and to bytes: use two variables");
            return Err(self.source.error(at.span(), text));
        }
        self.types.push((var, kind));
        bound.vars.push(var);
        bound.sequence |= generator == Generator::Sequence;
        Ok(Step::bind(var, generator))
    }

    /// The salt that the file gives, or the next one.
    fn salt(&mut self, f: &Fields<'_, 'a>) -> Result<u32, UserError> {
        match f.optional("salt") {
            Some(v) => Ok(self.source.integer(v, "the salt", (0, 999))? as u32),
            None => {
                self.salt += 1;
                Ok(self.salt)
            }
        }
    }

    fn generator(&mut self, value: &Value<'a>, var: &str, bound: &Bound) -> Result<Generator, UserError> {
        let source = self.source;
        let what = format!("the value of '{var}'");
        let generator = if value.get_ref().is_str() {
            match source.word(value, &what, &["sequence", "new-key"])? {
                "sequence" => return Ok(Generator::Sequence),
                _ => Generator::NewKey,
            }
        } else {
            let (kind, f) = source.kind(value, &what, &VALUES)?;
            let v = f.required(kind)?;
            match kind {
                "own-row" => Generator::OwnRow { rows: self.own_rows(v)? },
                "own-range" => {
                    let own = self.own_rows(v)?;
                    let rows = self.amount(f.required("rows")?, "the rows of the range", (1, MAX_ROWS))? as u64;
                    Generator::OwnRange { rows, ranges: (own / rows).max(1) }
                }
                "row" => Generator::Uniform { from: 0, range: self.rows(v)?, salt: self.salt(&f)? },
                "payload" => Generator::Payload { bytes: self.amount(v, &what, (1, MAX_PAYLOAD))? as u32 },
                "uniform" => self.uniform(&f, v)?,
                "constant" => return Ok(Generator::Constant(self.amount(v, &what, (i64::MIN / 2, i64::MAX / 2))?)),
                _ => return self.plus(v, bound),
            }
        };
        if !bound.sequence {
            let text = format!("'{var}' depends on the sequence: bind a variable to \"sequence\" before it");
            return Err(source.error(value.span(), text));
        }
        Ok(generator)
    }

    fn uniform(&mut self, f: &Fields<'_, 'a>, value: &Value<'a>) -> Result<Generator, UserError> {
        let source = self.source;
        let ends = source.list(value, "'uniform'")?;
        let [low_at, high_at] = ends.as_slice() else {
            return Err(source.error(value.span(), "'uniform' must be [LOWEST, HIGHEST]"));
        };
        let low = self.amount(low_at, "the lowest", DRAWN)?;
        let high = self.amount(high_at, "the highest", DRAWN)?;
        // Parameters may meet: then there is one value.
        if low > high && low_at.get_ref().is_integer() && high_at.get_ref().is_integer() {
            let text = "'uniform' must be [LOWEST, HIGHEST], but the first is above the second";
            return Err(source.error(value.span(), text));
        }
        let range = high.saturating_sub(low).max(0) as u64 + 1;
        Ok(Generator::Uniform { from: low, range, salt: self.salt(f)? })
    }

    fn table(&self, value: &Value<'a>, what: &str) -> Result<(usize, Table), UserError> {
        let name = self.source.text(value, what)?;
        let found = self.scope.tables.iter().copied().enumerate().find(|(_, t)| t.name == name);
        found.ok_or_else(|| self.source.unknown(value, what, name, self.scope.tables.iter().map(|t| t.name)))
    }

    /// Rows that each job owns of the table in `value`.
    fn own_rows(&self, value: &Value<'a>) -> Result<u64, UserError> {
        let (_, table) = self.table(value, "the table of the job's own rows")?;
        let first = self.scope.tables.iter().find(|t| matches!(t.rows, RowCount::PerJob(_)));
        let is_own = matches!(table.rows, RowCount::PerJob(_));
        if is_own && first.is_some_and(|f| f.name == table.name) {
            return Ok(table.batch_rows(self.scope.params));
        }
        let text = match first {
            Some(first) if is_own => {
                format!("jobs draw only rows of the first table with per-job rows: use '{}'", first.name)
            }
            _ => {
                let name = table.name;
                format!("jobs own no rows of '{name}', because its rows are not {{ per-job = … }}: use 'row'")
            }
        };
        Err(self.source.error(value.span(), text))
    }

    fn rows(&self, value: &Value<'a>) -> Result<u64, UserError> {
        let (_, table) = self.table(value, "the table of 'row'")?;
        if !table.is_whole() {
            let text = format!("'row' needs a table that is loaded and of no job; '{}' is not", table.name);
            return Err(self.source.error(value.span(), text));
        }
        Ok(table.total_rows(self.scope.params, 0).max(1))
    }

    fn plus(&mut self, value: &Value<'a>, bound: &Bound) -> Result<Generator, UserError> {
        let source = self.source;
        let parts = source.list(value, "'plus'")?;
        let [of, by] = parts.as_slice() else {
            return Err(source.error(value.span(), "'plus' must be [\"VARIABLE\", NUMBER]"));
        };
        let name = self.written_out(of, "the variable of 'plus'")?;
        let Some(var) = bound.vars.iter().find(|v| **v == name) else {
            return Err(source.error(of.span(), format!("the variable '{name}' is used before it is bound")));
        };
        if self.types.iter().any(|(v, kind)| v == var && *kind == VarType::Bytes) {
            return Err(source.error(of.span(), format!("'{name}' holds bytes: nothing can be added to it")));
        }
        Ok(Generator::Plus { var, by: self.amount(by, "what 'plus' adds", DRAWN)? })
    }

    fn execute(&mut self, at: &Value<'a>, bound: &Bound) -> Result<Step, UserError> {
        let name = self.written_out(at, "'execute'")?;
        let known = self.statements.iter().map(|s| s.name.as_str());
        let unknown = self.source.unknown(at, "the statement", &name, known);
        let found = self.statements.iter_mut().enumerate().find(|(_, s)| s.name == name);
        let (statement, named) = found.ok_or(unknown)?;
        named.executed = true;
        if let Some(var) = named.statement.template.vars().find(|v| !bound.vars.contains(v)) {
            let text =
                format!("the variable '{var}' of the statement '{name}' is not bound before the statement is executed");
            return Err(self.source.error(named.sql_at.clone(), text));
        }
        Ok(Step::Execute { statement })
    }

    fn bulk(&mut self, at: &Value<'a>, rows: &Value<'a>, bound: &Bound) -> Result<Step, UserError> {
        let (table, found) = self.table(at, "the table of 'bulk'")?;
        if found.rows != RowCount::Empty {
            let text = format!("'bulk' adds rows with new keys: the rows of '{}' must be \"empty\"", found.name);
            return Err(self.source.error(at.span(), text));
        }
        if !bound.sequence {
            let text = "the keys of 'bulk' depend on the sequence: bind a variable to \"sequence\" before it";
            return Err(self.source.error(at.span(), text));
        }
        Ok(Step::Bulk { table, rows: self.amount(rows, "'rows' of 'bulk'", (1, MAX_TIMES))? as u32 })
    }

    fn choose(
        &mut self,
        f: &Fields<'_, 'a>,
        at: &Value<'a>,
        bound: &Bound,
        out: &mut Vec<Step>,
    ) -> Result<(), UserError> {
        let source = self.source;
        let by = f.optional("by");
        let by_turn = by.map_or(Ok("random"), |v| source.word(v, "'by'", &["random", "turn"]))? == "turn";
        if let Some(v) = by.filter(|_| by_turn) {
            if let Some(first) = &self.turn {
                let text = format!(
                    "a program can have one turn, and line {} has one: both would use the same sequence, so some \
                     combinations of arms would never occur; choose at random here (leave 'by' out)",
                    source.line(first)
                );
                return Err(source.error(v.span(), text));
            }
            self.turn = Some(v.span());
        }
        let list = source.list(at, "'choose'")?;
        if list.len() < 2 || !bound.sequence {
            let text = if bound.sequence {
                "'choose' must be a list of at least two { share = …, steps = [ … ] }"
            } else {
                "a choice depends on the sequence: bind a variable to \"sequence\" before it"
            };
            return Err(source.error(at.span(), text));
        }
        self.choices += 1;
        let var = match f.optional("as") {
            Some(v) => intern(&self.name(v, "the variable", '_')?),
            None => intern(&format!("{CHOICE}{}", self.choices)),
        };
        let mut arms = Vec::new();
        for value in list {
            let f = source.fields(value, "an arm", &["share", "steps"])?;
            let share = self.amount(f.required("share")?, "'share'", (0, MAX_TIMES))? as u64;
            // A variable bound in one arm is not bound after the choice.
            let body = self.block(Some(f.required("steps")?), &mut bound.clone())?;
            arms.push(Arm { share, body });
        }
        let salt = self.salt(f)?;
        arms.retain(|arm| arm.share > 0);
        let of: u64 = arms.iter().map(|a| a.share).sum();
        // All shares are 0: nothing to choose.
        if of > 0 {
            let random = Generator::Uniform { from: 0, range: of, salt };
            out.push(Step::bind(var, if by_turn { Generator::Turn { of } } else { random }));
            out.push(Step::Choose { var, arms });
        }
        Ok(())
    }

    /// Checks that new keys cannot collide: they are the same in every test, so they need a table that is emptied, and rows
    /// in bulk use the same keys, so a table takes only one of the two.
    fn check_new_keys(&self, body: &[Step]) -> Result<(), UserError> {
        let (mut new, mut bulks) = (Vec::new(), Vec::new());
        each(body, &mut |step| match step {
            Step::Bind { var, generator: Generator::NewKey } => new.push(*var),
            Step::Bind { var, generator: Generator::Plus { var: of, .. } } if new.contains(of) => new.push(*var),
            Step::Bulk { table, .. } => bulks.push(*table),
            _ => {}
        });
        for s in self.statements.iter().filter(|s| verb(&s.statement.template) == "INSERT") {
            let template = &s.statement.template;
            let Some(var) = template.vars().find(|v| new.contains(v)) else { continue };
            let into = template.pieces.iter().find_map(|p| if let Piece::Table(name) = p { Some(name) } else { None });
            let tables = self.scope.tables.iter().enumerate();
            let Some((n, table)) = tables.into_iter().find(|(_, t)| into.is_some_and(|name| t.name == name)) else {
                continue;
            };
            let (name, statement) = (table.name, &s.name);
            let why = if table.rows != RowCount::Empty {
                "which is not emptied before a test: new keys are the same in every test, and those of the first job \
                 collide with loaded rows; use a table with rows = \"empty\""
            } else if bulks.contains(&n) {
                "which also gets rows in bulk: their keys would collide; use another table for one of them"
            } else {
                continue;
            };
            let text = format!("'{statement}' inserts the new key ':{var}' into '{name}', {why}");
            return Err(self.source.error(s.sql_at.clone(), text));
        }
        Ok(())
    }
}
