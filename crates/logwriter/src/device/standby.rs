//! A log with a standby: it is written locally and sent over TCP to a second host. A commit is durable when the
//! standby has received it, or has written it, or when both have written it.
//!
//! The standby writes what it receives in order, behind by at most its backlog. A lost standby stays lost until
//! the log is opened again, which brings it up to date.

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
    /// The standby has it in memory. It survives the loss of either host, not of both at once.
    Received,
    /// The standby has written it.
    Written,
    /// Both have written it.
    Both,
}

/// Settings of a log with a standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandbyOptions {
    /// When a commit is durable.
    pub rule: StandbyRule,
    /// Whether the log continues without a lost standby (a commit is then durable when it is written locally).
    /// Otherwise the loss is an error.
    pub degrade: bool,
    /// How far either side may be behind before writes wait for it, bytes.
    pub backlog_bytes: usize,
    /// How long the standby may take to answer before it counts as lost.
    pub timeout: Duration,
    /// Open even if a missing side may be the only one with some acknowledged commits. These commits are lost.
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

/// Opens the log at `local` with its standby at `address` (`host:port`), where a [`Receiver`] runs. Also returns a
/// handle to the figures of the connection.
///
/// # Errors
/// The two do not belong to one set, or a missing side is needed by the rule or may hold acknowledged commits.
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
            Member { name, device: Ok(Box::new(link) as Box<dyn LogDevice>), label, storage: None }
        }
        Err(e) => Member { name, device: Err(e.to_string()), label: Box::new(NoLabel), storage: None },
    };
    let (rule, rule_text) = match options.rule {
        StandbyRule::Received => (Rule::Member(1), "durable when the standby has received it"),
        StandbyRule::Written => (Rule::Member(1), "durable when the standby has written it"),
        StandbyRule::Both => (Rule::All, "durable when it is written here and at the standby"),
    };
    let StandbyOptions { degrade, backlog_bytes, accept_missing, .. } = options;
    let options = ReplicaOptions { rule, degrade, backlog_bytes, accept_missing };
    let set = Replicas::open("log with a standby", rule_text.to_owned(), vec![local, remote], options, scan)?;
    Ok((set, watch))
}

/// The label of a missing standby. Never used.
struct NoLabel;

impl LabelStore for NoLabel {
    fn load(&mut self) -> Result<Option<String>, DeviceError> {
        Ok(None)
    }

    fn store(&mut self, _: &str) -> Result<(), DeviceError> {
        Ok(())
    }
}
