//! Samplers: counters of the operating system, an inventory of the machine, and a generic poller of a database's
//! counters and wait events.
//!
//! The poller polls an observer of the target. All times are ns on one clock, [`loadline_storage::now_ns`].

mod error;
pub mod inventory;
pub mod os;
pub mod page_cache;
pub mod sampler;
pub mod surroundings;

pub use error::CollectError;
pub use sampler::{
    Collected, CpuSource, PendingReading, Point, Rates, Recent, Sampler, SamplerConfig, Second, System, WindowReading,
};
pub use surroundings::{Confined, Surroundings};
