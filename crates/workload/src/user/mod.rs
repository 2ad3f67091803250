//! User workloads: TOML files with tables and a transaction program.
//!
//! Workloads are `&'static`, because those of the catalogue are. So what is read from a file is leaked; [`register`]
//! reads each file only once per process.

use std::sync::{PoisonError, RwLock};

use loadline_model::Capability;
use loadline_model::column::{self, column};
use thiserror::Error;
use toml::de::DeTable;

use crate::catalogue::CATALOGUE;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::params::{Param, ParamError};
use crate::program::{Commit, Program};
use crate::table::Table;
use crate::template::Piece;
use crate::workload::{Consistency, Evidence, GROUPS, Kpi, Workload};

mod program;
mod reader;
mod scripts;
mod tables;

use reader::{Fields, Source, Value};

/// Most rows of a table.
const MAX_ROWS: i64 = 1 << 40;
/// Most steps of a transaction; without a database, a job does some tens of millions per second.
const MAX_STEPS: u64 = 10_000_000;
/// Longest code: it is part of every name that loadline creates in a database.
const MAX_CODE: usize = 20;
/// Default group.
const GROUP: &str = "transaction-processing";
/// Default KPIs.
const KPIS: &[Kpi] = &[
    Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "transactions" },
    Kpi { column: column::TRANSACTION_TIME_NS_P50, title: "median transaction time" },
    Kpi { column: column::TRANSACTION_TIME_NS_P99, title: "99th percentile of transaction time" },
];

/// An error in a workload file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct UserError {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// A workload with the text it was read from.
type Registered = (&'static Workload, String);

/// Workloads read in this process. Never removed.
static REGISTERED: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// The registered workload with `code` (in any case).
pub(crate) fn find(code: &str) -> Option<&'static Workload> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.iter().map(|(w, _)| *w).find(|w| w.code.eq_ignore_ascii_case(code.trim()))
}

/// Reads the workload in `text` and registers it for [`crate::find`]; `file` is its name in messages. The same text again
/// gives the same workload.
///
/// # Errors
/// [`UserError`] with the position of the error; also if another workload has the same code.
pub fn register(file: &str, text: &str) -> Result<&'static Workload, UserError> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some((workload, _)) = registered.iter().find(|(_, t)| t == text) {
        return Ok(workload);
    }
    let taken = registered.iter().map(|(w, _)| w.code).collect::<Vec<_>>();
    let workload = read(file, text, &taken)?;
    registered.push((workload, text.to_owned()));
    Ok(workload)
}

/// As [`register`], for a process that works for one run after the other: a workload of the same code is replaced.
///
/// # Errors
/// [`UserError`] with the position of the error.
pub fn register_anew(file: &str, text: &str) -> Result<&'static Workload, UserError> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some((workload, _)) = registered.iter().find(|(_, t)| t == text) {
        return Ok(workload);
    }
    let workload = read(file, text, &[])?;
    registered.retain(|(of, _)| of.code != workload.code);
    registered.push((workload, text.to_owned()));
    Ok(workload)
}

fn leak(text: impl Into<String>) -> &'static str {
    Box::leak(text.into().into_boxed_str())
}

const KEYS: &[&str] = &[
    "code", "summary", "description", "spoiled-by", "group", "commit", "kpis", "parameter", "table", "statement",
    "program", "evidence", "consistency", "unchanged",
];

/// Reads a file; `taken` are codes of other files.
fn read(file: &str, text: &str, taken: &[&str]) -> Result<&'static Workload, UserError> {
    let source = Source { file, text };
    let document = DeTable::parse(text).map_err(|e| source.error(e.span().unwrap_or(0..0), e.message().to_owned()))?;
    if document.get_ref().iter().any(|(key, _)| key.get_ref().as_ref() == "script") {
        let fields = source.fields_of(document.get_ref(), 0..0, "a file of scripts", scripts::KEYS)?;
        let code = code(&source, &fields, taken)?;
        return Ok(Box::leak(Box::new(scripts::read(&source, &fields, code)?)));
    }
    // Missing keys are reported at the start of the file.
    let fields = source.fields_of(document.get_ref(), 0..0, "a workload file", KEYS)?;
    let code = code(&source, &fields, taken)?;
    let params = &*tables::params(&source, &fields)?.leak();
    let tables = &*tables::tables(&source, &fields, params)?.leak();
    let given = program::program(&source, &fields, params, tables)?;
    let optional = |key: &str, default: &'static str| {
        fields.optional(key).map_or(Ok(default), |v| Ok(leak(source.text(v, &format!("'{key}'"))?)))
    };
    let group = match fields.optional("group") {
        None => GROUP,
        Some(v) => source.word(v, "the group", &GROUPS.map(|g| g.code))?,
    };
    let queries = |key: &str| -> Result<&'static [Consistency], UserError> {
        let list = fields.list(key)?.into_iter().map(|value| {
            let f = source.fields(value, &format!("a query of '{key}'"), &["query", "what"])?;
            Ok(Consistency { query: query(&source, f.required("query")?, key, tables)?, what: leak(f.text("what")?) })
        });
        Ok(list.collect::<Result<Vec<_>, UserError>>()?.leak())
    };
    let summary = leak(fields.text("summary")?);
    let workload = Workload {
        code,
        group,
        summary,
        description: optional("description", summary)?,
        spoiled_by: optional("spoiled-by", "Its author has not said.")?,
        kpis: kpis(&source, &fields)?,
        tables,
        params,
        needs: &[],
        evidence: fields.optional("evidence").map(|v| evidence(&source, v, tables)).transpose()?,
        consistency: queries("consistency")?,
        unchanged: queries("unchanged")?,
        given: Some(Box::leak(Box::new(given))),
        ..Workload::BASE
    };
    let workload =
        Workload { needs: needs(&source, &fields, &workload)?, instruments: instruments(&workload), ..workload };
    Ok(Box::leak(Box::new(workload)))
}

fn code(source: &Source<'_>, fields: &Fields<'_, '_>, taken: &[&str]) -> Result<&'static str, UserError> {
    let at = fields.required("code")?;
    let code = source.text(at, "the code")?;
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    if !code.starts_with(|c: char| c.is_ascii_uppercase()) || !code.chars().all(plain) || code.len() > MAX_CODE {
        let text = format!(
            "the code '{code}' is not allowed: use letters A to Z, digits and '-', a letter first, at most {MAX_CODE} \
             characters (for example ORDER-QUEUE), because names in the database start with it"
        );
        return Err(source.error(at.span(), text));
    }
    if CATALOGUE.iter().any(|w| w.code == code) {
        let text = format!("the catalogue has a workload {code}: use another code");
        return Err(source.error(at.span(), text));
    }
    // Names of the data set's tables start with it.
    if code == "DATA" || code.starts_with("DATA-") {
        return Err(source.error(
            at.span(),
            format!("the code '{code}' is not allowed: names that start with data belong to the data set"),
        ));
    }
    if taken.contains(&code) {
        let text = format!("another workload file of this run has the code {code}: change one of them");
        return Err(source.error(at.span(), text));
    }
    Ok(leak(code))
}

/// A query that returns one number, without variables.
fn query(source: &Source<'_>, value: &Value<'_>, what: &str, tables: &[Table]) -> Result<&'static str, UserError> {
    let what = format!("the query of '{what}'");
    let template = program::template(source, value, &what, tables)?;
    if let Some(var) = template.vars().next() {
        let text = format!("{what} has the variable '{var}', but it runs outside transactions: use no variables");
        return Err(source.error(value.span(), text));
    }
    if !matches!(template.pieces.first(), Some(Piece::Sql(sql)) if sql.trim_start().to_uppercase().starts_with("SELECT"))
    {
        return Err(source.error(value.span(), format!("{what} must be a SELECT that returns one integer")));
    }
    Ok(leak(source.text(value, &what)?))
}

fn evidence(source: &Source<'_>, value: &Value<'_>, tables: &[Table]) -> Result<Evidence, UserError> {
    let f = source.fields(value, "the evidence", &["query", "counts"])?;
    Ok(Evidence { query: query(source, f.required("query")?, "evidence", tables)?, counts: leak(f.text("counts")?) })
}

fn kpis(source: &Source<'_>, fields: &Fields<'_, '_>) -> Result<&'static [Kpi], UserError> {
    let mut out = Vec::new();
    for value in fields.list("kpis")? {
        let f = source.fields(value, "a KPI", &["column", "title"])?;
        let at = f.required("column")?;
        let id = source.text(at, "the column")?;
        let Some(found) = column(id) else {
            let near = loadline_model::format::did_you_mean(id, loadline_model::column::COLUMNS.iter().map(|c| c.id));
            let text = format!("there is no column '{id}'{near} (`loadline columns` lists all)");
            return Err(source.error(at.span(), text));
        };
        out.push(Kpi { column: found, title: leak(f.text("title")?) });
    }
    Ok(if out.is_empty() { KPIS } else { out.leak() })
}

/// What bounds its transactions: the statements, and the log if they write with any of its parameters.
fn instruments(workload: &Workload) -> &'static [Instrument] {
    let programs = || EXTREMES.iter().filter_map(|value| program_with(workload, *value).ok());
    let statements = programs().any(|program| !program.statements.is_empty());
    match (statements, programs().any(|program| program.writes())) {
        (true, true) => &[Instrument::Limit(&[Limit::Statements, Limit::Log])],
        (true, false) => &[Instrument::Limit(&[Limit::Statements])],
        // Without statements, it adds rows in bulk.
        (false, _) => &[Instrument::Limit(&[Limit::Log, Limit::Copy])],
    }
}

/// Values of parameters that a program is made with to see what it can do.
const EXTREMES: [fn(&Param) -> i64; 3] = [|p| p.default, |p| p.min, |p| p.max];

fn program_with(workload: &Workload, value: fn(&Param) -> i64) -> Result<Program, ParamError> {
    let given = workload.params.iter().map(|p| (p.name.to_owned(), value(p))).collect();
    workload.params(&given).map(|params| workload.make(&params))
}

/// The capabilities that the program needs. The program is made with the default, lowest and highest parameters, and must
/// be valid with each.
fn needs(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    workload: &Workload,
) -> Result<&'static [Capability], UserError> {
    let at = fields.required("program")?.span();
    let mut needs = vec![Capability::Rows];
    for value in EXTREMES {
        let program = program_with(workload, value).map_err(|e| source.error(at.clone(), e.to_string()))?;
        program.check().map_err(|e| source.error(at.clone(), e.to_string()))?;
        let steps = program.longest();
        if steps > MAX_STEPS {
            let text = format!(
                "a transaction can have {} steps, repetitions included, but the limit is {MAX_STEPS}: repeat less, or \
                 narrow the parameters of the repetitions",
                if steps == u64::MAX { "more than 10^19".to_owned() } else { steps.to_string() }
            );
            return Err(source.error(at.clone(), text));
        }
        let mut add = |need, is_needed: bool| {
            if is_needed && !needs.contains(&need) {
                needs.push(need);
            }
        };
        add(Capability::ReadRows, program.reads());
        add(Capability::CountChanges, program.counts_changes());
        add(Capability::BulkLoad, program.bulks());
        add(Capability::CommitWait, program.writes() && program.commit == Commit::Wait);
        add(Capability::CommitNowait, program.writes() && program.commit == Commit::Nowait);
    }
    Ok(needs.leak())
}

#[cfg(test)]
mod tests;
