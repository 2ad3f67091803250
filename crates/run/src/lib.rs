//! Runs a plan: sweeps, tests, checks, records.
//!
//! A [`PlanSpec`] becomes a [`Plan`](loadline_model::Plan)
//! ([`plan`]), a plan becomes tests ([`study`]). In a test, jobs run in a common [window](loadline_load) while instruments measure
//! (`instrument.rs`). What they leave is `evidence.rs`, and `steps.rs` lists the functions that make a test of it: figures (`figures.rs`) and
//! checks (`checks.rs`), stored as a record (`record.rs`). This crate never prints: it sends [`Event`]s.

mod activity;
pub mod alone;
pub mod calibrate;
mod checks;
mod evidence;
mod figures;
mod instrument;
mod live;
pub mod plan;
mod record;
pub mod reference;
pub mod references;
pub mod server_memory;
mod steps;
pub mod study;
mod test;
#[cfg(test)]
mod testing;
pub mod watch;

pub use figures::volume::only_adds;
pub use live::{Event, Listener};
pub use plan::{PlanError, PlanSpec, make_plan};
pub use plan::{planfile, plans, sweep};
pub use study::{Study, StudyError, StudyOutcome};
