//! The audit from outside: tables in, findings out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod cases;
mod properties;
