//! Tests of what neighbours change: the device's counters, the machine's CPUs. Cargo runs this binary by itself, and its
//! tests run one at a time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "it/common/mod.rs"]
mod common;

#[path = "alone/cluster.rs"]
mod cluster;
#[path = "alone/disturbance.rs"]
mod disturbance;
#[path = "alone/storage.rs"]
mod storage;

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
