//! Integration tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod following;
mod screen;
