//! Load from many hosts: agents that wait at a hub (NATS) and run a coordinator's jobs in one common window.
//!
//! Pure parts: clocks ([`offset`]), the lease ([`lease`]), what is said ([`message`]), both sides ([`agent`], [`coordinator`]) and
//! the test ([`test`]). A simulation of a thousand agents drives these same parts (`tests/simulation.rs`).

pub mod agent;
pub mod coordinator;
mod counted;
pub mod hub;
pub mod jobs;
pub mod lease;
pub mod link;
pub mod message;
pub mod offset;
pub mod pack;
pub mod remote;
pub mod service;
pub mod share;
pub mod test;
