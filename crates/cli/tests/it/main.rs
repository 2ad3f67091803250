//! The program end to end. One binary: linking it takes longer than many of its tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ab;
#[cfg(feature = "hub")]
mod agents;
#[cfg(feature = "servers")]
mod analytics;
mod browser;
#[cfg(feature = "servers")]
mod clusters;
mod commands;
mod common;
mod first_use;
#[path = "../net/kept.rs"]
mod kept;
#[cfg(feature = "servers")]
mod kill;
mod limits;
mod live;
mod load;
mod made_checks;
#[cfg(feature = "servers")]
mod managed;
mod measured;
mod metrics;
#[cfg(feature = "servers")]
mod mysql;
mod pages;
#[cfg(feature = "servers")]
mod pgbench_scripts;
mod plans;
#[cfg(feature = "servers")]
mod postgres;
mod probe;
#[cfg(feature = "servers")]
mod refused;
mod registry;
#[cfg(feature = "servers")]
mod snapshot;
mod trend;
mod user_workload;
#[cfg(feature = "servers")]
mod via;
#[cfg(feature = "servers")]
mod waits;
