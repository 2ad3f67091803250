//! Samplers: counters of the operating system, an inventory of machine and storage, and one
//! generic poller of a database's counters and wait events.
//!
//! The poller knows no database: what it polls is a [`Source`], which the run crate makes of the
//! target's observer. All times are ns on one clock, [`clock::now_ns`].

pub mod clock;
mod error;
pub mod inventory;
pub mod os;
pub mod page_cache;
pub mod sampler;

pub use error::CollectError;
pub use sampler::{Collected, CpuSource, Edge, PendingEdge, Point, Sampler, SamplerConfig, Source};
