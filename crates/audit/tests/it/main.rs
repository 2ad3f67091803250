//! The audit from outside: tables in, findings out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod tables;
