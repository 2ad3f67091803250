//! The transaction program of a workload file for given parameters.
//!
//! [`program`] walks over the steps of the file and makes those of the [`Program`]. Every step is checked on the way, with
//! its place in the file (`program.3.steps.0`).

use std::ops::RangeInclusive;

use super::check::ANY;
use super::expression::{MAX_COPIES, Scope};
use crate::form::{self, Amount, By, MAX_WORD, Rows, Salt, Step as Written, Value};
use crate::form::{MAX_PAYLOAD, MAX_ROWS, needs_quotes};
use crate::params::Params;
use crate::program::{Arm, Commit, Effect, Generator, Program, Statement, Step, VarType, each, each_mut};
use crate::source::{Source, UserError};
use crate::table::{LogicalType, RowCount, Table};
use crate::template::{IndexAtom, Piece, Template};
use crate::workload::Workload;

/// Repetitions of a block, rows of a bulk, shares of an arm.
const TIMES: RangeInclusive<i64> = 0..=10_000_000;
const SOME: RangeInclusive<i64> = 1..=10_000_000;
/// Most steps of a program, those of written-out repetitions included.
const MAX_WRITTEN: usize = 100_000;
/// Prefix of the variables that loadline creates for choices.
const CHOICE: &str = "choice_";
/// Numbers of a draw.
const DRAWN: RangeInclusive<i64> = -(1 << 60)..=1 << 60;

/// Makes the program of a file.
pub(super) fn program(file: &Workload, params: &Params) -> Result<Program, UserError> {
    let scope = Scope { params, tables: &file.tables, numbers: Vec::new() };
    let source = &file.source;
    let mut walk = Walk {
        file,
        source,
        scope,
        statements: Vec::new(),
        types: Vec::new(),
        salt: 0,
        choices: 0,
        turn: None,
        written: 0,
    };
    let commit = walk.commit()?;
    source.unique("statement", ".name", &file.statements, |s| &s.name)?;
    for (i, statement) in file.statements.iter().enumerate() {
        walk.statement(i, statement)?;
    }
    let mut body = Vec::new();
    walk.steps("program", &file.program, &mut Bound::default(), &mut body)?;
    if let Some(unused) = walk.statements.iter().find(|s| !s.executed) {
        let name = &unused.name;
        let text = format!("the statement '{name}' is never executed: add {{ execute = \"{name}\" }} to the program");
        return Err(source.error(&format!("{}.name", unused.at), text));
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
        return Err(source.error("program", "the program does nothing: it needs a statement to execute"));
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
    source: &Source,
    at: &str,
    sql: &str,
    what: &str,
    scope: &mut Scope<'_>,
) -> Result<Template, UserError> {
    let refuse = |why: String| source.error(at, format!("{what}: {why}"));
    let sql = scope.text(sql).map_err(|e| refuse(e.to_string()))?;
    let template = Template::parse(&sql).map_err(|e| refuse(e.to_string()))?;
    let (tables, of_table, of_column) = (scope.tables, format!("{what}: the table"), format!("{what}: the column"));
    for piece in &template.pieces {
        match piece {
            Piece::Table(name) => drop(source.find(at, &of_table, name, tables, |t| &t.name)?),
            Piece::Index(atom) => {
                if let Some(index) = IndexAtom::parse(atom) {
                    let (_, table) = source.find(at, &of_table, index.table, tables, |t| &t.name)?;
                    source.find(at, &of_column, index.column, &table.columns, |c| &c.name)?;
                }
            }
            Piece::Renew(_) if verb(&template) != "UPDATE" => {
                return Err(refuse("only an UPDATE can renew columns".to_owned()));
            }
            Piece::Renew(columns) => {
                let known = tables.iter().flat_map(|t| &t.columns).filter(|c| c.logical == LogicalType::Bytes);
                if let Some(name) = columns.iter().find(|name| !known.clone().any(|c| c.name == **name)) {
                    return Err(source.unknown(at, &of_column, name, known.map(|c| c.name.as_str())));
                }
            }
            Piece::Sql(sql) if sql.contains(';') => {
                return Err(refuse("it must be one statement, without semicolon".to_owned()));
            }
            _ => {}
        }
    }
    Ok(template)
}

fn verb(template: &Template) -> String {
    let first = template.pieces.first().map_or("", |p| if let Piece::Sql(sql) = p { sql.as_str() } else { "" });
    first.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_uppercase()
}

/// A statement with its name and place.
struct Named {
    name: String,
    at: String,
    statement: Statement,
    executed: bool,
}

/// Variables bound before a step.
#[derive(Clone, Default)]
struct Bound {
    vars: Vec<String>,
    sequence: bool,
}

struct Walk<'f> {
    file: &'f Workload,
    source: &'f Source,
    scope: Scope<'f>,
    statements: Vec<Named>,
    types: Vec<(String, VarType)>,
    /// Last salt given out: each random number has its own, so they are independent.
    salt: u32,
    choices: u32,
    /// Place of the program's turn.
    turn: Option<String>,
    written: usize,
}

impl Walk<'_> {
    fn amount(&self, at: &str, amount: &Amount, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        self.source.amount(at, amount, &self.scope, range)
    }

    fn refuse<T>(&self, at: &str, text: impl Into<String>) -> Result<T, UserError> {
        Err(self.source.error(at, text))
    }

    /// A name in which numbers are written out.
    fn written_out(&mut self, at: &str, name: &str) -> Result<String, UserError> {
        self.scope.text(name).map_err(|e| self.source.error(at, e.to_string()))
    }

    /// The name of a new variable.
    fn new_name(&mut self, at: &str, name: &str, also: char) -> Result<String, UserError> {
        let name = self.written_out(at, name)?;
        needs_quotes(&name, also, MAX_WORD).map_or(Ok(name), |why| self.refuse(at, why))
    }

    fn commit(&self) -> Result<Commit, UserError> {
        Ok(match &self.file.commit {
            form::Commit::Wait => Commit::Wait,
            form::Commit::Nowait => Commit::Nowait,
            form::Commit::WaitIf(waits) if self.amount("commit.wait-if", waits, 0..=1)? == 1 => Commit::Wait,
            form::Commit::WaitIf(_) => Commit::Nowait,
        })
    }

    fn statement(&mut self, i: usize, written: &form::Statement) -> Result<(), UserError> {
        let (name, at) = (&written.name, format!("statement.{i}"));
        let sql_at = format!("{at}.sql");
        let what = format!("the SQL of '{name}'");
        let template = template(self.source, &sql_at, &written.sql, &what, &mut self.scope)?;
        let effect = self.effect(&format!("{at}.effect"), &written.effect)?;
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
                return self.refuse(&sql_at, text);
            }
        };
        if !fits {
            let text = format!("the effect of '{name}' does not fit: {verb} needs {needs}");
            return self.refuse(&format!("{at}.effect"), text);
        }
        let place = self.file.places.get(i).cloned().unwrap_or_default();
        let statement = Statement { template, effect, place };
        self.statements.push(Named { name: name.clone(), at, statement, executed: false });
        Ok(())
    }

    fn effect(&self, at: &str, effect: &form::Effect) -> Result<Effect, UserError> {
        let change = format!("{at}.change");
        let rows = |at: &str, of: &Amount, least| self.amount(at, of, least..=MAX_ROWS).map(i64::cast_unsigned);
        Ok(match effect {
            form::Effect::Command => Effect::Command,
            form::Effect::ReadAny => Effect::ReadAny,
            form::Effect::Read(of) => Effect::Read(rows(&format!("{at}.read"), of, 0)?),
            form::Effect::Change(Rows::Exactly(of)) => Effect::Change(rows(&change, of, 1)?),
            form::Effect::Change(Rows::Between([low, high])) => {
                let (low, high) = (rows(&change, low, 0)?, rows(&change, high, 1)?);
                if low > high {
                    return self.refuse(&change, format!("'change' is [FEWEST, MOST], and {low} is more than {high}"));
                }
                Effect::ChangeBetween(low, high)
            }
        })
    }

    fn steps(&mut self, at: &str, steps: &[Written], bound: &mut Bound, out: &mut Vec<Step>) -> Result<(), UserError> {
        for (i, step) in steps.iter().enumerate() {
            let at = format!("{at}.{i}");
            self.written += 1;
            if self.written > MAX_WRITTEN {
                let text = format!("the program has more than {MAX_WRITTEN} steps, written out: use 'repeat'");
                return self.refuse(&at, text);
            }
            self.step(&at, step, bound, out)?;
        }
        Ok(())
    }

    fn block(&mut self, at: &str, steps: &[Written], bound: &mut Bound) -> Result<Vec<Step>, UserError> {
        let mut out = Vec::new();
        self.steps(at, steps, bound, &mut out)?;
        Ok(out)
    }

    fn step(&mut self, at: &str, step: &Written, bound: &mut Bound, out: &mut Vec<Step>) -> Result<(), UserError> {
        let of = |key: &str| format!("{at}.{key}");
        let step = match step {
            Written::Bind { bind, to } => self.bind(at, bind, to, bound)?,
            Written::Execute { execute } => self.execute(&of("execute"), execute, bound)?,
            Written::Repeat { repeat, steps } => {
                let times = self.amount(&of("repeat"), repeat, TIMES)? as u32;
                Step::Repeat { times, body: self.block(&of("steps"), steps, bound)? }
            }
            Written::Bulk { bulk, rows } => {
                let table = self.emptied(&of("bulk"), bulk, bound)?;
                Step::Bulk { table, rows: self.amount(&of("rows"), rows, SOME)? as u32 }
            }
            Written::Compute { compute, times } => {
                Step::Compute { kernel: *compute, times: self.amount(&of("times"), times, SOME)? as u32 }
            }
            Written::Unroll { unroll, from, to, steps } => {
                let name = self.new_name(&of("unroll"), unroll, '-')?;
                let copies = -MAX_COPIES..=MAX_COPIES;
                let (from, to) = (
                    self.amount(&of("from"), from.as_ref().unwrap_or(&Amount::Number(1)), copies.clone())?,
                    self.amount(&of("to"), to, copies)?,
                );
                for number in from..=to {
                    self.scope.numbers.push((name.clone(), number));
                    self.steps(&of("steps"), steps, bound, out)?;
                    self.scope.numbers.pop();
                }
                return Ok(());
            }
            Written::When { when, steps, otherwise } => {
                let holds = self.amount(&of("when"), when, ANY)? != 0;
                // Both are read, so that both are checked and random numbers do not depend on the branch.
                let mut branches = [bound.clone(), bound.clone()];
                let steps = self.block(&of("steps"), steps, &mut branches[0])?;
                let otherwise = otherwise.as_deref().unwrap_or_default();
                let otherwise = self.block(&of("otherwise"), otherwise, &mut branches[1])?;
                let [then, other] = branches;
                let (taken, body) = if holds { (then, steps) } else { (other, otherwise) };
                *bound = taken;
                out.extend(body);
                return Ok(());
            }
            Written::Choose { choose, by, r#as, salt } => {
                if *by == Some(By::Turn) {
                    self.only_turn(&of("by"))?;
                }
                self.choices += 1;
                let var = match r#as {
                    Some(name) => self.new_name(&of("as"), name, '_')?,
                    None => format!("{CHOICE}{}", self.choices),
                };
                let arms = self.arms(&of("choose"), choose, bound)?;
                let salt = self.salt(*salt);
                let range: u64 = arms.iter().map(|a| a.share).sum();
                // All shares are 0: nothing to choose.
                if range == 0 {
                    return Ok(());
                }
                let random = Generator::Uniform { from: 0, range, salt };
                out.push(Step::bind(&var, if *by == Some(By::Turn) { Generator::Turn { of: range } } else { random }));
                Step::Choose { var, arms }
            }
        };
        out.push(step);
        Ok(())
    }

    /// Checks that a program has one turn.
    fn only_turn(&mut self, at: &str) -> Result<(), UserError> {
        if let Some(first) = &self.turn {
            let text = format!(
                "a program can have one turn, and line {} has one: both would use the same sequence, so some \
                 combinations of arms would never occur; choose at random here (leave 'by' out)",
                self.source.error(first, "").line
            );
            return self.refuse(at, text);
        }
        self.turn = Some(at.to_owned());
        Ok(())
    }

    /// The arms of a choice that can be chosen.
    fn arms(&mut self, at: &str, written: &[form::Arm], bound: &Bound) -> Result<Vec<Arm>, UserError> {
        if !bound.sequence {
            return self.refuse(at, "a choice depends on the sequence: bind a variable to \"sequence\" before it");
        }
        if written.len() < 2 {
            return self.refuse(at, "'choose' must be a list of at least two { share = …, steps = [ … ] }");
        }
        let mut arms = Vec::new();
        for (i, arm) in written.iter().enumerate() {
            let share = self.amount(&format!("{at}.{i}.share"), &arm.share, TIMES)? as u64;
            // A variable bound in one arm is not bound after the choice.
            arms.push(Arm { share, body: self.block(&format!("{at}.{i}.steps"), &arm.steps, &mut bound.clone())? });
        }
        arms.retain(|arm| arm.share > 0);
        Ok(arms)
    }

    fn bind(&mut self, at: &str, var: &str, to: &Value, bound: &mut Bound) -> Result<Step, UserError> {
        let (to_at, at) = (format!("{at}.to"), format!("{at}.bind"));
        let var = self.new_name(&at, var, '_')?;
        if var.starts_with(CHOICE) {
            let text = format!("the variable '{var}' is not allowed: {CHOICE}1, {CHOICE}2, … are loadline's own");
            return self.refuse(&at, text);
        }
        let generator = self.generator(&to_at, to, bound)?;
        let is_drawn = !matches!(generator, Generator::Sequence | Generator::Constant(_) | Generator::Plus { .. });
        if is_drawn && !bound.sequence {
            let text = format!("'{var}' depends on the sequence: bind a variable to \"sequence\" before it");
            return self.refuse(&to_at, text);
        }
        let kind = generator.var_type();
        if self.types.iter().any(|(v, was)| *v == var && *was != kind) {
            return self
                .refuse(&at, format!("the variable '{var}' is bound to numbers and to bytes: use two variables"));
        }
        self.types.push((var.clone(), kind));
        bound.vars.push(var.clone());
        bound.sequence |= generator == Generator::Sequence;
        Ok(Step::Bind { var, generator })
    }

    /// The salt that the file gives, or the next one.
    fn salt(&mut self, given: Option<Salt>) -> u32 {
        self.salt += u32::from(given.is_none());
        given.map_or(self.salt, |Salt(salt)| salt)
    }

    fn generator(&mut self, at: &str, value: &Value, bound: &Bound) -> Result<Generator, UserError> {
        let of = |key: &str| format!("{at}.{key}");
        Ok(match value {
            Value::Sequence => Generator::Sequence,
            Value::NewKey => Generator::NewKey,
            Value::OwnRow { own_row } => Generator::OwnRow { rows: self.own_rows(&of("own-row"), own_row)? },
            Value::OwnRange { own_range, rows } => {
                let own = self.own_rows(&of("own-range"), own_range)?;
                let rows = self.amount(&of("rows"), rows, 1..=MAX_ROWS)? as u64;
                Generator::OwnRange { rows, ranges: (own / rows).max(1) }
            }
            Value::Row { row, salt } => {
                let table = self.table(&of("row"), row)?.1;
                if !table.is_whole() {
                    let text = format!("'row' needs a table that is loaded and of no job; '{row}' is not");
                    return self.refuse(&of("row"), text);
                }
                let range = table.total_rows(self.scope.params, 0).max(1);
                Generator::Uniform { from: 0, range, salt: self.salt(*salt) }
            }
            Value::Payload { payload } => {
                Generator::Payload { bytes: self.amount(&of("payload"), payload, 1..=MAX_PAYLOAD)? as u32 }
            }
            Value::Uniform { uniform: [low, high], salt } => {
                let at_ends = of("uniform");
                // Parameters may meet: then there is one value.
                if matches!((low, high), (Amount::Number(low), Amount::Number(high)) if low > high) {
                    let text = "'uniform' must be [LOWEST, HIGHEST], but the first is above the second";
                    return self.refuse(&at_ends, text);
                }
                let from = self.amount(&format!("{at_ends}.0"), low, DRAWN)?;
                let high = self.amount(&format!("{at_ends}.1"), high, DRAWN)?;
                let range = high.saturating_sub(from).max(0) as u64 + 1;
                Generator::Uniform { from, range, salt: self.salt(*salt) }
            }
            Value::Constant { constant } => {
                Generator::Constant(self.amount(&of("constant"), constant, i64::MIN / 2..=i64::MAX / 2)?)
            }
            Value::Plus { plus: (name, by) } => {
                let at = of("plus.0");
                let name = self.written_out(&at, name)?;
                if !bound.vars.contains(&name) {
                    return self.refuse(&at, format!("the variable '{name}' is used before it is bound"));
                }
                if self.types.iter().any(|(v, kind)| *v == name && *kind == VarType::Bytes) {
                    return self.refuse(&at, format!("'{name}' holds bytes: nothing can be added to it"));
                }
                Generator::Plus { by: self.amount(&of("plus.1"), by, DRAWN)?, var: name }
            }
        })
    }

    /// The table of this name with its number.
    fn table(&self, at: &str, name: &str) -> Result<(usize, &Table), UserError> {
        self.source.find(at, "the table", name, self.scope.tables, |t| &t.name)
    }

    /// Rows that each job owns of a table.
    fn own_rows(&self, at: &str, name: &str) -> Result<u64, UserError> {
        let (_, table) = self.table(at, name)?;
        if !matches!(table.rows, RowCount::PerJob(_)) {
            let text = format!("jobs own no rows of '{name}', because its rows are not {{ per-job = … }}: use 'row'");
            return self.refuse(at, text);
        }
        match self.scope.tables.iter().find(|t| matches!(t.rows, RowCount::PerJob(_))) {
            Some(first) if first.name != name => {
                let first = &first.name;
                self.refuse(at, format!("jobs draw only rows of the first table with per-job rows: use '{first}'"))
            }
            _ => Ok(table.batch_rows(self.scope.params)),
        }
    }

    /// The number of a table that takes rows in bulk.
    fn emptied(&self, at: &str, name: &str, bound: &Bound) -> Result<usize, UserError> {
        let (number, table) = self.table(at, name)?;
        if table.rows != RowCount::Empty {
            let text = format!("'bulk' adds rows with new keys: the rows of '{name}' must be \"empty\"");
            return self.refuse(at, text);
        }
        if !bound.sequence {
            let text = "the keys of 'bulk' depend on the sequence: bind a variable to \"sequence\" before it";
            return self.refuse(at, text);
        }
        Ok(number)
    }

    fn execute(&mut self, at: &str, name: &str, bound: &Bound) -> Result<Step, UserError> {
        let name = self.written_out(at, name)?;
        let (statement, _) = self.source.find(at, "the statement", &name, &self.statements, |s| &s.name)?;
        let named = &mut self.statements[statement];
        named.executed = true;
        if let Some(var) = named.statement.template.vars().find(|v| !bound.vars.iter().any(|bound| bound == v)) {
            let text =
                format!("the variable '{var}' of the statement '{name}' is not bound before the statement is executed");
            return Err(self.source.error(&format!("{}.sql", named.at), text));
        }
        Ok(Step::Execute { statement })
    }

    /// Checks that new keys cannot collide: they are the same in every test, so they need a table that is emptied, and rows
    /// in bulk use the same keys, so a table takes only one of the two.
    fn check_new_keys(&self, body: &[Step]) -> Result<(), UserError> {
        let (mut new, mut bulks) = (Vec::new(), Vec::new());
        each(body, &mut |step| match step {
            Step::Bind { var, generator: Generator::NewKey } => new.push(var.as_str()),
            Step::Bind { var, generator: Generator::Plus { var: of, .. } } if new.contains(&of.as_str()) => {
                new.push(var)
            }
            Step::Bulk { table, .. } => bulks.push(*table),
            _ => {}
        });
        for s in self.statements.iter().filter(|s| verb(&s.statement.template) == "INSERT") {
            let template = &s.statement.template;
            let Some(var) = template.vars().find(|v| new.contains(v)) else { continue };
            let into = template.pieces.iter().find_map(|p| if let Piece::Table(name) = p { Some(name) } else { None });
            let tables = self.scope.tables.iter().enumerate();
            let Some((n, table)) = tables.into_iter().find(|(_, t)| into.is_some_and(|name| t.name == *name)) else {
                continue;
            };
            let why = if table.rows != RowCount::Empty {
                "which is not emptied before a test: new keys are the same in every test, and those of the first job \
                 collide with loaded rows; use a table with rows = \"empty\""
            } else if bulks.contains(&n) {
                "which also gets rows in bulk: their keys would collide; use another table for one of them"
            } else {
                continue;
            };
            let text = format!("'{}' inserts the new key ':{var}' into '{}', {why}", s.name, table.name);
            return self.refuse(&format!("{}.sql", s.at), text);
        }
        Ok(())
    }
}
