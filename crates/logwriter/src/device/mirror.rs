//! The mirrored log: two or three directories, written at once. A commit is durable when all have
//! it, or when a quorum has it.

use super::replicas::{Member, ReplicaOptions, Replicas, Rule, Scan};
use crate::device::DeviceError;

/// When a commit on a mirrored log is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// Every mirror has it.
    All,
    /// So many mirrors have it; the others follow, in order, by at most the backlog.
    Quorum(usize),
}

/// How a mirrored log works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorOptions {
    /// When a commit is durable.
    pub durable: Durable,
    /// With [`Durable::All`]: whether the log goes on with the mirrors that are left when one fails
    /// (then *all* means all that are left). Without it the failure of one is an error, as the user
    /// asked for a durability that can no longer be given.
    pub degrade: bool,
    /// How far a mirror may be behind before writes wait for it, in bytes. Matters to a quorum only.
    pub backlog_bytes: usize,
    /// Opens although mirrors are missing that may hold acknowledged commits which no other has.
    /// Those commits are lost then.
    pub accept_missing: bool,
}

impl Default for MirrorOptions {
    fn default() -> Self {
        Self { durable: Durable::All, degrade: false, backlog_bytes: 64 << 20, accept_missing: false }
    }
}

/// Opens a mirrored log on two or three members. Their order is part of the log.
///
/// # Errors
/// Members that do not belong together, or too few of them for every acknowledged commit to be
/// found, or for the rule of durability to be met.
pub fn open_mirror(members: Vec<Member>, options: MirrorOptions, scan: Scan<'_>) -> Result<Replicas, DeviceError> {
    let count = members.len();
    let refuse = |wish: String, why: String, advice: &str| {
        Err(DeviceError::Unsupported { what: "a mirrored log".to_owned(), wish, why, advice: advice.to_owned() })
    };
    if !(2..=3).contains(&count) {
        return refuse(
            format!("have {count} members"),
            "two or three are possible".into(),
            "Name two or three directories",
        );
    }
    let (rule, told) = match options.durable {
        Durable::All if options.degrade => (Rule::All, "durable when all that are left have it".to_owned()),
        Durable::All => (Rule::All, "durable when all have it".to_owned()),
        Durable::Quorum(n) if (1..=count).contains(&n) => (Rule::Quorum(n), format!("durable when {n} have it")),
        Durable::Quorum(n) => {
            let why = format!("it has {count} members");
            return refuse(format!("be durable on {n} of them"), why, "Name a quorum of 1 up to the number of members");
        }
    };
    let MirrorOptions { degrade, backlog_bytes, accept_missing, .. } = options;
    Replicas::open("mirror", told, members, ReplicaOptions { rule, degrade, backlog_bytes, accept_missing }, scan)
}
