//! Databases under test: one module per database, each implements the roles of [`Target`].
//!
//! To add a database, write a module that defines a [`TargetKind`] and add one line to [`TARGETS`]. Read `kind.rs`,
//! `target.rs` and `role.rs` first.

#[cfg(test)]
mod cases;
mod changed_rows;
mod cloud;
mod data_set;
mod descriptor;
mod dialect;
mod duckdb;
mod embedded;
mod error;
mod facts;
mod flavour;
mod folder;
mod kernels;
mod kind;
mod loading;
pub mod machine;
mod mysql;
mod names;
mod null;
mod oracle;
mod other_sessions;
mod parallel;
mod patience;
mod pause;
mod postgres;
mod procedure;
mod registry;
mod relay;
mod render;
mod request;
mod role;
mod rules;
mod server_clock;
mod servers;
mod sqlite;
mod statement;
mod storage;
mod stream;
mod target;
mod tcp;
mod temp;
mod tls;
mod url;
mod view;
mod wal;
mod work;
mod workload_tables;

pub use data_set::{DataTable, FoundTable, LoadProgress, Loading, other_data};
pub use error::{Cause, Refusal, TargetError};
pub use facts::{Events, Facts, OwnFiles, Runs, WaitEvents};
pub use kind::{KindFacts, NativeReport, TargetKind};
pub use names::table_names;
pub use registry::{TARGETS, is_temporary, kind_of, open};
pub use relay::Relay;
pub use render::Rendered;
pub use request::{AskPassword, OpenRequest, Secret, Way};
pub use role::*;
pub use target::{Abilities, Nodes, RemainingNodes, Settings, Target, Ways};
pub use tcp::Address;
pub use tls::choose_cryptography;
pub use url::{hide, names_secret, redact, refuse_secrets};
pub use work::Work;
