//! Members of clusters: servers that hold one and the same data, on each of which transactions can begin.

pub(super) mod galera;
pub(super) mod group;

use std::time::{Duration, Instant};

use super::wire::Connection;
use crate::error::TargetError;

/// A joining member is waited for this long if loadline started it; a user's must be ready.
const JOINING: Duration = Duration::from_secs(60);

/// What makes servers one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClusterKind {
    /// Galera, of MariaDB.
    Galera,
    /// Group replication, of MySQL.
    Group,
}

impl ClusterKind {
    /// Its name in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            ClusterKind::Galera => "Galera cluster",
            ClusterKind::Group => "replication group",
        }
    }

    fn state(self, c: &mut Connection) -> Result<State, TargetError> {
        match self {
            ClusterKind::Galera => galera::state(c),
            ClusterKind::Group => group::state(c),
        }
    }
}

/// A server as a member of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) kind: ClusterKind,
    /// Its name in the cluster; several may have the same.
    pub(super) name: String,
    /// Its identity within the cluster: of the node's process (`wsrep_gcomm_uuid`) or of its data (`server_uuid`).
    pub(super) id: String,
    /// Identity of the cluster.
    pub(super) cluster: String,
    /// Members of the cluster, also those that are not of the target.
    pub(super) size: u32,
}

/// What a member says of its state.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Whether transactions can begin there.
    pub(super) ready: bool,
    pub(super) id: String,
    pub(super) cluster: String,
    pub(super) size: u32,
    /// The state in words, and what it must be.
    pub(super) said: String,
}

impl Member {
    /// The member that `c` leads to; `None` if the server is in no cluster.
    ///
    /// # Errors
    /// [`TargetError::Refused`] if transactions cannot begin there.
    pub(super) fn ask(c: &mut Connection, private: bool, place: &str) -> Result<Option<Member>, TargetError> {
        let (kind, name) = if c.version.mariadb {
            (ClusterKind::Galera, galera::name(c)?)
        } else {
            (ClusterKind::Group, group::name(c)?)
        };
        let Some(name) = name else { return Ok(None) };
        let deadline = Instant::now() + if private { JOINING } else { Duration::ZERO };
        loop {
            let state = kind.state(c)?;
            if state.ready {
                let State { id, cluster, size, .. } = state;
                return Ok(Some(Member { kind, name, id, cluster, size }));
            }
            if Instant::now() >= deadline {
                return Err(TargetError::Refused(format!(
                    "{place} is a member of a {} ({name}) and cannot be used: {}",
                    kind.words(),
                    state.said
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks that `c`, of a job, leads to this member: an address may be that of a proxy.
    ///
    /// # Errors
    /// [`TargetError::Refused`] if it does not.
    pub(super) fn check_place(&self, c: &mut Connection, place: &str) -> Result<(), TargetError> {
        if self.kind.state(c)?.id == self.id {
            return Ok(());
        }
        Err(TargetError::Refused(format!(
            "{place} led to another member of the {} than before, or the server was started again: name the address of the \
             server itself",
            self.kind.words()
        )))
    }

    /// Number of members in the cluster; `None` if that of `c` is not ready: it has lost the cluster, or joins it.
    pub(super) fn size(&self, c: &mut Connection) -> Result<Option<u32>, TargetError> {
        let state = self.kind.state(c)?;
        Ok(Some(state.size).filter(|_| state.ready))
    }

    /// The error if it is named twice.
    pub(super) fn twice(&self, [first, second]: [&str; 2]) -> TargetError {
        TargetError::Refused(format!(
            "{first} and {second} are the same member of the {} ({}): name each once",
            self.kind.words(),
            self.name
        ))
    }
}
