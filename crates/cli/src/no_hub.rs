//! A loadline without agents: says how to get one with them.

use loadline_run::Study;

use crate::args::HubCommand;
use crate::exit::Failure;

const ABSENT: &str = "this loadline was built without agents: build it with `cargo build --release --features hub`";

pub(crate) fn command(_: &HubCommand) -> Result<u8, Failure> {
    Err(Failure::usage(ABSENT))
}

pub(crate) fn with(study: Study, _: Option<&str>) -> Result<Study, Failure> {
    if study.plan.runs_jobs_here() { Ok(study) } else { Err(Failure::usage(ABSENT)) }
}
