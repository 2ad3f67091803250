//! What a workload states about itself.

use std::collections::BTreeMap;

use loadline_model::plan::DEFAULT_SIZE_BYTES;
use loadline_model::{Capability, Column};
use thiserror::Error;

use crate::instrument::{Instrument, SizeScan, Visible};
use crate::program::{Commit, Program};
use crate::table::Table;
use crate::user::Given;

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

/// A key performance metric: a column and what to call it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kpi {
    /// Column id.
    pub column: &'static Column,
    /// What it is for this workload.
    pub title: &'static str,
}

/// A parameter of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Name.
    pub name: &'static str,
    /// Default.
    pub default: i64,
    /// Lowest allowed value.
    pub min: i64,
    /// Highest allowed value.
    pub max: i64,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// How much redo a transaction of the workload must generate, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedoSize {
    /// Below this it is another workload.
    pub min: f64,
    /// What calibration aims at.
    pub nominal: f64,
    /// Above this it is another workload.
    pub max: f64,
    /// Parameter that calibration changes first: the size of a payload, bytes.
    pub payload: &'static str,
    /// Parameter that calibration changes when the payload's size has no effect (a log of whole
    /// pages): how many rows a transaction changes. It stays as it is when its default is 1.
    pub rows: &'static str,
}

/// A query whose growth over a test proves how much was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Portable SQL that returns one integer.
    pub query: &'static str,
    /// What is counted, for messages: `changed rows`.
    pub counts: &'static str,
}

/// Over what a workload is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Over jobs.
    Jobs,
    /// One job, over values of a parameter.
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its values, rising.
        values: &'static [i64],
        /// Column that shows the value.
        column: &'static Column,
        /// Whether a sweep over jobs follows, with the parameter's default.
        then_jobs: bool,
    },
    /// A single test with one job.
    Once,
}

/// What a transaction works through, where the program does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Volume {
    /// Rows read or written.
    pub rows: f64,
    /// Operations of a computation.
    pub operations: f64,
    /// Tables that are read or written as a whole: their size is what a transaction processes.
    pub tables: &'static [&'static str],
    /// Share of these tables that a transaction processes, 0…1; more where it goes through them several times.
    pub share: f64,
    /// Groups that a grouping makes.
    pub groups: f64,
}

/// A query that must return 0 after a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consistency {
    /// Portable SQL that returns one integer.
    pub query: &'static str,
    /// What holds if it does: `all accounts together hold what they held before`.
    pub what: &'static str,
}

/// A named definition of work.
#[derive(Debug)]
pub struct Workload {
    /// Code, e.g. `LGWR-LAT1`.
    pub code: &'static str,
    /// Code of its group.
    pub group: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does and what its figures say.
    pub description: &'static str,
    /// What can spoil it.
    pub spoiled_by: &'static str,
    /// Key performance metrics, the most important first.
    pub kpis: &'static [Kpi],
    /// Tables.
    pub tables: &'static [Table],
    /// Parameters.
    pub params: &'static [Param],
    /// Parameters that take certain values only, with these.
    pub choices: &'static [(&'static str, &'static [i64])],
    /// What a target must be able to do.
    pub needs: &'static [Capability],
    /// Over what it is swept.
    pub sweep: Sweep,
    /// Redo per transaction, for the log-writer group.
    pub redo: Option<RedoSize>,
    /// Proof of what was changed.
    pub evidence: Option<Evidence>,
    /// What must hold after a test.
    pub consistency: &'static [Consistency],
    /// Queries that a test must leave with the value that they had before it, and what holds if it does.
    pub unchanged: &'static [Consistency],
    /// What a transaction works through, where it is not the rows that its statements touch.
    pub volume: Option<fn(&Params) -> Volume>,
    /// What is measured beside the jobs, or proved of its tests.
    pub instruments: &'static [Instrument],
    /// The transaction program for given parameters.
    pub program: fn(&Params) -> Program,
    /// The same, where it was read from a file; [`Workload::make`] takes what there is.
    pub given: Option<&'static Given>,
}

impl Workload {
    /// What most workloads have in common; the rest is empty.
    pub const BASE: Workload = Workload {
        code: "",
        group: "",
        summary: "",
        description: "",
        spoiled_by: "",
        kpis: &[],
        tables: &[],
        params: &[],
        choices: &[],
        needs: &[],
        sweep: Sweep::Jobs,
        redo: None,
        evidence: None,
        consistency: &[],
        unchanged: &[],
        volume: None,
        instruments: &[],
        given: None,
        program: |_| Program { statements: Vec::new(), body: Vec::new(), commit: Commit::Wait },
    };
}

/// Values of all parameters of one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    values: BTreeMap<&'static str, i64>,
    size_bytes: u64,
}

/// A parameter that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamError {
    /// No such parameter.
    #[error("workload {workload} has no parameter «{name}»: it has {known}")]
    Unknown {
        /// Code of the workload.
        workload: &'static str,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// Outside its range.
    #[error("parameter «{name}» of {workload} is {value}, but must be between {min} and {max}: {meaning}")]
    Range {
        /// Code of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: i64,
        /// Lowest allowed.
        min: i64,
        /// Highest allowed.
        max: i64,
        /// What it means.
        meaning: &'static str,
    },
    /// None of the values that it takes.
    #[error("parameter «{name}» of {workload} is {value}, but must be one of {allowed}: {meaning}")]
    Choice {
        /// Code of the workload.
        workload: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// What was given.
        value: i64,
        /// The values, with commas.
        allowed: String,
        /// What it means.
        meaning: &'static str,
    },
}

impl Workload {
    /// All parameters: the defaults, with `given` in place of some.
    ///
    /// # Errors
    /// [`ParamError`] for an unknown name or a value outside its range.
    pub fn params(&self, given: &BTreeMap<String, i64>) -> Result<Params, ParamError> {
        let mut values: BTreeMap<&'static str, i64> = self.params.iter().map(|p| (p.name, p.default)).collect();
        for (name, value) in given {
            let Some(p) = self.params.iter().find(|p| p.name == name) else {
                let known = self.params.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
                return Err(ParamError::Unknown { workload: self.code, name: name.clone(), known });
            };
            if !(p.min..=p.max).contains(value) {
                return Err(ParamError::Range {
                    workload: self.code,
                    name: p.name,
                    value: *value,
                    min: p.min,
                    max: p.max,
                    meaning: p.meaning,
                });
            }
            if let Some((_, choice)) = self.choices.iter().find(|(of, list)| *of == p.name && !list.contains(value)) {
                return Err(ParamError::Choice {
                    workload: self.code,
                    name: p.name,
                    value: *value,
                    allowed: choice.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
                    meaning: p.meaning,
                });
            }
            values.insert(p.name, *value);
        }
        Ok(Params { values, size_bytes: DEFAULT_SIZE_BYTES })
    }

    /// The transaction program for `params`.
    #[must_use]
    pub fn make(&self, params: &Params) -> Program {
        self.given.map_or_else(|| (self.program)(params), |given| given.make(params))
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

    /// The group.
    #[must_use]
    pub fn group(&self) -> Group {
        GROUPS.iter().find(|g| g.code == self.group).copied().unwrap_or(GROUPS[0])
    }
}

impl Params {
    /// Value of `name`; 0 for a parameter that the workload does not have, which the catalogue's
    /// tests rule out.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.values.get(name).copied().unwrap_or(0)
    }

    /// The same for a data set of `bytes` bytes.
    #[must_use]
    pub fn with_size(self, bytes: u64) -> Params {
        Params { size_bytes: bytes, ..self }
    }

    /// Size of the data set, bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// All values by name.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, i64> {
        self.values.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    }
}
