//! A loadline without `watch` and `serve`: says how to get one with them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;

use crate::exit::Failure;
use crate::live_args::{ServeArgs, WatchArgs};

const ABSENT: &str =
    "this loadline was built without watch and serve: build it with `cargo build --release --features live`";

pub(crate) fn watch(_: &WatchArgs) -> Result<u8, Failure> {
    Err(Failure::usage(ABSENT))
}

pub(crate) fn serve(_: &ServeArgs) -> Result<u8, Failure> {
    Err(Failure::usage(ABSENT))
}

pub(crate) fn start_metrics(_: &Path, _: SocketAddr) -> Result<Infallible, Failure> {
    Err(Failure::usage(format!("--metrics: {ABSENT}")))
}
