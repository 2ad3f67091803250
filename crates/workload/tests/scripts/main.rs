//! pgbench scripts, compared with what pgbench itself did with them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod mix;
mod pgbench;
mod statements;
