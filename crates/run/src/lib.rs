//! Runs a plan: phases, jobs, pacing, sweep, verification.
//!
//! One way: a [`PlanSpec`](loadline_model::plan::PlanSpec) becomes a [`Plan`](loadline_model::Plan)
//! ([`plan`]), a plan becomes tests ([`study`]). A test is jobs in a common [`window`], with instruments beside
//! them (`instrument.rs`). What was measured becomes [`figures`], these are checked (`checks.rs`), and both become
//! a [`record`], which goes to the store. Nothing here prints: what happens is sent as [`Event`]s.

pub mod calibrate;
mod checks;
pub mod event;
pub mod figures;
mod instrument;
pub mod plan;
mod queries;
pub mod record;
pub mod reference;
pub mod study;
pub mod window;

pub use event::{Event, Listener};
pub use figures::access::only_adds;
pub use plan::{PlanError, make_plan};
pub use plan::{planfile, plans, sweep};
pub use study::{Study, StudyError, StudyOutcome};
