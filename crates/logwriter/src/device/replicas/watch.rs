//! What can be seen of a set of replicas while its log is written.

use std::sync::Arc;

use super::lane::{Board, LaneState};

/// How a member is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// Its directory or address.
    pub name: String,
    /// Why it dropped out, if it did.
    pub dropped: Option<String>,
    /// Bytes that wait to be written to it.
    pub behind_bytes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Writes done.
    pub writes: u64,
    /// Syncs done: one that is behind makes one of several.
    pub syncs: u64,
    /// How often it was the first to have a commit.
    pub first: u64,
}

/// Looks at a set while its log is written, from any thread.
#[derive(Clone, Debug)]
pub struct Watch(pub(super) Arc<Board>);

impl Watch {
    /// Each member, in order.
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

    /// How many members have dropped out or were never there.
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
