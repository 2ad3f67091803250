//! The definition of a workload: all that it states about itself.

use std::collections::BTreeMap;

use loadline_model::{Capability, Column};
use serde::Deserialize;

use crate::file::{WorkloadFile, column, list};
use crate::instrument::{Instrument, SizeScan, Visible};
use crate::limit::Limit;
use crate::named_for::NamedFor;
use crate::params::{Param, ParamError, Params};
use crate::program::{Commit, Program};
use crate::scripts::Scripts;
use crate::table::Table;

/// A component group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Code, e.g. `log-writer`.
    pub code: &'static str,
    /// Title, e.g. `Log writer`.
    pub title: &'static str,
}

/// The eight component groups.
pub static GROUPS: [Group; 8] = [
    Group { code: "server", title: "Server" },
    Group { code: "storage", title: "Storage" },
    Group { code: "log-writer", title: "Log writer" },
    Group { code: "database-writer", title: "Database writer" },
    Group { code: "data-load", title: "Data load" },
    Group { code: "data-analytics", title: "Data analytics" },
    Group { code: "transaction-processing", title: "Transaction processing" },
    Group { code: "procedural-code", title: "Procedural code" },
];

/// A key performance metric: a column and its title in this workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kpi {
    /// Column id.
    #[serde(deserialize_with = "column")]
    pub column: &'static Column,
    /// Its title in this workload.
    pub title: &'static str,
}

/// Redo that a transaction of the workload must generate, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedoSize {
    /// Below this, it is not this workload.
    pub min: f64,
    /// Goal of calibration.
    pub nominal: f64,
    /// Above this, it is not this workload.
    pub max: f64,
    /// Parameter that calibration changes first: size of a payload, bytes.
    pub payload: &'static str,
    /// Parameter that calibration changes if the size of the payload has no effect (a log of whole pages): rows that a
    /// transaction changes. Not changed if its default is 1.
    pub rows: &'static str,
}

/// A query whose result grows with every change, as proof of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Portable SQL that returns one integer.
    pub query: &'static str,
    /// What it counts, for messages, e.g. `changed rows`.
    pub counts: &'static str,
}

/// What a workload is swept over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Sweep {
    /// Numbers of jobs.
    #[default]
    Jobs,
    /// Values of a parameter, with one job.
    Parameter {
        /// Its name.
        #[serde(rename = "parameter")]
        name: &'static str,
        /// Its values, in rising order.
        #[serde(deserialize_with = "list")]
        values: &'static [i64],
        /// Column that shows the value.
        #[serde(deserialize_with = "column")]
        column: &'static Column,
        /// Whether a sweep over jobs follows, with the parameter's default.
        #[serde(default)]
        then_jobs: bool,
    },
    /// Nothing: a single test with one job.
    Once,
}

/// What a transaction processes, if the program does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Volume {
    /// Rows read or written.
    pub rows: f64,
    /// Operations of computations.
    pub operations: f64,
    /// Tables that are read or written completely: a transaction processes their size.
    pub tables: Vec<&'static str>,
    /// Share of these tables that a transaction processes, 0…1; above 1 for several passes.
    pub share: f64,
    /// Groups of a grouping.
    pub groups: f64,
}

/// A query that must return 0 after a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consistency {
    /// Portable SQL that returns one integer.
    pub query: &'static str,
    /// What a result of 0 shows, e.g. `there are as many accounts as at first`.
    pub what: &'static str,
}

/// A named definition of work.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Code, e.g. `LGWR-LAT1`.
    pub code: &'static str,
    /// Code of its group.
    pub group: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does and what its figures mean.
    pub description: &'static str,
    /// The component that bounds it at its peak.
    pub named_for: NamedFor,
    /// What can spoil its figures.
    pub spoiled_by: &'static str,
    /// Key performance metrics, the most important first.
    pub kpis: &'static [Kpi],
    /// Tables.
    pub tables: &'static [Table],
    /// Parameters.
    pub params: &'static [Param],
    /// What a target must be able to do.
    pub needs: &'static [Capability],
    /// What it is swept over.
    pub sweep: Sweep,
    /// Redo per transaction, for the log-writer group.
    pub redo: Option<RedoSize>,
    /// Proof of the changes.
    pub evidence: Option<Evidence>,
    /// Queries that must return 0 after a test.
    pub consistency: &'static [Consistency],
    /// Queries that must return the same value before and after a test.
    pub unchanged: &'static [Consistency],
    /// What is measured beside the jobs, or proved of its tests.
    pub instruments: &'static [Instrument],
    /// pgbench scripts in place of a program, which is then empty.
    pub scripts: Option<&'static Scripts>,
    /// The file with its program, if it has one.
    pub file: Option<&'static WorkloadFile>,
}

impl Workload {
    /// Defaults for all fields.
    pub const BASE: Workload = Workload {
        code: "",
        group: "",
        summary: "",
        description: "",
        named_for: NamedFor { components: &[], doing: "", instead: &[] },
        spoiled_by: "",
        kpis: &[],
        tables: &[],
        params: &[],
        needs: &[],
        sweep: Sweep::Jobs,
        redo: None,
        evidence: None,
        consistency: &[],
        unchanged: &[],
        instruments: &[],
        scripts: None,
        file: None,
    };
}

impl Workload {
    /// All parameters: the defaults, replaced by those in `given`.
    ///
    /// # Errors
    /// [`ParamError`]: an unknown name, or values that are not allowed.
    pub fn params(&self, given: &BTreeMap<String, i64>) -> Result<Params, ParamError> {
        let params = Params::new(self.code, self.params, given)?;
        if let Some(file) = self.file {
            file.program(&params)?;
        }
        Ok(params)
    }

    /// The transaction program for `params`; empty if the workload runs scripts.
    #[must_use]
    pub fn make(&self, params: &Params) -> Program {
        let none = Program { statements: Vec::new(), body: Vec::new(), commit: Commit::Wait };
        self.file.and_then(|file| file.program(params).ok()).unwrap_or(none)
    }

    /// What a transaction processes, if not the rows that its statements touch.
    #[must_use]
    pub fn volume(&self, params: &Params) -> Option<Volume> {
        let stated = self.file.and_then(|file| file.volume(params));
        let operations = || self.make(params).operations_per_tx() as f64;
        stated.or_else(|| Some(Volume { operations: operations(), ..Volume::default() }).filter(|v| v.operations > 0.0))
    }

    /// Whether it lists `instrument`.
    #[must_use]
    pub fn has(&self, instrument: Instrument) -> bool {
        self.instruments.contains(&instrument)
    }

    /// The parameter that says with how many workers a query is run in parallel, if it is.
    #[must_use]
    pub fn workers(&self) -> Option<&'static str> {
        self.instruments.iter().find_map(|i| if let Instrument::Workers(name) = i { Some(*name) } else { None })
    }

    /// The rate of its transactions and the query for their rows, if another session looks for these.
    #[must_use]
    pub fn visible(&self) -> Option<Visible> {
        self.instruments.iter().find_map(|i| if let Instrument::Visible(visible) = i { Some(*visible) } else { None })
    }

    /// The scan of sizes that takes the place of its jobs, if one does.
    #[must_use]
    pub fn scan(&self) -> Option<SizeScan> {
        self.instruments.iter().find_map(|i| if let Instrument::SizeScan(scan) = i { Some(*scan) } else { None })
    }

    /// What bounds its work without the database; the lowest counts. Empty if it states none.
    #[must_use]
    pub fn limits(&self) -> &'static [Limit] {
        self.instruments
            .iter()
            .find_map(|i| if let Instrument::Limit(of) = i { Some(*of) } else { None })
            .unwrap_or(&[])
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> Group {
        GROUPS.iter().find(|g| g.code == self.group).copied().unwrap_or(GROUPS[0])
    }
}
