//! The program end to end. One binary: linking it takes longer than many of its tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ab;
#[cfg(feature = "hub")]
mod agents;
mod aging;
mod analytics;
mod audit;
mod bad_input;
mod bound;
mod browser;
mod clusters;
mod common;
mod cost;
mod exchange;
mod first_use;
mod forecast;
mod hand;
#[path = "../net/kept.rs"]
mod kept;
mod kill;
mod limits;
mod lists;
mod live;
mod load;
mod made_checks;
mod managed;
mod many_sessions;
mod metrics;
mod mysql;
mod pages;
mod pgbench_scripts;
mod plans;
mod platforms;
mod populations;
mod postgres;
mod postgres_versions;
mod probe;
mod references;
mod refused;
mod registry;
mod snapshot;
mod tp;
mod trend;
mod user_workload;
mod via;
mod waits;
mod warmup;
