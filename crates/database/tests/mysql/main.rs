//! The MariaDB target against a real server: one private server shared by the tests of this binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod activity;
mod counters;
mod handshake;
mod nodes;
mod schema;
mod server;
#[path = "../shared/mod.rs"]
mod shared;
