//! A database under test: facts, roles and abilities.

use loadline_model::manifest::TargetInfo;

use crate::error::TargetError;
use crate::facts::Facts;
use crate::request::OpenRequest;
use crate::role::{
    Administration, ClientDriver, DatabaseDriver, Doctor, Levels, NativeReports, Observation, ParallelQueries, Tables,
};
use crate::tcp::Address;

/// A database under test. Calls may block; each opens the sessions it needs.
pub trait Target: Administration + Doctor + ClientDriver + Observation + Send + Sync {
    /// Constants of this target, known when it is opened.
    fn facts(&self) -> &Facts;

    /// Description of the target: product, version, settings, directories. No secrets.
    fn info(&self) -> Result<TargetInfo, TargetError>;

    fn abilities(&self) -> Abilities<'_>;
}

/// Changes the settings of a private server; its data stay.
pub trait Settings {
    /// Gives the server the settings of `request` in place of those given before, and restarts it if one of them needs that
    /// or with `restart`. Returns the target opened anew, because what it knew of the server may have changed, and whether
    /// the server was restarted. A server that does not start with them is started with its former settings.
    ///
    /// # Errors
    /// The server's own words if it knows no such setting or does not take its value.
    fn switch(&self, request: &OpenRequest, restart: bool) -> Result<(Box<dyn Target>, bool), TargetError>;

    /// Value of a setting as the server states it now; `None` if it has no such setting.
    fn setting(&self, name: &str) -> Result<Option<String>, TargetError>;
}

/// Leads the jobs through a proxy or pooler, or directly to the server. Only of a target of one node.
pub trait Ways {
    /// From now on the sessions of jobs are opened as [`OpenRequest::way`] says. Returns the proxy's address, if it is on this machine.
    ///
    /// # Errors
    /// [`TargetError::Refused`] if it leads to another server or database, or as another role.
    fn lead(&self, request: &OpenRequest) -> Result<Option<Address>, TargetError>;
}

/// The nodes of a target of several. Some may be lost while the others go on.
pub trait Nodes {
    /// Asks each node whether it answers and is of use; waits until they have noticed a loss. `None` if no node is lost.
    fn without_lost(&self) -> Option<RemainingNodes>;
}

pub struct RemainingNodes {
    /// The target over the nodes that are left, in their order; why nothing can be measured there, if so.
    pub target: Result<Box<dyn Target>, String>,
    /// Names of the lost nodes: `node 2 ('db2') at db2:3306`.
    pub lost: Vec<String>,
}

/// The optional roles of a database; none by default.
#[derive(Clone, Copy, Default)]
#[allow(missing_docs, reason = "each field is documented by its trait")]
pub struct Abilities<'a> {
    pub database_driver: Option<&'a dyn DatabaseDriver>,
    pub tables: Option<&'a dyn Tables>,
    pub parallel_queries: Option<&'a dyn ParallelQueries>,
    /// Only of a private server.
    pub settings: Option<&'a dyn Settings>,
    /// Only of servers.
    pub ways: Option<&'a dyn Ways>,
    /// Only of several nodes that can be lost one by one.
    pub nodes: Option<&'a dyn Nodes>,
    /// Only of a target that was opened for a study of them.
    pub levels: Option<&'a dyn Levels>,
    /// Only if the user requested reports ([`OpenRequest::native_report`](crate::OpenRequest::native_report)).
    pub native_reports: Option<&'a dyn NativeReports>,
}

impl<'a> Abilities<'a> {
    pub fn driver(&self) -> Result<&'a dyn DatabaseDriver, TargetError> {
        self.database_driver.ok_or_else(|| TargetError::Unsupported("this target has no in-database driver".into()))
    }
}
