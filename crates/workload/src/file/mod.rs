//! Workload files: TOML with tables and a transaction program. The catalogue and users write the same language.
//!
//! Start at [`read`]. A type of the workload reads itself from a [`Node`] of the file and checks what it reads; [`program`] makes
//! the transaction program, [`expression`] computes numbers. Reading makes the program with the default, lowest and highest
//! parameters, so whatever is wrong with it is found before anything starts.

use loadline_model::{Capability, column};

use self::expression::Scope;
use self::program::{program, template};
use crate::data::TABLES;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::NamedFor;
use crate::params::{Param, ParamError, Params};
use crate::program::{Commit, Program};
use crate::source::{ANY, Node, Source, UserError};
use crate::table::{Scope as Owner, Table};
use crate::template::Piece;
use crate::workload::{Evidence, Kpi, RedoSize, Sweep, Volume, Workload};

mod expression;
mod program;
mod scripts;

/// Longest code: it is part of every name that loadline creates in a database.
const MAX_CODE: usize = 20;
/// Most steps of a transaction; without a database, a job does some tens of millions per second.
const MAX_STEPS: u64 = 10_000_000;
/// Values of parameters that a program is made with to see what it can do.
const EXTREMES: [fn(&Param) -> i64; 3] = [|p| p.default, |p| p.min, |p| p.max];
const KEYS: [&str; 25] = [
    "code", "group", "summary", "description", "named-for", "spoiled-by", "kpis", "data-set", "table", "parameter",
    "needs", "sweep", "redo-kib", "evidence", "consistency", "unchanged", "instruments", "limits", "workers",
    "visible", "size-scan", "volume", "commit", "statement", "program",
];

impl From<UserError> for ParamError {
    fn from(error: UserError) -> ParamError {
        ParamError::Unfit { why: error.to_string() }
    }
}

/// Reads a user's file; `taken` are codes of other workloads, with who has them.
pub(crate) fn read(file: &str, text: &str, taken: &[(&str, &str)]) -> Result<Workload, UserError> {
    let source = Source { file: file.to_owned(), text: text.to_owned(), is_own: true };
    let workload = workload(&source)?;
    let document = source.document()?;
    let code = source.root(&document).need("code")?;
    check_code(&workload.code, taken).map_err(|why| code.error(why))?;
    Ok(workload)
}

pub(crate) fn read_built_in(code: &str, text: &str) -> Result<Workload, UserError> {
    workload(&Source { file: code.to_owned(), text: text.to_owned(), is_own: false })
}

fn workload(source: &Source) -> Result<Workload, UserError> {
    let document = source.document()?;
    let root = source.root(&document);
    let workload = if root.get("script").is_some() { scripts::read(root)? } else { Workload::read(root)? };
    Ok(Workload { source: source.clone(), ..workload })
}

/// Defaults of a file that states nothing.
fn unstated() -> Workload {
    let kpi = |column, title: &str| Kpi { column, title: title.to_owned() };
    Workload {
        group: "transaction-processing".to_owned(),
        spoiled_by: "Its author has not said.".to_owned(),
        kpis: vec![
            kpi(column::COMMIT_THROUGHPUT_TPS, "transactions"),
            kpi(column::TRANSACTION_TIME_NS_P50, "median transaction time"),
            kpi(column::TRANSACTION_TIME_NS_P99, "99th percentile of transaction time"),
        ],
        ..Workload::default()
    }
}

impl Workload {
    /// Reads what a file states, and adds what it leaves out.
    fn read(root: Node<'_>) -> Result<Workload, UserError> {
        root.fields(&KEYS)?;
        let default = unstated();
        let text = |key, or: &str| root.opt(key, Node::owned).map(|text| text.unwrap_or_else(|| or.to_owned()));
        let (code, summary) = (root.need("code")?.owned()?, root.need("summary")?.owned()?);
        let group = text("group", &default.group)?;
        root.get("group").unwrap_or(root).find("the group", &group, &column::TABLES, |t| t.group)?;
        let params = Param::read_all(root)?;
        let tables = tables(root, &params)?;
        let values = Params::new(&code, &params, &Default::default()).map_err(|e| root.error(e.to_string()))?;
        let proof = |node: Node<'_>| query(node, &values, &tables).and_then(|()| node.read());
        let mut workload = Workload {
            code,
            group,
            description: text("description", &summary)?,
            summary,
            named_for: root.opt("named-for", NamedFor::read)?.unwrap_or_default(),
            spoiled_by: text("spoiled-by", &default.spoiled_by)?,
            kpis: if root.get("kpis").is_some() { root.all("kpis", kpi)? } else { default.kpis.clone() },
            needs: root.all("needs", Node::read)?,
            sweep: root.opt("sweep", |node| sweep(node, &params))?.unwrap_or_default(),
            redo: root.opt("redo-kib", |node| redo(node, &params))?,
            evidence: root.opt("evidence", |node| evidence(node, &values, &tables))?,
            consistency: root.all("consistency", proof)?,
            unchanged: root.all("unchanged", proof)?,
            instruments: root.all("instruments", Node::read)?,
            limits: root.all("limits", Node::read)?,
            workers: root.opt("workers", |name| name.param(&params, ANY).map(|param| param.name.clone()))?,
            visible: root.opt("visible", |node| node.read_naming(&params, &["rate", "rows"]))?,
            scan: root.opt("size-scan", |node| {
                node.read_naming(&params, &["most-kib", "step-kib", "pace-mib", "samples", "rows"])
            })?,
            tables,
            params,
            ..default
        };
        workload.complete(root)?;
        root.opt("volume", |node| workload.volume_at(node, &values))?;
        Ok(workload)
    }

    /// Adds limits and capabilities that follow from its program.
    fn complete(&mut self, root: Node<'_>) -> Result<(), UserError> {
        let programs = self.programs(root)?;
        if root.source.is_own && self.limits.iter().any(|limit| limit.is_of_one_workload()) {
            let text = "a limit that is a loop computes only the queries of a workload of the catalogue: leave it out";
            return Err(root.need("limits")?.error(text));
        }
        let statements = programs.iter().any(|program| !program.statements.is_empty());
        if self.limits.is_empty() && self.scan.is_none() {
            self.limits = match programs.iter().any(Program::writes) {
                // Without statements, it adds rows in bulk.
                _ if !statements => vec![Limit::Log, Limit::Copy],
                true => vec![Limit::Statements, Limit::Log],
                false => vec![Limit::Statements],
            };
        }
        if self.needs.is_empty() {
            self.needs = self.needed(&programs);
        }
        Ok(())
    }

    /// The programs with the default, lowest and highest parameters, each of which must be valid.
    fn programs(&self, root: Node<'_>) -> Result<Vec<Program>, UserError> {
        let refuse = |why: String| root.get("program").unwrap_or(root).error(why);
        let mut out = Vec::new();
        for value in EXTREMES {
            let given = self.params.iter().map(|p| (p.name.clone(), value(p))).collect();
            let params = Params::new(&self.code, &self.params, &given).map_err(|e| refuse(e.to_string()))?;
            let program = program(self, root, &params)?;
            program.check().map_err(|e| refuse(e.to_string()))?;
            let steps = program.longest();
            if steps > MAX_STEPS {
                let steps = if steps == u64::MAX { "more than 10^19".to_owned() } else { steps.to_string() };
                return Err(refuse(format!(
                    "a transaction can have {steps} steps, repetitions included, but the limit is {MAX_STEPS}: repeat \
                     less, or narrow the parameters of the repetitions"
                )));
            }
            if self.tables.is_empty() && program.computations_per_tx() == 0 {
                return Err(root.error("the workload has no table: add one with [[table]]"));
            }
            out.push(program);
        }
        Ok(out)
    }

    fn needed(&self, programs: &[Program]) -> Vec<Capability> {
        let any = |is: fn(&Program) -> bool| programs.iter().any(is);
        let all = [
            (Capability::Rows, !self.tables.is_empty()),
            (Capability::ReadRows, any(Program::reads)),
            (Capability::CountChanges, any(Program::counts_changes)),
            (Capability::BulkLoad, any(Program::bulks)),
            (Capability::CommitWait, any(|p| p.writes() && p.commit == Commit::Wait)),
            (Capability::CommitNowait, any(|p| p.writes() && p.commit == Commit::Nowait)),
            (Capability::Procedures, any(|p| p.computations_per_tx() > 0)),
            (Capability::ParallelQuery, self.workers.is_some()),
            (Capability::Checkpoint, self.has(Instrument::Checkpoint)),
        ];
        all.into_iter().filter(|(_, is_needed)| *is_needed).map(|(need, _)| need).collect()
    }

    /// The program for `params`; empty without a file, and of scripts.
    pub(crate) fn program(&self, params: &Params) -> Result<Program, ParamError> {
        if self.source.text.is_empty() || self.scripts.is_some() {
            return Ok(Program::default());
        }
        let document = self.source.document()?;
        Ok(program(self, self.source.root(&document), params)?)
    }

    /// Volume of a transaction, if the file says it.
    pub(crate) fn stated_volume(&self, params: &Params) -> Result<Option<Volume>, UserError> {
        let document = self.source.document()?;
        self.source.root(&document).opt("volume", |node| self.volume_at(node, params))
    }

    fn volume_at(&self, node: Node<'_>, params: &Params) -> Result<Volume, UserError> {
        node.fields(&["rows", "tables", "share", "groups"])?;
        let scope = Scope { params, tables: &self.tables, numbers: Vec::new() };
        // A number, or a quotient of two.
        let number = |node: Node<'_>| {
            if node.is_amount() {
                return node.computed(&scope).map(|n| n as f64);
            }
            let [of, by] = node.list_of("a quotient [AMOUNT, AMOUNT]")?;
            Ok(of.computed(&scope)? as f64 / (by.computed(&scope)? as f64).max(1.0))
        };
        let figure = |key| node.opt(key, number).map(Option::unwrap_or_default);
        let table = |name: Node<'_>| {
            let (_, table) = name.find("the table", name.text()?, &self.tables, |t| &t.name)?;
            Ok(table.name.clone())
        };
        let tables = node.all("tables", table)?;
        let whole = node.get("share").is_none() && !tables.is_empty();
        let share = if whole { 1.0 } else { figure("share")? };
        Ok(Volume { rows: figure("rows")?, operations: 0.0, share, groups: figure("groups")?, tables })
    }
}

/// The tables: those of the data set, then the file's own.
fn tables(root: Node<'_>, params: &[Param]) -> Result<Vec<Table>, UserError> {
    let of_data_set = |name: Node<'_>| {
        let (_, table) = name.find("the table of the data set", name.text()?, &TABLES, |t| &t.name)?;
        Ok(table.clone())
    };
    let mut all = root.all("data-set", of_data_set)?;
    let own = Table::read_all(root, params, Owner::Workload)?;
    if let Some(i) = own.iter().position(|table| all.iter().any(|other| other.name == table.name)) {
        let name = root.need("table")?.items()?[i].need("name")?;
        return Err(name.error(format!("the data set has a table '{}': rename this one", own[i].name)));
    }
    all.extend(own);
    Ok(all)
}

fn kpi(node: Node<'_>) -> Result<Kpi, UserError> {
    node.fields(&["column", "title"])?;
    Ok(Kpi { column: node.need("column")?.column()?, title: node.need("title")?.owned()? })
}

fn sweep(node: Node<'_>, params: &[Param]) -> Result<Sweep, UserError> {
    match node.kind(&["jobs", "once"], &[("parameter", &["values", "column", "then-jobs"])])? {
        "jobs" => Ok(Sweep::Jobs),
        "once" => Ok(Sweep::Once),
        _ => {
            let param = node.need("parameter")?.param(params, ANY)?;
            let values = node.need("values")?.items()?.into_iter().map(|value| value.number(param.min..=param.max));
            Ok(Sweep::Parameter {
                name: param.name.clone(),
                values: values.collect::<Result<_, _>>()?,
                column: node.need("column")?.column()?,
                then_jobs: node.opt("then-jobs", Node::flag)?.unwrap_or_default(),
            })
        }
    }
}

fn redo(node: Node<'_>, params: &[Param]) -> Result<RedoSize, UserError> {
    const PAYLOAD: &str = "payload";
    const ROWS: &str = "rows";
    const WHAT: &str = "[LEAST, NOMINAL, MOST]";
    let [min, nominal, max] = node.list_of(WHAT)?;
    let [min, nominal, max] = [min.real()? * 1024.0, nominal.real()? * 1024.0, max.real()? * 1024.0];
    if !(min <= nominal && nominal <= max) {
        return Err(node.error(format!("'redo-kib' must be {WHAT}, each at least as large as the one before")));
    }
    for name in [PAYLOAD, ROWS] {
        node.find("'redo-kib': the parameter", name, params, |p| &p.name)?;
    }
    Ok(RedoSize { min, nominal, max, payload: PAYLOAD, rows: ROWS })
}

fn evidence(node: Node<'_>, params: &Params, tables: &[Table]) -> Result<Evidence, UserError> {
    query(node, params, tables).and_then(|()| node.read())
}

/// Checks the query of `of`, which returns one number. Its variables are parameters.
fn query(of: Node<'_>, params: &Params, tables: &[Table]) -> Result<(), UserError> {
    let node = of.need("query")?;
    let mut scope = Scope { params, tables, numbers: Vec::new() };
    let template = template(node, node.text()?, "the query", &mut scope)?;
    if let Some(var) = template.vars().find(|var| params.value(var).is_none()) {
        let text = format!("the query has the variable '{var}', but it runs outside transactions: use only parameters");
        return Err(node.error(text));
    }
    match template.pieces.first() {
        Some(Piece::Sql(start)) if start.trim_start().to_uppercase().starts_with("SELECT") => Ok(()),
        _ => Err(node.error(format!("the query of '{}' must be a SELECT that returns one integer", of.key))),
    }
}

fn check_code(code: &str, taken: &[(&str, &str)]) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    if !code.starts_with(|c: char| c.is_ascii_uppercase()) || !code.chars().all(plain) || code.len() > MAX_CODE {
        return Err(format!(
            "the code '{code}' is not allowed: use letters A to Z, digits and '-', a letter first, at most {MAX_CODE} \
             characters (for example ORDER-QUEUE), because names in the database start with it"
        ));
    }
    // Names of the data set's tables start with it.
    if code == "DATA" || code.starts_with("DATA-") {
        return Err(format!("the code '{code}' is not allowed: names that start with data belong to the data set"));
    }
    match taken.iter().find(|(other, _)| *other == code) {
        Some((_, owner)) => Err(format!("{owner} has a workload {code}: use another code")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
