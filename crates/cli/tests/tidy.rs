//! Style as a test. Each rule reads the whole tree and returns its breaches; `a_planted_breach_is_caught` plants one
//! of each rule in each crate of a copy, so that no folder escapes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tidy/budget.rs"]
mod budget;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/ignored.rs"]
mod ignored;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/spine.rs"]
mod spine;
#[path = "tidy/tree.rs"]
mod tree;

use std::fs;
use std::path::Path;

use rules::{RULES, Rule};
use tree::{Breach, Tree};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn listed(breaches: &[Breach]) -> String {
    breaches.iter().map(|b| format!("  {}: {}\n", b.paths.join(", "), b.what)).collect()
}

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::read(root());
    let broken = RULES.iter().map(|rule| (rule.says, (rule.breaches)(&tree))).filter(|(_, b)| !b.is_empty());
    let broken: Vec<String> = broken.map(|(says, breaches)| format!("{says}\n{}", listed(&breaches))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_median_file_is_short() {
    let mut lengths: Vec<usize> = Tree::read(root()).rust().map(|(_, text)| text.lines().count()).collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median < 200, "the median file has {median} lines");
}

#[test]
fn a_planted_breach_is_caught() {
    let copy = tempfile::tempdir().unwrap();
    let tree = Tree::read(root());
    for (path, text) in &tree.files {
        write(&copy.path().join(path), text);
    }
    let crates = tree.crates();
    assert!(crates.len() >= 13, "{crates:?}");
    let mut planted: Vec<(&Rule, String)> = Vec::new();
    for (n, rule) in RULES.iter().enumerate() {
        for folder in crates.iter().filter(|c| (rule.applies)(c)) {
            for (name, text) in (rule.planted)() {
                let path = format!("{folder}/{}", name.replace("{n}", &n.to_string()));
                let full = copy.path().join(&path);
                // What is planted into a file that exists is added to it.
                let before = fs::read_to_string(&full).unwrap_or_default();
                write(&full, &(before + &text.replace("{n}", &n.to_string())));
                planted.push((rule, path));
            }
        }
    }
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").arg("-C").arg(copy.path()).args(args).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet"]);
    let tree = Tree::read(copy.path());
    for rule in RULES {
        let breaches = (rule.breaches)(&tree);
        for path in planted.iter().filter(|(of, _)| of.says == rule.says).map(|(_, path)| path) {
            let seen = breaches.iter().any(|b| b.paths.contains(path));
            assert!(seen, "{path} breaks a rule unseen: {}\n{}", rule.says, listed(&breaches));
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
