//! Load from many hosts: agents that wait at a hub (NATS) and run a coordinator's jobs in one common window.
//!
//! Read `message.rs` first: it has the protocol. An agent is `agent.rs` (what it does at which order; no clock, no thread, no I/O)
//! in `service.rs`, its jobs are in `jobs.rs`. The other side is `coordinator.rs`, a test over agents `test.rs`, and what a run sees of
//! it `remote.rs`. `simulation.rs` runs both sides with wrong clocks, lost messages and agents that fail.

mod agent;
mod coordinator;
mod counted;
mod hub;
mod jobs;
mod message;
mod offset;
mod remote;
mod service;
#[cfg(test)]
mod simulation;
mod test;

pub use coordinator::AgentsError;
pub use hub::{HubError, HubLink, HubOptions};
pub use message::Presence;
pub use remote::{AgentTarget, Agents, list};
pub use service::{host, new_id, presence, serve};
