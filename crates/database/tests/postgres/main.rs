//! The PostgreSQL target against a real server: one private server, one database a test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod counters;
mod drivers;
mod schema;
mod server;
