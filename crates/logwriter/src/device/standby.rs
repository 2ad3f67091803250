//! A log with a standby: it is written locally and sent over TCP, or through a Unix socket. A commit
//! is durable when this side has written it, when the standby has received or written it, or when both have written
//! it. The rule can be changed while the log is written ([`StandbyControl`]).
//!
//! The standby writes what it receives in order, behind by at most its backlog. A lost standby stays lost.

mod frame;
mod link;
mod receiver;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use receiver::Receiver;

use super::replicas::{Member, Replicas, Rule, Watch};
use crate::device::DeviceError;
use link::Link;

/// Changes the rule of an open log with a standby, and watches both sides, from any thread.
#[derive(Clone, Debug)]
pub struct StandbyControl {
    set: Watch,
    rule: Arc<Mutex<Rule>>,
}

impl StandbyControl {
    /// Makes `rule` the one of commits from now on. Those under way may follow the old or the new one. When the next
    /// commit returns, both sides have all earlier commits.
    pub fn set_rule(&self, rule: Rule) {
        let mut current = self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        self.set.set_rule(rule);
        *current = rule;
    }

    /// The rule of commits from now on.
    pub fn rule(&self) -> Rule {
        *self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The progress of this side and of the standby, in this order.
    pub fn watch(&self) -> &Watch {
        &self.set
    }
}

/// Opens the log at `local` with its standby at `address` (IP address and port, or the path of a socket), where a [`Receiver`]
/// runs. A standby that does not answer within `timeout` counts as lost. Also returns a handle to the rule.
///
/// # Errors
/// The standby cannot be reached, or a side holds log files, or their sizes differ.
pub fn open_standby(
    local: Member,
    address: &str,
    rule: Rule,
    timeout: Duration,
) -> Result<(Replicas, StandbyControl), DeviceError> {
    let shared = Arc::new(Mutex::new(rule));
    let link = Link::connect(address, timeout, &shared)?;
    let remote = Member { name: format!("standby at {address}"), device: Box::new(link), storage: None };
    let set = Replicas::open("log with a standby", rule, vec![local, remote])?;
    let control = StandbyControl { set: set.watch(), rule: shared };
    Ok((set, control))
}
