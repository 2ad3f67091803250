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

use std::path::Path;
use std::process::Command;

/// Output of the program for a command line in `dir`. Exit codes other than 0 are answers of some commands.
fn said(dir: &Path, line: &str) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_loadline")).args(line.split(' ')).current_dir(dir).output().unwrap();
    let why = String::from_utf8_lossy(&out.stderr);
    assert!(!out.stdout.is_empty(), "{line} says nothing, exit {:?}: {why}", out.status.code());
    String::from_utf8(out.stdout).unwrap()
}
