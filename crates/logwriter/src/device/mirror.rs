//! The mirrored log: two or three directories. A commit is durable when all have it, or when a quorum has it.

use super::DeviceError;
use super::replicas::{Member, ReplicaOptions, Replicas, Rule, Scan};

/// When a commit on a mirrored log is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// Every mirror has it.
    All,
    /// This number of mirrors has it; the others follow in order, behind by at most the backlog.
    Quorum(usize),
}

/// Settings of a mirrored log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorOptions {
    /// When a commit is durable.
    pub durable: Durable,
    /// With [`Durable::All`]: whether the log continues with the mirrors left when one fails (*all* then means all
    /// that are left). Otherwise the failure of one is an error, because the requested durability is gone.
    pub degrade: bool,
    /// How far a mirror may be behind before writes wait for it, bytes. Matters for a quorum only.
    pub backlog_bytes: usize,
    /// Open even if a missing mirror may be the only one with some acknowledged commits. These commits are lost.
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
/// The members do not belong to one set, or too few are present to find every acknowledged commit or to meet the
/// rule of durability.
pub fn open_mirror(members: Vec<Member>, options: MirrorOptions, scan: Scan<'_>) -> Result<Replicas, DeviceError> {
    let count = members.len();
    let refuse = |wish: String, why: String, advice: &str| {
        Err(DeviceError::Unsupported { what: "a mirrored log".to_owned(), wish, why, advice: advice.to_owned() })
    };
    if !(2..=3).contains(&count) {
        return refuse(
            format!("have {count} members"),
            "it can have two or three".into(),
            "Name two or three directories",
        );
    }
    let (rule, rule_text) = match options.durable {
        Durable::All if options.degrade => (Rule::All, "durable when all that are left have it".to_owned()),
        Durable::All => (Rule::All, "durable when all have it".to_owned()),
        Durable::Quorum(n) if (1..=count).contains(&n) => (Rule::Quorum(n), format!("durable when {n} have it")),
        Durable::Quorum(n) => {
            let why = format!("it has {count} members");
            return refuse(format!("be durable on {n} members"), why, "Name a quorum of 1 up to the number of members");
        }
    };
    let MirrorOptions { degrade, backlog_bytes, accept_missing, .. } = options;
    Replicas::open("mirror", rule_text, members, ReplicaOptions { rule, degrade, backlog_bytes, accept_missing }, scan)
}
