//! A standby: the log is written here and shipped to a second place over TCP. A commit is durable
//! when the standby has received it, or written it, or when it is written in both places.
//!
//! What the standby has received is written there in order, by at most its backlog later. A standby
//! that is lost stays lost until the log is opened again: it is then brought up to date.

mod frame;
mod link;
mod receiver;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use link::{LinkFigures, LinkWatch};
pub use receiver::{Receiver, ReceiverOptions};

use super::replicas::{LabelStore, Member, ReplicaOptions, Replicas, Rule, Scan};
use crate::device::{DeviceError, LogDevice};
use link::Link;

/// When a commit of a log with a standby is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyRule {
    /// The standby has it in memory. It survives the loss of either place, not of both at once.
    Received,
    /// The standby has written it.
    Written,
    /// It is written here and there.
    Both,
}

/// How a log with a standby works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandbyOptions {
    /// When a commit is durable.
    pub rule: StandbyRule,
    /// Whether the log goes on without the standby when it is lost (a commit is then durable when it
    /// is written here), or is an error.
    pub degrade: bool,
    /// How far either place may be behind before writes wait for it, in bytes.
    pub backlog_bytes: usize,
    /// How long the standby may take to answer before it counts as lost.
    pub timeout: Duration,
    /// Opens although the standby, or the log here, is missing and may hold acknowledged commits
    /// that the other has not. Those commits are lost then.
    pub accept_missing: bool,
}

impl Default for StandbyOptions {
    fn default() -> Self {
        Self {
            rule: StandbyRule::Both,
            degrade: false,
            backlog_bytes: 64 << 20,
            timeout: Duration::from_secs(10),
            accept_missing: false,
        }
    }
}

/// Opens the log at `local` with its standby at `address` (`host:port`), where a [`Receiver`] runs.
/// The figures of the connection come with it.
///
/// # Errors
/// Places that do not belong together, or one missing that the rule needs or that may hold
/// acknowledged commits.
pub fn open_standby(
    local: Member,
    address: &str,
    options: StandbyOptions,
    scan: Scan<'_>,
) -> Result<(Replicas, LinkWatch), DeviceError> {
    let watch = LinkWatch::default();
    let on_receipt = options.rule == StandbyRule::Received;
    let name = format!("standby at {address}");
    let remote = match Link::connect(address, options.timeout, on_receipt, &watch) {
        Ok(link) => {
            let label = link.label();
            Member { name, device: Ok(Box::new(link) as Box<dyn LogDevice>), label, disk: None }
        }
        Err(e) => Member { name, device: Err(e.to_string()), label: Box::new(NotThere), disk: None },
    };
    let (rule, told) = match options.rule {
        StandbyRule::Received => (Rule::Member(1), "durable when the standby has received it"),
        StandbyRule::Written => (Rule::Member(1), "durable when the standby has written it"),
        StandbyRule::Both => (Rule::All, "durable when it is written here and at the standby"),
    };
    let StandbyOptions { degrade, backlog_bytes, accept_missing, .. } = options;
    let options = ReplicaOptions { rule, degrade, backlog_bytes, accept_missing };
    let set = Replicas::open("log with a standby", told.to_owned(), vec![local, remote], options, scan)?;
    Ok((set, watch))
}

/// The label of a standby that is not there. Nobody asks for it.
struct NotThere;

impl LabelStore for NotThere {
    fn load(&mut self) -> Result<Option<String>, DeviceError> {
        Ok(None)
    }

    fn store(&mut self, _: &str) -> Result<(), DeviceError> {
        Ok(())
    }
}
