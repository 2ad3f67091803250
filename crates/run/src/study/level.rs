//! The level of replication of one test.

use loadline_database::Level;
use loadline_model::record::LevelPoint;
use loadline_model::{Check, CheckId, Outcome};

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

    /// Commits that do not wait for their disk are what such a level is, and do not make its windows invalid.
    pub(super) fn note_what_is_on_purpose(&self, checks: &mut [Check]) {
        let Some(level) = self.level.filter(|level| !level.durable) else { return };
        let of_disk = [CheckId::CommitsPerSync, CheckId::RedoOnDevice];
        let failed = |c: &&mut Check| c.outcome == Outcome::Failed && of_disk.contains(&c.id);
        for check in checks.iter_mut().filter(failed) {
            check.outcome = Outcome::Noted;
            check.detail = format!("{}; a commit at level {} does not wait for its disk", check.detail, level.name);
        }
    }
}
