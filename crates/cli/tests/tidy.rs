//! Style as a test: headers, lengths, no stray notes, no database's name in a workload.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

fn all() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for part in ["crates", "bench"] {
        sources(&root().join(part), &mut paths);
    }
    assert!(paths.len() > 50, "the sources were found");
    paths
        .into_iter()
        .map(|p| (p.strip_prefix(root()).unwrap().to_owned(), fs::read_to_string(root().join(&p)).unwrap()))
        .collect()
}

#[test]
fn every_file_says_what_it_is() {
    for (path, text) in all() {
        let is_tests = path.file_name().is_some_and(|n| n == "tests.rs");
        assert!(
            text.starts_with("//!") || is_tests,
            "{}: begin with a line of //! that says what it is",
            path.display()
        );
    }
}

#[test]
fn files_are_short() {
    let mut lengths = Vec::new();
    for (path, text) in all() {
        let lines = text.lines().count();
        let reason = text.lines().take_while(|l| l.starts_with("//!")).any(|l| l.contains("Long because"));
        assert!(
            lines <= 800 || reason,
            "{} has {lines} lines: split it, or say «Long because …» in its header",
            path.display()
        );
        lengths.push(lines);
    }
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median < 200, "the median file has {median} lines");
}

#[test]
fn nothing_is_left_to_do_in_comments() {
    // Put together so that this file does not name them.
    let words = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X:"].concat()];
    for (path, text) in all() {
        for (i, line) in text.lines().enumerate() {
            assert!(!words.iter().any(|w| line.contains(w.as_str())), "{}:{}: {line}", path.display(), i + 1);
        }
    }
}

#[test]
fn workloads_name_no_database_and_targets_no_workload() {
    let databases = ["postgres", "sqlite", "mysql", "mariadb", "oracle", "innodb"];
    for (path, text) in all() {
        let lower = text.to_lowercase();
        if path.starts_with("crates/workload/src") {
            for name in databases {
                assert!(!lower.contains(name), "{} names {name}", path.display());
            }
        }
        let is_test = path.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "tests.rs");
        if path.starts_with("crates/database/src") && !is_test {
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code: Vec<&str> = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
            // A message may name a workload for the reader; a branch on one may not be.
            let branches = code.iter().any(|l| l.contains("LGWR") && (l.contains("==") || l.contains("=>")));
            assert!(!branches, "{} decides by a workload's name", path.display());
        }
    }
}

#[test]
fn crates_use_only_what_lies_before_them() {
    // DESIGN, section 3. Cargo forbids circles; this forbids the rest.
    let allowed: &[(&str, &[&str])] = &[
        ("model", &[]),
        ("workload", &["model"]),
        ("device", &[]),
        ("logwriter", &["device"]),
        ("database", &["model", "workload", "logwriter", "device"]),
        ("probe", &["model", "device"]),
        ("collect", &["model", "device", "database"]),
        ("store", &["model"]),
        ("run", &["model", "workload", "database", "collect", "store", "probe"]),
        ("analyze", &["model"]),
        ("report", &["model", "store", "analyze"]),
    ];
    for (name, may) in allowed {
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        for line in manifest.lines().filter(|l| l.starts_with("loadline-")) {
            let used = line.trim_start_matches("loadline-").split(['.', ' ']).next().unwrap();
            assert!(may.contains(&used), "crate {name} may not use {used}");
        }
    }
}
