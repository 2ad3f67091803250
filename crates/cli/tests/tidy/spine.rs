//! The spine: the files that one opens to follow one run from `main` to its report, by `docs/spine.toml`.

use serde::Deserialize;

use crate::tree::{Breach, Tree, breach};

const FILE: &str = "docs/spine.toml";
const MOST: usize = 45;
/// Words of features, which hang on lists of the spine.
const WORDS: [&str; 4] = ["agent", "cluster", "replica", "oracle"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spine {
    /// In the order in which they are opened.
    files: Vec<String>,
    /// Those that may name features: lists of them.
    lists: Vec<String>,
}

/// A spine that is too long, and files of it that are gone or name features, in code or comments.
pub(crate) fn bent(tree: &Tree) -> Vec<Breach> {
    let Spine { files, lists } = toml::from_str(&tree.files[FILE]).unwrap_or_else(|e| panic!("{FILE}: {e}"));
    let mut found = Vec::new();
    if files.len() > MOST {
        found.push(breach(FILE, format!("{} files, at most {MOST}: merge what is one idea", files.len())));
    }
    for path in &files {
        let Some(text) = tree.files.get(path) else {
            found.push(breach(FILE, format!("{path} does not exist")));
            continue;
        };
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let names = |line: &&str| WORDS.iter().any(|word| line.to_lowercase().contains(word));
        let named = if lists.contains(path) { None } else { code.lines().find(names) };
        found.extend(named.map(|line| breach(path, line)));
    }
    found
}
