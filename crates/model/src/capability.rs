//! What a workload may need and a target may lack: the only place where the two meet.

use serde::{Deserialize, Serialize};

/// How the work reaches the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// A procedure inside the database runs the loop and times it: no client, no network.
    Database,
    /// Prepared statements sent by loadline and timed at the client, as an application sees it.
    Client,
}

impl Driver {
    /// All drivers, in the order in which they are preferred.
    pub const ALL: [Driver; 2] = [Driver::Database, Driver::Client];

    /// The word used on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Driver::Database => "database",
            Driver::Client => "client",
        }
    }
}

impl std::fmt::Display for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One ability that a workload can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Changes that are written to a log.
    Redo,
    /// Tables whose rows can be read and changed by SQL inside transactions.
    Rows,
    /// A commit that is durable when it returns.
    CommitWait,
    /// A commit that returns before it is durable.
    CommitNowait,
    /// A log of which is known how much is written to it.
    RedoKnown,
    /// Queries whose rows are fetched.
    ReadRows,
    /// A way to add many rows at once that is faster than statements.
    BulkLoad,
    /// A language of its own to compute in.
    Procedures,
    /// A query that several workers do together.
    ParallelQuery,
    /// A checkpoint that can be asked for.
    Checkpoint,
}

impl Capability {
    /// All capabilities.
    pub const ALL: [Capability; 10] = [
        Capability::Redo,
        Capability::Rows,
        Capability::CommitWait,
        Capability::CommitNowait,
        Capability::RedoKnown,
        Capability::ReadRows,
        Capability::BulkLoad,
        Capability::Procedures,
        Capability::ParallelQuery,
        Capability::Checkpoint,
    ];

    /// Whether a workload that needs it can run without, with figures that are then marked.
    #[must_use]
    pub fn can_be_forced(self) -> bool {
        matches!(self, Capability::CommitWait | Capability::CommitNowait | Capability::RedoKnown)
    }

    /// A short phrase: «the workload needs …».
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Capability::Redo => "changes that are written to a log",
            Capability::Rows => "tables with rows that can be changed",
            Capability::CommitWait => "a commit that is durable when it returns",
            Capability::CommitNowait => "a commit that returns before it is durable",
            Capability::RedoKnown => "a log of which is known how much is written to it",
            Capability::ReadRows => "queries whose rows are fetched",
            Capability::BulkLoad => "a way to add many rows at once",
            Capability::Procedures => "a language of its own to compute in",
            Capability::ParallelQuery => "queries that several workers do together",
            Capability::Checkpoint => "a checkpoint that can be asked for",
        }
    }
}

/// What a target cannot do, by driver, each with its reason. What is not listed, it can.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Drivers the target does not have at all, with the reason.
    pub missing_drivers: Vec<(Driver, String)>,
    /// Capabilities missing from one driver, with the reason.
    pub missing: Vec<(Driver, Capability, String)>,
}

impl Capabilities {
    /// The same as [`Capabilities::refusal`] for what cannot be done at all, not even when it is forced: a
    /// commit that does not wait as it should can be measured (and is then marked), rows that cannot be
    /// fetched cannot.
    #[must_use]
    pub fn refusal_for_good(&self, driver: Driver, needs: &[Capability]) -> Option<String> {
        let cannot: Vec<Capability> = needs.iter().copied().filter(|c| !c.can_be_forced()).collect();
        self.refusal(driver, &cannot)
    }

    /// Why `driver` cannot do `needs`, or `None` if it can.
    #[must_use]
    pub fn refusal(&self, driver: Driver, needs: &[Capability]) -> Option<String> {
        if let Some((_, reason)) = self.missing_drivers.iter().find(|(d, _)| *d == driver) {
            return Some(reason.clone());
        }
        self.missing
            .iter()
            .find(|(d, c, _)| *d == driver && needs.contains(c))
            .map(|(_, c, reason)| format!("it needs {}, but {reason}", c.phrase()))
    }
}
