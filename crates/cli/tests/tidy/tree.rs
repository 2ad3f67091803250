//! The files of a checkout that git tracks, and new ones that it does not ignore.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

pub(crate) struct Tree {
    /// Path from its root -> text.
    pub(crate) files: BTreeMap<String, String>,
    /// Path of every file, of any kind -> bytes.
    pub(crate) sizes: BTreeMap<String, u64>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Tree {
        let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let out = Command::new("git").arg("-C").arg(root).args(list).output().expect("git runs: apt-get install git");
        assert!(out.status.success(), "git ls-files: {}", String::from_utf8_lossy(&out.stderr));
        let paths = String::from_utf8(out.stdout).unwrap();
        let wanted = |p: &&str| [".rs", ".toml", ".md"].iter().any(|end| p.ends_with(end));
        // A file that git tracks may have been deleted.
        let read = |p: &str| Some((p.to_owned(), std::fs::read_to_string(root.join(p)).ok()?));
        let files: BTreeMap<String, String> = paths.lines().filter(wanted).filter_map(read).collect();
        assert!(files.len() > 300, "only {} files were found", files.len());
        let size = |p: &str| Some((p.to_owned(), root.join(p).metadata().ok()?.len()));
        Tree { files, sizes: paths.lines().filter_map(size).collect() }
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn documents(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str).filter(|path| path.ends_with(".md"))
    }

    /// Folders with a Cargo.toml: `crates/model`, `bench`.
    pub(crate) fn crates(&self) -> BTreeSet<&str> {
        self.files.keys().filter_map(|path| path.strip_suffix("/Cargo.toml")).collect()
    }
}

/// A breach of a rule: a file, or several together.
pub(crate) struct Breach {
    pub(crate) paths: Vec<String>,
    pub(crate) what: String,
}

pub(crate) fn breach(path: &str, what: impl Into<String>) -> Breach {
    Breach { paths: vec![path.to_owned()], what: what.into() }
}

/// Whether a file holds nothing but tests.
pub(crate) fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs")
}

/// Whether a text has this word: not as a part of a longer one.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The lines of a file that are neither comments nor its module of tests.
pub(crate) fn code(text: &str) -> impl Iterator<Item = &str> {
    let end =
        text.find("#[cfg(test)]\nmod tests {").or_else(|| text.find("#[cfg(test)]\n#[allow")).unwrap_or(text.len());
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//"))
}
