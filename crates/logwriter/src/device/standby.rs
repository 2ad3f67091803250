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

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use receiver::Receiver;

use super::replicas::{Member, Replicas, Rule, Watch};
use crate::device::DeviceError;
use link::Link;

/// When a commit of a log with a standby is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyRule {
    /// This side has written it; the standby receives it later (asynchronously). A lost standby does not stop the log.
    Local,
    /// The standby has it in memory. It survives the loss of either host, not of both at once.
    Received,
    Written,
    Both,
}

impl StandbyRule {
    /// The rule of the set, whose second member is the standby, and its text for people.
    fn of_set(self) -> (Rule, &'static str) {
        match self {
            StandbyRule::Local => (Rule::Member(0), "durable when it is written here"),
            StandbyRule::Received => (Rule::Member(1), "durable when the standby has received it"),
            StandbyRule::Written => (Rule::Member(1), "durable when the standby has written it"),
            StandbyRule::Both => (Rule::All, "durable when it is written here and at the standby"),
        }
    }
}

/// Changes the rule of an open log with a standby, and watches both sides, from any thread.
#[derive(Clone, Debug)]
pub struct StandbyControl {
    set: Watch,
    on_receipt: Arc<AtomicBool>,
    rule: Arc<Mutex<StandbyRule>>,
}

impl StandbyControl {
    /// Makes `rule` the one of commits from now on. Those under way may follow the old or the new one. When the next
    /// commit returns, both sides have all earlier commits.
    pub fn set_rule(&self, rule: StandbyRule) {
        let mut current = self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        self.on_receipt.store(rule == StandbyRule::Received, Ordering::SeqCst);
        self.set.set_rule(rule.of_set());
        *current = rule;
    }

    /// The rule of commits from now on.
    pub fn rule(&self) -> StandbyRule {
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
    rule: StandbyRule,
    timeout: Duration,
) -> Result<(Replicas, StandbyControl), DeviceError> {
    let on_receipt = Arc::new(AtomicBool::new(rule == StandbyRule::Received));
    let link = Link::connect(address, timeout, &on_receipt)?;
    let remote = Member { name: format!("standby at {address}"), device: Box::new(link), storage: None };
    let (set_rule, rule_text) = rule.of_set();
    let set = Replicas::open("log with a standby", set_rule, rule_text.to_owned(), vec![local, remote])?;
    let control = StandbyControl { set: set.watch(), on_receipt, rule: Arc::new(Mutex::new(rule)) };
    Ok((set, control))
}
