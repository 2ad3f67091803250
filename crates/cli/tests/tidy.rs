//! Style as a test. Each rule reads the whole tree and returns its breaches; `a_planted_breach_is_caught` plants one
//! of each rule in each crate of a copy, so that no folder escapes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tidy/budget.rs"]
mod budget;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/ignored.rs"]
mod ignored;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/tree.rs"]
mod tree;

use std::fs;
use std::path::Path;

use dependencies::{Package, Policy, allows, packages};
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
fn what_the_crates_depend_on_is_allowed() {
    let policy = Policy::read(&fs::read_to_string(root().join("deny.toml")).unwrap());
    let packages = packages(root());
    assert!(packages.iter().filter(|p| !p.ours).count() > 100, "{} packages", packages.len());
    assert_eq!(policy.breaches(&packages), Vec::<String>::new());

    // Planted: one breach each, and no other is seen for it.
    let serde = packages.iter().find(|p| p.name == "serde").unwrap();
    let with = |change: fn(&mut Package)| {
        let mut planted = Package { name: "planted".to_owned(), ..serde.clone() };
        change(&mut planted);
        policy.breaches(&[&packages[..], &[planted]].concat())
    };
    assert_eq!(with(|_| ()), Vec::<String>::new());
    for change in [
        (|p| p.licence = Some("GPL-3.0-only".to_owned())) as fn(&mut Package),
        |p| p.licence = Some("MIT AND GPL-3.0-only".to_owned()),
        |p| p.licence = None,
        |p| p.source = None,
        |p| p.source = Some("git+https://example.org/planted".to_owned()),
        |p| p.source = Some("registry+https://example.org/index".to_owned()),
        |p| (p.name, p.version) = ("serde".to_owned(), "0.9.0".to_owned()),
    ] {
        assert_eq!(with(change).len(), 1, "{:?}", with(change));
    }
    let fewer: Vec<Package> = packages.iter().filter(|p| p.name != "fallible-iterator").cloned().collect();
    assert_eq!(policy.breaches(&fewer).len(), 1, "what is skipped in vain is said");
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = ["MIT", "Apache-2.0", "ISC"].map(str::to_owned).into();
    for good in ["MIT", "GPL-2.0 OR MIT", "GPL-2.0/MIT", "(MIT OR GPL-2.0) AND ISC", "GPL-2.0 AND ISC OR MIT"] {
        assert!(allows(good, &allowed), "{good}");
    }
    for bad in [
        "", "GPL-2.0", "MIT AND GPL-2.0", "MIT WITH X-exception", "(MIT", "MIT)", "MIT ISC", "MIT OR",
        "MIT AND (GPL-2.0 OR BSL-1.0)",
    ] {
        assert!(!allows(bad, &allowed), "{bad}");
    }
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
            for (name, text) in (rule.planted)(folder) {
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
