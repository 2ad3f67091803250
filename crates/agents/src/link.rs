//! The way from a coordinator to its agents: the hub in a run, simulated delays in tests.

use crate::message::{Message, Order};

/// A message that came, not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// When it came, ns on the coordinator's clock.
    pub at_ns: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A coordinator's side of the hub.
pub trait Link {
    /// The coordinator's clock, ns.
    fn now_ns(&self) -> u64;

    /// Sends an order to the agent with this id, or to all. What cannot be sent is lost.
    fn send(&mut self, agent: Option<&str>, order: &Message<Order>);

    /// The next message for this coordinator; waits for it until `until_ns` at most.
    fn receive(&mut self, until_ns: u64) -> Option<Received>;

    /// Length of the parts of what is too long for a message, bytes.
    fn part_bytes(&self) -> usize;

    /// From now on says once a second that this run goes on, until `None` is given. It does not depend on [`Link::receive`].
    fn beat(&mut self, run: Option<&str>);

    /// What is wrong with the hub now, or was since `since_ns`.
    fn trouble(&self, since_ns: u64) -> Option<String>;

    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool;
}
