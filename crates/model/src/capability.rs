//! Capabilities: what a workload needs and a target may lack. Workloads and targets meet here only.

use serde::{Deserialize, Serialize};

crate::named! {
    /// How the work reaches the database; the preferred way first.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Driver {
        Database: "database", "In the database: a procedure runs and times the loop, without client or network";
        #[default]
        Client: "client", "At the client: loadline sends prepared statements and times them, as an application would";
    }
    /// The word used on the command line and in files.
    pub fn name;
    pub fn about;
}

crate::named! {
    /// One ability that a workload can ask for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Capability {
        Redo: "changes that are written to a log";
        Rows: "tables with rows that can be changed";
        CommitWait: "a commit that is durable when it returns";
        CommitNowait: "a commit that returns before it is durable";
        RedoKnown: "a log that tells how many bytes are written to it";
        ReadRows: "queries that return rows";
        BulkLoad: "a bulk load";
        Procedures: "a procedural language";
        ParallelQuery: "parallel queries";
        Checkpoint: "a checkpoint on request";
        CountChanges: "the number of rows that each statement changed";
        Scripts: "pgbench scripts";
    }
    /// End of the sentence 'the workload needs …'.
    pub fn phrase;
}

impl Capability {
    /// Whether `--force` can override its absence. The figures are then marked.
    pub fn can_be_forced(self) -> bool {
        matches!(self, Capability::CommitWait | Capability::CommitNowait | Capability::RedoKnown)
    }
}

/// Limits of a target, by driver and with reasons. It can do everything that is not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Drivers the target does not have at all, with the reason.
    pub missing_drivers: Vec<(Driver, String)>,
    /// Capabilities missing from one driver, with the reason.
    pub missing: Vec<(Driver, Capability, String)>,
    /// Those that are missing because of a setting of the server, with its name.
    pub by_setting: Vec<(Driver, Capability, &'static str)>,
}

impl Capabilities {
    /// As [`Capabilities::refusal`], for the needs that `--force` cannot override.
    pub fn refusal_for_good(&self, driver: Driver, needs: &[Capability]) -> Option<String> {
        let cannot: Vec<Capability> = needs.iter().copied().filter(|c| !c.can_be_forced()).collect();
        self.refusal(driver, &cannot)
    }

    /// Why `driver` cannot do `needs`, or `None` if it can.
    pub fn refusal(&self, driver: Driver, needs: &[Capability]) -> Option<String> {
        if let Some((_, reason)) = self.missing_drivers.iter().find(|(d, _)| *d == driver) {
            return Some(reason.clone());
        }
        self.first_missing(driver, needs).map(|(c, reason)| format!("it needs {}, but {reason}", c.phrase()))
    }

    /// Whether one of `settings` is why `driver` cannot do `needs`, and `--force` may override it.
    pub fn is_refused_by(&self, settings: &[&str], driver: Driver, needs: &[Capability]) -> bool {
        let Some((missing, _)) = self.first_missing(driver, needs) else { return false };
        let is_cause =
            |(d, c, name): &(Driver, Capability, &str)| (*d, *c) == (driver, missing) && settings.contains(name);
        self.by_setting.iter().any(is_cause) && self.refusal_for_good(driver, needs).is_none()
    }

    fn first_missing(&self, driver: Driver, needs: &[Capability]) -> Option<(Capability, &str)> {
        let first = self.missing.iter().find(|(d, c, _)| *d == driver && needs.contains(c));
        first.map(|(_, c, reason)| (*c, reason.as_str()))
    }
}
