//! The net: what no refactoring may change in silence. Needs no server and no clock.
//!
//! `kept/` holds what loadline gave at commit 2581090b, before it was made smaller: tables that it printed of stored runs
//! (`golden-*.tar.xz`), the names of everything that users and scripts know (`census.txt`), and hashes of the SQL, rows and draws
//! of each workload (`hashes.txt`). Each item is compared with what the program of the day gives. An item that differs, vanished
//! or is new fails, unless `kept/changed.toml` names it with the issue that changed it. The `kept` files themselves are never
//! written again; `kept/README.md` says how they were made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod census;
mod golden;
mod hashes;
mod kept;
