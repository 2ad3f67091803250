//! Tests of what neighbours change: the device's counters, the machine's CPUs. Cargo runs this binary by itself, and its
//! tests run one at a time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "it/common/mod.rs"]
mod common;

#[path = "alone/cluster.rs"]
mod cluster;
#[path = "alone/disturbance.rs"]
mod disturbance;

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The storage and database-writer groups.
#[test]
fn where_blocks_come_from_is_proved_or_the_test_is_invalid() {
    let _alone = alone();
    let server = common::Server::start(&["shared_buffers=128MB"]);
    common::hold_runs(include_str!("it/data/demands/storage.toml"), &[("{url}", &server.url())]);
}
