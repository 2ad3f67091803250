//! Runs a plan: phases, jobs, pacing, sweep, verification.
//!
//! One way: a [`PlanSpec`](loadline_model::plan::PlanSpec) becomes a [`Plan`](loadline_model::Plan)
//! ([`plan`]), a plan becomes tests ([`study`], [`sweep`]), a test becomes a record ([`test`],
//! [`figures`], [`verify`]), a record goes to the store. Nobody here prints: what happens is told
//! as [`Event`]s.

mod block_checks;
mod block_figures;
pub mod calibrate;
pub mod checkpoint;
mod client_job;
pub mod data_source;
mod database_job;
pub mod event;
pub mod figures;
mod job;
pub mod limit;
mod load_figures;
mod overhead;
pub mod pace;
mod parallel;
pub mod plan;
pub mod planfile;
pub mod plans;
pub mod schedule;
pub mod sizes;
mod storage_probe;
pub mod study;
pub mod sweep;
pub mod test;
pub mod verify;
mod visible;
mod volume;
mod write_checks;

pub use block_checks::only_adds;
pub use event::{Event, Listener};
pub use job::JobResult;
pub use plan::{PlanError, make_plan};
pub use study::{Study, StudyError, StudyOutcome};
