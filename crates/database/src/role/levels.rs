//! Replicas that commits can wait for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::error::TargetError;
use crate::patience::go_on;
use crate::relay::{Prober, Relay};

/// Pause between two looks whether a level is in force.
const PAUSE: Duration = Duration::from_millis(20);

/// A database with replicas, whose level (how far a commit waits for them) and whose distance loadline can change.
pub trait Levels {
    /// Brings the level of this name about (of [`TargetKind::levels`](crate::TargetKind)), or the baseline (`None`), in which a commit
    /// waits for its own disk only; with this one-way delay to each replica. [`TargetError::Local`], with what the database says of its
    /// replicas, if they do not get into force.
    fn bring_about(&self, level: Option<&str>, delay: Duration) -> Result<(), TargetError>;

    fn watch(&self) -> Result<ReplicaWatch, TargetError>;
}

/// How far a commit waits for replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Name on the command line and in tables: `remote_write`, `on:any-1`.
    pub name: String,
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

/// Looks at replicas while a test runs.
pub struct ReplicaWatch {
    look: Box<dyn FnMut() -> Result<Vec<Replica>, TargetError> + Send>,
    links: Vec<(Arc<Relay>, Prober)>,
}

impl ReplicaWatch {
    /// Asks the database by `look`, and begins to measure the round trips of `links`.
    pub fn new(
        links: Vec<Arc<Relay>>,
        look: impl FnMut() -> Result<Vec<Replica>, TargetError> + Send + 'static,
    ) -> Result<ReplicaWatch, TargetError> {
        let failed = |e: io::Error| TargetError::Local(format!("the link's round trip cannot be measured: {e}"));
        let watched = |link: Arc<Relay>| link.prober().map(|prober| (link, prober)).map_err(failed);
        let links = links.into_iter().map(watched).collect::<Result<_, _>>()?;
        Ok(ReplicaWatch { look: Box::new(look), links })
    }

    pub fn look(&mut self) -> Result<Vec<Replica>, TargetError> {
        (self.look)()
    }

    /// Round trips through the links since the last call, ns: of loadline's own probes, which take the way of the replication's
    /// bytes. Empty if none came back.
    pub fn round_trips_ns(&self) -> Vec<u64> {
        self.links.iter().flat_map(|(_, prober)| prober.take()).collect()
    }

    /// Bytes that went through the links so far, both directions together; `None` if there are none.
    pub fn link_bytes(&self) -> Option<u64> {
        (!self.links.is_empty()).then(|| self.links.iter().map(|(link, _)| link.bytes()).sum())
    }
}

/// The level of this `name` among the `known` ones, which the error names if there is none; none is the baseline.
pub(crate) fn find_level<'l, T>(
    known: &'l [T],
    name_of: impl Fn(&T) -> &str,
    name: Option<&str>,
) -> Result<Option<&'l T>, TargetError> {
    let Some(name) = name else { return Ok(None) };
    let found = known.iter().find(|known| name_of(known) == name);
    let names = || known.iter().map(&name_of).collect::<Vec<_>>().join(", ");
    let unknown = || TargetError::Usage(format!("there is no level '{name}': known are {}", names()));
    found.map(Some).ok_or_else(unknown)
}

/// Waits for a level (or the baseline) to be in force, for `patience` at most. `look` gets the time waited, and returns what is found
/// while it is not.
pub(crate) fn wait_in_force(
    level: Option<&str>,
    patience: Duration,
    interrupted: &AtomicBool,
    mut look: impl FnMut(Duration) -> Result<Option<String>, TargetError>,
) -> Result<(), TargetError> {
    let begin = Instant::now();
    while let Some(found) = look(begin.elapsed())? {
        if begin.elapsed() >= patience {
            return Err(not_in_force(level, &format!(" after {} s: {found}", patience.as_secs())));
        }
        go_on(interrupted, "waiting for replicas")?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The error for a level, or the baseline, that does not get into force.
pub(crate) fn not_in_force(level: Option<&str>, why: &str) -> TargetError {
    let level = level.map_or("baseline is".to_owned(), |name| format!("level '{name}' is"));
    TargetError::Local(format!("the {level} not in force{why}"))
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replica {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_patience_and_when_the_user_wants_to_stop() {
        let wait = |interrupted, patience| {
            let behind = |_| Ok(Some("standby1: behind".to_owned()));
            wait_in_force(Some("on"), patience, &AtomicBool::new(interrupted), behind)
        };
        assert!(matches!(wait(true, Duration::from_secs(3600)), Err(TargetError::Lost(_))));
        let late = wait(false, Duration::ZERO).unwrap_err();
        assert!(
            matches!(&late, TargetError::Local(text) if text.contains("'on'") && text.contains("behind")),
            "{late}"
        );
    }
}
