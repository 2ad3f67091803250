//! The budget of lines and the names that are gone, by `budget.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::tree::{Breach, Tree, breach, has_word};

const FILE: &str = "budget.toml";
/// A crate that is so far below its budget, in lines and as a share, has it lowered.
const SLACK_LINES: i64 = 100;
const SLACK_SHARE: f64 = 0.03;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    total: i64,
    crates: BTreeMap<String, i64>,
    #[serde(default)]
    booked: Vec<Booked>,
    /// Names, and the issue that took each out.
    gone: BTreeMap<String, u32>,
}

/// An addition by an issue. The first two fields are for readers of the file, and must be there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Booked {
    what: String,
    issue: u32,
    #[serde(rename = "crate")]
    crate_name: String,
    lines: i64,
}

fn read(text: &str) -> Budget {
    toml::from_str(text).unwrap_or_else(|e| panic!("{FILE}: {e}"))
}

/// Crates with more lines of Rust than their budget, or far fewer; and the same of all together.
pub(crate) fn over(tree: &Tree) -> Vec<Breach> {
    let Budget { mut total, crates: mut allowed, booked, .. } = read(&tree.files[FILE]);
    for booked in booked {
        *allowed.entry(booked.crate_name).or_default() += booked.lines;
        total += booked.lines;
    }
    let mut files: BTreeMap<&str, Vec<(i64, &str)>> = BTreeMap::new();
    for (path, text) in tree.rust() {
        let crate_name = path.strip_prefix("crates/").unwrap_or(path).split('/').next().unwrap_or_default();
        files.entry(crate_name).or_default().push((text.lines().count() as i64, path));
    }
    let sum = |files: &[(i64, &str)]| files.iter().map(|(lines, _)| lines).sum::<i64>();
    let names: BTreeSet<&str> = allowed.keys().map(String::as_str).chain(files.keys().copied()).collect();
    let of_crate = |name: &str| {
        let files = files.get(name).map_or(&[][..], Vec::as_slice);
        let largest = files.iter().max().map_or(FILE, |(_, path)| path);
        judge(name, sum(files), allowed.get(name).copied().unwrap_or(0), largest)
    };
    let of_all = judge("the sum of all crates", files.values().map(|files| sum(files)).sum(), total, FILE);
    names.into_iter().filter_map(of_crate).chain(of_all).collect()
}

fn judge(name: &str, lines: i64, allowed: i64, largest: &str) -> Option<Breach> {
    let left = allowed - lines;
    if left < 0 {
        return Some(breach(
            largest,
            format!("{name} has {lines} lines, its budget is {allowed}: move something out or book it"),
        ));
    }
    let far_below = left > SLACK_LINES && left as f64 > SLACK_SHARE * allowed as f64;
    far_below.then(|| breach(FILE, format!("{name} has {lines} lines, its budget is {allowed}: lower it")))
}

/// Lines with a name that is gone. The histories of changes may tell of them.
pub(crate) fn come_back(tree: &Tree) -> Vec<Breach> {
    let gone = read(&tree.files[FILE]).gone;
    // A crate is `loadline-x` in Cargo.toml and `loadline_x` in code.
    let alike = |text: &str| text.replace('-', "_");
    let gone: Vec<(String, u32)> = gone.iter().map(|(name, issue)| (alike(name), *issue)).collect();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    const HISTORY: [&str; 3] = [FILE, "CHANGELOG.md", "crates/cli/tests/net/kept/changed.toml"];
    let looked_at = tree.files.iter().filter(|(path, _)| !HISTORY.contains(&path.as_str()));
    let mut found = Vec::new();
    for (path, text) in looked_at {
        let text = alike(text);
        let words: BTreeSet<&str> = text.split(|c| !is_part(c)).collect();
        let is_there = |name: &str| words.contains(name) || (!name.chars().all(is_part) && has_word(&text, name));
        for (name, issue) in gone.iter().filter(|(name, _)| is_there(name)) {
            found.push(breach(path, format!("'{name}' is gone since issue {issue}")));
        }
    }
    found
}

/// A name that is gone, for a file that breaks the rule.
pub(crate) fn one_that_is_gone() -> String {
    let budget = read(include_str!("../../../../budget.toml"));
    budget.gone.into_keys().next().expect("a name that is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(budget: &str, lines: usize) -> Tree {
        let files = [(FILE, budget.to_owned()), ("crates/a/src/lib.rs", "//! A file.\n".repeat(lines))];
        Tree { files: files.map(|(path, text)| (path.to_owned(), text)).into(), sizes: BTreeMap::new() }
    }

    #[test]
    fn a_crate_keeps_to_its_budget_and_the_budget_falls_with_it() {
        let budget = "gone = {}\ntotal = 1000\ncrates.a = 1000\n";
        let booked = format!("{budget}[[booked]]\nwhat = \"more\"\nissue = 7\ncrate = \"a\"\nlines = 50\n");
        // Breaches are of the crate and of the sum.
        for (budget, lines, breaches) in [
            (budget, 1000, 0),
            (budget, 900, 0),
            (budget, 1001, 2),
            (budget, 899, 2),
            (&booked, 1050, 0),
            (&booked, 1051, 2),
            ("gone = {}\ntotal = 1000\ncrates = {}\n", 1000, 1),
            (&format!("{budget}crates.b = 200\n"), 1000, 1),
        ] {
            assert_eq!(over(&tree(budget, lines)).len(), breaches, "{lines} {budget}");
        }
    }

    #[test]
    fn a_name_that_is_gone_is_found_as_a_whole_word() {
        let mut tree = tree("total = 1\ncrates.a = 1\ngone = { loadline-old = 7, --old = 7 }\n", 1);
        let mut found = |text: &str| {
            tree.files.insert("a.md".to_owned(), text.to_owned());
            come_back(&tree).len()
        };
        for (text, count) in [
            ("loadline-old", 1),
            ("(loadline_old::x)", 1),
            ("`--old`, loadline-old.", 2),
            ("--old=5", 1),
            ("loadline-older, loadline-old-name, my-loadline-old, --older, ---old", 0),
        ] {
            assert_eq!(found(text), count, "{text}");
        }
    }
}
