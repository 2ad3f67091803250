//! Completes a workload with what its file leaves out: capabilities and limits follow from its program. Checks the rest.

use loadline_model::Capability;

use super::check::{self, ANY};
use super::expression::Scope;
use super::program::{program, template};
use crate::form::{Amount, Quotient};
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, Instead, ONE_WRITER};
use crate::params::{Param, ParamError, Params};
use crate::program::{Commit, Program};
use crate::source::{Source, UserError};
use crate::table::Table;
use crate::template::Piece;
use crate::workload::{GROUPS, Sweep, Volume, Workload};

/// Most steps of a transaction; without a database, a job does some tens of millions per second.
const MAX_STEPS: u64 = 10_000_000;
/// Values of parameters that a program is made with to see what it can do.
const EXTREMES: [fn(&Param) -> i64; 3] = [|p| p.default, |p| p.min, |p| p.max];

impl Workload {
    /// Checks what its file states, and adds what it leaves out.
    pub(super) fn complete(&mut self, is_own: bool) -> Result<(), UserError> {
        let source = self.source.clone();
        for (key, text) in [("code", &self.code), ("summary", &self.summary)] {
            if text.is_empty() {
                return Err(source.error("", format!("the key '{key}' is missing")));
            }
        }
        check::params(&source, &self.params)?;
        self.tables = check::tables(self)?;
        if is_own {
            let line = |i: usize| source.error(&format!("statement.{i}.name"), "").line;
            let names = self.statements.iter().enumerate();
            self.places = names.map(|(i, s)| format!("'{}' ({}:{})", s.name, source.file, line(i))).collect();
        }
        if self.description.is_empty() {
            self.description.clone_from(&self.summary);
        }
        source.find("group", "the group", &self.group, &GROUPS, |g| g.code)?;
        let programs = self.programs()?;
        let params = Params::new(&self.code, &self.params, &Default::default());
        let params = params.map_err(|e| source.error("parameter", e.to_string()))?;
        self.check_queries(&params)?;
        self.check_names_of_params()?;
        self.complete_named_for()?;
        if is_own {
            self.stated_volume(&params)?;
            if self.limits.iter().any(|limit| limit.is_of_one_workload()) {
                let text =
                    "a limit that is a loop computes only the queries of a workload of the catalogue: leave it out";
                return Err(source.error("limits", text));
            }
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
    fn programs(&self) -> Result<Vec<Program>, UserError> {
        let refuse = |why: String| self.source.error("program", why);
        let mut out = Vec::new();
        for value in EXTREMES {
            let given = self.params.iter().map(|p| (p.name.clone(), value(p))).collect();
            let params = Params::new(&self.code, &self.params, &given).map_err(|e| refuse(e.to_string()))?;
            let program = program(self, &params)?;
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

    /// The program for `params`; empty without a file.
    pub(crate) fn program(&self, params: &Params) -> Result<Program, ParamError> {
        if self.program.is_empty() {
            return Ok(Program { statements: Vec::new(), body: Vec::new(), commit: Commit::Wait });
        }
        Ok(program(self, params)?)
    }

    fn check_queries(&self, params: &Params) -> Result<(), UserError> {
        let check = |at: &str, sql: &str| query(&self.source, at, sql, params, &self.tables);
        self.evidence.as_ref().map_or(Ok(()), |evidence| check("evidence.query", &evidence.query))?;
        for (key, queries) in [("consistency", &self.consistency), ("unchanged", &self.unchanged)] {
            for (i, one) in queries.iter().enumerate() {
                check(&format!("{key}.{i}.query"), &one.query)?;
            }
        }
        Ok(())
    }

    /// Checks that every parameter that the file names is there.
    fn check_names_of_params(&self) -> Result<(), UserError> {
        let mut named: Vec<(&str, &str)> = self.workers.iter().map(|name| ("workers", name.as_str())).collect();
        if let Some(visible) = &self.visible {
            named.extend([("visible.rate", visible.rate.as_str()), ("visible.rows", &visible.rows)]);
        }
        if let Some(scan) = &self.scan {
            named.extend([("size-scan.most-kib", scan.most_kib.as_str()), ("size-scan.step-kib", &scan.step_kib)]);
            named.extend([("size-scan.pace-mib", scan.pace_mib.as_str()), ("size-scan.samples", &scan.samples)]);
            named.push(("size-scan.rows", &scan.rows));
        }
        if let Some(redo) = self.redo {
            named.extend([("redo-kib", redo.payload), ("redo-kib", redo.rows)]);
        }
        for (at, name) in named {
            self.source.param(at, name, &self.params, ANY)?;
        }
        if let Sweep::Parameter { name, values, .. } = &self.sweep {
            let param = self.source.param("sweep.parameter", name, &self.params, ANY)?;
            for (i, value) in values.iter().enumerate() {
                self.source.within(&format!("sweep.values.{i}"), *value, param.min..=param.max)?;
            }
        }
        Ok(())
    }

    /// Adds why a single writer bounds it: there is no more to say than what it is.
    fn complete_named_for(&mut self) -> Result<(), UserError> {
        for (i, Instead { component, why }) in self.named_for.instead.iter_mut().enumerate() {
            if why.is_empty() && *component != Component::SingleWriter {
                return Err(self
                    .source
                    .error(&format!("named-for.instead.{i}"), "another component needs the key 'why'"));
            }
            if why.is_empty() {
                *why = ONE_WRITER.to_owned();
            }
        }
        Ok(())
    }

    /// The capabilities that its program needs.
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

    /// What a transaction processes, if the file says so.
    pub(crate) fn stated_volume(&self, params: &Params) -> Result<Option<Volume>, UserError> {
        let Some(volume) = &self.volume else { return Ok(None) };
        let scope = Scope { params, tables: &self.tables, numbers: Vec::new() };
        let number = |key: &str, of: &Option<Quotient>| {
            let amount = |of: &Amount| self.source.number(&format!("volume.{key}"), of, &scope).map(|n| n as f64);
            match of {
                None => Ok(0.0),
                Some(Quotient::Whole(of)) => amount(of),
                Some(Quotient::Of([of, by])) => Ok(amount(of)? / amount(by)?.max(1.0)),
            }
        };
        for (i, name) in volume.tables.iter().enumerate() {
            self.source.find(&format!("volume.tables.{i}"), "the table", name, &self.tables, |t| &t.name)?;
        }
        let whole = volume.share.is_none() && !volume.tables.is_empty();
        Ok(Some(Volume {
            rows: number("rows", &volume.rows)?,
            operations: 0.0,
            share: if whole { 1.0 } else { number("share", &volume.share)? },
            groups: number("groups", &volume.groups)?,
            tables: volume.tables.clone(),
        }))
    }
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
        _ => Err(source.error(at, format!("the query {at} must be a SELECT that returns one integer"))),
    }
}
