//! The workload that a file defines, with what it leaves out: capabilities and limits follow from its program.

use loadline_model::Capability;
use loadline_model::column;

use super::check::ANY;
use super::expression::Scope;
use super::form::{Amount, Quotient};
use super::program::template;
use super::{Source, UserError, WorkloadFile};
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, Instead, NamedFor, ONE_WRITER};
use crate::params::{Param, ParamError, Params};
use crate::program::{Commit, Program};
use crate::table::Table;
use crate::template::Piece;
use crate::workload::{Consistency, GROUPS, Kpi, RedoSize, Sweep, Volume, Workload};

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

/// Values of parameters that a program is made with to see what it can do.
const EXTREMES: [fn(&Param) -> i64; 3] = [|p| p.default, |p| p.min, |p| p.max];

/// The workload of a file.
pub(super) fn workload(file: &'static WorkloadFile, is_own: bool) -> Result<Workload, UserError> {
    let WorkloadFile { source, form, tables, .. } = file;
    let params = Params::new(form.code, form.parameter, &Default::default());
    let params = params.map_err(|e| source.error("parameter", e.to_string()))?;
    let programs = file.programs()?;
    let group = form.group.unwrap_or(GROUP);
    let group = source.find("group", "the group", group, &GROUPS, |g| g.code)?.1.code;
    for (key, queries) in [("consistency", form.consistency), ("unchanged", form.unchanged)] {
        for (i, Consistency { query: sql, .. }) in queries.iter().enumerate() {
            query(source, &format!("{key}.{i}.query"), sql, &params, tables)?;
        }
    }
    if let Some(evidence) = form.evidence {
        query(source, "evidence.query", evidence.query, &params, tables)?;
    }
    if let Sweep::Parameter { name, values, .. } = form.sweep {
        let param = source.param("sweep.parameter", name, form.parameter, ANY)?;
        for (i, value) in values.iter().enumerate() {
            source.within(&format!("sweep.values.{i}"), *value, param.min..=param.max)?;
        }
    }
    let instruments = file.instruments(&programs, is_own)?;
    if is_own {
        file.stated_volume(&params)?;
    }
    let needs = form.needs.clone().unwrap_or_else(|| needed(tables, &programs, &instruments));
    Ok(Workload {
        code: form.code,
        group,
        summary: form.summary,
        description: form.description.unwrap_or(form.summary),
        named_for: file.named_for()?,
        spoiled_by: form.spoiled_by.unwrap_or(NOTHING_SPOILS),
        kpis: if form.kpis.is_empty() { KPIS } else { form.kpis },
        tables,
        params: form.parameter,
        needs: needs.leak(),
        sweep: form.sweep,
        redo: file.redo()?,
        evidence: form.evidence,
        consistency: form.consistency,
        unchanged: form.unchanged,
        instruments: instruments.leak(),
        scripts: None,
        file: Some(file),
    })
}

/// Checks a query that returns one number. Its variables are parameters.
pub(super) fn query(source: &Source, at: &str, sql: &str, params: &Params, tables: &[Table]) -> Result<(), UserError> {
    let mut scope = Scope { params, tables, numbers: Vec::new() };
    let template = template(source, at, sql, "the query", &mut scope)?;
    if let Some(var) = template.vars().find(|var| params.value(var).is_none()) {
        let text = format!("the query has the variable '{var}', but it runs outside transactions: use only parameters");
        return Err(source.error(at, text));
    }
    match template.pieces.first() {
        Some(Piece::Sql(sql)) if sql.trim_start().to_uppercase().starts_with("SELECT") => Ok(()),
        _ => Err(source.error(at, "the query must be a SELECT that returns one integer")),
    }
}

/// The capabilities that a program needs.
fn needed(tables: &[Table], programs: &[Program], instruments: &[Instrument]) -> Vec<Capability> {
    let any = |is: fn(&Program) -> bool| programs.iter().any(is);
    let all = [
        (Capability::Rows, !tables.is_empty()),
        (Capability::ReadRows, any(Program::reads)),
        (Capability::CountChanges, any(Program::counts_changes)),
        (Capability::BulkLoad, any(Program::bulks)),
        (Capability::CommitWait, any(|p| p.writes() && p.commit == Commit::Wait)),
        (Capability::CommitNowait, any(|p| p.writes() && p.commit == Commit::Nowait)),
        (Capability::Procedures, any(|p| p.computations_per_tx() > 0)),
        (Capability::ParallelQuery, instruments.iter().any(|i| matches!(i, Instrument::Workers(_)))),
        (Capability::Checkpoint, instruments.contains(&Instrument::Checkpoint)),
    ];
    all.into_iter().filter(|(_, is_needed)| *is_needed).map(|(need, _)| need).collect()
}

impl WorkloadFile {
    /// The programs with the default, lowest and highest parameters, each of which must be valid.
    fn programs(&self) -> Result<Vec<Program>, UserError> {
        let refuse = |why: String| self.source.error("program", why);
        let mut out = Vec::new();
        for value in EXTREMES {
            let given = self.form.parameter.iter().map(|p| (p.name.to_owned(), value(p))).collect();
            let params = Params::new(self.form.code, self.form.parameter, &given).map_err(|e| refuse(e.to_string()))?;
            let program = super::program::program(self, &params)?;
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
                return Err(self.source.error("", "the workload has no table: add one with [[table]]"));
            }
            out.push(program);
        }
        Ok(out)
    }

    /// The program for `params`.
    pub(crate) fn program(&self, params: &Params) -> Result<Program, ParamError> {
        Ok(super::program::program(self, params)?)
    }

    /// What a transaction processes, if the file says so.
    pub(crate) fn volume(&self, params: &Params) -> Option<Volume> {
        self.stated_volume(params).ok().flatten()
    }

    fn stated_volume(&self, params: &Params) -> Result<Option<Volume>, UserError> {
        let Some(volume) = &self.form.volume else { return Ok(None) };
        let scope = Scope { params, tables: self.tables, numbers: Vec::new() };
        let number = |key: &str, of: Option<Quotient>| {
            let amount = |of: Amount| self.source.number(&format!("volume.{key}"), of, &scope).map(|n| n as f64);
            match of {
                None => Ok(0.0),
                Some(Quotient::Whole(of)) => amount(of),
                Some(Quotient::Of([of, by])) => Ok(amount(of)? / amount(by)?.max(1.0)),
            }
        };
        for (i, name) in volume.tables.iter().enumerate() {
            self.source.find(&format!("volume.tables.{i}"), "the table", name, self.tables, |t| t.name)?;
        }
        let whole = volume.share.is_none() && !volume.tables.is_empty();
        Ok(Some(Volume {
            rows: number("rows", volume.rows)?,
            operations: 0.0,
            share: if whole { 1.0 } else { number("share", volume.share)? },
            groups: number("groups", volume.groups)?,
            tables: volume.tables.clone(),
        }))
    }

    /// The instruments that the file states, and what bounds its transactions: by default the statements, and the log if
    /// they write with any of its parameters.
    fn instruments(&self, programs: &[Program], is_own: bool) -> Result<Vec<Instrument>, UserError> {
        let (source, form) = (self.source, &self.form);
        let params = |of: &[(&str, &str)]| {
            of.iter().try_for_each(|(at, name)| source.param(at, name, form.parameter, ANY).map(drop))
        };
        let mut out = form.instruments.clone();
        if let Some(name) = form.workers {
            params(&[("workers", name)])?;
            out.push(Instrument::Workers(name));
        }
        if let Some(visible) = form.visible {
            params(&[("visible.rate", visible.rate), ("visible.rows", visible.rows)])?;
            out.push(Instrument::Visible(visible));
        }
        if let Some(scan) = form.size_scan {
            params(&[
                ("size-scan.most-kib", scan.most_kib),
                ("size-scan.step-kib", scan.step_kib),
                ("size-scan.pace-mib", scan.pace_mib),
                ("size-scan.samples", scan.samples),
                ("size-scan.rows", scan.rows),
            ])?;
            out.push(Instrument::SizeScan(scan));
            return Ok(out);
        }
        let statements = programs.iter().any(|program| !program.statements.is_empty());
        let limits = match &form.limits {
            Some(limits) if is_own && limits.iter().any(|limit| limit.is_of_one_workload()) => {
                let text =
                    "a limit that is a loop computes only the queries of a workload of the catalogue: leave it out";
                return Err(source.error("limits", text));
            }
            Some(limits) => limits.clone(),
            // Without statements, it adds rows in bulk.
            None if !statements => vec![Limit::Log, Limit::Copy],
            None if programs.iter().any(Program::writes) => vec![Limit::Statements, Limit::Log],
            None => vec![Limit::Statements],
        };
        out.push(Instrument::Limit(limits.leak()));
        Ok(out)
    }

    /// What it is named for. Of a single writer there is no more to say than what it is.
    fn named_for(&self) -> Result<NamedFor, UserError> {
        let mut instead = self.form.named_for.instead.to_vec();
        for (i, Instead { component, why }) in instead.iter_mut().enumerate() {
            if why.is_empty() && *component != Component::SingleWriter {
                return Err(self
                    .source
                    .error(&format!("named-for.instead.{i}"), "another component needs the key 'why'"));
            }
            if why.is_empty() {
                *why = ONE_WRITER;
            }
        }
        Ok(NamedFor { instead: instead.leak(), ..self.form.named_for })
    }

    fn redo(&self) -> Result<Option<RedoSize>, UserError> {
        let Some([min, nominal, max]) = self.form.redo_kib else { return Ok(None) };
        if !(min <= nominal && nominal <= max) {
            return Err(self.source.error("redo-kib", "'redo-kib' must be three numbers: [LEAST, NOMINAL, MOST]"));
        }
        for name in ["payload", "rows"] {
            self.source.param("redo-kib", name, self.form.parameter, ANY)?;
        }
        let [min, nominal, max] = [min, nominal, max].map(|kib| kib * 1024.0);
        Ok(Some(RedoSize { min, nominal, max, payload: "payload", rows: "rows" }))
    }
}
