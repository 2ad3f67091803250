//! What the workspace depends on, held against `deny.toml`: licences, sources, crates in two versions. And dependencies that
//! a crate names and does not use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::tree::{Tree, code, has_word, is_test};

/// What `deny.toml` allows.
pub(crate) struct Policy {
    licences: BTreeSet<String>,
    registries: BTreeSet<String>,
    /// `name@version` of crates that are there in another version as well.
    skipped: BTreeSet<String>,
}

/// A package of the graph, our own included.
#[derive(Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// `registry+URL` or `git+URL`; `None` is a folder.
    pub(crate) source: Option<String>,
    pub(crate) ours: bool,
}

impl Policy {
    pub(crate) fn read(text: &str) -> Policy {
        let table: toml::Table = text.parse().expect("deny.toml is TOML");
        let list = |section: &str, key: &str| table[section][key].as_array().expect("deny.toml: a list").clone();
        let text = |value: &toml::Value| value.as_str().expect("deny.toml: a string").to_owned();
        Policy {
            licences: list("licenses", "allow").iter().map(text).collect(),
            registries: list("sources", "allow-registry").iter().map(text).collect(),
            skipped: list("bans", "skip").iter().map(|skip| text(&skip["crate"])).collect(),
        }
    }

    /// What `packages` have that is not allowed, and entries of `skip` that are needed no more.
    pub(crate) fn breaches(&self, packages: &[Package]) -> Vec<String> {
        let mut found = Vec::new();
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages {
            let known = format!("{} {}", package.name, package.version);
            versions.entry(&package.name).or_default().insert(&package.version);
            match package.licence.as_deref() {
                Some(licence) if allows(licence, &self.licences) => {}
                licence => found.push(format!("{known}: licence {}", licence.unwrap_or("unknown"))),
            }
            match package.source.as_deref().map(|source| source.strip_prefix("registry+").unwrap_or(source)) {
                None if package.ours => {}
                Some(source) if self.registries.contains(source) => {}
                source => found.push(format!("{known}: from {}", source.unwrap_or("a folder outside"))),
            }
        }
        for (name, versions) in versions {
            let skipped = |version: &&&str| self.skipped.contains(&format!("{name}@{version}"));
            if versions.len() - versions.iter().filter(skipped).count() > 1 {
                found.push(format!("{name}: in versions {versions:?}; deny.toml lists those that are skipped"));
            }
        }
        let twice = |skip: &str| {
            let (name, version) = skip.split_once('@').unwrap_or((skip, ""));
            let of_name = || packages.iter().filter(|p| p.name == name);
            of_name().any(|p| p.version == version) && of_name().any(|p| p.version != version)
        };
        let stale = self.skipped.iter().filter(|skip| !twice(skip));
        found.extend(stale.map(|skip| format!("{skip}: in one version only; remove it from deny.toml")));
        found
    }
}

/// All packages that a build of the workspace on Linux uses, with every feature. Nothing is fetched but what a build fetches.
pub(crate) fn packages(root: &Path) -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version=1", "--locked", "--all-features"];
    let platform = "--filter-platform=x86_64-unknown-linux-gnu";
    let out = Command::new(cargo).current_dir(root).args(arguments).arg(platform).output().expect("cargo runs");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let members = metadata["workspace_members"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let package = |package: &serde_json::Value| Package {
        name: text(&package["name"]).unwrap(),
        version: text(&package["version"]).unwrap(),
        licence: text(&package["license"]),
        source: text(&package["source"]),
        ours: members.contains(&package["id"]),
    };
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

/// Whether an SPDX licence expression allows use under the `allowed` licences alone. `AND` binds stronger than `OR`; cargo's old
/// `/` is an `OR`. A licence with an exception counts only if it is allowed as such. What is no expression allows nothing.
pub(crate) fn allows(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) == Some(true) && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut fits = all_of(words, allowed)?;
    while let Some(rest) = words.strip_prefix(&["OR"]) {
        *words = rest;
        fits |= all_of(words, allowed)?;
    }
    Some(fits)
}

fn all_of(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut fits = one(words, allowed)?;
    while let Some(rest) = words.strip_prefix(&["AND"]) {
        *words = rest;
        fits &= one(words, allowed)?;
    }
    Some(fits)
}

fn one(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    match **words {
        ["(", ..] => {
            *words = &words[1..];
            let fits = any_of(words, allowed)?;
            *words = words.strip_prefix(&[")"])?;
            Some(fits)
        }
        [")" | "AND" | "OR" | "WITH", ..] | [] => None,
        [licence, "WITH", exception, ..] => {
            *words = &words[3..];
            Some(allowed.contains(&format!("{licence} WITH {exception}")))
        }
        [licence, ..] => {
            *words = &words[1..];
            Some(allowed.contains(licence))
        }
    }
}

/// Dependencies that the crate in `folder` names in its Cargo.toml and in none of its files; one that only tests use belongs to
/// `dev-dependencies`.
pub(crate) fn unused(tree: &Tree, folder: &str) -> Vec<String> {
    let manifest: toml::Table = tree.files[&format!("{folder}/Cargo.toml")].parse().expect("Cargo.toml is TOML");
    let within = |place: &str| {
        let place = format!("{folder}/{place}");
        tree.rust().filter(move |(path, _)| path.starts_with(&place)).collect::<Vec<_>>()
    };
    let tests = ["tests/", "benches/", "examples/"].iter().flat_map(|place| within(place));
    let everything: Vec<(&str, &str)> = within("src/").into_iter().chain(tests).collect();
    let uncommented =
        |text: &str| text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let program = within("src/").into_iter().filter(|(path, _)| !is_test(path));
    let sections = [
        ("dependencies", program.map(|(_, text)| code(text).collect::<Vec<_>>().join("\n")).collect::<Vec<_>>()),
        ("dev-dependencies", everything.iter().map(|(_, text)| uncommented(text)).collect()),
        ("build-dependencies", within("build.rs").iter().map(|(_, text)| uncommented(text)).collect()),
    ];
    let mut found = Vec::new();
    for (section, texts) in sections {
        let named = manifest.get(section).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
        let unused = named.filter(|name| !texts.iter().any(|text| has_word(text, &name.replace('-', "_"))));
        found.extend(unused.map(|name| format!("{section}: {name} is not used")));
    }
    found
}
