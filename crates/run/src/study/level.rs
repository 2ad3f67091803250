//! The level of replication of one test.

use loadline_database::Level;
use loadline_model::record::LevelPoint;

use crate::evidence::Excuse;
use crate::instrument::Replicas;

/// The level of one test.
#[derive(Clone, Copy)]
pub(super) struct OfTest<'a> {
    pub(super) point: &'a LevelPoint,
    /// The level that is in force; `None` in the baseline.
    pub(super) level: Option<&'a Level>,
    /// Replicas of the run, which receive in the baseline as well.
    pub(super) replicas: u32,
}

impl OfTest<'_> {
    /// What looks at the replicas.
    pub(super) fn instrument(&self) -> Replicas {
        Replicas::new(self.level.map(|level| (level.name.clone(), level.waits_for)), self.replicas)
    }

    /// Commits that do not wait for their disk are what such a level is, and do not make its windows refused.
    pub(super) fn excuse(&self) -> Option<Excuse> {
        self.level.filter(|level| !level.durable).map(|level| Excuse::Level(level.name.clone()))
    }
}
