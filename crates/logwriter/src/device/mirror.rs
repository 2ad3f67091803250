//! The mirrored log: two or three directories. A commit is durable when all have it, or when a quorum has it.

use super::DeviceError;
use super::replicas::{Member, Replicas, Rule};

/// When a commit on a mirrored log is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// Every mirror has it.
    All,
    /// This number of mirrors has it; the others follow in order, behind by at most the backlog.
    Quorum(usize),
}

/// Opens a mirrored log on two or three empty members.
///
/// # Errors
/// There are too few or too many members for the rule, a member holds log files, or their sizes differ.
pub fn open_mirror(members: Vec<Member>, durable: Durable) -> Result<Replicas, DeviceError> {
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
    let (rule, rule_text) = match durable {
        Durable::All => (Rule::All, "durable when all have it".to_owned()),
        Durable::Quorum(n) if (1..=count).contains(&n) => (Rule::Quorum(n), format!("durable when {n} have it")),
        Durable::Quorum(n) => {
            let why = format!("it has {count} members");
            return refuse(format!("be durable on {n} members"), why, "Name a quorum of 1 up to the number of members");
        }
    };
    Replicas::open("mirror", rule, rule_text, members)
}
