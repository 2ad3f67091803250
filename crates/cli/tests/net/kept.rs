//! Compares items with those that were kept, by the list of allowed changes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

/// Values by id.
pub(crate) type Items = BTreeMap<String, String>;

const LISTS: [&str; 6] = ["census", "hashes", "golden", "checks of sqlite", "checks of postgres", "checks of mariadb"];
/// Most differences that a failure prints.
const SHOWN: usize = 60;

/// Allowed differences from the kept lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    /// The list that it is about: one of [`LISTS`].
    list: String,
    /// Id of an item; `*` stands for any characters.
    id: String,
    issue: u32,
    why: String,
    /// `gone`, `new`, or the value now; without it, any other value.
    now: Option<String>,
    #[serde(skip)]
    used: Cell<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    changed: Vec<Changed>,
}

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/net/kept").join(name)
}

/// The items of a file with an id and, after a tab, a value per line.
pub(crate) fn items(name: &str) -> Items {
    let text = std::fs::read_to_string(path(name)).unwrap();
    let item =
        |line: &str| line.split_once('\t').map_or((line.to_owned(), String::new()), |(id, v)| (id.into(), v.into()));
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(item).collect()
}

pub(crate) fn runs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["golden-1.tar.xz", "golden-2.tar.xz"] {
        let done = Command::new("tar").arg("-xJf").arg(path(name)).arg("-C").arg(dir.path()).output();
        let done = done.expect("tar is missing: apt-get install tar xz-utils");
        assert!(done.status.success(), "{} (apt-get install xz-utils?)", String::from_utf8_lossy(&done.stderr));
    }
    dir
}

/// Whether `id` is `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, id: &str) -> bool {
    let Some((start, further)) = pattern.split_once('*') else { return pattern == id };
    let Some(rest) = id.strip_prefix(start) else { return false };
    (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(further, rest)))
}

/// Differences between `then` and `now` that are not in `allowed`, and entries of `allowed` that nothing needs.
fn differences(list: &str, then: &Items, now: &Items, allowed: &[Changed]) -> Vec<String> {
    let ids: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
    let mut wrong = Vec::new();
    for id in ids {
        let (before, after) = (then.get(id), now.get(id));
        if before == after {
            continue;
        }
        let fits = |c: &&Changed| {
            c.list == list
                && matches(&c.id, id)
                && match c.now.as_deref() {
                    Some("gone") => after.is_none(),
                    Some("new") => before.is_none(),
                    Some(value) => after.is_some_and(|now| now == value),
                    None => before.is_some() && after.is_some(),
                }
        };
        match allowed.iter().find(fits) {
            Some(entry) => entry.used.set(true),
            None => wrong.push(match (before, after) {
                (Some(before), Some(after)) => format!("{id}: was '{before}', is '{after}'"),
                (Some(_), None) => format!("{id}: is gone"),
                _ => format!("{id}: is new"),
            }),
        }
    }
    let unused = allowed.iter().filter(|c| c.list == list && !c.used.get());
    wrong.extend(unused.map(|c| format!("changed.toml: nothing of '{}' differs as '{}' says", c.list, c.id)));
    wrong
}

/// Fails if `now` differs from `then` in anything that `changed.toml` does not name. With `LOADLINE_NET_PRINT=DIR`, also writes
/// what is now to a file in this folder.
pub(crate) fn compare(list: &str, then: &Items, now: &Items) {
    if let Some(dir) = std::env::var_os("LOADLINE_NET_PRINT") {
        let text: String = now.iter().map(|(id, value)| format!("{id}\t{value}\n")).collect();
        std::fs::write(PathBuf::from(dir).join(format!("{list}.txt")), text).unwrap();
    }
    let allowed: List = toml::from_str(&std::fs::read_to_string(path("changed.toml")).unwrap()).unwrap();
    for entry in &allowed.changed {
        assert!(LISTS.contains(&entry.list.as_str()), "{entry:?}");
        assert!(entry.issue > 36 && entry.why.len() > 10, "the issue and why: {entry:?}");
    }
    let wrong = differences(list, then, now, &allowed.changed);
    let count = wrong.len();
    let shown = wrong.into_iter().take(SHOWN).collect::<Vec<_>>().join("\n");
    assert_eq!(count, 0, "{list} differs from 2581090b in {count} items that changed.toml does not name:\n{shown}");
}

#[test]
fn what_differs_is_found_and_what_is_named_is_allowed() {
    let items =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Items>();
    let then = items(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let now = items(&[("a", "1"), ("b", "9"), ("d", "4")]);
    assert_eq!(differences("l", &then, &then, &[]), Vec::<String>::new());
    assert_eq!(differences("l", &then, &now, &[]), ["b: was '2', is '9'", "c: is gone", "d: is new"]);
    let entry = |id: &str, now: Option<&str>| Changed {
        list: "l".into(),
        id: id.into(),
        issue: 99,
        why: "a test".into(),
        now: now.map(Into::into),
        used: Cell::new(false),
    };
    let all = [entry("b", None), entry("c", Some("gone")), entry("*", Some("new"))];
    assert_eq!(differences("l", &then, &now, &all), Vec::<String>::new());
    // A change is neither gone nor new, its value may be fixed, and an entry that nothing needs is a mistake.
    for wrong in [entry("b", Some("gone")), entry("b", Some("new")), entry("b", Some("8")), entry("x", None)] {
        assert_eq!(differences("l", &then, &now, &[wrong]).len(), 4);
    }
}

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, id) in [("a", "a"), ("*", ""), ("a*", "abc"), ("*c", "abc"), ("a*c*e", "abcde"), ("a*a", "aa")] {
        assert!(matches(pattern, id), "{pattern} {id}");
    }
    for (pattern, id) in [("a", "ab"), ("a*", "ba"), ("*c", "ca"), ("a*c*e", "ace1"), ("a*a", "a")] {
        assert!(!matches(pattern, id), "{pattern} {id}");
    }
}
