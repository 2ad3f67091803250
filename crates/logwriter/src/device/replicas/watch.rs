//! Progress of a replica set's members, readable while the log is written.

use std::sync::Arc;

use super::Rule;
use super::lane::{Board, LaneState};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// Why it dropped out, if it did.
    pub dropped: Option<String>,
    /// Bytes queued and not yet written.
    pub behind_bytes: u64,
    pub bytes: u64,
}

/// A handle to read a set's progress from any thread.
#[derive(Clone, Debug)]
pub struct Watch(pub(super) Arc<Board>);

impl Watch {
    /// All members, in order.
    pub fn members(&self) -> Vec<MemberState> {
        let member = |lane: &LaneState| MemberState {
            dropped: lane.failed.clone(),
            behind_bytes: lane.behind as u64,
            bytes: lane.bytes,
        };
        self.0.lock().lanes.iter().map(member).collect()
    }

    /// Asks the set to adopt another rule before its next write.
    pub(crate) fn set_rule(&self, rule: Rule) {
        self.0.lock().wanted = Some(rule);
    }

    /// Number of members that dropped out.
    #[cfg(test)]
    pub(crate) fn dropped(&self) -> usize {
        self.members().iter().filter(|member| member.dropped.is_some()).count()
    }
}
