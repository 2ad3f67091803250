//! Gives the program its version, with the commit and its date if it is built in a checkout.

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = commit().map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=LOADLINE_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
}

/// Abbreviated hash and date of the commit; `None` if this crate is no file of a repository, such as a package unpacked in another.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // Grows with each commit and checkout. Without it the script would run each time, or the commit would be an old one.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists())?;
    println!("cargo::rerun-if-changed={log}");
    git(&["log", "-1", "--no-show-signature", "--abbrev=8", "--format=%h, %cs"])
}

/// The standard output of `git`, if it is installed and succeeds.
fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}
