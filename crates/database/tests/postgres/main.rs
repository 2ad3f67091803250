//! The PostgreSQL target with a real server: one private server, one database per test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod activity;
mod counters;
mod drivers;
mod schema;
mod server;
#[path = "../shared/mod.rs"]
mod shared;
mod standbys;
