//! Progress of a replica set's members, readable while the log is written.

use std::sync::Arc;

use super::Rule;
use super::lane::{Board, LaneState};

/// State of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// Its directory or address.
    pub name: String,
    /// Why it dropped out, if it did.
    pub dropped: Option<String>,
    /// Bytes queued and not yet written.
    pub behind_bytes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Writes done.
    pub writes: u64,
    /// Syncs done: a member that is behind combines several.
    pub syncs: u64,
    /// How often it was the first member to make a commit durable.
    pub first: u64,
}

/// A handle to read a set's progress from any thread.
#[derive(Clone, Debug)]
pub struct Watch(pub(super) Arc<Board>);

impl Watch {
    /// All members, in order.
    #[must_use]
    pub fn members(&self) -> Vec<MemberState> {
        let state = self.0.lock();
        let member = |lane: &LaneState| MemberState {
            name: lane.name.clone(),
            dropped: lane.failed.clone(),
            behind_bytes: lane.behind as u64,
            bytes: lane.bytes,
            writes: lane.writes,
            syncs: lane.syncs,
            first: lane.first,
        };
        state.lanes.iter().map(member).collect()
    }

    /// Asks the set to adopt another rule, with its text for people, before its next write.
    pub(crate) fn set_rule(&self, rule: (Rule, &'static str)) {
        self.0.lock().wanted = Some(rule);
    }

    /// Number of members that dropped out or were missing from the start.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.lock().lanes.iter().filter(|lane| lane.failed.is_some()).count()
    }

    /// How often a write waited because a member was too far behind.
    #[must_use]
    pub fn stalls(&self) -> u64 {
        self.0.lock().stalls
    }
}
