//! Checks of a target before a run.

use loadline_model::{Capabilities, Finding, Severity};
use serde::Deserialize;

use super::FreeSpace;
use crate::error::TargetError;
use crate::work::Work;

pub trait Doctor {
    /// Checks everything that would spoil the figures of a run.
    fn doctor(&self) -> Result<Vec<Finding>, TargetError>;

    /// Limits of this server beside those of its kind: workloads that need more are skipped with the reason.
    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        Ok(Capabilities::default())
    }

    /// Why it cannot do this work, with these parameters and this size of the data: it is skipped.
    fn refuses(&self, _work: &Work) -> Option<String> {
        None
    }

    /// Free space for data, asked for before anything is loaded; `None` if unknown.
    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError> {
        Ok(None)
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        Ok(Vec::new())
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        Ok(JobLimit::default())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    pub sql: Vec<GrantSql>,
    pub gives: &'static str,
    pub granted: bool,
    pub used: Use,
}

/// A statement that grants something, and the one that takes it back, with quoted names and without a semicolon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSql {
    pub grant: String,
    /// `None` if nothing needs to be taken back.
    pub revoke: Option<String>,
}

impl GrantSql {
    pub(crate) fn for_role(privilege: &str, role: &str) -> GrantSql {
        let [grant, revoke] = [format!("GRANT {privilege} TO {role}"), format!("REVOKE {privilege} FROM {role}")];
        GrantSql { grant, revoke: Some(revoke) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Nothing runs without it.
    Needed,
    Figures,
    /// Figures; a setting of the whole server, not a privilege.
    Setting,
    /// The server's machine; it allows much more than loadline uses.
    Machine,
}

/// Id of the finding that a privilege is missing.
pub const PRIVILEGE: &str = "privilege";

impl Privilege {
    /// The doctor's finding if the role lacks it. `needed`: severity if nothing runs without it.
    pub(crate) fn finding(&self, needed: Severity) -> Option<Finding> {
        let severity = match self.used {
            Use::Needed => needed,
            Use::Figures => Severity::Warning,
            Use::Setting | Use::Machine => return None,
        };
        let sql: Vec<_> = self.sql.iter().map(|sql| sql.grant.as_str()).collect();
        let advice = || format!("it gives {}: {}", self.gives, sql.join("; "));
        (!self.granted).then(|| Finding::new(PRIVILEGE, severity, "privilege", "missing", advice()))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobLimit {
    pub jobs: Option<u32>,
    /// The limiting setting with its value: `max_connections = 100, of which 3 are reserved`.
    pub because: String,
}
