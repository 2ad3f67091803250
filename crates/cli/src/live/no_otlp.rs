//! A loadline without `run --otlp`: says how to get one with it.

use std::path::Path;

use crate::exit::Failure;

pub(super) const READY: &str = "never";

pub(super) fn check(_: &str) -> Result<(), Failure> {
    Err(Failure::usage(
        "--otlp: this loadline was built without it: build it with `cargo build --release --features otlp`",
    ))
}

pub(super) fn push(_: &Path, url: &str) -> Result<u8, Failure> {
    check(url).map(|()| 0)
}
