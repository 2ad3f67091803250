//! The role [`Levels`] of the log: a standby behind a relay, and the rule by which commits wait for it.
//!
//! The log sends a group to the standby while it writes it itself, so a commit at a level that waits takes the longer of the
//! two and not their sum. In the baseline the standby receives and writes as well, behind.

use std::sync::Arc;
use std::time::Duration;

use loadline_logwriter::CommitMode;
use loadline_logwriter::device::{Rule, Standby};

use super::Wal;
use super::wal_url::RULES;
use crate::error::TargetError;
use crate::relay::Relay;
use crate::role::{Level, Levels, Replica, ReplicaWatch, find_level, not_in_force, wait_in_force};

/// Time for the standby to receive what it lacks, beside the way there and back.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn levels() -> Vec<Level> {
    let level = |(name, rule): &(&str, Rule)| {
        let durable = matches!(rule, Rule::Local | Rule::Both);
        let waits = u32::from(*rule != Rule::Local);
        Level { name: (*name).to_owned(), alias: None, replicas: waits, waits_for: waits, durable, at_once: true }
    };
    RULES.iter().map(level).collect()
}

impl Wal {
    /// The standby of levels, and the link to it.
    fn attached(&self) -> Result<(&Arc<Standby>, &Arc<Relay>), TargetError> {
        let none = || TargetError::Unsupported("this target was not opened with replicas".into());
        self.standby.as_ref().zip(self.relay.as_ref()).ok_or_else(none)
    }
}

/// The standby, unless it is lost.
fn replicas(standby: &Standby) -> Vec<Replica> {
    if standby.lost().is_some() {
        return Vec::new();
    }
    let synchronous = standby.rule() != Rule::Local;
    let state = if synchronous { "receiving, sync" } else { "receiving, async" };
    let (name, state) = ("standby".to_owned(), state.to_owned());
    vec![Replica { name, state, synchronous, behind_bytes: Some(standby.behind_bytes()), ..Replica::default() }]
}

impl Levels for Wal {
    fn bring_about(&self, level: Option<&str>, delay: Duration) -> Result<(), TargetError> {
        let (standby, relay) = self.attached()?;
        let rule = find_level(&RULES, |(name, _)| *name, level)?.map_or(Rule::Local, |(_, rule)| *rule);
        relay.set_delay(delay);
        let broken = |why: String| not_in_force(level, &format!(": {why}"));
        let patience = PATIENCE + 20 * delay;
        wait_in_force(level, patience, &self.interrupted, |_| match (standby.lost(), standby.behind_bytes()) {
            (Some(why), _) => Err(broken(why)),
            (None, 0) => Ok(None),
            (None, behind) => Ok(Some(format!("the standby is {} behind", super::shown(behind)))),
        })?;
        standby.set_rule(rule);
        // The log adopts the rule with its next commit.
        let commit = self.writer.session().and_then(|mut session| session.commit(CommitMode::Wait));
        commit.map_err(|e| broken(e.to_string()))?;
        standby.lost().map_or(Ok(()), |why| Err(broken(why)))
    }

    fn watch(&self) -> Result<ReplicaWatch, TargetError> {
        let (standby, relay) = self.attached()?;
        let standby = Arc::clone(standby);
        ReplicaWatch::new(vec![Arc::clone(relay)], move || Ok(replicas(&standby)))
    }
}
