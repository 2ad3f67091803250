//! Reads the statements and steps of a workload file.

use std::ops::Range;

use super::reader::{Fields, Source, Value};
use super::tables::{MAX_PAYLOAD, unique};
use super::{MAX_ROWS, UserError, leak};
use crate::file_program::{Amount, ChooseBy, FileEffect, FileGenerator, FileProgram, FileStep};
use crate::params::Param;
use crate::program::{Commit, VarType};
use crate::table::{LogicalType, RowCount, Table};
use crate::template::{Piece, Template};

/// Most repetitions of a block.
const MAX_TIMES: i64 = 1_000_000;
/// Prefix of the variables that loadline creates for choices.
const CHOICE: &str = "choice_";

/// A statement with its name.
struct NamedStatement {
    name: String,
    at: Range<usize>,
    sql_at: Range<usize>,
    template: Template,
    effect: FileEffect,
    executed: bool,
}

/// Reads the program of a file.
pub(super) fn program(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    params: &'static [Param],
    tables: &'static [Table],
) -> Result<FileProgram, UserError> {
    let commit = match fields.optional("commit") {
        None => Commit::Wait,
        Some(v) => match source.word(v, "'commit' of the workload", &["wait", "nowait"])? {
            "wait" => Commit::Wait,
            _ => Commit::Nowait,
        },
    };
    let statements = statements(source, fields, params, tables)?;
    let mut walk = Walk { source, params, tables, statements, types: Vec::new(), salt: 0, choices: 0, turn: None };
    let at = fields.required("program")?;
    let list = source.list(at, "'program' of the workload")?;
    let body = walk.steps(&list, &mut Bound::default())?;
    if let Some(unused) = walk.statements.iter().find(|s| !s.executed) {
        let text =
            format!("the statement '{}' is never executed: add {{ execute = \"{0}\" }} to the program", unused.name);
        return Err(source.error(unused.at.clone(), text));
    }
    check_new_keys(source, &walk.statements, &body, tables)?;
    let bulk = |steps: &[FileStep]| steps.iter().any(|s| matches!(s, FileStep::Bulk { .. }));
    if walk.statements.is_empty() && !bulk(&body) {
        return Err(source.error(at.span(), "the program does nothing: it needs a statement to execute"));
    }
    let written = |s: NamedStatement| {
        let place = format!("'{}' ({}:{})", s.name, source.file, source.line(&s.at));
        (s.template, s.effect, place)
    };
    let statements = walk.statements.into_iter().map(written).collect();
    Ok(FileProgram { statements, body, commit })
}

/// Parses `sql`, which must be one statement on known tables.
pub(super) fn template(
    source: &Source<'_>,
    value: &Value<'_>,
    what: &str,
    tables: &[Table],
) -> Result<Template, UserError> {
    let sql = source.text(value, what)?;
    let template = Template::parse(sql).map_err(|e| source.error(value.span(), format!("{what}: {e}")))?;
    for piece in &template.pieces {
        match piece {
            Piece::Table(name) if !tables.iter().any(|t| t.name == name) => {
                let known = tables.iter().map(|t| t.name);
                return Err(source.unknown(value, &format!("{what}: the table"), name, known));
            }
            Piece::Renew(_) if verb(&template) != "UPDATE" => {
                return Err(source.error(value.span(), format!("{what}: only an UPDATE can renew columns")));
            }
            Piece::Renew(columns) => {
                let known = tables.iter().flat_map(|t| t.columns).filter(|c| c.logical == LogicalType::Bytes);
                if let Some(name) = columns.iter().find(|name| !known.clone().any(|c| c.name == **name)) {
                    return Err(source.unknown(value, &format!("{what}: the column"), name, known.map(|c| c.name)));
                }
            }
            Piece::Sql(sql) if sql.contains(';') => {
                return Err(source.error(value.span(), format!("{what} must be one statement, without semicolon")));
            }
            _ => {}
        }
    }
    Ok(template)
}

fn statements(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    params: &[Param],
    tables: &[Table],
) -> Result<Vec<NamedStatement>, UserError> {
    let mut out: Vec<NamedStatement> = Vec::new();
    for value in fields.list("statement")? {
        let f = source.fields(value, "a statement", &["name", "sql", "effect"])?;
        let at = f.required("name")?;
        let name = source.name(at, "the statement", '-', 30)?;
        unique(source, at, "statement", &name, out.iter().map(|s| s.name.as_str()))?;
        let sql_at = f.required("sql")?;
        let what = format!("the SQL of '{name}'");
        let template = template(source, sql_at, &what, tables)?;
        let verb = verb(&template);
        if !["SELECT", "INSERT", "UPDATE", "DELETE"].contains(&verb.as_str()) {
            let text = format!("{what} starts with '{verb}': a statement must be SELECT, INSERT, UPDATE or DELETE");
            return Err(source.error(sql_at.span(), text));
        }
        let effect_at = f.required("effect")?;
        let effect = effect(source, effect_at, &name, params)?;
        if (verb == "SELECT") == matches!(effect, FileEffect::Change(_) | FileEffect::ChangeBetween(..)) {
            let fits = if verb == "SELECT" {
                "{ read = ROWS } or \"read-any\""
            } else {
                "{ change = ROWS } or { change = [FEWEST, MOST] }"
            };
            let text = format!(
                "the effect of '{name}' does not fit: {article} {verb} needs {fits}",
                article = if verb.starts_with(['I', 'U']) { "an" } else { "a" }
            );
            return Err(source.error(effect_at.span(), text));
        }
        let (at, sql_at) = (at.span(), sql_at.span());
        out.push(NamedStatement { name, at, sql_at, template, effect, executed: false });
    }
    Ok(out)
}

/// Checks that new keys cannot collide: they are the same in every test, so they need a table that is emptied, and rows in
/// bulk use the same keys, so a table takes only one of the two.
fn check_new_keys(
    source: &Source<'_>,
    statements: &[NamedStatement],
    body: &[FileStep],
    tables: &[Table],
) -> Result<(), UserError> {
    fn walk(steps: &[FileStep], new: &mut Vec<&'static str>, bulks: &mut Vec<usize>) {
        for step in steps {
            match step {
                FileStep::Bind { var, to: FileGenerator::NewKey } => new.push(var),
                FileStep::Bind { var, to: FileGenerator::Plus(of, _) } if new.contains(of) => new.push(var),
                FileStep::Bulk { table, .. } => bulks.push(*table),
                FileStep::Repeat { body, .. } => walk(body, new, bulks),
                FileStep::Choose { arms, .. } => arms.iter().for_each(|(_, body)| walk(body, new, bulks)),
                _ => {}
            }
        }
    }
    let (mut new, mut bulks) = (Vec::new(), Vec::new());
    walk(body, &mut new, &mut bulks);
    for s in statements.iter().filter(|s| verb(&s.template) == "INSERT") {
        let Some(var) = s.template.vars().find(|v| new.contains(v)) else { continue };
        let into = s.template.pieces.iter().find_map(|p| if let Piece::Table(name) = p { Some(name) } else { None });
        let Some((n, table)) = tables.iter().enumerate().find(|(_, t)| into.is_some_and(|name| t.name == name)) else {
            continue;
        };
        let (name, statement) = (table.name, &s.name);
        if table.rows != RowCount::Empty {
            let text = format!(
                "'{statement}' inserts the new key ':{var}' into '{name}', which is not emptied before a test: new keys are \
                 the same in every test, and those of the first job collide with loaded rows; use a table with \
                 rows = \"empty\""
            );
            return Err(source.error(s.sql_at.clone(), text));
        }
        if bulks.contains(&n) {
            let text = format!(
                "'{statement}' inserts the new key ':{var}' into '{name}', which also gets rows in bulk: their keys would \
                 collide; use another table for one of them"
            );
            return Err(source.error(s.sql_at.clone(), text));
        }
    }
    Ok(())
}

fn verb(template: &Template) -> String {
    let first = template.pieces.first().map_or("", |p| if let Piece::Sql(sql) = p { sql.as_str() } else { "" });
    first.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_uppercase()
}

fn effect(source: &Source<'_>, value: &Value<'_>, name: &str, params: &[Param]) -> Result<FileEffect, UserError> {
    let what = format!("the effect of '{name}'");
    if value.get_ref().is_str() {
        source.word(value, &what, &["read-any"])?;
        return Ok(FileEffect::ReadAny);
    }
    let f = source.fields(value, &what, &["change", "read"])?;
    match (f.optional("change"), f.optional("read")) {
        (Some(v), None) if v.get_ref().is_array() => match source.list(v, &what)?[..] {
            [low, high] => {
                let low = source.amount(low, &what, params, (0, MAX_ROWS))?;
                let high = source.amount(high, &what, params, (1, MAX_ROWS))?;
                match (low, high) {
                    (Amount::Fixed(low), Amount::Fixed(high)) if low > high => {
                        Err(source.error(v.span(), format!("{what} is [FEWEST, MOST], and {low} is more than {high}")))
                    }
                    _ => Ok(FileEffect::ChangeBetween(low, high)),
                }
            }
            _ => Err(source.error(v.span(), format!("{what} must be change = ROWS or change = [FEWEST, MOST]"))),
        },
        (Some(v), None) => Ok(FileEffect::Change(source.amount(v, &what, params, (1, MAX_ROWS))?)),
        (None, Some(v)) => Ok(FileEffect::Read(source.amount(v, &what, params, (0, MAX_ROWS))?)),
        _ => Err(source.error(
            value.span(),
            format!(
                "{what} must be {{ change = ROWS }}, {{ change = [FEWEST, MOST] }}, {{ read = ROWS }} or \"read-any\""
            ),
        )),
    }
}

/// Variables bound before a step.
#[derive(Clone, Default)]
struct Bound {
    vars: Vec<&'static str>,
    sequence: bool,
}

struct Walk<'s, 'a> {
    source: &'s Source<'a>,
    params: &'static [Param],
    tables: &'static [Table],
    statements: Vec<NamedStatement>,
    types: Vec<(&'static str, VarType)>,
    /// Last salt given out: each random number has its own, so they are independent.
    salt: u32,
    choices: u32,
    /// Position of the program's turn.
    turn: Option<Range<usize>>,
}

const STEPS: &[&str] = &["bind", "to", "execute", "repeat", "steps", "choose", "by", "bulk", "rows"];

impl<'a> Walk<'_, 'a> {
    fn steps(&mut self, list: &[&Value<'a>], bound: &mut Bound) -> Result<Vec<FileStep>, UserError> {
        list.iter().map(|value| self.step(value, bound)).collect()
    }

    fn step(&mut self, value: &Value<'a>, bound: &mut Bound) -> Result<FileStep, UserError> {
        let source = self.source;
        let f = source.fields(value, "a step", STEPS)?;
        let kinds = ["bind", "execute", "repeat", "choose", "bulk"];
        let found: Vec<&str> = kinds.into_iter().filter(|k| f.optional(k).is_some()).collect();
        let [kind] = found.as_slice() else {
            let text = format!(
                "a step needs exactly one of the keys {}; this one has {}",
                kinds.join(", "),
                match found.len() {
                    0 => "none".to_owned(),
                    _ => found.join(" and "),
                }
            );
            return Err(source.error(value.span(), text));
        };
        let goes_with: &[&str] = match *kind {
            "bind" => &["bind", "to"],
            "repeat" => &["repeat", "steps"],
            "choose" => &["choose", "by"],
            "bulk" => &["bulk", "rows"],
            _ => &["execute"],
        };
        if let Some(odd) = STEPS.iter().find(|k| f.optional(k).is_some() && !goes_with.contains(k)) {
            return Err(source
                .error(value.span(), format!("a step '{kind}' has no key '{odd}' (known: {})", goes_with.join(", "))));
        }
        let at = f.required(kind)?;
        match *kind {
            "bind" => self.bind(at, f.required("to")?, bound),
            "execute" => self.execute(at, bound),
            "repeat" => {
                let times = source.amount(at, "'repeat'", self.params, (0, MAX_TIMES))?;
                let steps = source.list(f.required("steps")?, "'steps' of a repetition")?;
                Ok(FileStep::Repeat { times, body: self.steps(&steps, bound)? })
            }
            "bulk" => self.bulk(at, f.required("rows")?, bound),
            _ => self.choose(at, f.optional("by"), bound),
        }
    }

    fn bind(&mut self, at: &Value<'a>, to: &Value<'a>, bound: &mut Bound) -> Result<FileStep, UserError> {
        let name = self.source.name(at, "the variable", '_', 30)?;
        if name.starts_with(CHOICE) {
            let text = format!("the variable '{name}' is not allowed: {CHOICE}1, {CHOICE}2, … are loadline's own");
            return Err(self.source.error(at.span(), text));
        }
        let to_what = self.generator(to, &name, bound)?;
        let kind = if let FileGenerator::Payload(_) = to_what { VarType::Bytes } else { VarType::Int };
        let var = match self.types.iter().find(|(v, _)| *v == name) {
            Some((var, was)) if *was == kind => var,
            Some(_) => {
                let text = format!("the variable '{name}' is bound to numbers and to bytes: use two variables");
                return Err(self.source.error(at.span(), text));
            }
            None => {
                let var = leak(name);
                self.types.push((var, kind));
                var
            }
        };
        bound.vars.push(var);
        bound.sequence |= matches!(to_what, FileGenerator::Sequence);
        Ok(FileStep::Bind { var, to: to_what })
    }

    fn generator(&mut self, value: &Value<'a>, var: &str, bound: &Bound) -> Result<FileGenerator, UserError> {
        let (source, params) = (self.source, self.params);
        let what = format!("the value of '{var}'");
        let all = (i64::MIN / 2, i64::MAX / 2);
        let to = if value.get_ref().is_str() {
            match source.word(value, &what, &["sequence", "new-key"])? {
                "sequence" => return Ok(FileGenerator::Sequence),
                _ => FileGenerator::NewKey,
            }
        } else {
            let known = ["own-row", "row", "payload", "uniform", "constant", "plus"];
            let f = source.fields(value, &what, &known)?;
            let found: Vec<&str> = known.into_iter().filter(|k| f.optional(k).is_some()).collect();
            let [kind] = found.as_slice() else {
                let text =
                    format!("{what} must be \"sequence\", \"new-key\" or one of {{ {} }}", known.join(" = … }, { "));
                return Err(source.error(value.span(), text));
            };
            let v = f.required(kind)?;
            match *kind {
                "own-row" => self.own_row(v)?,
                "row" => self.row(v)?,
                "payload" => FileGenerator::Payload(source.amount(v, &what, params, (1, MAX_PAYLOAD))?),
                "uniform" => {
                    let ends = source.list(v, "'uniform'")?;
                    let [low, high] = ends.as_slice() else {
                        return Err(source.error(v.span(), "'uniform' must be [LOWEST, HIGHEST]"));
                    };
                    let half = (-(1 << 60), 1 << 60);
                    let low_of = source.amount(low, "the lowest", params, half)?;
                    let high_of = source.amount(high, "the highest", params, half)?;
                    let least = |a: Amount| self.bounds(a);
                    if least(low_of).0 > least(high_of).1 {
                        return Err(source.error(
                            v.span(),
                            "'uniform' must be [LOWEST, HIGHEST], but the first is above the second",
                        ));
                    }
                    self.salt += 1;
                    FileGenerator::Uniform(low_of, high_of, self.salt)
                }
                "constant" => return Ok(FileGenerator::Constant(source.amount(v, &what, params, all)?)),
                _ => return self.plus(v, bound),
            }
        };
        if !bound.sequence {
            let text = format!("'{var}' depends on the sequence: bind a variable to \"sequence\" before it");
            return Err(source.error(value.span(), text));
        }
        Ok(to)
    }

    /// Lowest and highest value of an amount.
    fn bounds(&self, amount: Amount) -> (i64, i64) {
        match amount {
            Amount::Fixed(value) => (value, value),
            Amount::Param(name) => self.params.iter().find(|p| p.name == name).map_or((0, 0), |p| (p.min, p.max)),
        }
    }

    fn table(&self, value: &Value<'a>, what: &str) -> Result<(usize, &'static Table), UserError> {
        let name = self.source.text(value, what)?;
        let at = self.tables.iter().position(|t| t.name == name);
        let found = at.and_then(|at| self.tables.get(at).map(|t| (at, t)));
        found.ok_or_else(|| self.source.unknown(value, what, name, self.tables.iter().map(|t| t.name)))
    }

    fn own_row(&self, value: &Value<'a>) -> Result<FileGenerator, UserError> {
        let (_, table) = self.table(value, "the table of 'own-row'")?;
        let first = self.tables.iter().find(|t| matches!(t.rows, RowCount::PerJob(_)));
        match table.rows {
            RowCount::PerJob(param) if first.is_some_and(|f| f.name == table.name) => {
                Ok(FileGenerator::OwnRow(Amount::Param(param)))
            }
            RowCount::PerJob(_) => {
                let first = first.map_or("", |f| f.name);
                let text = format!("'own-row' works only for the first table with per-job rows: use '{first}'");
                Err(self.source.error(value.span(), text))
            }
            _ => {
                let text = format!(
                    "jobs own no rows of '{}', because its rows are not {{ per-job = … }}: use 'row'",
                    table.name
                );
                Err(self.source.error(value.span(), text))
            }
        }
    }

    fn row(&mut self, value: &Value<'a>) -> Result<FileGenerator, UserError> {
        let (_, table) = self.table(value, "the table of 'row'")?;
        let rows = match table.rows {
            RowCount::Fixed(rows) => Amount::Fixed(rows as i64),
            RowCount::Total(param) => Amount::Param(param),
            _ => {
                let text =
                    format!("'row' needs a table whose rows are a number or {{ total = … }}; '{}' is not", table.name);
                return Err(self.source.error(value.span(), text));
            }
        };
        self.salt += 1;
        Ok(FileGenerator::Row(rows, self.salt))
    }

    fn plus(&self, value: &Value<'a>, bound: &Bound) -> Result<FileGenerator, UserError> {
        let source = self.source;
        let parts = source.list(value, "'plus'")?;
        let [of, by] = parts.as_slice() else {
            return Err(source.error(value.span(), "'plus' must be [\"VARIABLE\", NUMBER]"));
        };
        let name = source.text(of, "the variable of 'plus'")?;
        let Some(var) = bound.vars.iter().find(|v| **v == name) else {
            return Err(source.error(of.span(), format!("the variable '{name}' is used before it is bound")));
        };
        if self.types.iter().any(|(v, kind)| v == var && *kind == VarType::Bytes) {
            return Err(source.error(of.span(), format!("'{name}' holds bytes: nothing can be added to it")));
        }
        Ok(FileGenerator::Plus(var, source.amount(by, "what 'plus' adds", self.params, (-(1 << 60), 1 << 60))?))
    }

    fn execute(&mut self, at: &Value<'a>, bound: &Bound) -> Result<FileStep, UserError> {
        let name = self.source.text(at, "'execute'")?;
        let Some(statement) = self.statements.iter().position(|s| s.name == name) else {
            let known = self.statements.iter().map(|s| s.name.as_str());
            return Err(self.source.unknown(at, "the statement", name, known));
        };
        let Some(named) = self.statements.get_mut(statement) else {
            return Err(self.source.error(at.span(), "there is no such statement"));
        };
        named.executed = true;
        if let Some(var) = named.template.vars().find(|v| !bound.vars.contains(v)) {
            let text =
                format!("the variable '{var}' of the statement '{name}' is not bound before the statement is executed");
            return Err(self.source.error(named.sql_at.clone(), text));
        }
        Ok(FileStep::Execute { statement })
    }

    fn bulk(&mut self, at: &Value<'a>, rows: &Value<'a>, bound: &Bound) -> Result<FileStep, UserError> {
        let (table, found) = self.table(at, "the table of 'bulk'")?;
        if found.rows != RowCount::Empty {
            let text = format!("'bulk' adds rows with new keys: the rows of '{}' must be \"empty\"", found.name);
            return Err(self.source.error(at.span(), text));
        }
        if !bound.sequence {
            return Err(self.source.error(
                at.span(),
                "the keys of 'bulk' depend on the sequence: bind a variable to \"sequence\" before it",
            ));
        }
        let rows = self.source.amount(rows, "'rows' of 'bulk'", self.params, (1, MAX_TIMES))?;
        Ok(FileStep::Bulk { table, rows })
    }

    fn choose(&mut self, at: &Value<'a>, by: Option<&Value<'a>>, bound: &mut Bound) -> Result<FileStep, UserError> {
        let source = self.source;
        let word = by.map_or(Ok("random"), |v| source.word(v, "'by'", &["random", "turn"]))?;
        if let Some(v) = by.filter(|_| word == "turn") {
            if let Some(first) = &self.turn {
                let text = format!(
                    "a program can have one turn, and line {} has one: both would use the same sequence, so some \
                     combinations of arms would never occur and shares would be wrong; choose at random here (leave 'by' out)",
                    source.error(first.clone(), "").line
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
        let var = leak(format!("{CHOICE}{}", self.choices));
        let mut arms = Vec::new();
        for value in list {
            let f = source.fields(value, "an arm", &["share", "steps"])?;
            let share = source.amount(f.required("share")?, "'share'", self.params, (0, MAX_TIMES))?;
            let steps = source.list(f.required("steps")?, "'steps' of an arm")?;
            // A variable bound in one arm is not bound after the choice.
            arms.push((share, self.steps(&steps, &mut bound.clone())?));
        }
        if arms.iter().all(|(share, _)| self.bounds(*share).1 == 0) {
            return Err(source.error(at.span(), "all shares are 0: nothing would be chosen"));
        }
        self.salt += 1;
        let by = if word == "turn" { ChooseBy::Turn } else { ChooseBy::Random(self.salt) };
        Ok(FileStep::Choose { var, by, arms })
    }
}
