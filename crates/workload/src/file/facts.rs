//! What a workload states beside its tables and its program: how it is measured, swept, checked and named.

use loadline_model::column::{self, Column, column};
use loadline_model::format::did_you_mean;
use loadline_model::{Capability, column::COLUMNS};

use super::expression::Scope;
use super::program::template;
use super::reader::{Fields, Source, Value};
use super::words::{COMPONENTS, INSTRUMENTS, LIMITS, NEEDS};
use super::{UserError, intern};
use crate::instrument::{Instrument, SizeScan, Visible};
use crate::limit::Limit;
use crate::named_for::{Component, Instead, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Program};
use crate::table::Table;
use crate::template::Piece;
use crate::workload::{Consistency, Evidence, GROUPS, Kpi, RedoSize, Sweep, Volume, Workload};

/// Most steps of a transaction; without a database, a job does some tens of millions per second.
const MAX_STEPS: u64 = 10_000_000;
/// Default group.
pub(super) const GROUP: &str = "transaction-processing";
/// Default KPIs.
pub(super) const KPIS: &[Kpi] = &[
    Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "transactions" },
    Kpi { column: column::TRANSACTION_TIME_NS_P50, title: "median transaction time" },
    Kpi { column: column::TRANSACTION_TIME_NS_P99, title: "99th percentile of transaction time" },
];
pub(super) const NOTHING_SPOILS: &str = "Its author has not said.";
const ANY: (i64, i64) = (i64::MIN, i64::MAX);

pub(super) const KEYS: &[&str] = &[
    "code", "summary", "description", "spoiled-by", "group", "commit", "kpis", "needs", "sweep", "redo-kib",
    "instruments", "limits", "workers", "visible", "size-scan", "data-set", "volume", "named-for", "parameter",
    "table", "statement", "program", "evidence", "consistency", "unchanged",
];

/// Completes `workload`, which has its tables, parameters and file.
pub(super) fn read(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    workload: Workload,
    is_own: bool,
) -> Result<Workload, UserError> {
    let programs = programs(source, fields, &workload)?;
    let params = defaults(source, &workload)?;
    let reader = Facts { source, fields, params: &params, workload: &workload, is_own };
    let text = |key: &str, default: &'static str| {
        fields.optional(key).map_or(Ok(default), |v| Ok(intern(source.text(v, &format!("'{key}'"))?)))
    };
    let summary = intern(fields.text("summary")?);
    let instruments = reader.instruments(&programs)?;
    if is_own {
        volume(source, fields, &params, workload.tables)?;
    }
    Ok(Workload {
        group: match fields.optional("group") {
            None => GROUP,
            Some(v) => source.word(v, "the group", &GROUPS.map(|g| g.code))?,
        },
        summary,
        description: text("description", summary)?,
        named_for: reader.named_for()?,
        spoiled_by: text("spoiled-by", NOTHING_SPOILS)?,
        kpis: kpis(source, fields)?,
        needs: reader.needs(&programs, &instruments)?,
        sweep: reader.sweep()?,
        redo: reader.redo()?,
        evidence: fields.optional("evidence").map(|v| evidence(source, v, &params, workload.tables)).transpose()?,
        consistency: reader.queries("consistency")?,
        unchanged: reader.queries("unchanged")?,
        instruments: instruments.leak(),
        ..workload
    })
}

/// Values of parameters that a program is made with to see what it can do.
const EXTREMES: [fn(&Param) -> i64; 3] = [|p| p.default, |p| p.min, |p| p.max];

fn defaults(source: &Source<'_>, workload: &Workload) -> Result<Params, UserError> {
    let params = Params::new(workload.code, workload.params, workload.choices, workload.at_most, &Default::default());
    params.map_err(|e| source.error(0..0, e.to_string()))
}

/// The programs with the default, lowest and highest parameters, each of which must be valid.
fn programs(source: &Source<'_>, fields: &Fields<'_, '_>, workload: &Workload) -> Result<Vec<Program>, UserError> {
    let at = fields.required("program")?.span();
    let mut out = Vec::new();
    for value in EXTREMES {
        let given = workload.params.iter().map(|p| (p.name.to_owned(), value(p))).collect();
        let params = Params::new(workload.code, workload.params, workload.choices, workload.at_most, &given)
            .map_err(|e| source.error(at.clone(), e.to_string()))?;
        let program = super::program::program(source, fields, &params, workload.tables, true)?;
        program.check().map_err(|e| source.error(at.clone(), e.to_string()))?;
        let steps = program.longest();
        if steps > MAX_STEPS {
            let text = format!(
                "a transaction can have {} steps, repetitions included, but the limit is {MAX_STEPS}: repeat less, or \
                 narrow the parameters of the repetitions",
                if steps == u64::MAX { "more than 10^19".to_owned() } else { steps.to_string() }
            );
            return Err(source.error(at, text));
        }
        if workload.tables.is_empty() && program.computations_per_tx() == 0 {
            return Err(source.error(0..0, "the workload has no table: add one with [[table]]"));
        }
        out.push(program);
    }
    Ok(out)
}

struct Facts<'v, 'a> {
    source: &'v Source<'a>,
    fields: &'v Fields<'v, 'a>,
    params: &'v Params,
    workload: &'v Workload,
    is_own: bool,
}

impl<'a> Facts<'_, 'a> {
    fn param(&self, value: &Value<'a>, what: &str) -> Result<&'static str, UserError> {
        Ok(self.source.param(value, what, self.workload.params, ANY)?.name)
    }

    /// The values of a list of words.
    fn words<T: Copy>(&self, key: &str, words: super::words::Words<T>) -> Result<Option<Vec<T>>, UserError> {
        let Some(list) = self.fields.optional(key) else { return Ok(None) };
        let list = self.source.list(list, &format!("'{key}'"))?.into_iter();
        list.map(|v| self.source.one_of(v, &format!("a word of '{key}'"), words)).collect::<Result<_, _>>().map(Some)
    }

    /// The capabilities that the file states, or those that the program needs.
    fn needs(&self, programs: &[Program], instruments: &[Instrument]) -> Result<&'static [Capability], UserError> {
        if let Some(needs) = self.words("needs", NEEDS)? {
            return Ok(needs.leak());
        }
        let any = |is: fn(&Program) -> bool| programs.iter().any(is);
        let has = |is: fn(&Instrument) -> bool| instruments.iter().any(is);
        let all = [
            (Capability::Rows, !self.workload.tables.is_empty()),
            (Capability::ReadRows, any(Program::reads)),
            (Capability::CountChanges, any(Program::counts_changes)),
            (Capability::BulkLoad, any(Program::bulks)),
            (Capability::CommitWait, any(|p| p.writes() && p.commit == Commit::Wait)),
            (Capability::CommitNowait, any(|p| p.writes() && p.commit == Commit::Nowait)),
            (Capability::Procedures, any(|p| p.computations_per_tx() > 0)),
            (Capability::ParallelQuery, has(|i| matches!(i, Instrument::Workers(_)))),
            (Capability::Checkpoint, has(|i| *i == Instrument::Checkpoint)),
        ];
        let needed: Vec<Capability> =
            all.into_iter().filter(|(_, is_needed)| *is_needed).map(|(need, _)| need).collect();
        Ok(needed.leak())
    }

    /// The instruments that the file states, and what bounds its transactions: by default the statements, and the log if
    /// they write with any of its parameters.
    fn instruments(&self, programs: &[Program]) -> Result<Vec<Instrument>, UserError> {
        let source = self.source;
        let mut out = self.words("instruments", INSTRUMENTS)?.unwrap_or_default();
        if let Some(v) = self.fields.optional("workers") {
            out.push(Instrument::Workers(self.param(v, "'workers'")?));
        }
        if let Some(v) = self.fields.optional("visible") {
            let f = source.fields(v, "'visible'", &["rate", "rows", "query"])?;
            let param = |key: &str| self.param(f.required(key)?, key);
            let query = intern(f.text("query")?);
            out.push(Instrument::Visible(Visible { rate: param("rate")?, rows: param("rows")?, query }));
        }
        if let Some(v) = self.fields.optional("size-scan") {
            let f = source.fields(v, "'size-scan'", &["most-kib", "step-kib", "pace-mib", "samples", "rows"])?;
            let param = |key: &str| self.param(f.required(key)?, key);
            out.push(Instrument::SizeScan(SizeScan {
                most_kib: param("most-kib")?,
                step_kib: param("step-kib")?,
                pace_mib: param("pace-mib")?,
                samples: param("samples")?,
                rows: param("rows")?,
            }));
            return Ok(out);
        }
        let statements = programs.iter().any(|program| !program.statements.is_empty());
        let limits = match self.words("limits", LIMITS)? {
            Some(limits) if self.is_own && limits.iter().any(|limit| limit.is_of_one_workload()) => {
                let at = self.fields.required("limits")?.span();
                let text =
                    "a limit that is a loop computes only the queries of a workload of the catalogue: leave it out";
                return Err(source.error(at, text));
            }
            Some(limits) => &*limits.leak(),
            // Without statements, it adds rows in bulk.
            None if !statements => &[Limit::Log, Limit::Copy],
            None if programs.iter().any(Program::writes) => &[Limit::Statements, Limit::Log],
            None => &[Limit::Statements],
        };
        out.push(Instrument::Limit(limits));
        Ok(out)
    }

    fn named_for(&self) -> Result<NamedFor, UserError> {
        let source = self.source;
        let Some(v) = self.fields.optional("named-for") else { return Ok(NamedFor::NOTHING) };
        let f = source.fields(v, "'named-for'", &["components", "doing", "instead"])?;
        let component = |v: &Value<'a>| source.one_of(v, "the component", COMPONENTS);
        let components: Result<Vec<Component>, _> = f.list("components")?.into_iter().map(component).collect();
        let mut instead = Vec::new();
        for v in f.list("instead")? {
            let f = source.fields(v, "another component", &["component", "why"])?;
            let component = component(f.required("component")?)?;
            // Of a single writer there is no more to say than what it is.
            let is_said = component == Component::SingleWriter && f.optional("why").is_none();
            instead.push(if is_said { ONE_WRITER } else { Instead { component, why: intern(f.text("why")?) } });
        }
        Ok(NamedFor { components: components?.leak(), doing: intern(f.text("doing")?), instead: instead.leak() })
    }

    fn sweep(&self) -> Result<Sweep, UserError> {
        let source = self.source;
        let Some(v) = self.fields.optional("sweep") else { return Ok(Sweep::Jobs) };
        if v.get_ref().is_str() {
            return source.one_of(v, "'sweep'", &[("jobs", Sweep::Jobs), ("once", Sweep::Once)]);
        }
        let f = source.fields(v, "'sweep'", &["parameter", "values", "column", "then-jobs"])?;
        let param = source.param(f.required("parameter")?, "'sweep'", self.workload.params, ANY)?;
        let values = f.list("values")?.into_iter();
        let values: Result<Vec<i64>, _> =
            values.map(|v| source.integer(v, "a value", (param.min, param.max))).collect();
        Ok(Sweep::Parameter {
            name: param.name,
            values: values?.leak(),
            column: column_of(source, f.required("column")?)?,
            then_jobs: f.optional("then-jobs").map_or(Ok(false), |v| source.truth(v, "'then-jobs'"))?,
        })
    }

    fn redo(&self) -> Result<Option<RedoSize>, UserError> {
        let source = self.source;
        let Some(v) = self.fields.optional("redo-kib") else { return Ok(None) };
        let wrong = || source.error(v.span(), "'redo-kib' must be three numbers: [LEAST, NOMINAL, MOST]");
        let numbers = source.list(v, "'redo-kib'")?.into_iter().map(|v| match v.get_ref() {
            toml::de::DeValue::Float(float) => float.as_str().parse().ok(),
            toml::de::DeValue::Integer(integer) => integer.as_str().parse().ok(),
            _ => None,
        });
        let numbers: Option<Vec<f64>> = numbers.collect();
        let [min, nominal, max] = numbers.unwrap_or_default()[..] else { return Err(wrong()) };
        if !(min <= nominal && nominal <= max) {
            return Err(wrong());
        }
        let has = |name: &'static str| self.workload.params.iter().any(|p| p.name == name);
        if !has("payload") || !has("rows") {
            let text = "redo is calibrated by the parameters 'payload' and 'rows': the workload needs both";
            return Err(source.error(v.span(), text));
        }
        let [min, nominal, max] = [min, nominal, max].map(|kib| kib * 1024.0);
        Ok(Some(RedoSize { min, nominal, max, payload: "payload", rows: "rows" }))
    }

    fn queries(&self, key: &str) -> Result<&'static [Consistency], UserError> {
        let (source, tables) = (self.source, self.workload.tables);
        let list = self.fields.list(key)?.into_iter().map(|value| {
            let f = source.fields(value, &format!("a query of '{key}'"), &["query", "what"])?;
            let query = query(source, f.required("query")?, key, self.params, tables)?;
            Ok(Consistency { query, what: intern(f.text("what")?) })
        });
        Ok(list.collect::<Result<Vec<_>, UserError>>()?.leak())
    }
}

/// What a transaction processes.
pub(super) fn volume(
    source: &Source<'_>,
    fields: &Fields<'_, '_>,
    params: &Params,
    tables: &[Table],
) -> Result<Option<Volume>, UserError> {
    let Some(v) = fields.optional("volume") else { return Ok(None) };
    let scope = Scope { params, tables, numbers: Vec::new() };
    let f = source.fields(v, "'volume'", &["rows", "tables", "share", "groups"])?;
    // A number, or a quotient of two.
    let number = |key: &str| {
        let Some(v) = f.optional(key) else { return Ok(0.0) };
        let amount = |v| source.number(v, key, &scope).map(|n| n as f64);
        match v.get_ref().is_array().then(|| source.list(v, key)).transpose()?.as_deref() {
            Some([of, by]) => Ok(amount(of)? / amount(by)?.max(1.0)),
            _ => amount(v),
        }
    };
    let mut known = Vec::new();
    for v in f.list("tables")? {
        let name = source.text(v, "a table")?;
        let table = tables.iter().find(|t| t.name == name);
        known.push(table.ok_or_else(|| source.unknown(v, "the table", name, tables.iter().map(|t| t.name)))?.name);
    }
    Ok(Some(Volume {
        rows: number("rows")?,
        operations: 0.0,
        share: if f.optional("share").is_none() && !known.is_empty() { 1.0 } else { number("share")? },
        groups: number("groups")?,
        tables: known,
    }))
}

/// A query that returns one number. Its variables are parameters.
fn query(
    source: &Source<'_>,
    value: &Value<'_>,
    what: &str,
    params: &Params,
    tables: &[Table],
) -> Result<&'static str, UserError> {
    let what = format!("the query of '{what}'");
    let mut scope = Scope { params, tables, numbers: Vec::new() };
    let template = template(source, value, &what, &mut scope)?;
    if let Some(var) = template.vars().find(|var| params.value(var).is_none()) {
        let text = format!("{what} has the variable '{var}', but it runs outside transactions: use only parameters");
        return Err(source.error(value.span(), text));
    }
    if !matches!(template.pieces.first(), Some(Piece::Sql(sql)) if sql.trim_start().to_uppercase().starts_with("SELECT"))
    {
        return Err(source.error(value.span(), format!("{what} must be a SELECT that returns one integer")));
    }
    Ok(intern(source.text(value, &what)?))
}

pub(super) fn evidence(
    source: &Source<'_>,
    value: &Value<'_>,
    params: &Params,
    tables: &[Table],
) -> Result<Evidence, UserError> {
    let f = source.fields(value, "the evidence", &["query", "counts"])?;
    let query = query(source, f.required("query")?, "evidence", params, tables)?;
    Ok(Evidence { query, counts: intern(f.text("counts")?) })
}

fn kpis(source: &Source<'_>, fields: &Fields<'_, '_>) -> Result<&'static [Kpi], UserError> {
    let mut out = Vec::new();
    for value in fields.list("kpis")? {
        let f = source.fields(value, "a KPI", &["column", "title"])?;
        out.push(Kpi { column: column_of(source, f.required("column")?)?, title: intern(f.text("title")?) });
    }
    Ok(if out.is_empty() { KPIS } else { out.leak() })
}

fn column_of(source: &Source<'_>, value: &Value<'_>) -> Result<&'static Column, UserError> {
    let id = source.text(value, "the column")?;
    column(id).ok_or_else(|| {
        let near = did_you_mean(id, COLUMNS.iter().map(|c| c.id));
        source.error(value.span(), format!("there is no column '{id}'{near} (`loadline columns` lists all)"))
    })
}
