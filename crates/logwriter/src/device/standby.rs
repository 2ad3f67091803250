//! A log with a standby: it is written locally and sent over TCP to a second host, or through a Unix socket. A commit
//! is durable when this side has written it, when the standby has received or written it, or when both have written
//! it. The rule can be changed while the log is written ([`StandbyControl`]).
//!
//! The standby writes what it receives in order, behind by at most its backlog. A lost standby stays lost until
//! the log is opened again, which brings it up to date.

mod frame;
mod link;
mod receiver;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use link::{LinkFigures, LinkWatch};
pub use receiver::{Receiver, ReceiverOptions};

use super::replicas::{LabelStore, Member, ReplicaOptions, Replicas, Rule, Scan, Watch};
use crate::device::{DeviceError, LogDevice};
use link::Link;

/// When a commit of a log with a standby is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyRule {
    /// This side has written it; the standby receives it later (asynchronously). A lost standby does not stop the log.
    Local,
    /// The standby has it in memory. It survives the loss of either host, not of both at once.
    Received,
    /// The standby has written it.
    Written,
    /// Both have written it.
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
    /// Makes `rule` the one of commits from now on. Those under way may follow the old or the new one. The labels name
    /// it before the next commit returns, and both sides then have all earlier commits.
    pub fn set_rule(&self, rule: StandbyRule) {
        let mut current = self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        self.on_receipt.store(rule == StandbyRule::Received, Ordering::SeqCst);
        self.set.set_rule(rule.of_set());
        *current = rule;
    }

    /// The rule of commits from now on.
    #[must_use]
    pub fn rule(&self) -> StandbyRule {
        *self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The progress of this side and of the standby, in this order.
    #[must_use]
    pub fn watch(&self) -> &Watch {
        &self.set
    }
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

/// Opens the log at `local` with its standby at `address` (`host:port` or the path of a socket), where a [`Receiver`]
/// runs. Also returns handles to the figures of the connection and to the rule.
///
/// # Errors
/// The two do not belong to one set, or a missing side is needed by the rule or may hold acknowledged commits.
pub fn open_standby(
    local: Member,
    address: &str,
    options: StandbyOptions,
    scan: Scan<'_>,
) -> Result<(Replicas, LinkWatch, StandbyControl), DeviceError> {
    let watch = LinkWatch::default();
    let rule = Arc::new(Mutex::new(options.rule));
    let on_receipt = Arc::new(AtomicBool::new(options.rule == StandbyRule::Received));
    let name = format!("standby at {address}");
    let remote = match Link::connect(address, options.timeout, &on_receipt, &watch) {
        Ok(link) => {
            let label = link.label();
            Member { name, device: Ok(Box::new(link) as Box<dyn LogDevice>), label, storage: None }
        }
        Err(e) => Member { name, device: Err(e.to_string()), label: Box::new(NoLabel), storage: None },
    };
    let (set_rule, rule_text) = options.rule.of_set();
    let StandbyOptions { degrade, backlog_bytes, accept_missing, .. } = options;
    let options = ReplicaOptions { rule: set_rule, degrade, backlog_bytes, accept_missing };
    let set = Replicas::open("log with a standby", rule_text.to_owned(), vec![local, remote], options, scan)?;
    let control = StandbyControl { set: set.watch(), on_receipt, rule };
    Ok((set, watch, control))
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
