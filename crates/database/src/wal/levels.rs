//! The role [`Levels`] of the log: a standby behind a relay, and the rule by which commits wait for it.
//!
//! The log sends a group to the standby while it writes it itself, so a commit at a level that waits takes the longer of the
//! two and not their sum. In the baseline the standby receives and writes as well, behind.

use std::sync::Arc;
use std::time::Duration;

use loadline_logwriter::CommitMode;
use loadline_logwriter::device::{Member, Receiver, Rule, StandbyControl, open_standby};

use super::devices::{Opened, failed, open_copy};
use super::wal_url::{RULES, WalUrl};
use super::{TEMP_PREFIX, Wal};
use crate::error::TargetError;
use crate::folder::OwnedFolder;
use crate::relay::Relay;
use crate::role::{Level, Levels, Replica, ReplicaWatch, find_level, not_in_force, wait_in_force};

/// Name of the standby in tables.
const NAME: &str = "standby";
/// Time for the standby to receive what it lacks, beside the way there and back.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the standby may take to answer: a link may be slow on purpose.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The levels: the rules of a standby.
pub(super) fn levels() -> Vec<Level> {
    let level = |(name, rule): &(&str, Rule)| {
        let durable = matches!(rule, Rule::Local | Rule::Both);
        let waits = u32::from(*rule != Rule::Local);
        Level { name: (*name).to_owned(), alias: None, replicas: waits, waits_for: waits, durable, at_once: true }
    };
    RULES.iter().map(level).collect()
}

/// A standby whose rule and distance can be changed.
pub(super) struct Attached {
    /// The log and the standby, for people.
    pub(super) description: String,
    control: StandbyControl,
    relay: Arc<Relay>,
    receiver: Receiver,
    _sockets: OwnedFolder,
}

impl Attached {
    /// Opens the log in `folders`, and its standby in the second of them, behind a relay.
    pub(super) fn open(address: &WalUrl, folders: [&OwnedFolder; 2]) -> Result<(Opened, Attached), TargetError> {
        // Paths of sockets are short.
        let sockets = OwnedFolder::temporary(&std::env::temp_dir(), TEMP_PREFIX)?;
        let at = |name: &str| sockets.path().join(name);
        let listen = at("standby");
        let [first, second] = folders.map(OwnedFolder::path);
        let receiver = Receiver::start(open_copy(address, second).map_err(failed)?, Some(&listen)).map_err(failed)?;
        let no_relay = |e| TargetError::Local(format!("no relay to the standby can be started: {e}"));
        let relay = Arc::new(Relay::start(&at("relay"), &listen).map_err(no_relay)?);
        let own = open_copy(address, first).map_err(failed)?;
        let description = format!(
            "{}, and its standby in {}; their rule is the level of each test",
            own.describe(),
            second.display()
        );
        let (relayed, member) = (at("relay").display().to_string(), Member::new(first, own));
        let (set, control) = open_standby(member, &relayed, Rule::Local, TIMEOUT).map_err(failed)?;
        // No warning of copies on one device: they are what is measured.
        let opened = Opened { device: Box::new(set), warnings: Vec::new(), standby: None };
        Ok((opened, Attached { description, control, relay, receiver, _sockets: sockets }))
    }

    /// Closes the standby's connections, as a host that is gone would.
    #[cfg(test)]
    pub(super) fn cut_off(&self) {
        self.relay.close_all();
    }

    /// Why the standby does not receive or write any more.
    fn lost(&self) -> Option<String> {
        let dropped = self.control.watch().members().into_iter().nth(1).and_then(|standby| standby.dropped);
        dropped.or_else(|| self.receiver.failed())
    }

    /// Log that the standby has not written, bytes.
    fn behind_bytes(&self) -> u64 {
        let sent = self.control.watch().members().first().map_or(0, |own| own.bytes + own.behind_bytes);
        sent.saturating_sub(self.receiver.written_bytes())
    }

    /// The standby, unless it is lost.
    fn replicas(&self) -> Vec<Replica> {
        if self.lost().is_some() {
            return Vec::new();
        }
        let synchronous = self.control.rule() != Rule::Local;
        let state = if synchronous { "receiving, sync" } else { "receiving, async" };
        let behind_bytes = Some(self.behind_bytes());
        let state = state.to_owned();
        vec![Replica { name: NAME.to_owned(), state, synchronous, behind_bytes, ..Replica::default() }]
    }
}

impl Levels for Wal {
    fn bring_about(&self, level: Option<&str>, delay: Duration) -> Result<(), TargetError> {
        let standby = self.attached()?;
        let rule = find_level(&RULES, |(name, _)| *name, level)?.map_or(Rule::Local, |(_, rule)| *rule);
        standby.relay.set_delay(delay);
        let broken = |why: String| not_in_force(level, &format!(": {why}"));
        let patience = PATIENCE + 20 * delay;
        wait_in_force(level, patience, &self.interrupted, |_| match (standby.lost(), standby.behind_bytes()) {
            (Some(why), _) => Err(broken(why)),
            (None, 0) => Ok(None),
            (None, behind) => Ok(Some(format!("the standby is {} behind", super::shown(behind)))),
        })?;
        standby.control.set_rule(rule);
        // The log adopts the rule with its next commit.
        let commit = self.writer.session().and_then(|mut session| session.commit(CommitMode::Wait));
        commit.map_err(|e| broken(e.to_string()))?;
        standby.lost().map_or(Ok(()), |why| Err(broken(why)))
    }

    fn watch(&self) -> Result<ReplicaWatch, TargetError> {
        let standby = Arc::clone(self.attached()?);
        ReplicaWatch::new(vec![Arc::clone(&standby.relay)], move || Ok(standby.replicas()))
    }
}
