//! Levels of replication: what is in force in a window, and the way to the replicas.

use std::sync::mpsc::Sender;
use std::time::Duration;

use loadline_database::{Level, TargetError, kind_of};
use loadline_model::variant::{LevelPoint, Links};

use super::Context;
use crate::evidence::Excuse;
use crate::instrument::Levels;

/// State of replication in a window.
#[derive(Clone)]
pub(super) struct TestUnderLevels {
    /// The level that is in force; `None` in the baseline.
    level: Option<Level>,
    /// Replicas of the run, which receive in the baseline as well.
    replicas: u32,
}

impl TestUnderLevels {
    /// Watch over the replicas, which says by `alarm` while the test still runs that one is gone.
    pub(super) fn instrument(&self, alarm: Sender<String>) -> Levels {
        Levels::new(self.level.as_ref().map(|level| (level.name.clone(), level.waits_for)), self.replicas, alarm)
    }

    /// Commits that do not wait for their disk are what such a level is, and do not make its windows refused.
    pub(super) fn excuse(&self) -> Option<Excuse> {
        let level = self.level.as_ref().filter(|level| !level.durable)?;
        Some(Excuse::Level(level.name.clone()))
    }
}

impl Context<'_> {
    /// State of replication in a window under `point`, or under the baseline; `None` in a run without levels.
    pub(super) fn under_levels(&self, point: Option<&LevelPoint>) -> Result<Option<TestUnderLevels>, TargetError> {
        let plan = &self.manifest.plan;
        let Some((_, links)) = plan.levels() else { return Ok(None) };
        let known = kind_of(&plan.target)?.levels();
        let level = point.and_then(|point| known.into_iter().find(|level| level.name == point.level));
        Ok(Some(TestUnderLevels { level, replicas: links.replicas }))
    }

    /// Brings the level of `point`, or the baseline, about, with `delay_ms` on the way to the replicas; `None`: without a delay.
    pub(super) fn bring_level_about(
        &mut self,
        links: &Links,
        point: Option<&LevelPoint>,
        delay_ms: Option<f64>,
    ) -> Result<(), TargetError> {
        let delay = Duration::from_nanos((delay_ms.unwrap_or_default() * 1e6) as u64);
        let name = point.map(|point| point.level.as_str());
        let way = match links.standbys.is_empty() {
            true => format!(", {} ms one way", delay.as_secs_f64() * 1e3),
            false => String::new(),
        };
        self.step(format!("level {}{way}", name.unwrap_or("of the baseline")));
        let levels = self.side.target.abilities().levels;
        levels.ok_or_else(|| TargetError::Unsupported("the target has no replicas".into()))?.bring_about(name, delay)
    }
}
