//! The way from a coordinator to its agents: the hub in a run, simulated delays in tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use loadline_storage::now_ns;

use crate::hub::{Hub, HubError, HubOptions};
use crate::message::{Message, Order, Received, TO_ALL, to_agent, to_run};

/// Longest wait for anything, so that a signal is noticed.
pub(crate) const LOOK_NS: u64 = 100_000_000;

/// A coordinator's side of the hub.
pub(crate) trait Link {
    /// The coordinator's clock, ns.
    fn now_ns(&self) -> u64;

    /// Sends an order to the agent with this id, or to all. What cannot be sent is lost.
    fn send(&mut self, agent: Option<&str>, order: &Message<Order>);

    /// Next event for this coordinator; waits for it until `until_ns` at most.
    fn receive(&mut self, until_ns: u64) -> Option<Received>;

    /// From now on says once a second that this run goes on, until `None` is given. It does not depend on [`Link::receive`].
    fn beat(&mut self, run: Option<&str>);

    /// Fault of the hub now, or since `since_ns`.
    fn trouble(&self, _since_ns: u64) -> Option<String> {
        None
    }

    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

/// A coordinator's connection to the hub.
pub struct HubLink {
    pub(crate) hub: Hub,
    inbox: Receiver<Received>,
    interrupted: Arc<AtomicBool>,
}

impl HubLink {
    /// Connects, to hear what is said to `asker`.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn connect(options: &HubOptions, asker: &str, interrupted: Arc<AtomicBool>) -> Result<HubLink, HubError> {
        let (heard, inbox) = channel();
        let hub = Hub::connect(options, &[to_run(asker)], move |received| drop(heard.send(received)))?;
        Ok(HubLink { hub, inbox, interrupted })
    }
}

impl Link for HubLink {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn send(&mut self, agent: Option<&str>, order: &Message<Order>) {
        self.hub.publish(&agent.map_or_else(|| TO_ALL.to_owned(), to_agent), order);
    }

    fn receive(&mut self, until_ns: u64) -> Option<Received> {
        let left_ns = until_ns.saturating_sub(now_ns());
        self.inbox.recv_timeout(Duration::from_nanos(left_ns.min(LOOK_NS))).ok()
    }

    fn beat(&mut self, run: Option<&str>) {
        self.hub.beat(run);
    }

    fn trouble(&self, since_ns: u64) -> Option<String> {
        self.hub.trouble(since_ns)
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
