//! The transaction program of a workload file for given parameters.
//!
//! [`program`] walks over the steps of the file and makes those of the [`Program`]. Every step is checked on the way.

use std::ops::RangeInclusive;

use super::expression::{MAX_COPIES, Scope};
use crate::params::Params;
use crate::program::{Arm, Commit, Effect, Generator, Program, Statement, Step, VarType, each, each_mut};
use crate::skew::Skew;
use crate::source::{ANY, MAX_ROWS, MAX_WORD, Node, PAYLOADS, SALTS, UserError};
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
const DRAWN: RangeInclusive<i64> = -(1 << 60)..=1 << 60;

pub(super) fn program(workload: &Workload, root: Node<'_>, params: &Params) -> Result<Program, UserError> {
    let scope = Scope { params, tables: &workload.tables, numbers: Vec::new() };
    let mut walk =
        Walk { scope, statements: Vec::new(), types: Vec::new(), salt: 0, choices: 0, turn: None, written: 0 };
    let commit = root.opt("commit", |node| walk.commit(node))?.unwrap_or_default();
    walk.statements = root.all_named("statement", |node| walk.statement(node), |s| &s.name)?;
    let steps = root.need("program")?;
    let mut body = walk.block(steps, &mut Bound::default())?;
    if let Some(Named { name, node, .. }) = walk.statements.iter().find(|s| !s.executed) {
        let text = format!("the statement '{name}' is never executed: add {{ execute = \"{name}\" }} to the program");
        return Err(node.need("name")?.error(text));
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
        return Err(steps.error("the program does nothing: it needs a statement to execute"));
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

/// Parses `sql`, which must be one statement on known tables; `node` is its place.
pub(super) fn template(node: Node<'_>, sql: &str, what: &str, scope: &mut Scope<'_>) -> Result<Template, UserError> {
    let refuse = |why: String| node.error(format!("{what}: {why}"));
    let sql = scope.text(sql).map_err(|e| refuse(e.to_string()))?;
    let template = Template::parse(&sql).map_err(|e| refuse(e.to_string()))?;
    let (tables, of_table, of_column) = (scope.tables, format!("{what}: the table"), format!("{what}: the column"));
    for piece in &template.pieces {
        match piece {
            Piece::Table(name) => drop(node.find(&of_table, name, tables, |t| &t.name)?),
            Piece::Index(atom) => {
                if let Some(index) = IndexAtom::parse(atom) {
                    let (_, table) = node.find(&of_table, index.table, tables, |t| &t.name)?;
                    node.find(&of_column, index.column, &table.columns, |c| &c.name)?;
                }
            }
            Piece::Renew(_) if verb(&template) != "UPDATE" => {
                return Err(refuse("only an UPDATE can renew columns".to_owned()));
            }
            Piece::Renew(columns) => {
                let known = tables.iter().flat_map(|t| &t.columns).filter(|c| c.logical == LogicalType::Bytes);
                if let Some(name) = columns.iter().find(|name| !known.clone().any(|c| c.name == **name)) {
                    return Err(node.unknown(&of_column, name, known.map(|c| c.name.as_str())));
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

struct Named<'n> {
    name: String,
    node: Node<'n>,
    statement: Statement,
    executed: bool,
}

#[derive(Clone, Default)]
struct Bound {
    vars: Vec<String>,
    sequence: bool,
}

struct Walk<'n> {
    scope: Scope<'n>,
    statements: Vec<Named<'n>>,
    types: Vec<(String, VarType)>,
    /// Last salt given out: each random number has its own, so they are independent.
    salt: u32,
    choices: u32,
    /// Line of the program's turn.
    turn: Option<usize>,
    written: usize,
}

impl<'n> Walk<'n> {
    fn amount(&self, node: Node<'n>, key: &'n str, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        node.need(key)?.amount(&self.scope, range)
    }

    /// A name in which numbers are written out.
    fn written_out(&mut self, node: Node<'n>) -> Result<String, UserError> {
        self.scope.text(node.text()?).map_err(|e| node.error(e.to_string()))
    }

    fn new_name(&mut self, node: Node<'n>, also: char) -> Result<String, UserError> {
        node.new_name(self.written_out(node)?, also, MAX_WORD)
    }

    fn commit(&self, node: Node<'n>) -> Result<Commit, UserError> {
        let waits = match node.kind(&["wait", "nowait"], &[("wait-if", &[])])? {
            "wait-if" => self.amount(node, "wait-if", 0..=1)? == 1,
            word => word == "wait",
        };
        Ok(if waits { Commit::Wait } else { Commit::Nowait })
    }

    fn statement(&mut self, node: Node<'n>) -> Result<Named<'n>, UserError> {
        node.fields(&["name", "sql", "effect"])?;
        let name = node.need("name")?.name('-', MAX_WORD)?;
        let (sql, what) = (node.need("sql")?, format!("the SQL of '{name}'"));
        let template = template(sql, sql.text()?, &what, &mut self.scope)?;
        let effect = self.effect(node.need("effect")?)?;
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
                return Err(sql.error(format!(
                    "{what} starts with '{verb}': a statement must be SELECT, INSERT, UPDATE or DELETE, or create or \
                     drop an index"
                )));
            }
        };
        if !fits {
            let text = format!("the effect of '{name}' does not fit: {verb} needs {needs}");
            return Err(node.need("effect")?.error(text));
        }
        let at = || format!("'{name}' ({}:{})", node.source.file, node.get("name").unwrap_or(node).line());
        let place = if node.source.is_own { at() } else { String::new() };
        Ok(Named { statement: Statement { template, effect, place }, name, node, executed: false })
    }

    fn effect(&self, node: Node<'n>) -> Result<Effect, UserError> {
        let rows = |node: Node<'n>, least| node.amount(&self.scope, least..=MAX_ROWS).map(i64::cast_unsigned);
        let kind = node.kind(&["read-any", "command"], &[("read", &[]), ("change", &[])])?;
        Ok(match (kind, node.get(kind)) {
            ("read", Some(of)) => Effect::Read(rows(of, 0)?),
            ("change", Some(of)) if !of.is_amount() => {
                let [low, high] = of.list_of("[FEWEST, MOST]")?;
                let (low, high) = (rows(low, 0)?, rows(high, 1)?);
                if low > high {
                    let text = format!("'change' is [FEWEST, MOST], and {low} is more than {high}");
                    return Err(of.error(text));
                }
                Effect::ChangeBetween(low, high)
            }
            ("change", Some(of)) => Effect::Change(rows(of, 1)?),
            ("read-any", _) => Effect::ReadAny,
            _ => Effect::Command,
        })
    }

    fn block(&mut self, steps: Node<'n>, bound: &mut Bound) -> Result<Vec<Step>, UserError> {
        let mut out = Vec::new();
        for step in steps.items()? {
            self.written += 1;
            if self.written > MAX_WRITTEN {
                let text = format!("the program has more than {MAX_WRITTEN} steps, written out: use 'repeat'");
                return Err(step.error(text));
            }
            out.extend(self.step(step, bound)?);
        }
        Ok(out)
    }

    fn step(&mut self, node: Node<'n>, bound: &mut Bound) -> Result<Vec<Step>, UserError> {
        let kinds: [(_, &[&str]); 8] = [
            ("bind", &["to"]),
            ("execute", &[]),
            ("repeat", &["steps"]),
            ("choose", &["by", "as", "salt"]),
            ("bulk", &["rows"]),
            ("compute", &["times"]),
            ("unroll", &["from", "to", "steps"]),
            ("when", &["steps", "otherwise"]),
        ];
        let kind = node.kind(&[], &kinds)?;
        let of = node.need(kind)?;
        let step = match kind {
            "bind" => self.bind(of, node.need("to")?, bound)?,
            "execute" => self.execute(of, bound)?,
            "repeat" => {
                let times = of.amount(&self.scope, TIMES)? as u32;
                Step::Repeat { times, body: self.block(node.need("steps")?, bound)? }
            }
            "bulk" => {
                let table = self.emptied(of, bound)?;
                Step::Bulk { table, rows: self.amount(node, "rows", SOME)? as u32 }
            }
            "compute" => Step::Compute { kernel: of.read()?, times: self.amount(node, "times", SOME)? as u32 },
            "unroll" => return self.unroll(node, bound),
            "when" => return self.when(node, bound),
            _ => return self.choose(node, bound),
        };
        Ok(vec![step])
    }

    fn unroll(&mut self, node: Node<'n>, bound: &mut Bound) -> Result<Vec<Step>, UserError> {
        let node_name = node.need("unroll")?;
        let name = node_name.operand(self.new_name(node_name, '-')?)?;
        let copies = -MAX_COPIES..=MAX_COPIES;
        let from = node.opt("from", |from| from.amount(&self.scope, copies.clone()))?.unwrap_or(1);
        let to = self.amount(node, "to", copies)?;
        let mut out = Vec::new();
        for number in from..=to {
            self.scope.numbers.push((name.clone(), number));
            out.extend(self.block(node.need("steps")?, bound)?);
            self.scope.numbers.pop();
        }
        Ok(out)
    }

    /// Both branches are read, so that both are checked and random numbers do not depend on the branch.
    fn when(&mut self, node: Node<'n>, bound: &mut Bound) -> Result<Vec<Step>, UserError> {
        let holds = self.amount(node, "when", ANY)? != 0;
        let (mut then, mut other) = (bound.clone(), bound.clone());
        let steps = self.block(node.need("steps")?, &mut then)?;
        let otherwise = node.opt("otherwise", |steps| self.block(steps, &mut other))?.unwrap_or_default();
        let (taken, body) = if holds { (then, steps) } else { (other, otherwise) };
        *bound = taken;
        Ok(body)
    }

    fn choose(&mut self, node: Node<'n>, bound: &Bound) -> Result<Vec<Step>, UserError> {
        let by_turn = node.opt("by", |by| Ok((by.kind(&["random", "turn"], &[])? == "turn").then_some(by)))?.flatten();
        // The line of the turn before this one, if there is one.
        let first = by_turn.and_then(|by| self.turn.replace(by.line()));
        if let Some((by, first)) = by_turn.zip(first) {
            return Err(by.error(format!(
                "a program can have one turn, and line {first} has one: both would use the same sequence, so some \
                 combinations of arms would never occur; choose at random here (leave 'by' out)"
            )));
        }
        self.choices += 1;
        let named = node.opt("as", |name| self.new_name(name, '_'))?;
        let var = named.unwrap_or_else(|| format!("{CHOICE}{}", self.choices));
        let arms = self.arms(node.need("choose")?, bound)?;
        let salt = self.salt(node)?;
        let of: u64 = arms.iter().map(|a| a.share).sum();
        // If all shares are 0, there is nothing to choose.
        if of == 0 {
            return Ok(Vec::new());
        }
        let random = Generator::Uniform { from: 0, range: of, salt };
        let place = if by_turn.is_some() { Generator::Turn { of } } else { random };
        Ok(vec![Step::bind(&var, place), Step::Choose { var, arms }])
    }

    /// The arms of a choice that can be chosen.
    fn arms(&mut self, node: Node<'n>, bound: &Bound) -> Result<Vec<Arm>, UserError> {
        if !bound.sequence {
            return Err(node.error("a choice depends on the sequence: bind a variable to \"sequence\" before it"));
        }
        let written = node.items()?;
        if written.len() < 2 {
            return Err(node.error("'choose' must be a list of at least two { share = …, steps = [ … ] }"));
        }
        let mut arms = Vec::new();
        for arm in written {
            arm.fields(&["name", "share", "steps"])?;
            let share = self.amount(arm, "share", TIMES)? as u64;
            let name = self.arm_name(arm, &arms)?;
            if arms.iter().any(|other: &Arm| other.name == name) {
                return Err(arm.error(format!("two arms have the name '{name}'")));
            }
            // A variable bound in one arm is not bound after the choice.
            arms.push(Arm { name, share, body: self.block(arm.need("steps")?, &mut bound.clone())? });
        }
        arms.retain(|arm| arm.share > 0);
        Ok(arms)
    }

    /// Own name, or that of the parameter that is its share, or `arm N` from 1.
    fn arm_name(&self, arm: Node<'n>, before: &[Arm]) -> Result<String, UserError> {
        if let Some(name) = arm.opt("name", |node| node.name('-', MAX_WORD))? {
            return Ok(name);
        }
        let share = arm.need("share")?.raw_text().unwrap_or_default();
        let is_free = self.scope.params.to_map().contains_key(share) && before.iter().all(|other| other.name != share);
        Ok(if is_free { share.to_owned() } else { format!("arm {}", before.len() + 1) })
    }

    fn bind(&mut self, node: Node<'n>, to: Node<'n>, bound: &mut Bound) -> Result<Step, UserError> {
        let var = self.new_name(node, '_')?;
        if var.starts_with(CHOICE) {
            let text = format!("the variable '{var}' is not allowed: {CHOICE}1, {CHOICE}2, … are loadline's own");
            return Err(node.error(text));
        }
        let generator = self.generator(to, bound)?;
        let is_drawn = !matches!(generator, Generator::Sequence | Generator::Constant(_) | Generator::Plus { .. });
        if is_drawn && !bound.sequence {
            let text = format!("'{var}' depends on the sequence: bind a variable to \"sequence\" before it");
            return Err(to.error(text));
        }
        let kind = generator.var_type();
        if self.types.iter().any(|(v, was)| *v == var && *was != kind) {
            let text = format!("the variable '{var}' is bound to numbers and to bytes: use two variables");
            return Err(node.error(text));
        }
        self.types.push((var.clone(), kind));
        bound.vars.push(var.clone());
        bound.sequence |= generator == Generator::Sequence;
        Ok(Step::Bind { var, generator })
    }

    /// The salt that the file gives, or the next one.
    fn salt(&mut self, node: Node<'n>) -> Result<u32, UserError> {
        let given = node.opt("salt", |salt| salt.number(SALTS))?;
        self.salt += u32::from(given.is_none());
        Ok(given.map_or(self.salt, |salt| salt as u32))
    }

    fn generator(&mut self, node: Node<'n>, bound: &Bound) -> Result<Generator, UserError> {
        let kinds: [(_, &[&str]); 8] = [
            ("own-row", &[]),
            ("own-range", &["rows"]),
            ("row", &["salt"]),
            ("payload", &[]),
            ("uniform", &["salt"]),
            ("key", &["salt"]),
            ("constant", &[]),
            ("plus", &[]),
        ];
        let kind = node.kind(&["sequence", "new-key"], &kinds)?;
        let of = node.get(kind).unwrap_or(node);
        Ok(match kind {
            "sequence" => Generator::Sequence,
            "new-key" => Generator::NewKey,
            "own-row" => Generator::OwnRow { rows: self.own_rows(of)? },
            "own-range" => {
                let own = self.own_rows(of)?;
                let rows = self.amount(node, "rows", 1..=MAX_ROWS)? as u64;
                Generator::OwnRange { rows, ranges: (own / rows).max(1) }
            }
            "row" => {
                let (name, table) = (of.text()?, self.table(of)?.1);
                if !table.is_whole() {
                    let text = format!("'row' needs a table that is loaded and of no job; '{name}' is not");
                    return Err(of.error(text));
                }
                let range = table.total_rows(self.scope.params, 0).max(1);
                let salt = self.salt(node)?;
                self.key(0, range, salt)
            }
            "payload" => Generator::Payload { bytes: of.amount(&self.scope, PAYLOADS)? as u32 },
            "uniform" | "key" => {
                let [low, high] = of.list_of("[LOWEST, HIGHEST]")?;
                // Parameters may meet: then there is one value.
                if low.integer().zip(high.integer()).is_some_and(|(low, high)| low > high) {
                    return Err(
                        of.error(format!("'{kind}' must be [LOWEST, HIGHEST], but the first is above the second"))
                    );
                }
                let (from, high) = (low.amount(&self.scope, DRAWN)?, high.amount(&self.scope, DRAWN)?);
                let range = high.saturating_sub(from).max(0) as u64 + 1;
                let salt = self.salt(node)?;
                if kind == "key" { self.key(from, range, salt) } else { Generator::Uniform { from, range, salt } }
            }
            "constant" => Generator::Constant(of.amount(&self.scope, i64::MIN / 2..=i64::MAX / 2)?),
            _ => {
                let [var, by] = of.list_of("[VARIABLE, AMOUNT]")?;
                let name = self.written_out(var)?;
                if !bound.vars.contains(&name) {
                    return Err(var.error(format!("the variable '{name}' is used before it is bound")));
                }
                if self.types.iter().any(|(v, kind)| *v == name && *kind == VarType::Bytes) {
                    return Err(var.error(format!("'{name}' holds bytes: nothing can be added to it")));
                }
                Generator::Plus { by: by.amount(&self.scope, DRAWN)?, var: name }
            }
        })
    }

    fn key(&self, from: i64, range: u64, salt: u32) -> Generator {
        match self.scope.params.keys {
            Some(keys) => Generator::Skewed { from, skew: Box::new(Skew::new(keys, range)), salt },
            None => Generator::Uniform { from, range, salt },
        }
    }

    /// The table of this name with its number.
    fn table(&self, node: Node<'n>) -> Result<(usize, &'n Table), UserError> {
        node.find("the table", node.text()?, self.scope.tables, |t| &t.name)
    }

    fn own_rows(&self, node: Node<'n>) -> Result<u64, UserError> {
        let table = self.table(node)?.1;
        let is_owned = |table: &&Table| matches!(table.rows, RowCount::PerJob(_));
        if !is_owned(&table) {
            return Err(node.error(format!(
                "jobs own no rows of '{}', because its rows are not {{ per-job = … }}: use 'row'",
                table.name
            )));
        }
        match self.scope.tables.iter().find(is_owned) {
            Some(first) if first.name != table.name => {
                let first = &first.name;
                Err(node.error(format!("jobs draw only rows of the first table with per-job rows: use '{first}'")))
            }
            _ => Ok(table.batch_rows(self.scope.params)),
        }
    }

    /// The number of a table that takes rows in bulk.
    fn emptied(&self, node: Node<'n>, bound: &Bound) -> Result<usize, UserError> {
        let (number, table) = self.table(node)?;
        if table.rows != RowCount::Empty {
            let name = &table.name;
            let text = format!("'bulk' adds rows with new keys: the rows of '{name}' must be \"empty\"");
            return Err(node.error(text));
        }
        if !bound.sequence {
            let text = "the keys of 'bulk' depend on the sequence: bind a variable to \"sequence\" before it";
            return Err(node.error(text));
        }
        Ok(number)
    }

    fn execute(&mut self, node: Node<'n>, bound: &Bound) -> Result<Step, UserError> {
        let name = self.written_out(node)?;
        let (statement, _) = node.find("the statement", &name, &self.statements, |s| &s.name)?;
        let named = &mut self.statements[statement];
        named.executed = true;
        if let Some(var) = named.statement.template.vars().find(|v| !bound.vars.iter().any(|bound| bound == v)) {
            let text =
                format!("the variable '{var}' of the statement '{name}' is not bound before the statement is executed");
            return Err(named.node.need("sql")?.error(text));
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
            return Err(s.node.need("sql")?.error(text));
        }
        Ok(())
    }
}
