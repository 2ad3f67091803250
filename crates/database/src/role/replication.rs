//! Replicas that commits can wait for.

use std::time::Duration;

use crate::error::TargetError;

/// A database with replicas, whose level (how far a commit waits for them) and whose distance loadline can change.
pub trait Replication {
    /// Brings the level of this name about (of [`TargetKind::levels`](crate::TargetKind)), or the baseline (`None`), in which a commit waits until its own log is on disk and for no replica,
    /// with this link to each replica. Waits until both are in force: a level that waits for replicas has as many synchronous
    /// ones as it needs. The replicas are there and receive in the baseline as well.
    ///
    /// # Errors
    /// [`TargetError::Usage`] with the known levels if there is no such level; [`TargetError::Local`] if it does not get into
    /// force, with what the database says of its replicas.
    fn bring_about(&self, level: Option<&str>, link: Link) -> Result<(), TargetError>;

    /// A session that looks at the replicas while a test runs.
    fn watch(&self) -> Result<Box<dyn ReplicaWatch>, TargetError>;
}

/// How far a commit waits for replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Its name on the command line and in tables: `remote_write`, `on:any-1`.
    pub name: String,
    /// Another name by which it may be given.
    pub alias: Option<&'static str>,
    /// Replicas that must be there.
    pub replicas: u32,
    /// Replicas that a commit waits for.
    pub waits_for: u32,
    /// Whether a commit waits for its own disk.
    pub durable: bool,
    /// Whether the copy is sent while its own log is written, and not once that is on disk.
    pub at_once: bool,
}

/// The network between a database and a replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// One-way delay, counted from the moment of receipt.
    pub delay: Duration,
    /// Most that a delay is longer by, drawn for each piece that is received; the order is kept.
    pub jitter: Duration,
    /// Most bytes per second in each direction; `None`: no limit.
    pub bytes_per_s: Option<u64>,
}

/// Looks at replicas while a test runs.
pub trait ReplicaWatch: Send {
    /// The replicas now, as the database states them.
    fn look(&mut self) -> Result<Vec<Replica>, TargetError>;

    /// Round trips through the links since the last call, ns: of loadline's own probes, which take the way of the replication's
    /// bytes. Empty if none came back.
    fn round_trips_ns(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Bytes that went through the links so far, both directions together; `None` if there are none.
    fn link_bytes(&self) -> Option<u64> {
        None
    }
}

/// A replica as the database states it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// The database's own words for its state: `streaming, sync`.
    pub state: String,
    /// Whether commits wait, or may wait (of a quorum), for it.
    pub synchronous: bool,
    /// End of the log that it has on disk, and of what it has applied, bytes, if the database says so. Neither moves while it hangs.
    pub acknowledged: Option<[u64; 2]>,
    /// Log that it has not applied yet, bytes.
    pub behind_bytes: Option<u64>,
    /// Time from a commit until it applies it, s.
    pub behind_s: Option<f64>,
}
