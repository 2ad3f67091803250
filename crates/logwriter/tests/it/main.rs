//! The log as its users see it: figures, faults, recovery, and processes that are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;
mod engine;
mod faults;
mod kill;
mod recovery;

use loadline_logwriter as log;
