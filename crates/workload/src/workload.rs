//! The definition of a workload: all that it states about itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_model::record::WorkloadFacts;
use loadline_model::{Capability, Column, column};
use serde::{Deserialize, Serialize};

use crate::instrument::{Instrument, SizeScan, Visible};
use crate::limit::Limit;
use crate::named_for::NamedFor;
use crate::params::{Param, ParamError, Params};
use crate::program::Program;
use crate::script::Mix;
use crate::source::Source;
use crate::table::{RowCount, Table};

/// A key performance metric: a column and its title in this workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kpi {
    pub column: &'static Column,
    pub title: String,
}

/// Redo that a transaction of the workload must generate, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedoSize {
    pub min: f64,
    pub nominal: f64,
    pub max: f64,
    /// Parameter that calibration changes first: size of a payload, bytes.
    pub payload: &'static str,
    /// Parameter that calibration changes if the size of the payload has no effect (a log of whole pages): rows that a
    /// transaction changes. Not changed if its default is 1.
    pub rows: &'static str,
}

/// A query whose result grows with every change, as proof of the work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Portable SQL that returns one integer.
    pub query: String,
    /// Counted things, for messages, e.g. `changed rows`.
    pub counts: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    #[default]
    Jobs,
    Parameter {
        name: String,
        values: Vec<i64>,
        column: &'static Column,
        /// Whether a sweep over jobs follows, with the parameter's default.
        then_jobs: bool,
    },
    /// Nothing: a single test with one job.
    Once,
}

/// Volume of a transaction, if the program does not say it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Volume {
    pub rows: f64,
    pub operations: f64,
    /// Tables that are read or written completely: a transaction processes their size.
    pub tables: Vec<String>,
    /// Share of these tables that a transaction processes, 0…1; above 1 for several passes.
    pub share: f64,
    pub groups: f64,
}

/// A query that must return 0 after a test.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consistency {
    /// Portable SQL that returns one integer.
    pub query: String,
    /// Meaning of a result of 0, e.g. `there are as many accounts as at first`.
    pub what: String,
}

/// A named definition of work, as its file states it. Numbers that depend on parameters are made from the file each time.
/// The default does nothing.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    pub code: String,
    pub group: String,
    pub summary: String,
    /// Description of the work and the meaning of its figures; by default the summary.
    pub description: String,
    /// The component that bounds it at its peak.
    pub named_for: NamedFor,
    pub spoiled_by: String,
    pub kpis: Vec<Kpi>,
    /// Tables, those of the data set first.
    pub tables: Vec<Table>,
    pub params: Vec<Param>,
    /// Needs of the workload; by default those of its program.
    pub needs: Vec<Capability>,
    pub sweep: Sweep,
    /// Redo per transaction, for the log-writer group.
    pub redo: Option<RedoSize>,
    pub evidence: Option<Evidence>,
    pub consistency: Vec<Consistency>,
    /// Queries that must return the same value before and after a test.
    pub unchanged: Vec<Consistency>,
    /// Instruments beside the jobs, and proofs of its tests.
    pub instruments: Vec<Instrument>,
    /// Limits of its work without the database; the lowest counts. By default those of its statements; none of a scan.
    pub limits: Vec<Limit>,
    /// The parameter that says with how many workers a query is run in parallel. Otherwise queries are serial.
    pub workers: Option<String>,
    /// The rate of its transactions and the query for their rows, if another session looks for these.
    pub visible: Option<Visible>,
    /// The scan of sizes that takes the place of its jobs.
    pub scan: Option<SizeScan>,
    /// pgbench scripts in place of a program, which is then empty.
    pub scripts: Option<Arc<Mix>>,
    pub(crate) source: Source,
}

impl Workload {
    pub fn text(&self) -> &str {
        &self.source.text
    }

    pub fn params(&self, given: &BTreeMap<String, i64>) -> Result<Params, ParamError> {
        let params = Params::new(&self.code, &self.params, given)?;
        self.program(&params)?;
        Ok(params)
    }

    /// The transaction program for `params`; empty if the workload runs scripts.
    pub fn make(&self, params: &Params) -> Program {
        self.program(params).unwrap_or_default()
    }

    /// Volume of a transaction, if not the rows that its statements touch.
    pub fn volume(&self, params: &Params) -> Option<Volume> {
        let stated = self.stated_volume(params).ok().flatten();
        let operations = || self.make(params).operations_per_tx() as f64;
        stated.or_else(|| Some(Volume { operations: operations(), ..Volume::default() }).filter(|v| v.operations > 0.0))
    }

    /// Whether its transactions change rows with the default parameters.
    pub fn writes(&self) -> bool {
        self.params(&BTreeMap::new()).is_ok_and(|params| self.make(&params).writes())
    }

    pub fn facts(&self) -> WorkloadFacts {
        let sized = self.tables.iter().any(|table| matches!(table.rows, RowCount::Share { .. }));
        WorkloadFacts { sized, writes: self.writes() }
    }

    pub fn has(&self, instrument: Instrument) -> bool {
        self.instruments.contains(&instrument)
    }

    /// Why it needs the client driver; `None` if it does not.
    pub fn only_at_client(&self) -> Option<&'static str> {
        if self.scan.is_some() {
            return Some("a scan of sizes times each commit at the client");
        }
        if self.has(Instrument::Checkpoint) {
            return Some("transaction times are split by the checkpoint at the client");
        }
        self.visible.as_ref().map(|_| "the client starts its batches at a rate")
    }

    /// The table of its group, which has the group's name.
    pub fn table(&self) -> &'static column::Table {
        column::Table::for_group(&self.group)
    }
}
