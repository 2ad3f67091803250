//! A loadline without agents: says how to get one with them.

use loadline_run::Study;

use crate::args::{AgentArgs, AgentsListArgs};
use crate::exit::Failure;

const ABSENT: &str = "this loadline was built without agents: build it with `cargo build --release --features hub`";

pub(crate) fn agent(_: &AgentArgs) -> Result<u8, Failure> {
    Err(Failure::usage(ABSENT))
}

pub(crate) fn agents_list(_: &AgentsListArgs) -> Result<u8, Failure> {
    Err(Failure::usage(ABSENT))
}

pub(crate) fn with(_: Study, _: Option<&str>) -> Result<Study, Failure> {
    Err(Failure::usage(ABSENT))
}
